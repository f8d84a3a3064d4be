//! The Agent Client Protocol, for what real agents cannot be made to do: break it.
//!
//! Arguments after `acp` decide how it starts and what it can:
//!
//! ```text
//! refuse:TEXT     exits with that on stderr, before the handshake
//! silent          never answers
//! die             exits in the middle of the handshake
//! version:N       speaks another version of the protocol
//! reject:TEXT     answers the handshake with an error
//! answer:JSON     answers the handshake with that
//! noisy           prints things that are no messages first
//! no-load no-resume no-close no-list no-delete    lacks that capability
//! login           wants `authenticate` with the method `key` first, whose variable is SCRIPTED_KEY
//! old-new         answers `session/new` with the last session it has
//! slow-new        answers `session/new` only when the gate `new` is open
//! slow-load       replays the history and answers `session/load` only when the gate `load-<session>` is open
//! slow-resume     answers `session/resume` only when the gate `resume-<session>` is open
//! slow-close      answers `session/close` only when the gate `close-<session>` is open
//! refuse-close    answers `session/close` with an error
//! refuse-resume   answers `session/resume` with an error
//! refuse-load     replays the history and answers `session/load` with an error
//! empty-load      replays nothing and answers `session/load` anyway
//! fixed-mode      refuses `session/set_mode` when the gate `fixed-mode` is open
//! ```
//!
//! What its prompts may hold is in [`script`]. Sessions that got a prompt are kept in the directory
//! `SCRIPTED_AGENT_STATE`, so that another process can load them; there it also writes a `log` of what it was asked,
//! and looks for gates: files named `gate-<name>`.

mod script;
mod store;

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use self::store::Store;

pub(super) fn run(args: &[String]) -> ExitCode {
    let store = Store::open();
    store.log(&format!("start {}", std::process::id()));
    for arg in args {
        match arg.split_once(':').unwrap_or((arg, "")) {
            ("refuse", text) => {
                eprintln!("{text}");
                return ExitCode::FAILURE;
            }
            ("noisy", _) => print!("Loading…\n\n{{\n[1]\n3\n{{\"jsonrpc\":\"2.0\"}}\n"),
            _ => {}
        }
    }
    let agent = Arc::new(Agent {
        args: args.iter().cloned().collect(),
        store,
        state: Mutex::default(),
        output: Mutex::new(std::io::stdout()),
    });
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let closes_input =
            message["params"]["prompt"][0]["text"].as_str().is_some_and(|text| text.contains("close-input"));
        if let Some(code) = agent.on_message(message) {
            return code;
        }
        if closes_input {
            script::close_input();
            loop {
                std::thread::park();
            }
        }
    }
    agent.store.log("end of input");
    ExitCode::SUCCESS
}

#[derive(Debug)]
struct Agent {
    args: HashSet<String>,
    store: Store,
    state: Mutex<State>,
    output: Mutex<std::io::Stdout>,
}

#[derive(Debug, Default)]
struct State {
    open: HashSet<String>,
    cancelled: HashSet<String>,
    asked: u64,
    waiting: HashMap<u64, SyncSender<Value>>,
    logged_in: bool,
    modes: HashMap<String, String>,
}

impl Agent {
    fn has(&self, option: &str) -> bool {
        self.args.contains(option)
    }

    fn option(&self, option: &str) -> Option<&str> {
        self.args.iter().find_map(|arg| arg.strip_prefix(option)?.strip_prefix(':'))
    }

