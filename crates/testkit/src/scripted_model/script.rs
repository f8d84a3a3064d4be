//! The text of a prompt, read as a script.
//!
//! One step a line. A tool step ends an answer; what follows it is sent once the agent came back with the result.
//!
//! ```text
//! say:hello world            the text, word by word
//! think:hm                   a thought
//! stream:500x2               500 words, 2 ms apart
//! hold:gate                  wait until the test opens the gate
//! bash:ls -l                 a shell command
//! read:README.md             read a file
//! write:a.txt=one\ntwo       write a file
//! edit:a.txt=two=>2          change a file
//! agent:say:done             hand a script to a sub-agent
//! ask                        ask the user which colour
//! plan:1. Do it              present a plan for approval
//! tool:Name {"a":1}          any tool, by name
//! parallel:bash:ls || read:a two tools at once
//! error:500                  fail with this status; `error:500*2` only the first two times
//! error:inband               an error event in the middle of the stream
//! error:cut                  the connection breaks in the middle of the stream; `error:cut*1` only the first time
//! ```
//!
//! Any other line is answered with `You said: …`.

use std::time::Duration;

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Say(String),
    Think(String),
    Stream { count: usize, gap: Duration },
    Hold(String),
    Tools(Vec<ToolStep>),
    Fail { status: u16, times: Option<u32> },
    FailInBand,
    Cut { times: Option<u32> },
}

/// A tool call, whatever an API's agent calls the tool.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolStep {
    Shell { command: String },
    Read { path: String },
    Write { path: String, content: String },
    Edit { path: String, old: String, new: String },
    Agent { prompt: String },
    Ask,
    Plan { plan: String },
    Named { name: String, input: Value },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Script(Vec<Step>);

impl Script {
    pub fn parse(prompt: &str) -> Self {
        Self(prompt.lines().filter(|line| !line.trim().is_empty()).map(step).collect())
    }

    /// What to do after the agent came back from tools `rounds` times. None: the script is over.
    pub fn part(&self, rounds: usize) -> Option<&[Step]> {
        let mut parts = self.0.split_inclusive(|step| matches!(step, Step::Tools(_)));
        parts.nth(rounds)
    }
}

fn step(line: &str) -> Step {
    if let Some(tools) = line.strip_prefix("parallel:") {
        let tools: Option<Vec<_>> = tools.split(" || ").map(tool).collect();
        if let Some(tools) = tools {
            return Step::Tools(tools);
        }
    }
    if let Some(tool) = tool(line) {
        return Step::Tools(vec![tool]);
    }
    let (word, rest) = line.split_once(':').unwrap_or((line, ""));
    match (word, rest) {
        ("say", text) => Step::Say(unescape(text)),
        ("think", text) => Step::Think(unescape(text)),
        ("hold", gate) => Step::Hold(gate.into()),
        ("error", "inband") => Step::FailInBand,
        ("error", "cut") => Step::Cut { times: None },
        ("error", status) => fail(status).unwrap_or_else(|| echo(line)),
        ("stream", size) => stream(size).unwrap_or_else(|| echo(line)),
        _ => echo(line),
    }
}

fn echo(line: &str) -> Step {
    Step::Say(format!("You said: {line}"))
}

fn fail(text: &str) -> Option<Step> {
    let (status, times) = match text.split_once('*') {
        Some((status, times)) => (status, Some(times.parse().ok()?)),
        None => (text, None),
    };
    if status == "cut" {
        return Some(Step::Cut { times });
    }
    Some(Step::Fail { status: status.parse().ok()?, times })
}

fn stream(text: &str) -> Option<Step> {
    let (count, gap) = text.split_once('x').unwrap_or((text, "0"));
    Some(Step::Stream { count: count.parse().ok()?, gap: Duration::from_millis(gap.parse().ok()?) })
}

fn tool(line: &str) -> Option<ToolStep> {
    let (word, rest) = line.split_once(':').unwrap_or((line, ""));
    Some(match word {
        "bash" => ToolStep::Shell { command: rest.into() },
        "read" => ToolStep::Read { path: rest.into() },
        "write" => {
            let (path, content) = rest.split_once('=')?;
            ToolStep::Write { path: path.into(), content: unescape(content) }
        }
        "edit" => {
            let (path, change) = rest.split_once('=')?;
            let (old, new) = change.split_once("=>")?;
            ToolStep::Edit { path: path.into(), old: unescape(old), new: unescape(new) }
        }
        "agent" => ToolStep::Agent { prompt: unescape(rest) },
        "ask" if rest.is_empty() => ToolStep::Ask,
        "plan" => ToolStep::Plan { plan: unescape(rest) },
        "tool" => {
            let (name, input) = rest.split_once(' ')?;
            ToolStep::Named { name: name.into(), input: serde_json::from_str(input).ok()? }
        }
        _ => return None,
    })
}

fn unescape(text: &str) -> String {
    text.replace("\\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_at_its_tools_and_goes_on_after_their_results() {
        let script = Script::parse("say:one\nbash:ls\nsay:two");
        assert_eq!(
            script.part(0),
            Some(&[Step::Say("one".into()), Step::Tools(vec![ToolStep::Shell { command: "ls".into() }])][..])
        );
        assert_eq!(script.part(1), Some(&[Step::Say("two".into())][..]));
        assert_eq!(script.part(2), None);
    }

    #[test]
    fn tools_may_run_side_by_side() {
        let script = Script::parse("parallel:read:a || edit:b=x=>y");
        let edit = ToolStep::Edit { path: "b".into(), old: "x".into(), new: "y".into() };
        assert_eq!(script.part(0), Some(&[Step::Tools(vec![ToolStep::Read { path: "a".into() }, edit])][..]));
    }

    #[test]
    fn errors_may_pass_after_some_tries() {
        assert_eq!(step("error:500"), Step::Fail { status: 500, times: None });
        assert_eq!(step("error:529*2"), Step::Fail { status: 529, times: Some(2) });
        assert_eq!(step("error:soon"), Step::Say("You said: error:soon".into()));
    }
}
