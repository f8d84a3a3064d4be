//! What a prompt may hold. Each of its lines is done in turn; then the prompt is answered with `end_turn`.
//!
//! ```text
//! say:TEXT           a piece of the answer; more of them are more of the same answer
//! again:TEXT         a piece of another answer, as when an interrupted stream restarts
//! think:TEXT         a piece of a thought
//! notice:TEXT        a notice
//! call:ID COMMAND    a command begins to run
//! output:ID TEXT     it prints something
//! done:ID CODE       it ends
//! edit:ID PATH       a file is changed
//! hard:LANGUAGE UNIT  code that is made to keep a highlighter busy: 30 lines of UNIT, repeated
//! hard-edit:ID PATH  the same as an edit of a file
//! permission:ID      asks for permission to run a call, and reports which option it got
//! permission-always:ID  the same, with the option for ever in the first place
//! read:PATH          reads a file through the client, and sends it
//! reads:COUNT PATH   reads a file so many times at once, and reports how long it is in all
//! write:PATH=TEXT    writes one through the client
//! run:ID COMMAND     runs a command through the client, in a terminal that the call shows
//! run-unseen:ID …    the same, with a call that shows the terminal only when the command has ended
//! print:COUNT BYTES  so many terminals one after the other, each printing so much; then reports how much is kept of each
//! launch:COMMAND     asks for a command to be run and goes on without the answer, which goes to the log
//! plan:A,B           a plan of two steps
//! title:TEXT         the session's title
//! strange            requests, notifications and updates that nobody knows
//! garbage:COUNT      so many lines that are no messages
//! huge:BYTES         one line of so many bytes, in an update
//! flood:COUNT        so many pieces of the answer, as fast as the pipe takes them
//! big-flood:MIB      so much text in pieces of 64 KiB
//! endless            the same without end, until it is cancelled
//! paced:COUNT SHAPE  so many pieces of 24 bytes, one every 2 ms: a `paragraph`, a `code` block or `mixed`
//! unended            half a line, and then nothing
//! hold:GATE          waits for a gate; a cancel ends the prompt here
//! deaf:GATE          waits for a gate, and for nothing else: a cancel is ignored
//! after-stop:REASON  from now on a cancel ends the prompt for this reason; `error TEXT` fails it, `exit` exits, `mute` never
//!                    answers
//! raw:LINE           writes the rest as a line, with `@session` and `@id` (of the prompt) filled in
//! bytes:HEX          writes a line of these bytes
//! mute               ends the prompt without an answer
//! exit:CODE          exits at once
//! close              closes its output and lives on
//! close-input        closes its input and lives on
//! cost:AMOUNT        what the session has cost so far, in dollars
//! later-flood:MIB    so much text after the end of the prompt, each piece a message, and then the title `flood over`
//! replay-flood:MIB   so much text for whoever loads the session
//! daemon             starts a process that moves to another group: `sleep 1000.<process id of the agent>`
//! stubborn-daemon    the same, and it ignores SIGTERM
//! error:TEXT         the prompt fails
//! stop:REASON        the prompt ends for this reason
//! env:NAME           sends the value of a variable
//! mode               sends the session's mode
//! ```
//!
//! Any other line is answered with `You said: …`.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Agent;

pub(super) fn prompt(agent: &Agent, message: &Value) {
    let id = &message["id"];
    let session = message["params"]["sessionId"].as_str().unwrap_or_default();
    let text = message["params"]["prompt"][0]["text"].as_str().unwrap_or_default();
    if !agent.lock().open.contains(session) {
        return agent.refuse(id, -32002, &format!("Session {session} not found"));
    }
    agent.lock().cancelled.remove(session);
    agent
        .store
        .remember(session, &json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}}));
    let answer = format!("m-{}-{id}", std::process::id());
    let mut scene =
        Scene { agent, session, id, answer, sent: String::new(), stop: None, after_stop: None, later_mib: 0 };
    for line in text.lines() {
        if !scene.play(line) {
            break;
        }
    }
    if !scene.sent.is_empty() {
        agent.store.remember(session, &chunk("agent_message_chunk", &scene.answer, &scene.sent));
    }
    let is_cancelled = agent.is_cancelled(session);
    match scene.stop.or(scene.after_stop.filter(|_| is_cancelled)) {
        Some(Stop::Mute) => {}
        Some(Stop::Exit) => std::process::exit(3),
        Some(Stop::Failed(text)) => agent.refuse(id, -32603, &text),
        Some(Stop::Reason(reason)) => agent.answer(id, json!({"stopReason": reason})),
        None if is_cancelled => agent.answer(id, json!({"stopReason": "cancelled"})),
        None => agent.answer(
            id,
            json!({"stopReason": "end_turn", "usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8}}),
        ),
    }
    if scene.later_mib > 0 {
        let piece = "x".repeat(1024 * 1024);
        for number in 0..scene.later_mib {
            agent.update(session, chunk("agent_message_chunk", &format!("late-{number}"), &piece));
        }
        agent.update(session, json!({"sessionUpdate": "session_info_update", "title": "flood over"}));
    }
}

struct Scene<'a> {
    agent: &'a Agent,
    session: &'a str,
    /// Of the prompt.
    id: &'a Value,
    /// The id of the answer's message.
    answer: String,
    sent: String,
    stop: Option<Stop>,
    /// How it ends if it is cancelled.
    after_stop: Option<Stop>,
    later_mib: usize,
}

