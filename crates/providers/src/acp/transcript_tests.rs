//! Every recorded conversation with a real agent, through the translation and the upsert processor, as text that a
//! reader can judge. `UPDATE_SNAPSHOTS=1 cargo test -p providers` writes the snapshots again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::{
    CliType, Permission, PermissionDecision, SessionFacts, SessionId, StreamEvent, StreamPayload, Timestamp,
    ToolContent, TurnEvent, TurnId,
};
use serde_json::Value;
use upserts::{Emission, ItemBody, ItemUpdate, Moment, UpsertConfig, UpsertProcessor};

use super::content::plain_message;
use super::event_builder::Translated;
use super::translate::{Quirks, TURN_FAILED, Translator};
use super::wire::{PromptResult, RpcError, SessionSetup, Update};

#[test]
fn every_recorded_conversation_reads_as_its_snapshot() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut transcripts = Vec::new();
    for agent in std::fs::read_dir(&data).unwrap() {
        let agent = agent.unwrap().path();
        if agent.file_name().unwrap().to_string_lossy().starts_with("claude-code") {
            continue;
        }
        transcripts.extend(std::fs::read_dir(agent).unwrap().map(|file| file.unwrap().path()));
    }
    transcripts.retain(|path| path.extension().is_some_and(|extension| extension == "ndjson"));
    transcripts.sort();
    assert!(transcripts.len() > 60, "the transcripts are missing");
    let differing: Vec<PathBuf> = transcripts.into_iter().filter(|path| !matches_snapshot(path)).collect();
    assert!(
        differing.is_empty(),
        "not as recorded: {differing:#?}\nUPDATE_SNAPSHOTS=1 writes them again; read the diff"
    );
}

/// Every field of every recorded update, as something else: nothing panics, and everything ends settled.
#[test]
fn a_field_of_any_kind_leaves_nothing_open() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for transcript in ["codex-acp-2.6.0/tools", "codex-acp-2.6.0/errors", "claude-agent-acp-0.99.1/ask-plan-subagent"] {
        let text = std::fs::read_to_string(data.join(transcript).with_extension("ndjson")).unwrap();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["line"].take()).collect();
        let replacements =
            [Value::Null, 7.into(), "x".into(), Value::Bool(true), serde_json::json!([{}]), serde_json::json!({})];
        for (number, replacement) in replacements.iter().enumerate() {
            let mut broken = lines.clone();
            for (place, line) in broken.iter_mut().enumerate() {
                let Some(update) = line.pointer_mut("/params/update").and_then(Value::as_object_mut) else { continue };
                let field = update.keys().nth((place + number) % update.len()).cloned().unwrap();
                update[&field] = replacement.clone();
            }
            let broken: String = broken.iter().map(|line| format!("{line}\n")).collect();
            for as_replay in [true, false] {
                let session = SessionId::parse("acp:x").unwrap();
                let history = super::read_lines(session, &broken, as_replay, Timestamp::default());
                let items = upserts::fold(history.events, Timestamp::default());
                assert!(items.iter().all(|item| item.status.is_final()), "{transcript}");
                assert!(!history.turns.is_empty());
            }
        }
    }
}

fn matches_snapshot(transcript: &Path) -> bool {
    let snapshot = transcript.with_extension("snap.txt");
    let read = replay(&std::fs::read_to_string(transcript).unwrap());
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&snapshot, &read).unwrap();
    }
    std::fs::read_to_string(&snapshot).unwrap_or_default() == read
}

/// Plays the client's part as recorded and writes down what a user would see in the end.
fn replay(transcript: &str) -> String {
    let lines: Vec<Value> = transcript.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut client = Client::default();
    for (position, line) in lines.iter().enumerate() {
        let message = &line["line"];
        client.now_ms = line["ms"].as_u64().unwrap();
        match line["dir"].as_str().unwrap() {
            "in" => client.sent(message),
            _ => client.on_message(message, &lines[position..]),
        }
    }
    client.report()
}

