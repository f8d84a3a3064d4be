//! Claude Code's wire, for what the real program cannot be made to do: break it.
//!
//! An argument before its flags decides how it starts: `silent` never answers, `refuse:TEXT` exits with that on stderr,
//! `noisy` prints things that are not JSON first, `old:VERSION` is a program of that version which knows none of the newer
//! flags, `wait:FILE` does nothing until there is such a file, `stubborn:FILE` changes its mode only then, `mute:FILE` does not even
//! answer before, `tardy` begins with its first message only after an
//! interrupt, and ends it at the next. Each line of a prompt is then done in turn:
//!
//! ```text
//! say:TEXT      streams the text and confirms it
//! whole:TEXT    sends the text at once, without streaming it
//! part:TEXT     streams the text and never confirms it
//! tool:COMMAND  calls Bash and gives no result
//! result:TEXT   gives the result of a call nobody made; `failed:TEXT` that of one that failed
//! become:ID     goes on as another session
//! garbage       lines that are not JSON, not UTF-8, not objects, of unknown kinds
//! huge:BYTES    one line of that many bytes
//! flood:COUNT   that many pieces of text, as fast as the pipe takes them
//! mark:FILE     makes an empty file in the project
//! env:NAME      sends the variable
//! pid           sends its process id
//! stall         sends nothing more, for ever
//! close         closes its output and lives on
//! exit:CODE     exits at once, in the middle of everything
//! raw:LINE      writes the rest as a line, as it is
//! bytes:HEX     writes a line of these bytes
//! mute-end      ends the prompt without `result`
//! on-stop:LINE  ends the prompt without `result`, and writes this line when it is interrupted; `exit:CODE` exits instead
//! ```
//!
//! A prompt that comes to its end is ended with `result`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

pub(super) fn run(args: Vec<String>) -> ExitCode {
    match args.first().map(|arg| arg.split_once(':').unwrap_or((arg, ""))) {
        Some(("refuse", text)) => {
            eprintln!("{text}");
            return ExitCode::FAILURE;
        }
        Some(("old", version)) => {
            if args.iter().any(|arg| arg == "--version") {
                println!("{version} (Claude Code)");
                return ExitCode::SUCCESS;
            }
            eprintln!("error: unknown option '--replay-user-messages'");
            return ExitCode::FAILURE;
        }
        Some(("silent", _)) => {
            for _ in std::io::stdin().lines() {}
            return ExitCode::SUCCESS;
        }
        Some(("wait", file)) => {
            while !std::path::Path::new(file).exists() {
                std::thread::park_timeout(std::time::Duration::from_millis(5));
            }
        }
        Some(("noisy", _)) => print!("Loading…\n\n{{\n[1]\n"),
        _ => {}
    }
    let session = args.iter().find_map(|arg| arg.strip_prefix("--session-id=").or(arg.strip_prefix("--resume=")));
    let session = session.unwrap_or_default().to_owned();
    let tardy = args.first().is_some_and(|arg| arg == "tardy").then_some(Tardy::Fresh);
    let keeps_mode = match args.first().and_then(|arg| arg.split_once(':')) {
        Some(("stubborn", file)) => Some((ModeChange::Announced, PathBuf::from(file))),
        Some(("mute", file)) => Some((ModeChange::Silent, PathBuf::from(file))),
        _ => None,
    };
    let mut agent = Agent { session, messages: 0, tardy, keeps_mode, on_stop: None };
    for line in std::io::stdin().lines() {
        let Ok(line) = line else { break };
        let Ok(line) = serde_json::from_str::<Value>(&line) else { return ExitCode::FAILURE };
        if let Some(code) = agent.on_line(&line) {
            return code;
        }
    }
    ExitCode::SUCCESS
}

struct Agent {
    session: String,
    messages: u64,
    tardy: Option<Tardy>,
    /// Changes its mode only once this file is there.
    keeps_mode: Option<(ModeChange, PathBuf)>,
    /// What it writes when it is interrupted.
    on_stop: Option<String>,
}

enum ModeChange {
    Announced,
    Silent,
}

/// How far a tardy agent has come with its first message.
enum Tardy {
    Fresh,
    Waiting { message: Value },
    Begun,
}

impl Agent {
    fn on_line(&mut self, line: &Value) -> Option<ExitCode> {
        match line["type"].as_str()? {
            "control_request" => {
                let answer = match line["request"]["subtype"].as_str() {
                    Some("initialize") => json!({"commands": [], "models": [], "current_permission_mode": "default"}),
                    _ => json!({}),
                };
                let is_kept = line["request"]["subtype"] == "set_permission_mode"
                    && self.keeps_mode.as_ref().is_some_and(|(_, file)| !file.exists());
                let response = match &self.keeps_mode {
                    Some((ModeChange::Silent, _)) if is_kept => return None,
                    Some((ModeChange::Announced, _)) if is_kept => {
                        json!({"subtype": "error", "request_id": line["request_id"], "error": "not today"})
                    }
                    _ => json!({"subtype": "success", "request_id": line["request_id"], "response": answer}),
                };
                self.send(json!({"type": "control_response", "response": response}));
                if line["request"]["subtype"] == "interrupt" {
                    return self.interrupted();
                }
            }
            "user" if matches!(self.tardy, Some(Tardy::Fresh)) => {
                self.tardy = Some(Tardy::Waiting { message: line["uuid"].clone() });
            }
            "user" => {
                let uuid = line["uuid"].clone();
                self.send(json!({"type": "command_lifecycle", "command_uuid": uuid, "state": "started"}));
                for step in line["message"]["content"].as_str()?.lines() {
                    if step == "mute-end" {
                        return None;
                    }
                    if let Some(line) = step.strip_prefix("on-stop:") {
                        self.on_stop = Some(line.to_owned());
                        return None;
                    }
                    if let Some(code) = self.step(step) {
                        return Some(code);
                    }
                }
                self.send(json!({"type": "result", "subtype": "success", "is_error": false, "result": ""}));
            }
            _ => {}
        }
        None
    }

