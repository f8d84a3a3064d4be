//! The ACP side of the demo agent: requests from the client, requests to it, and notifications.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1 as acp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::prompt_scripts;
use crate::sessions::{Sessions, Settings, Update};
use crate::texts::{COMMANDS, Choice, MODELS, MODES};

#[derive(Debug)]
pub(crate) struct AcpConnection {
    pub(crate) sessions: Sessions,
    pace: Duration,
    state: Mutex<State>,
    output: Mutex<std::io::Stdout>,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<String, Open>,
    /// Sessions whose running prompt has been cancelled.
    cancelled: HashSet<String>,
    asked: u64,
    /// The prompts that wait for an answer of the client, by request id, with their session.
    waiting: HashMap<u64, (String, SyncSender<Value>)>,
}

#[derive(Clone, Debug, Default)]
struct Open {
    settings: Settings,
    tokens_used: u64,
}

impl AcpConnection {
    pub(crate) fn new(sessions: Sessions, pace: Duration) -> Self {
        Self { sessions, pace, state: Mutex::default(), output: Mutex::new(std::io::stdout()) }
    }

    pub(crate) fn on_line(self: &Arc<Self>, line: &str) {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            return self.refuse(&Value::Null, &acp::Error::parse_error());
        };
        let (id, params) = (message["id"].clone(), message["params"].clone());
        let Some(method) = message["method"].as_str() else {
            let waiting = id.as_u64().and_then(|id| self.lock().waiting.remove(&id));
            if let Some((_, waiting)) = waiting {
                // The prompt that sent the request may have been cancelled.
                let _ = waiting.send(message);
            }
            return;
        };
        match method {
            "initialize" => self.answer(&id, &introduction()),
            "authenticate" => self.answer(&id, &json!({})),
            "session/new" => self.new_session(&id),
            "session/load" => self.load_or_resume(&id, &params, true),
            "session/resume" => self.load_or_resume(&id, &params, false),
            "session/close" => {
                let session = text(&params, "sessionId");
                self.cancel(&session);
                self.lock().open.remove(&session);
                self.answer(&id, &json!({}));
            }
            "session/cancel" => self.cancel(&text(&params, "sessionId")),
            "session/set_config_option" => self.set_option(&id, &params),
            "session/prompt" => self.prompt(id, params),
            _ if id.is_null() => {}
            _ => self.refuse(&id, &acp::Error::method_not_found()),
        }
    }

    fn new_session(&self, id: &Value) {
        let session = uuid::Uuid::new_v4().to_string();
        let open = Open::default();
        let response = acp::NewSessionResponse::new(session.clone()).config_options(options(&open.settings));
        self.lock().open.insert(session.clone(), open);
        self.answer(id, &response);
        self.offer_commands(&session);
    }

    fn load_or_resume(&self, id: &Value, params: &Value, replay: bool) {
        let session = text(params, "sessionId");
        let Some((history, settings)) = self.sessions.history(&session) else {
            return self.refuse(id, &acp::Error::resource_not_found(Some(session)));
        };
        let is_usage = |update: &&Update| update.get("sessionUpdate").is_some_and(|kind| kind == "usage_update");
        let used = history.iter().rev().find(is_usage).and_then(|update| update.get("used")?.as_u64());
        if replay {
            history.into_iter().for_each(|update| self.update(&session, &update));
        }
        let mut state = self.lock();
        state.cancelled.remove(&session);
        let open = state.open.entry(session.clone()).or_insert_with(|| Open { settings, tokens_used: 0 });
        open.tokens_used = open.tokens_used.max(used.unwrap_or_default());
        let options = options(&open.settings);
        drop(state);
        self.answer(id, &json!({ "configOptions": options }));
        self.offer_commands(&session);
    }

    fn set_option(&self, id: &Value, params: &Value) {
        let session = text(params, "sessionId");
        let Some(settings) = self.apply_option(&session, &text(params, "configId"), text(params, "value")) else {
            return self.refuse(id, &acp::Error::invalid_params());
        };
        // A session without a prompt has no file.
        if self.sessions.has_history(&session) {
            self.sessions.record(&session).settings(&settings);
        }
        self.answer(id, &acp::SetSessionConfigOptionResponse::new(options(&settings)));
    }

    /// None if there is no such session, no such option or no such value.
    fn apply_option(&self, session: &str, option: &str, value: String) -> Option<Settings> {
        let mut state = self.lock();
        let settings = &mut state.open.get_mut(session)?.settings;
        let (field, choices) = match option {
            "mode" => (&mut settings.mode, MODES),
            "model" => (&mut settings.model, MODELS),
            _ => return None,
        };
        *field = choices.iter().any(|(known, ..)| *known == value).then_some(value)?;
        Some(settings.clone())
    }

    /// Each prompt runs in its own thread; the client sends one at a time per session.
    fn prompt(self: &Arc<Self>, id: Value, params: Value) {
        let session = text(&params, "sessionId");
        let prompt = text(&params["prompt"][0], "text");
        if !self.lock().open.contains_key(&session) {
            return self.refuse(&id, &acp::Error::resource_not_found(Some(session)));
        }
        self.lock().cancelled.remove(&session);
        let connection = Arc::clone(self);
        std::thread::spawn(move || {
            let outcome = prompt_scripts::play(&connection, &session, &prompt);
            match outcome {
                Ok(stop_reason) => connection.answer(&id, &acp::PromptResponse::new(stop_reason)),
                Err(error) => connection.refuse(&id, &error),
            }
        });
    }

    fn cancel(&self, session: &str) {
        let mut state = self.lock();
        state.cancelled.insert(session.to_owned());
        // A prompt that waits for the user stops waiting.
        state.waiting.retain(|_, (asking, _)| asking != session);
    }

    fn offer_commands(&self, session: &str) {
        let command = |(name, description): &(&str, &str)| acp::AvailableCommand::new(*name, *description);
        let commands = COMMANDS.iter().map(command).collect();
        self.update(session, &acp::SessionUpdate::AvailableCommandsUpdate(acp::AvailableCommandsUpdate::new(commands)));
    }

    /// Waits as long as one word takes. False when the prompt was cancelled.
    pub(crate) fn pause(&self, session: &str, words: u32) -> bool {
        if !self.pace.is_zero() {
            std::thread::park_timeout(self.pace * words);
        }
        !self.is_cancelled(session)
    }

    pub(crate) fn is_cancelled(&self, session: &str) -> bool {
        self.lock().cancelled.contains(session)
    }

    pub(crate) fn settings(&self, session: &str) -> Settings {
        self.lock().open.get(session).map(|open| open.settings.clone()).unwrap_or_default()
    }

    /// The number of context tokens in use, simulated.
    pub(crate) fn spend(&self, session: &str, tokens: u64) -> u64 {
        let mut state = self.lock();
        let open = state.open.entry(session.to_owned()).or_default();
        open.tokens_used += tokens;
        open.tokens_used
    }

    /// Sends a request to the client. `None` when the prompt was cancelled in the meantime.
    pub(crate) fn ask(&self, session: &str, method: &str, params: &impl Serialize) -> Option<Value> {
        let (sender, receiver) = sync_channel(1);
        let id = {
            let mut state = self.lock();
            state.asked += 1;
            let id = state.asked;
            state.waiting.insert(id, (session.to_owned(), sender));
            id
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        receiver.recv().ok()
    }

    pub(crate) fn update(&self, session: &str, update: &impl Serialize) {
        let params = json!({"sessionId": session, "update": update});
        self.send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    fn answer(&self, id: &Value, result: &impl Serialize) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn refuse(&self, id: &Value, error: &acp::Error) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    fn send(&self, message: &Value) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        // The client no longer reads: stdin ends next.
        let _ = output.write_all(format!("{message}\n").as_bytes()).and_then(|()| output.flush());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn introduction() -> acp::InitializeResponse {
    let sessions = acp::SessionCapabilities::new()
        .resume(acp::SessionResumeCapabilities::new())
        .close(acp::SessionCloseCapabilities::new());
    acp::InitializeResponse::new(ProtocolVersion::V1)
        .agent_info(acp::Implementation::new("demo-agent", env!("CARGO_PKG_VERSION")).title("Demo agent".to_owned()))
        .agent_capabilities(acp::AgentCapabilities::new().load_session(true).session_capabilities(sessions))
}

fn options(settings: &Settings) -> Vec<acp::SessionConfigOption> {
    let select = |id: &'static str, name: &'static str, value: &str, choices: &[Choice], category| {
        let choice = |(value, name, description): &Choice| {
            acp::SessionConfigSelectOption::new(*value, *name).description((*description).to_owned())
        };
        let choices: Vec<_> = choices.iter().map(choice).collect();
        acp::SessionConfigOption::select(id, name, value.to_owned(), choices).category(category)
    };
    vec![
        select("mode", "Mode", &settings.mode, MODES, acp::SessionConfigOptionCategory::Mode),
        select("model", "Model", &settings.model, MODELS, acp::SessionConfigOptionCategory::Model),
    ]
}
