//! What Claude Code's tools do, in terms every agent shares: kind, command, locations, diffs, output.
//!
//! Comes in: a tool's name, its input, and its result in both forms (the text the model reads, and the structured
//! one). Goes out: [`ToolDetail`] and the output a person reads. Pure.

use protocol::{ToolContent, ToolDetail, ToolKind, ToolLocation};
use serde_json::{Map, Value};

use super::wire::ContentBlock;

/// What the program answers for tools whose turn was cancelled.
const REJECTED: &str = "User rejected tool use";

pub(super) fn is_agent(name: &str) -> bool {
    matches!(name, "Task" | "Agent")
}

fn kind(name: &str) -> ToolKind {
    match name {
        "Read" | "NotebookRead" | "ReadMcpResource" => ToolKind::Read,
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => ToolKind::Edit,
        "Bash" | "BashOutput" | "KillShell" | "KillBash" | "PowerShell" | "Monitor" => ToolKind::Execute,
        "Glob" | "Grep" | "LS" | "ToolSearch" | "LSP" => ToolKind::Search,
        "WebFetch" | "WebSearch" => ToolKind::Fetch,
        "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskList" | "TaskGet" => ToolKind::Think,
        "EnterPlanMode" | "ExitPlanMode" => ToolKind::SwitchMode,
        name if is_agent(name) => ToolKind::Agent,
        _ => ToolKind::Other,
    }
}

/// What is known when a tool is called. `input` may still be empty.
pub(super) fn called(name: &str, input: &Map<String, Value>) -> ToolDetail {
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let kind = kind(name);
    let path = text("file_path").or_else(|| text("notebook_path"));
    let location = path.or_else(|| text("path").filter(|_| kind == ToolKind::Search));
    let line = input.get("offset").and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok());
    let title = match name {
        "Grep" | "Glob" => text("pattern"),
        "WebFetch" => text("url"),
        "WebSearch" | "ToolSearch" => text("query"),
        "Skill" => text("skill"),
        "AskUserQuestion" => input.get("questions").and_then(|questions| questions[0]["question"].as_str()),
        _ => text("description"),
    };
    ToolDetail {
        kind,
        title: title.map(str::to_owned),
        command: text("command").filter(|_| kind == ToolKind::Execute).map(str::to_owned),
        locations: location.map(|path| ToolLocation { path: path.into(), line }).into_iter().collect(),
        content: proposed(name, path, input),
        ..ToolDetail::default()
    }
}