    fn interrupted(&mut self) -> Option<ExitCode> {
        if let Some(line) = self.on_stop.take() {
            if let Some(code) = line.strip_prefix("exit:") {
                return Some(ExitCode::from(code.parse::<u8>().unwrap_or(1)));
            }
            write_line(line.as_bytes());
        }
        match self.tardy.take() {
            Some(Tardy::Waiting { message }) => {
                self.send(json!({"type": "command_lifecycle", "command_uuid": message, "state": "started"}));
                self.stream(["begun after all"]);
                self.tardy = Some(Tardy::Begun);
            }
            Some(Tardy::Begun) => self.send(json!({
                "type": "result", "subtype": "error_during_execution", "is_error": true,
                "terminal_reason": "aborted_streaming",
            })),
            other => self.tardy = other,
        }
        None
    }

    fn step(&mut self, step: &str) -> Option<ExitCode> {
        let (word, rest) = step.split_once(':').unwrap_or((step, ""));
        match word {
            "say" => {
                let message = self.stream([rest]);
                self.block(&message, json!({"type": "text", "text": rest}));
            }
            "whole" => {
                let message = self.next_message();
                self.block(&message, json!({"type": "text", "text": rest}));
            }
            "part" => {
                self.stream([rest]);
            }
            "tool" => {
                let message = self.next_message();
                let id = format!("toolu_{message}");
                self.block(&message, json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": rest}}));
            }
            "result" | "failed" => {
                let content = json!([{
                    "type": "tool_result", "tool_use_id": "toolu_nobodys", "content": rest, "is_error": word == "failed",
                }]);
                let message = json!({"role": "user", "content": content});
                self.send(json!({"type": "user", "message": message, "parent_tool_use_id": null}));
            }
            "raw" => write_line(rest.as_bytes()),
            "bytes" => write_line(&crate::from_hex(rest)),
            "become" => self.session = rest.into(),
            "garbage" => {
                let mut out = std::io::stdout().lock();
                let junk: [&[u8]; 7] = [
                    b"not json",
                    b"\xff\xfe\x00",
                    b"{",
                    b"[]",
                    b"{\"type\":\"assistant\"}",
                    b"{\"type\":7}",
                    b"{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\",\"index\":-1}}",
                ];
                for line in junk {
                    let _ = out.write_all(line).and_then(|()| out.write_all(b"\n"));
                }
                let _ = out.flush();
            }
            "huge" => {
                let mut out = std::io::stdout().lock();
                let chunk = [b'x'; 64 * 1024];
                let mut left: usize = rest.parse().ok()?;
                while left > 0 {
                    let part = left.min(chunk.len());
                    out.write_all(&chunk[..part]).ok()?;
                    left -= part;
                }
                let _ = out.write_all(b"\n").and_then(|()| out.flush());
            }
            "flood" => {
                let pieces: Vec<String> = (0..rest.parse().ok()?).map(|at: u64| format!("{at} ")).collect();
                let message = self.stream(pieces.iter().map(String::as_str));
                self.block(&message, json!({"type": "text", "text": pieces.concat()}));
            }
            "mark" => std::fs::write(rest, "").ok()?,
            "env" => {
                let value = std::env::var(rest).unwrap_or_else(|_| "(not set)".into());
                let message = self.stream([value.as_str()]);
                self.block(&message, json!({"type": "text", "text": value}));
            }
            "pid" => {
                let process = std::process::id().to_string();
                let message = self.stream([process.as_str()]);
                self.block(&message, json!({"type": "text", "text": process}));
            }
            "stall" => loop {
                std::thread::park();
            },
            "close" => {
                rustix::stdio::dup2_stdout(std::fs::File::open("/dev/null").ok()?).ok()?;
                loop {
                    std::thread::park();
                }
            }
            "exit" => return Some(ExitCode::from(rest.parse::<u8>().unwrap_or(1))),
            _ => {}
        }
        None
    }

    /// No process before or after this one has the same.
    fn next_message(&mut self) -> String {
        self.messages += 1;
        format!("msg_{}_{}", std::process::id(), self.messages)
    }

    /// Streams one text block in pieces; gives the message's id.
    fn stream<'a>(&mut self, pieces: impl IntoIterator<Item = &'a str>) -> String {
        let id = self.next_message();
        self.event(json!({"type": "message_start", "message": {"id": id, "model": "scripted"}}));
        let block = json!({"type": "text", "text": ""});
        self.event(json!({"type": "content_block_start", "index": 0, "content_block": block}));
        for piece in pieces {
            let delta = json!({"type": "text_delta", "text": piece});
            self.event(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
        }
        id
    }

    fn block(&self, message: &str, block: Value) {
        let message = json!({"id": message, "model": "scripted", "content": [block]});
        self.send(json!({"type": "assistant", "message": message, "parent_tool_use_id": null}));
    }

    fn event(&self, event: Value) {
        self.send(json!({"type": "stream_event", "event": event, "parent_tool_use_id": null}));
    }

    fn send(&self, mut line: Value) {
        line["session_id"] = self.session.clone().into();
        let mut out = std::io::stdout().lock();
        // Nobody reads any more: the end of our input follows.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// A line as it is, whether it is of the wire or not.
fn write_line(line: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(line).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}