    /// Takes in one message. A code ends the program.
    fn on_message(self: &Arc<Self>, message: Value) -> Option<ExitCode> {
        let Some(method) = message["method"].as_str() else {
            let waiting = message["id"].as_u64().and_then(|id| self.lock().waiting.remove(&id));
            if let Some(waiting) = waiting {
                let _ = waiting.send(message);
            }
            return None;
        };
        let session = message["params"]["sessionId"].as_str().unwrap_or_default();
        self.store.log(format!("{method} {session}").trim());
        let (id, params) = (&message["id"], &message["params"]);
        match method {
            "initialize" => return self.initialize(id),
            "authenticate" => {
                self.lock().logged_in = true;
                self.answer(id, json!({}));
            }
            "session/new" => self.on_its_own(message, Self::new_session),
            "session/load" if self.has("slow-load") => {
                self.on_its_own(message, |agent, message| {
                    let params = &message["params"];
                    agent.hold(&format!("load-{}", params["sessionId"].as_str().unwrap_or_default()), "");
                    agent.load_or_resume(&message["id"], params, true);
                });
            }
            "session/resume" if self.has("slow-resume") => {
                self.on_its_own(message, |agent, message| {
                    let params = &message["params"];
                    agent.hold(&format!("resume-{}", params["sessionId"].as_str().unwrap_or_default()), "");
                    agent.load_or_resume(&message["id"], params, false);
                });
            }
            "session/resume" if self.has("refuse-resume") => self.refuse(id, -32603, "Not now."),
            "session/load" | "session/resume" => self.load_or_resume(id, params, method == "session/load"),
            "session/list" => self.list(id, params),
            "session/close" if self.has("refuse-close") => self.refuse(id, -32603, "Not now."),
            "session/close" | "session/delete" => {
                let session = params["sessionId"].as_str().unwrap_or_default();
                let mut state = self.lock();
                state.open.remove(session);
                state.cancelled.insert(session.to_owned());
                state.modes.remove(session);
                drop(state);
                if self.has("slow-close") {
                    self.on_its_own(message, |agent, message| {
                        let session = message["params"]["sessionId"].as_str().unwrap_or_default();
                        agent.hold(&format!("close-{session}"), "");
                        agent.answer(&message["id"], json!({}));
                    });
                } else {
                    self.answer(id, json!({}));
                }
            }
            "session/cancel" => {
                let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
                self.lock().cancelled.insert(session);
            }
            "session/set_mode" if self.has("fixed-mode") && self.store.is_open("fixed-mode") => {
                self.refuse(id, -32602, "The mode is fixed.");
            }
            "session/set_mode" => {
                let (session, mode) = (params["sessionId"].as_str().unwrap_or_default(), &params["modeId"]);
                self.lock().modes.insert(session.to_owned(), mode.as_str().unwrap_or_default().to_owned());
                self.answer(id, json!({}));
            }
            "session/prompt" => self.on_its_own(message, script::prompt),
            "$/cancel_request" => {}
            _ => self.refuse(id, -32601, &format!("Method not found: {method}")),
        }
        None
    }

    fn initialize(&self, id: &Value) -> Option<ExitCode> {
        if self.has("silent") {
            return None;
        }
        if self.has("die") {
            eprintln!("it was not to be");
            return Some(ExitCode::from(3));
        }
        if let Some(text) = self.option("reject") {
            self.refuse(id, -32603, text);
            return None;
        }
        if let Some(answer) = self.option("answer").and_then(|answer| serde_json::from_str(answer).ok()) {
            self.answer(id, answer);
            return None;
        }
        let version: u64 = self.option("version").and_then(|version| version.parse().ok()).unwrap_or(1);
        let capability = |name: &str| if self.has(&format!("no-{name}")) { Value::Null } else { json!({}) };
        let methods = json!([{"id": "key", "name": "Key", "description": "Set SCRIPTED_KEY.", "type": "env_var",
            "vars": [{"name": "SCRIPTED_KEY"}]}]);
        self.answer(
            id,
            json!({
                "protocolVersion": version,
                "agentInfo": {"name": "scripted-agent", "version": "1.2.3"},
                "authMethods": if self.has("login") { methods } else { json!([]) },
                "agentCapabilities": {
                    "loadSession": !self.has("no-load"),
                    "sessionCapabilities": {"resume": capability("resume"), "close": capability("close"),
                        "list": capability("list"), "delete": capability("delete")},
                },
            }),
        );
        None
    }

