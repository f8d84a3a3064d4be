//! The agent of the benchmark: ACP over its standard streams, as quick as a program can be.
//!
//! ```text
//! paced RATE COUNT        so many pieces of text, so many a second; each in a write of its own
//! full COUNT              so many, as fast as the pipe takes them
//! shaped SHAPE COUNT      so many pieces of 24 bytes, 500 a second: a `paragraph`, a `code` block or `mixed`
//! items COUNT             so many items: messages and commands with their output
//! ```
//!
//! A piece of the first two holds its number and the time at which its line was made: `17@0000aaf21c3b9e10 `.

use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};

use crate::clock::nanoseconds;

/// Pieces in one paragraph.
const PARAGRAPH_PIECES: usize = 40;
const WRITE_BYTES: usize = 32 * 1024;

type Output = Arc<Mutex<std::io::Stdout>>;

pub(crate) fn run() -> anyhow::Result<()> {
    let output: Output = Arc::new(Mutex::new(std::io::stdout()));
    let mut sessions = 0;
    let mut prompts = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let id = &message["id"];
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => answer(
                &output,
                id,
                &json!({"protocolVersion": 1, "agentInfo": {"name": "bench", "version": "1"}, "authMethods": [],
                    "agentCapabilities": {"loadSession": false}}),
            ),
            "session/new" => {
                sessions += 1;
                answer(&output, id, &json!({"sessionId": format!("bench-{}-{sessions}", std::process::id())}));
            }
            "session/prompt" => {
                let output = Arc::clone(&output);
                prompts.push(std::thread::spawn(move || prompt(&output, &message)));
            }
            _ if !id.is_null() => answer(&output, id, &json!({})),
            _ => {}
        }
    }
    Ok(())
}

fn prompt(output: &Output, message: &Value) -> anyhow::Result<()> {
    let session = message["params"]["sessionId"].as_str().context("no session")?;
    let text = message["params"]["prompt"][0]["text"].as_str().context("no text")?;
    let words: Vec<&str> = text.split(' ').collect();
    let scene = Scene { output, session, message: format!("m-{}", message["id"]) };
    match words[..] {
        ["paced", rate, count] => scene.paced(rate.parse()?, count.parse()?, stamped),
        ["full", count] => scene.full(count.parse()?),
        ["shaped", shape, count] => {
            let shape = shape.to_owned();
            scene.paced(500.0, count.parse()?, move |number, piece| shaped(&shape, number, piece));
        }
        ["items", count] => scene.items(count.parse()?),
        _ => {}
    }
    answer(output, &message["id"], &json!({"stopReason": "end_turn"}));
    Ok(())
}

struct Scene<'a> {
    output: &'a Output,
    session: &'a str,
    message: String,
}

impl Scene<'_> {
    fn paced(&self, rate: f64, count: usize, piece: impl Fn(usize, &mut Vec<u8>)) {
        let begun = Instant::now();
        for number in 0..count {
            let due = begun + Duration::from_secs_f64(number as f64 / rate);
            while let Some(early) = due.checked_duration_since(Instant::now()).filter(|early| !early.is_zero()) {
                std::thread::park_timeout(early);
            }
            let mut line = Vec::new();
            self.line(&mut line, |line| piece(number, line));
            write(self.output, &line);
        }
    }

    fn full(&self, count: usize) {
        let mut lines = Vec::with_capacity(WRITE_BYTES + 1024);
        for number in 0..count {
            self.line(&mut lines, |line| stamped(number, line));
            if lines.len() >= WRITE_BYTES {
                write(self.output, &lines);
                lines.clear();
            }
        }
        write(self.output, &lines);
    }

    fn items(&self, count: usize) {
        for number in 0..count {
            let text = item_text(number);
            let update = match number % 2 {
                0 => json!({"sessionUpdate": "agent_message_chunk", "messageId": format!("{}-{number}", self.message),
                    "content": {"type": "text", "text": text}}),
                _ => json!({"sessionUpdate": "tool_call", "toolCallId": format!("{}-{number}", self.message),
                    "title": "cargo test", "kind": "execute", "status": "completed", "rawInput": item_arguments(),
                    "content": [{"type": "content", "content": {"type": "text", "text": text}}]}),
            };
            let params = json!({"sessionId": self.session, "update": update});
            let line = format!("{}\n", json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
            write(self.output, line.as_bytes());
        }
    }

    /// One piece of the answer. Its text needs no escaping but for the ends of lines, which the pieces write escaped.
    fn line(&self, line: &mut Vec<u8>, piece: impl FnOnce(&mut Vec<u8>)) {
        let (session, message) = (self.session, &self.message);
        let _ = write!(
            line,
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"agent_message_chunk","messageId":"{message}","content":{{"type":"text","text":""#
        );
        piece(line);
        line.extend_from_slice(b"\"}}}}\n");
    }
}

/// What item `number` of `items` says.
pub(crate) fn item_text(number: usize) -> String {
    format!("Part {number} of the **work** is done; `item_{number}` holds what came of it. ").repeat(4)
}

/// The arguments of its commands.
pub(crate) fn item_arguments() -> Value {
    json!({"command": "cargo test"})
}

fn stamped(number: usize, line: &mut Vec<u8>) {
    if number % PARAGRAPH_PIECES == PARAGRAPH_PIECES - 1 {
        line.extend_from_slice(br"\n\n");
    }
    let _ = write!(line, "{number}@{:016x} ", nanoseconds());
}

fn shaped(shape: &str, number: usize, line: &mut Vec<u8>) {
    let _ = match shape {
        "code" if number == 0 => write!(line, r"```rust\n"),
        "code" => write!(line, r"let number_{number:05} = 7;\n"),
        "mixed" if number.is_multiple_of(100) => write!(line, r"\n\n## Part {number:05}\n\n- one: "),
        "mixed" if number % 100 == 50 => write!(line, r"\n\n```rust\nfn main() {{}}\n"),
        "mixed" if number % 100 == 80 => write!(line, r"```\n\nAnd **then** some: "),
        _ => write!(line, "words that go on {number:06} "),
    };
}

fn answer(output: &Output, id: &Value, result: &Value) {
    write(output, format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "result": result})).as_bytes());
}

fn write(output: &Output, bytes: &[u8]) {
    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
    // Who does not listen any more will end us.
    let _ = output.write_all(bytes).and_then(|()| output.flush());
}