enum Stop {
    Failed(String),
    Reason(String),
    Exit,
    Mute,
}

impl Scene<'_> {
    /// Does one line. False ends the prompt.
    fn play(&mut self, line: &str) -> bool {
        let (word, rest) = line.split_once(':').unwrap_or((line, ""));
        let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
        match word {
            "say" => self.send_text(rest),
            "again" => {
                self.answer.push_str("-again");
                self.send_text(rest);
            }
            "think" => self.update(chunk("agent_thought_chunk", &self.answer, rest)),
            "notice" => self.update(json!({"sessionUpdate": "notice", "severity": "warning", "title": rest})),
            "call" => self.call(name, text),
            "output" => self.change(name, json!({"_meta": {"terminal_output_delta": {"data": format!("{text}\n")}}})),
            "done" => {
                let code: i64 = text.parse().unwrap_or(0);
                let status = if code == 0 { "completed" } else { "failed" };
                self.change(name, json!({"status": status, "_meta": {"terminal_exit": {"exit_code": code}}}));
            }
            "edit" => self.update(json!({"sessionUpdate": "tool_call", "toolCallId": name, "title": "Edit", "kind": "edit",
                "status": "completed", "content": [{"type": "diff", "path": text, "oldText": "old\n", "newText": "new\n"}]})),
            "hard" => self.send_text(&format!("```{name}\n{}```\n\n", hard_lines(text))),
            "hard-edit" => self.update(json!({"sessionUpdate": "tool_call", "toolCallId": name, "title": "Edit",
                "kind": "edit", "status": "completed",
                "content": [{"type": "diff", "path": text, "oldText": "old\n", "newText": hard_lines("-a")}]})),
            "permission" | "permission-always" => self.request_permission(name, word == "permission-always"),
            "read" => {
                let answer = self.ask("fs/read_text_file", json!({"path": rest}));
                self.send_text(&outcome(&answer, "content"));
            }
            "print" => self.prints(count(name), count(text)),
            "reads" => self.reads(count(name), text),
            "write" => {
                let (path, text) = rest.split_once('=').unwrap_or((rest, ""));
                let answer = self.ask("fs/write_text_file", json!({"path": path, "content": text}));
                self.send_text(&outcome(&answer, ""));
            }
            "run" => self.run(name, text, false),
            "run-unseen" => self.run(name, text, true),
            "launch" => {
                let args: Vec<&str> = rest.split(' ').collect();
                let params = json!({"sessionId": self.session, "command": args[0], "args": args[1..]});
                self.agent.ask_aside("terminal/create", &params);
            }
            "plan" => {
                let entry = |step| json!({"content": step, "priority": "medium", "status": "pending"});
                self.update(json!({"sessionUpdate": "plan", "entries": rest.split(',').map(entry).collect::<Vec<_>>()}));
            }
            "title" => self.update(json!({"sessionUpdate": "session_info_update", "title": rest})),
            "strange" => self.strange(),
            "garbage" => {
                for number in 0..count(rest) {
                    let noise = [b"not a message".as_slice(), b"{\"half\":", b"\xff\xfe", b"[]", b"{\"id\":99999,\"result\":{}}"];
                    self.agent.write(&[noise[number % noise.len()], b"\n"].concat());
                }
            }
            "huge" => self.send_text(&"x".repeat(count(rest))),
            "flood" => {
                self.flood("12345678 ", count(rest));
                self.sent.push_str(&"12345678 ".repeat(count(rest)));
            }
            "big-flood" => self.flood(&"x".repeat(64 * 1024), count(rest) * 16),
            "endless" => {
                while !self.agent.is_cancelled(self.session) {
                    self.flood(&"x".repeat(64 * 1024), 16);
                }
                return false;
            }
            "paced" => self.paced(count(name), text),
            "unended" => self.agent.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"session/upd"),
            "after-stop" => {
                self.after_stop = Some(match rest.split_once(' ').unwrap_or((rest, "")) {
                    ("error", text) => Stop::Failed(text.into()),
                    ("exit", _) => Stop::Exit,
                    ("mute", _) => Stop::Mute,
                    _ => Stop::Reason(rest.into()),
                });
            }
            "raw" => {
                let line = rest.replace("@session", self.session).replace("@id", &self.id.to_string());
                self.agent.write(format!("{line}\n").as_bytes());
            }
            "bytes" => self.agent.write(&[&crate::from_hex(rest)[..], b"\n"].concat()),
            "mute" => {
                self.stop = Some(Stop::Mute);
                return false;
            }
            "hold" => return self.agent.hold(rest, self.session),
            "deaf" => return self.agent.hold(rest, ""),
            "exit" => std::process::exit(i32::try_from(count(rest)).unwrap_or(1)),
            "close" => close_output(),
            // Done by who reads the input.
            "close-input" => {}
            "cost" => {
                let amount: f64 = rest.parse().unwrap_or_default();
                let cost = json!({"amount": amount, "currency": "USD"});
                self.update(json!({"sessionUpdate": "usage_update", "used": 1, "size": 100, "cost": cost}));
            }
            "daemon" => self.daemon("exec"),
            "stubborn-daemon" => self.daemon("trap '' TERM; exec"),
            "later-flood" => self.later_mib = count(rest),
            "replay-flood" => {
                for _ in 0..count(rest) {
                    self.agent.store.remember(self.session, &chunk("agent_message_chunk", "", &"x".repeat(1024 * 1024)));
                }
            }
            "env" => self.send_text(&std::env::var(rest).unwrap_or_else(|_| "unset".into())),
            "mode" => {
                let mode = self.agent.lock().modes.get(self.session).cloned();
                self.send_text(mode.as_deref().unwrap_or("none"));
            }
            "error" => {
                self.stop = Some(Stop::Failed(rest.into()));
                return false;
            }
            "stop" => {
                self.stop = Some(Stop::Reason(rest.into()));
                return false;
            }
            _ => self.send_text(&format!("You said: {line}")),
        }
        true
    }

    fn send_text(&mut self, text: &str) {
        self.sent.push_str(text);
        self.update(chunk("agent_message_chunk", &self.answer, text));
    }

    /// As a model writes: steadily.
    fn paced(&mut self, pieces: usize, shape: &str) {
        let begun = Instant::now();
        for number in 0..pieces {
            let piece = match shape {
                "code" if number == 0 => "```rust\n".to_owned(),
                "code" => format!("let number_{number:05} = 7; \n"),
                "mixed" if number % 100 == 0 => format!("\n\n## Part {number:05} of it\n\n- "),
                "mixed" if number % 100 == 50 => "\n\n```rust\nfn main() {}\n".to_owned(),
                "mixed" if number % 100 == 80 => "```\n\nAnd then **some**, ".to_owned(),
                _ => format!("words that go on {number:06} "),
            };
            self.send_text(&piece);
            let due = begun + Duration::from_millis(2 * number as u64);
            std::thread::park_timeout(due.saturating_duration_since(Instant::now()));
        }
    }

    /// The same piece many times over, as fast as the pipe takes it.
    fn flood(&self, text: &str, times: usize) {
        let update = chunk("agent_message_chunk", &self.answer, text);
        let params = json!({"sessionId": self.session, "update": update});
        let line = format!("{}\n", json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
        let at_once = (64 * 1024 / line.len()).max(1);
        let block = line.repeat(at_once);
        for _ in 0..times / at_once {
            self.agent.write(block.as_bytes());
        }
        self.agent.write(line.repeat(times % at_once).as_bytes());
    }

    fn update(&self, update: Value) {
        self.agent.update(self.session, update);
    }

    fn ask(&self, method: &str, mut params: Value) -> Value {
        params["sessionId"] = self.session.into();
        self.agent.ask(method, &params)
    }

    fn call(&self, id: &str, command: &str) {
        self.update(json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": command, "kind": "execute",
            "status": "in_progress", "name": "shell", "rawInput": {"command": command}}));
    }

    fn change(&self, id: &str, mut change: Value) {
        change["sessionUpdate"] = "tool_call_update".into();
        change["toolCallId"] = id.into();
        self.update(change);
    }

    fn request_permission(&mut self, id: &str, always_first: bool) {
        let mut options = vec![
            json!({"optionId": "once", "name": "Allow once", "kind": "allow_once"}),
            json!({"optionId": "always", "name": "Always", "kind": "allow_always"}),
            json!({"optionId": "strange", "name": "Hm", "kind": "allow_on_sundays"}),
            json!({"optionId": "no", "name": "No", "kind": "reject_once"}),
        ];
        if always_first {
            options.swap(0, 1);
        }
        let call = json!({"toolCallId": id, "title": "Do it", "kind": "execute", "status": "pending"});
        let answer = self.ask("session/request_permission", json!({"toolCall": call, "options": options}));
        let outcome = &answer["result"]["outcome"];
        let chosen = outcome["optionId"].as_str().or(outcome["outcome"].as_str()).unwrap_or("nothing").to_owned();
        self.agent.store.log(&format!("permission {chosen}"));
        self.send_text(&format!("permission: {chosen}"));
    }

    fn run(&mut self, id: &str, command: &str, is_unseen: bool) {
        let args: Vec<&str> = command.split(' ').collect();
        let created =
            self.ask("terminal/create", json!({"command": args[0], "args": args[1..], "outputByteLimit": 64}));
        let Some(terminal) = created["result"]["terminalId"].as_str().map(str::to_owned) else {
            return self.send_text(&outcome(&created, ""));
        };
        if is_unseen {
            self.ask("terminal/wait_for_exit", json!({"terminalId": terminal}));
        }
        self.update(json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": command, "kind": "execute",
            "status": "in_progress", "content": [{"type": "terminal", "terminalId": terminal}]}));
        let exit = self.ask("terminal/wait_for_exit", json!({"terminalId": terminal}));
        let output = self.ask("terminal/output", json!({"terminalId": terminal}));
        self.ask("terminal/release", json!({"terminalId": terminal}));
        self.change(id, json!({"status": "completed"}));
        self.send_text(&format!("{} {}", exit["result"], output["result"]));
    }

    /// All of them stay open until what is kept of each was asked for.
    fn prints(&mut self, count: usize, bytes: usize) {
        let line = format!("yes | head -c {bytes}");
        let mut terminals = Vec::new();
        for _ in 0..count {
            let created = self.ask("terminal/create", json!({"command": line, "outputByteLimit": bytes}));
            let Some(terminal) = created["result"]["terminalId"].as_str().map(str::to_owned) else {
                self.send_text(&outcome(&created, ""));
                break;
            };
            self.ask("terminal/wait_for_exit", json!({"terminalId": terminal}));
            terminals.push(terminal);
        }
        let mut kept = Vec::new();
        for terminal in terminals {
            let output = self.ask("terminal/output", json!({"terminalId": terminal}));
            let length = output["result"]["output"].as_str().map_or(0, str::len);
            kept.push(format!("{length}{}", if output["result"]["truncated"] == true { " cut" } else { "" }));
        }
        self.send_text(&kept.join(", "));
    }

    fn reads(&mut self, times: usize, path: &str) {
        let params = json!({"sessionId": self.session, "path": path});
        let read = || self.agent.ask("fs/read_text_file", &params)["result"]["content"].as_str().map_or(0, str::len);
        let bytes: usize = std::thread::scope(|threads| {
            let readers: Vec<_> = (0..times).map(|_| threads.spawn(read)).collect();
            readers.into_iter().filter_map(|reader| reader.join().ok()).sum()
        });
        self.send_text(&bytes.to_string());
    }

    fn strange(&mut self) {
        self.update(json!({"sessionUpdate": "dance", "steps": 3}));
        self.update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram"}}));
        self.agent.send(&json!({"jsonrpc": "2.0", "method": "_scripted/news", "params": {"a": 1}}));
        self.agent.send(
            &json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "nobody", "update": {}}}),
        );
        let answer = self.agent.ask("client/dance", &json!({}));
        self.send_text(&format!("dance: {}", answer["error"]["code"]));
        let answer = self.ask("fs/read_text_file", json!({"line": "x"}));
        self.send_text(&format!(", read: {}", answer["error"]["code"]));
    }

    fn daemon(&mut self, manner: &str) {
        let mut command = Command::new("setsid");
        command
            .args(["--fork", "sh", "-c", &format!("{manner} sleep 1000.{}", std::process::id())])
            .stdin(Stdio::null())
            .stdout(Stdio::inherit())
            .stderr(Stdio::null());
        let started = command.status().is_ok_and(|status| status.success());
        self.send_text(if started { "daemon started" } else { "no daemon" });
    }
}

fn chunk(kind: &str, message: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "messageId": message, "content": {"type": "text", "text": text}})
}

fn outcome(answer: &Value, field: &str) -> String {
    match answer["error"]["message"].as_str() {
        Some(error) => format!("refused: {error}"),
        None => answer["result"][field].as_str().unwrap_or("done").to_owned(),
    }
}

fn count(text: &str) -> usize {
    text.parse().unwrap_or(1)
}

/// Who writes to it is refused; the process lives on.
pub(super) fn close_input() {
    if let Ok(null) = std::fs::File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(null);
    }
}

/// The reader sees the end of the stream; the process lives on.
fn close_output() {
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(null);
    }
}

fn hard_lines(unit: &str) -> String {
    let line: String = unit.chars().cycle().take(480).collect();
    format!("{line}\n").repeat(30)
}