/// What a call is about to do, as far as it can be shown.
fn proposed(name: &str, path: Option<&str>, input: &Map<String, Value>) -> Vec<ToolContent> {
    let diff = |change: &Value| {
        Some(ToolContent::Diff {
            path: path?.into(),
            old_text: Some(change["old_string"].as_str()?.into()),
            new_text: change["new_string"].as_str()?.into(),
            start_line: None,
        })
    };
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    match name {
        "Edit" => diff(&Value::Object(input.clone())).into_iter().collect(),
        "MultiEdit" => input.get("edits").and_then(Value::as_array).into_iter().flatten().filter_map(diff).collect(),
        "Write" => match (path, text("content")) {
            (Some(path), Some(content)) => vec![new_file(path, content)],
            _ => Vec::new(),
        },
        "ExitPlanMode" => text("plan").map(|plan| ToolContent::Text { text: plan.into() }).into_iter().collect(),
        "AskUserQuestion" => questions(input).map(|text| ToolContent::Text { text }).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn new_file(path: &str, content: &str) -> ToolContent {
    ToolContent::Diff { path: path.into(), old_text: None, new_text: content.into(), start_line: None }
}

/// The questions and what there is to choose from, as markdown.
fn questions(input: &Map<String, Value>) -> Option<String> {
    let mut text = String::new();
    for question in input.get("questions")?.as_array()? {
        text.push_str(&format!("**{}**\n\n", question["question"].as_str().unwrap_or_default()));
        for option in question["options"].as_array().into_iter().flatten() {
            let label = option["label"].as_str().unwrap_or_default();
            match option["description"].as_str() {
                Some(description) if !description.is_empty() => {
                    text.push_str(&format!("- {label}: {description}\n"));
                }
                _ => text.push_str(&format!("- {label}\n")),
            }
        }
        text.push('\n');
    }
    Some(text.trim_end().to_owned())
}

/// How a tool ended.
#[derive(Debug, PartialEq)]
pub(super) struct ToolOutcome {
    pub(super) output: String,
    pub(super) is_error: bool,
}

/// Takes in a result: completes the detail and gives the output a person reads.
pub(super) fn ended(
    name: &str,
    detail: &mut ToolDetail,
    content: &[ContentBlock],
    is_error: bool,
    structured: Option<&Value>,
) -> ToolOutcome {
    if structured.and_then(Value::as_str) == Some(REJECTED) {
        detail.interrupted = true;
        return ToolOutcome { output: String::new(), is_error: true };
    }
    let mut output = text_of(content);
    let images = content.iter().filter_map(|block| match block {
        ContentBlock::Image { source } => {
            Some(ToolContent::Image { mime_type: source.media_type.clone(), data: source.data.clone() })
        }
        _ => None,
    });
    detail.content.extend(images);
    if is_error {
        if let Some(text) = output.strip_prefix("<tool_use_error>") {
            output = text.strip_suffix("</tool_use_error>").unwrap_or(text).to_owned();
        }
        if detail.kind == ToolKind::Execute {
            let (code, rest) = exit_code(&output);
            detail.exit_code = code;
            output = rest;
        }
        return ToolOutcome { output, is_error };
    }
    if let Some(result) = structured.and_then(|structured| shown_of(name, detail, structured)) {
        output = result;
    }
    ToolOutcome { output, is_error }
}

/// What the structured result adds; the output, where it has a better one than the model's text.
fn shown_of(name: &str, detail: &mut ToolDetail, structured: &Value) -> Option<String> {
    let text = |key: &str| structured[key].as_str();
    match detail.kind {
        ToolKind::Execute => {
            let (stdout, stderr) = (text("stdout")?, text("stderr").unwrap_or_default());
            detail.interrupted |= structured["interrupted"].as_bool() == Some(true);
            if text("backgroundTaskId").is_some() {
                return None;
            }
            detail.exit_code = (!detail.interrupted).then_some(0);
            let gap = if stdout.is_empty() || stderr.is_empty() || stdout.ends_with('\n') { "" } else { "\n" };
            Some(format!("{stdout}{gap}{stderr}"))
        }
        ToolKind::Read => {
            let file = &structured["file"];
            let content = ToolContent::File {
                path: file["filePath"].as_str()?.into(),
                start_line: file["startLine"].as_u64().and_then(|line| u32::try_from(line).ok()).unwrap_or(1),
                text: file["content"].as_str()?.into(),
            };
            detail.content = vec![content];
            None
        }
        ToolKind::Edit => {
            let path = text("filePath")?;
            let hunks: Vec<_> =
                structured["structuredPatch"].as_array()?.iter().filter_map(|h| hunk(path, h)).collect();
            if !hunks.is_empty() {
                detail.content = hunks;
            } else if let (Some("create"), Some(content)) = (text("type"), text("content")) {
                detail.content = vec![new_file(path, content)];
            }
            None
        }
        ToolKind::Agent if structured["isAsync"].as_bool() == Some(true) => {
            Some("Works in the background. What it does is shown below.".into())
        }
        _ if name == "AskUserQuestion" => answers(structured),
        _ => None,
    }
}

/// One hunk of a patch as the two texts it stands between.
fn hunk(path: &str, hunk: &Value) -> Option<ToolContent> {
    let (mut old, mut new) = (String::new(), String::new());
    for line in hunk["lines"].as_array()? {
        let line = line.as_str()?;
        let (mark, text) = line.split_at_checked(1)?;
        if mark != "+" && mark != "\\" {
            old.push_str(text);
            old.push('\n');
        }
        if mark != "-" && mark != "\\" {
            new.push_str(text);
            new.push('\n');
        }
    }
    Some(ToolContent::Diff {
        path: path.into(),
        old_text: Some(old),
        new_text: new,
        start_line: hunk["oldStart"].as_u64().and_then(|line| u32::try_from(line).ok()),
    })
}

fn answers(structured: &Value) -> Option<String> {
    let answers = structured["answers"].as_object()?;
    let lines: Vec<_> = answers
        .iter()
        .map(|(question, answer)| format!("{question} {}", answer.as_str().unwrap_or("(not answered)")))
        .collect();
    Some(if lines.is_empty() { "Not answered.".into() } else { lines.join("\n") })
}

/// Failed commands begin with `Exit code 3`.
fn exit_code(output: &str) -> (Option<i32>, String) {
    let (first, rest) = output.split_once('\n').unwrap_or((output, ""));
    match first.strip_prefix("Exit code ").and_then(|code| code.trim().parse().ok()) {
        Some(code) => (Some(code), rest.to_owned()),
        None => (None, output.to_owned()),
    }
}

pub(super) fn text_of(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn end(name: &str, input: Value, text: &str, is_error: bool, structured: Value) -> (ToolDetail, ToolOutcome) {
        let Value::Object(input) = input else { panic!("input must be an object") };
        let mut detail = called(name, &input);
        let content = [ContentBlock::Text { text: text.into() }];
        let outcome = ended(name, &mut detail, &content, is_error, Some(&structured));
        (detail, outcome)
    }

    #[test]
    fn a_failed_command_shows_its_exit_code_and_its_output() {
        let (detail, outcome) = end(
            "Bash",
            json!({"command": "ls x"}),
            "Exit code 2\nls: no x",
            true,
            json!("Error: Exit code 2\nls: no x"),
        );
        assert_eq!((detail.command.as_deref(), detail.exit_code), (Some("ls x"), Some(2)));
        assert_eq!(outcome, ToolOutcome { output: "ls: no x".into(), is_error: true });
    }

    #[test]
    fn a_command_shows_both_streams_and_a_quiet_one_nothing() {
        let structured = json!({"stdout": "a", "stderr": "b", "interrupted": false});
        let (detail, outcome) = end("Bash", json!({"command": "x"}), "a\nb", false, structured);
        assert_eq!((outcome.output.as_str(), detail.exit_code), ("a\nb", Some(0)));
        let quiet = json!({"stdout": "", "stderr": "", "interrupted": false});
        let (_, outcome) = end("Bash", json!({"command": "x"}), "(Bash completed with no output)", false, quiet);
        assert_eq!(outcome.output, "");
    }

    #[test]
    fn an_edit_becomes_the_hunks_of_its_patch() {
        let input = json!({"file_path": "/a", "old_string": "two", "new_string": "2"});
        let structured = json!({"filePath": "/a", "structuredPatch": [
            {"oldStart": 4, "lines": [" one", "-two", "+2", "\\ No newline at end of file"]},
        ]});
        let (detail, _) = end("Edit", input, "updated", false, structured);
        let expected = ToolContent::Diff {
            path: "/a".into(),
            old_text: Some("one\ntwo\n".into()),
            new_text: "one\n2\n".into(),
            start_line: Some(4),
        };
        assert_eq!(detail.content, [expected]);
    }

    #[test]
    fn a_refused_edit_still_shows_what_was_proposed() {
        let input = json!({"file_path": "/a", "old_string": "two", "new_string": "2"});
        let (detail, outcome) = end("Edit", input, "no", true, json!("Error: no"));
        assert!(matches!(&detail.content[..], [ToolContent::Diff { new_text, .. }] if new_text == "2"));
        assert_eq!(outcome, ToolOutcome { output: "no".into(), is_error: true });
    }

    #[test]
    fn no_result_of_any_shape_makes_it_panic() {
        let structured =
            [json!(null), json!(1), json!([]), json!({"file": 1}), json!({"structuredPatch": [{"lines": [""]}]})];
        for name in ["Read", "Edit", "Write", "Bash", "Task", "AskUserQuestion", "mcp__x__y", ""] {
            for structured in &structured {
                end(name, json!({"questions": [1], "edits": 3}), "é", false, structured.clone());
            }
        }
    }
}