#[derive(Default)]
struct Client {
    now_ms: u64,
    quirks: Quirks,
    requests: HashMap<String, Value>,
    sessions: BTreeMap<String, Session>,
    refused: Vec<String>,
}

struct Session {
    translator: Translator,
    turns: Vec<(TurnId, UpsertProcessor)>,
    items: Vec<ItemUpdate>,
    ends: Vec<(TurnId, String)>,
    facts: SessionFacts,
    replaying: bool,
    replayed: bool,
    waiting: Vec<String>,
    prompts: usize,
    /// By message.
    streamed: Vec<(String, String)>,
    calls: HashSet<String>,
}

impl Client {
    fn sent(&mut self, message: &Value) {
        let Some(method) = message["method"].as_str() else { return };
        if !message["id"].is_null() {
            self.requests.insert(message["id"].to_string(), message.clone());
        }
        let id = message["params"]["sessionId"].as_str().unwrap_or_default().to_owned();
        match method {
            "session/load" => {
                self.sessions.remove(&id);
                let session = self.session(&id);
                session.replaying = true;
                session.replayed = true;
                session.translator.begin_replay();
            }
            "session/prompt" => {
                let now = self.now();
                let text = message["params"]["prompt"][0]["text"].as_str().unwrap_or_default().to_owned();
                self.session(&id).prompt(text, now);
            }
            _ => {}
        }
    }

    fn on_message(&mut self, message: &Value, rest: &[Value]) {
        let now = self.now();
        let params = &message["params"];
        match message["method"].as_str() {
            Some("session/update") => {
                let update = &params["update"];
                let session = self.session(params["sessionId"].as_str().unwrap());
                session.note(update);
                let output = session.translator.update(Update::read(&update.to_string()), now.wall);
                session.take(output, now);
            }
            Some("session/request_permission") => {
                let call = serde_json::from_value(params["toolCall"].clone()).unwrap();
                let permission = recorded_answer(message, rest);
                let session = self.session(params["sessionId"].as_str().unwrap());
                session.calls.insert(params["toolCall"]["toolCallId"].as_str().unwrap().to_owned());
                let output = session.translator.permission(call, permission, now.wall);
                session.take(output, now);
            }
            Some(_) => {}
            None => self.answered(message, now),
        }
    }

    fn answered(&mut self, message: &Value, now: Moment) {
        let Some(request) = self.requests.remove(&message["id"].to_string()) else { return };
        let method = request["method"].as_str().unwrap();
        let error: Option<RpcError> = message.get("error").map(|error| serde_json::from_value(error.clone()).unwrap());
        let id = request["params"]["sessionId"].as_str().unwrap_or_default().to_owned();
        match (method, error) {
            ("session/prompt", error) => {
                let result = match error {
                    Some(error) => Err(error),
                    None => Ok(serde_json::from_value::<PromptResult>(message["result"].clone()).unwrap()),
                };
                let session = self.session(&id);
                if let (Err(error), Some((_, last))) = (&result, session.streamed.last_mut())
                    && !last.trim().is_empty()
                    && error.text().contains(last.trim())
                {
                    // The error says it; it is there once.
                    *last = TURN_FAILED.to_owned();
                }
                let output = session.translator.end_turn(result, now.wall);
                session.take(output, now);
                if !session.waiting.is_empty() {
                    let text = session.waiting.remove(0);
                    session.begin(&text, now);
                }
            }
            (_, Some(error)) => {
                self.refused.push(format!("{method}: {}", error.text()));
                if method == "session/load" {
                    self.sessions.remove(&id);
                }
            }
            ("initialize", None) => {
                let agent = serde_json::from_value(message["result"]["agentInfo"].clone()).ok();
                self.quirks = Quirks::of(agent.as_ref());
            }
            ("session/new" | "session/load" | "session/resume", None) => {
                let setup: SessionSetup = serde_json::from_value(message["result"].clone()).unwrap();
                let id = setup.session_id.clone().unwrap_or(id);
                let session = self.session(&id);
                if session.replaying {
                    session.replaying = false;
                    let output = session.translator.end_replay(now.wall);
                    session.take(output, now);
                }
                let facts = session.translator.set_up(&setup);
                session.facts.merge(facts);
            }
            _ => {}
        }
    }