    fn new_session(&self, message: &Value) {
        let id = &message["id"];
        if self.has("login") && !self.lock().logged_in {
            return self.refuse(id, -32000, "Authentication required");
        }
        if self.has("slow-new") {
            self.hold("new", "");
        }
        let last = self.store.sessions().pop().filter(|_| self.has("old-new"));
        let session = last.unwrap_or_else(|| self.store.new_session());
        self.lock().open.insert(session.clone());
        // Some agents speak of a session before they have sent its name.
        self.update(
            &session,
            json!({"sessionUpdate": "available_commands_update",
            "availableCommands": [{"name": "help", "description": "Says what it can do."}]}),
        );
        self.answer(id, json!({"sessionId": session, "modes": self.modes(&session)}));
    }

    /// A session that was closed, or is another process's, is in the first mode again.
    fn modes(&self, session: &str) -> Value {
        let mode = self.lock().modes.get(session).cloned().unwrap_or_else(|| "ask".into());
        json!({"currentModeId": mode, "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]})
    }

    /// `load` replays the history, `resume` does not. A session without a prompt does not exist.
    fn load_or_resume(&self, id: &Value, params: &Value, replay: bool) {
        let session = params["sessionId"].as_str().unwrap_or_default();
        let Some(history) = self.store.history(session) else {
            return self.refuse(id, -32002, &format!("Resource not found: {session}"));
        };
        if replay && !self.has("empty-load") {
            for update in history {
                self.update(session, update);
            }
        }
        if replay && self.has("refuse-load") {
            return self.refuse(id, -32603, "Not now.");
        }
        let mut state = self.lock();
        state.open.insert(session.to_owned());
        state.cancelled.remove(session);
        drop(state);
        self.answer(id, json!({"modes": self.modes(session)}));
    }

    /// One session a page.
    fn list(&self, id: &Value, params: &Value) {
        let place: usize = params["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let sessions = self.store.sessions();
        let page: Vec<Value> =
            sessions.iter().skip(place).take(1).map(|session| json!({"sessionId": session, "cwd": "/"})).collect();
        let next = (place + 1 < sessions.len()).then(|| (place + 1).to_string());
        self.answer(id, json!({"sessions": page, "nextCursor": next}));
    }

    fn on_its_own(self: &Arc<Self>, message: Value, act: fn(&Self, &Value)) {
        let agent = Arc::clone(self);
        std::thread::spawn(move || act(&agent, &message));
    }

    /// Asks the client; its answer is only logged.
    fn ask_aside(&self, method: &str, params: &Value) {
        let (answer, store) = (self.put(method, params), Store::open());
        std::thread::spawn(move || store.log(&format!("answer {}", answer.recv().unwrap_or_default())));
    }

    /// Asks the client and waits for its answer.
    fn ask(&self, method: &str, params: &Value) -> Value {
        self.put(method, params).recv().unwrap_or_default()
    }

    fn put(&self, method: &str, params: &Value) -> Receiver<Value> {
        let (sender, receiver) = sync_channel(1);
        let id = {
            let mut state = self.lock();
            let id = state.asked;
            state.asked += 1;
            state.waiting.insert(id, sender);
            id
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        receiver
    }

    fn update(&self, session: &str, update: Value) {
        self.send(
            &json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}}),
        );
    }

    fn answer(&self, id: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn refuse(&self, id: &Value, code: i64, message: &str) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
    }

    fn send(&self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    fn write(&self, bytes: &[u8]) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        // Who does not listen any more will end us.
        let _ = output.write_all(bytes).and_then(|()| output.flush());
    }

    /// Waits until the gate is open, or the session's prompt is cancelled. False when it was cancelled.
    fn hold(&self, gate: &str, session: &str) -> bool {
        self.store.log(&format!("hold {gate}"));
        while !self.store.is_open(gate) {
            if self.is_cancelled(session) {
                return false;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        true
    }

    fn is_cancelled(&self, session: &str) -> bool {
        self.lock().cancelled.contains(session)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