    fn session(&mut self, id: &str) -> &mut Session {
        let quirks = self.quirks;
        self.sessions.entry(id.to_owned()).or_insert_with(|| Session::new(id, quirks))
    }

    fn now(&self) -> Moment {
        let wall = Timestamp::from_unix_ms(1_794_777_356_000 + i64::try_from(self.now_ms).unwrap());
        Moment { wall, elapsed: Duration::from_millis(self.now_ms) }
    }

    fn report(&mut self) -> String {
        let now = Moment { elapsed: Duration::from_secs(86400), ..self.now() };
        let mut text = String::new();
        for refused in &self.refused {
            writeln!(text, "refused {refused}").unwrap();
        }
        for (id, session) in &mut self.sessions {
            session.collect(now);
            session.check_nothing_is_lost(id);
            session.report(id, &mut text);
        }
        text
    }
}

impl Session {
    fn new(id: &str, quirks: Quirks) -> Self {
        let cli_type = CliType::parse("acp").unwrap();
        let session = SessionId::new(&cli_type, &protocol::AgentSessionId::parse(id).unwrap());
        Self {
            translator: Translator::new(session, quirks),
            turns: Vec::new(),
            items: Vec::new(),
            ends: Vec::new(),
            facts: SessionFacts::default(),
            replaying: false,
            replayed: false,
            waiting: Vec::new(),
            prompts: 0,
            streamed: Vec::new(),
            calls: HashSet::new(),
        }
    }

    /// One prompt at a time, as the provider does it.
    fn prompt(&mut self, text: String, now: Moment) {
        let is_running = self.ends.len() < self.turns.len();
        if is_running { self.waiting.push(text) } else { self.begin(&text, now) }
    }

    fn begin(&mut self, text: &str, now: Moment) {
        self.prompts += 1;
        // What is sent in another turn is not a repetition.
        self.streamed.push((String::new(), String::new()));
        let turn = TurnId::parse(format!("turn{}", self.prompts)).unwrap();
        let output = self.translator.begin_turn(turn, text, now.wall);
        self.take(output, now);
    }

    fn note(&mut self, update: &Value) {
        match update["sessionUpdate"].as_str().unwrap() {
            "agent_message_chunk" => {
                let id = update["messageId"].as_str().unwrap_or_default();
                let text = plain_message(update["content"]["text"].as_str().unwrap_or_default());
                match self.streamed.last_mut().filter(|(known, _)| known == id) {
                    Some((_, streamed)) => streamed.push_str(&text),
                    None => self.streamed.push((id.to_owned(), text.into_owned())),
                }
            }
            "tool_call" | "tool_call_update" => {
                self.calls.insert(update["toolCallId"].as_str().unwrap().to_owned());
            }
            _ => {}
        }
    }

    fn take(&mut self, output: Translated, now: Moment) {
        for turn in output.turns {
            let is_response =
                |event: &StreamEvent| event.turn_id == turn && matches!(event.payload, StreamPayload::ResponseStart(_));
            if !output.events.iter().any(is_response) {
                self.ends.push((turn.clone(), "no response".to_owned()));
            }
            let session = SessionId::parse("acp:x").unwrap();
            self.turns.push((turn.clone(), UpsertProcessor::new(UpsertConfig::live(), session, turn)));
        }
        for event in output.events {
            let turn = self.turns.iter_mut().rev().find(|(turn, _)| *turn == event.turn_id);
            turn.expect("an event of a turn that was begun").1.push(event, now);
        }
        self.facts.merge(output.facts);
        self.collect(now);
    }

    fn collect(&mut self, now: Moment) {
        for (_, processor) in &mut self.turns {
            for emission in processor.take(now) {
                match emission {
                    Emission::Item(item) => match self.items.iter_mut().find(|known| known.item_id == item.item_id) {
                        Some(known) => *known = item,
                        None => self.items.push(item),
                    },
                    Emission::Turn(TurnEvent::TurnStarted { .. }) => {}
                    Emission::Turn(end) => self.ends.push((end.turn_id().clone(), end_text(&end))),
                }
            }
        }
    }

    /// All text and every call that came is there, and once.
    fn check_nothing_is_lost(&self, id: &str) {
        let shown = |item: &&ItemUpdate| matches!(&item.body, ItemBody::Message { origin, .. } if *origin != protocol::Origin::User);
        let text: String = self.items.iter().filter(shown).map(|item| item.body.text().unwrap().to_string()).collect();
        // A cut stream that started again is there once.
        let is_repeated = |place: usize| {
            let next = self.streamed.get(place + 1).filter(|(id, _)| !self.replayed && !id.is_empty());
            next.is_some_and(|(_, next)| next.starts_with(&self.streamed[place].1))
        };
        let streamed: String = (0..self.streamed.len())
            .filter(|place| !is_repeated(*place))
            .map(|place| self.streamed[place].1.as_str())
            .collect();
        assert_eq!(sorted(&text), sorted(&streamed), "text of {id}");
        let mut calls: Vec<&str> = self.items.iter().filter_map(call_id).collect();
        let count = calls.len();
        calls.sort_unstable();
        calls.dedup();
        assert_eq!(calls.len(), count, "a call of {id} is there twice");
        for call in &self.calls {
            assert!(calls.contains(&protocol::CallId::from_foreign(call).as_str()), "call {call} of {id} is lost");
        }
        assert_eq!(self.turns.len(), self.ends.len() + usize::from(self.is_running()), "every turn of {id} ends");
    }

    fn is_running(&self) -> bool {
        self.ends.len() < self.turns.len()
    }

    fn report(&self, id: &str, text: &mut String) {
        writeln!(text, "session {id}").unwrap();
        write_facts(&self.facts, text);
        for (turn, _) in &self.turns {
            let end = self.ends.iter().find(|(ended, _)| ended == turn).map_or("still running", |(_, end)| end);
            let name = turn.as_str().rsplit('.').next().filter(|name| name.len() < 10).unwrap_or("between turns");
            writeln!(text, "  turn {name}: {end}").unwrap();
            for item in self.items.iter().filter(|item| item.turn_id == *turn) {
                write_item(item, text);
            }
        }
    }
}

/// Interleaved items stand in another order than their text came; the text is the same.
fn sorted(text: &str) -> String {
    let mut letters: Vec<char> = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    letters.sort_unstable();
    letters.into_iter().collect()
}

fn call_id(item: &ItemUpdate) -> Option<&str> {
    match &item.body {
        ItemBody::ToolCall { call_id, .. } => Some(call_id.as_str()),
        _ => None,
    }
}

fn recorded_answer(request: &Value, rest: &[Value]) -> Permission {
    let answer = rest.iter().find(|line| line["dir"] == "in" && line["line"]["id"] == request["id"]);
    let outcome = answer.map(|line| &line["line"]["result"]["outcome"]);
    let chosen = outcome.and_then(|outcome| outcome["optionId"].as_str());
    let options = request["params"]["options"].as_array().unwrap();
    let option = options.iter().find(|option| option["optionId"].as_str() == chosen);
    let decision = match option.and_then(|option| option["kind"].as_str()) {
        Some("allow_once") => PermissionDecision::AllowedOnce,
        Some("allow_always") => PermissionDecision::AllowedAlways,
        Some(_) => PermissionDecision::Rejected,
        None => PermissionDecision::Cancelled,
    };
    Permission { decision, option: option.map(|option| option["name"].as_str().unwrap().to_owned()) }
}

fn end_text(end: &TurnEvent) -> String {
    match end {
        TurnEvent::TurnComplete { status, usage, .. } => {
            let usage = usage.map(|usage| format!(", {} in, {} out", usage.input_tokens, usage.output_tokens));
            format!("{status:?}{}", usage.unwrap_or_default())
        }
        TurnEvent::TurnError { error_code, error_message, .. } => format!("{error_code} {}", short(error_message)),
        TurnEvent::TurnStarted { .. } => String::new(),
    }
}

fn write_facts(facts: &SessionFacts, text: &mut String) {
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            writeln!(text, "  {name}: {value}").unwrap();
        }
    };
    fact("title", facts.agent_title.clone());
    fact("model", facts.model.clone());
    fact("activity", facts.activity.clone().filter(|activity| !activity.is_empty()));
    fact("context", facts.context.map(|context| format!("{} of {}", context.used, context.size)));
    fact(
        "commands",
        facts.commands.as_ref().map(|all| all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(" ")),
    );
    fact(
        "plan",
        facts.plan.as_ref().map(|plan| {
            plan.iter().map(|entry| format!("[{:?}] {}", entry.status, entry.content)).collect::<Vec<_>>().join("; ")
        }),
    );
    for option in facts.options.iter().flatten() {
        let choices: Vec<&str> = option.choices.iter().map(|choice| choice.value.as_str()).collect();
        fact(
            "option",
            Some(format!("{} {:?} = {} of {}", option.id, option.category, option.value, choices.join(" "))),
        );
    }
}

fn write_item(item: &ItemUpdate, text: &mut String) {
    let content = item.body.text().map(|text| text.to_string()).unwrap_or_default();
    let parent = item.parent_item_id.as_ref().map(|parent| format!(" under {parent}")).unwrap_or_default();
    let error = item.error.as_ref().map(|error| format!(" error {}", error.code)).unwrap_or_default();
    let mark = format!("{:?}{error}{parent}", item.status).to_lowercase();
    match &item.body {
        ItemBody::Message { origin, .. } => {
            writeln!(text, "    {origin:?} {} {mark}: {}", item.item_id, short(&content)).unwrap();
        }
        ItemBody::Thinking { .. } => {
            writeln!(text, "    Thinking {} {mark}: {}", item.item_id, short(&content)).unwrap()
        }
        ItemBody::ToolCall { name, arguments, is_error, tool, .. } => {
            let tool = tool.as_ref().unwrap();
            let failed = if *is_error == Some(true) { " failed" } else { "" };
            let interrupted = if tool.interrupted { " interrupted" } else { "" };
            writeln!(text, "    Tool {} {mark}{failed}{interrupted}: {name} {:?}", item.item_id, tool.kind).unwrap();
            let mut line = |name: &str, value: Option<String>| {
                if let Some(value) = value.filter(|value| !value.is_empty()) {
                    writeln!(text, "      {name}: {value}").unwrap();
                }
            };
            line("title", tool.title.as_deref().map(short));
            line("command", tool.command.as_deref().map(short));
            line("arguments", (!arguments.is_empty()).then(|| short(&serde_json::to_string(&**arguments).unwrap())));
            let locations = tool.locations.iter().map(|place| match place.line {
                Some(line) => format!("{}:{line}", place.path),
                None => place.path.clone(),
            });
            line("locations", Some(locations.collect::<Vec<_>>().join(", ")));
            for content in &tool.content {
                line("shows", Some(content_text(content)));
            }
            line("exit code", tool.exit_code.map(|code| code.to_string()));
            line(
                "permission",
                tool.permission.as_ref().map(|given| format!("{:?} {:?}", given.decision, given.option)),
            );
            line("output", (!content.is_empty()).then(|| short(&content)));
        }
    }
}

fn content_text(content: &ToolContent) -> String {
    match content {
        ToolContent::Diff { path, old_text, new_text, .. } => {
            format!(
                "diff of {path} from {} to {}",
                old_text.as_deref().map_or("nothing".into(), short),
                short(new_text)
            )
        }
        ToolContent::File { path, .. } => format!("file {path}"),
        ToolContent::Image { mime_type, data } => format!("{mime_type} of {} letters", data.len()),
        ToolContent::Text { text } => format!("text {}", short(text)),
    }
}

/// The beginning and the end, and how long it is.
fn short(text: &str) -> String {
    const SHOWN: usize = 140;
    let letters = text.chars().count();
    if letters <= SHOWN {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(SHOWN - 40).collect();
    let end: String = text.chars().skip(letters - 30).collect();
    format!("{start:?} … {end:?} ({letters} letters)")
}
