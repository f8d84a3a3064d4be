//! Every recorded transcript of Claude Code, translated, as a reviewed text beside it.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test -p providers` writes them again.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::{
    AgentSessionId, CliType, ErrorCode, ErrorDetail, SessionFacts, SessionId, StreamEvent, Timestamp, ToolContent,
    ToolDetail, TurnEvent, TurnId, TurnRecord,
};
use providers::claude::translate::{LineSource, Translator, TranslatorOutput};
use providers::claude::wire::ClaudeLine;
use serde_json::Value;
use upserts::{Emission, ItemBody, ItemUpdate, Moment, UpsertConfig, UpsertProcessor};

const SESSION: &str = "00000306-0000-4000-8000-000000000306";
const TEXT_CHARS_SHOWN: usize = 90;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// What a translation led to, in the order in which it was first shown.
#[derive(Default)]
struct Play {
    turns: Vec<(TurnId, UpsertProcessor)>,
    /// One entry per item or event; an item's later states replace its first.
    shown: Vec<Shown>,
    elapsed: Duration,
}

enum Shown {
    Item(Box<ItemUpdate>),
    Turn(TurnEvent),
    Line(String),
}

impl Play {
    fn receive(&mut self, outputs: Vec<TranslatorOutput>, now: Timestamp) {
        for output in outputs {
            match output {
                TranslatorOutput::Event(event) => self.event(event, now),
                TranslatorOutput::Facts(facts) => self.facts(&facts),
                TranslatorOutput::TurnBegan(turn) => self.line(format!("  begins by itself: {}", short(turn.as_str()))),
                TranslatorOutput::PermissionRequested(request) => {
                    self.line(format!("  asks: may {} run?", request.tool_name))
                }
                TranslatorOutput::PermissionWithdrawn { .. } => self.line("  asks no longer".into()),
                TranslatorOutput::AgentIdChanged(id) => self.line(format!("session is now {}", short(id.as_str()))),
                TranslatorOutput::Answer { answer: Err(error), .. } => self.line(format!("  refused: {error}")),
                TranslatorOutput::UnknownRequest { .. } => self.line("  asks something unknown".into()),
                TranslatorOutput::Answer { .. } | TranslatorOutput::TurnEnded(_) => {}
            }
        }
    }

    fn event(&mut self, event: StreamEvent, now: Timestamp) {
        let moment = self.moment(now);
        let turn = event.turn_id.clone();
        if !self.turns.iter().any(|(known, _)| *known == turn) {
            let processor = UpsertProcessor::new(UpsertConfig::live(), event.session_id.clone(), turn.clone());
            self.turns.push((turn.clone(), processor));
        }
        let (_, processor) = self.turns.iter_mut().find(|(known, _)| *known == turn).unwrap();
        processor.push(event, moment);
        let emissions = processor.take(moment);
        self.emitted(emissions);
    }

    /// Later than the last one by more than any emission waits, so an item has its place as soon as it begins.
    fn moment(&mut self, now: Timestamp) -> Moment {
        self.elapsed += Duration::from_secs(1);
        Moment { wall: now, elapsed: self.elapsed }
    }

    fn emitted(&mut self, emissions: Vec<Emission>) {
        for emission in emissions {
            match emission {
                Emission::Turn(event) => self.shown.push(Shown::Turn(event)),
                Emission::Item(item) => self.item(item),
            }
        }
    }

    /// The process is gone: what is open ends.
    fn end(&mut self) {
        let moment = self.moment(Timestamp::default());
        let crash = ErrorDetail::new(ErrorCode::ProcessCrash, "gone");
        let mut emissions = Vec::new();
        for (_, processor) in &mut self.turns {
            processor.abort(crash.clone(), moment);
            emissions.extend(processor.take(moment));
        }
        self.emitted(emissions);
    }

    fn item(&mut self, item: ItemUpdate) {
        let known = self.shown.iter_mut().find_map(|shown| match shown {
            Shown::Item(known) if known.item_id == item.item_id => Some(known),
            _ => None,
        });
        match known {
            Some(known) => **known = item,
            None => self.shown.push(Shown::Item(Box::new(item))),
        }
    }

    fn facts(&mut self, facts: &SessionFacts) {
        let mut line = String::from("  facts:");
        if let Some(activity) = facts.activity.as_ref().filter(|activity| !activity.is_empty()) {
            write!(line, " activity={activity:?}").unwrap();
        }
        if let Some(model) = &facts.model {
            write!(line, " model={model}").unwrap();
        }
        if let Some(context) = facts.context {
            write!(line, " context={}/{}", context.used, context.size).unwrap();
        }
        for option in facts.options.iter().flatten() {
            write!(line, " {}={}", option.id, option.value).unwrap();
        }
        if let Some(title) = &facts.agent_title {
            write!(line, " title={title:?}").unwrap();
        }
        if line != "  facts:" {
            self.line(line);
        }
    }

    fn line(&mut self, line: String) {
        self.shown.push(Shown::Line(line));
    }

    fn items(&self) -> Vec<String> {
        let items = self.shown.iter().filter_map(|shown| match shown {
            Shown::Item(item) => Some(line_of(item)),
            _ => None,
        });
        items.collect()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for shown in &self.shown {
            let line = match shown {
                Shown::Item(item) => line_of(item),
                Shown::Turn(turn) => turn_line(turn),
                Shown::Line(line) => line.clone(),
            };
            writeln!(text, "{line}").unwrap();
        }
        text
    }
}

/// `00000306-0000-4000-8000-000000000306` is `u306`.
fn short(id: &str) -> String {
    match id.strip_prefix("00000").and_then(|rest| rest.split_once("-0000-4000-8000-000000000")) {
        Some((number, rest)) if rest.starts_with(number) => format!("u{rest}"),
        _ => id.replace("msg_fake_", "msg_").replace("toolu_fake_", "tool_"),
    }
}

fn shorten(text: &str) -> String {
    let cut: String = text.chars().take(TEXT_CHARS_SHOWN).collect();
    let more = text.chars().count() - cut.chars().count();
    if more == 0 { format!("{cut:?}") } else { format!("{cut:?} +{more}") }
}

fn line_of(item: &ItemUpdate) -> String {
    let mut line = String::from("  ");
    if item.parent_item_id.is_some() {
        line.push_str("    ");
    }
    let status = format!("{:?}", item.status).to_lowercase();
    let id = short(item.item_id.as_str());
    match &item.body {
        ItemBody::Message { text, origin } => {
            let origin = format!("{origin:?}").to_lowercase();
            write!(line, "message {origin} {id} {status} {}", shorten(&text.to_string())).unwrap();
        }
        ItemBody::Thinking { text, .. } => {
            write!(line, "thinking {id} {status} {}", shorten(&text.to_string())).unwrap();
        }
        ItemBody::ToolCall { name, arguments, output, is_error, tool, .. } => {
            write!(line, "tool {name} {id} {status}").unwrap();
            if let Some(tool) = tool {
                detail(&mut line, tool);
            }
            let arguments = Value::Object(Clone::clone(arguments)).to_string();
            write!(line, " args={}", shorten(&arguments)).unwrap();
            if *is_error == Some(true) {
                line.push_str(" FAILED");
            }
            match output {
                Some(output) => write!(line, " -> {}", shorten(&output.to_string())).unwrap(),
                None => line.push_str(" no output"),
            }
        }
    }
    if let Some(error) = &item.error {
        write!(line, " error={}", error.code).unwrap();
    }
    line
}

fn detail(line: &mut String, tool: &ToolDetail) {
    write!(line, " [{}", format!("{:?}", tool.kind).to_lowercase()).unwrap();
    if let Some(command) = &tool.command {
        write!(line, " $ {command}").unwrap();
    }
    for place in &tool.locations {
        write!(line, " @ {}", place.path).unwrap();
    }
    for content in &tool.content {
        match content {
            ToolContent::Diff { old_text, new_text, start_line, .. } => {
                let old = old_text.as_deref().map(str::len);
                write!(line, " diff {old:?}->{} at {start_line:?}", new_text.len()).unwrap();
            }
            ToolContent::File { start_line, text, .. } => {
                write!(line, " file {} bytes from {start_line}", text.len()).unwrap();
            }
            ToolContent::Image { mime_type, .. } => write!(line, " image {mime_type}").unwrap(),
            ToolContent::Text { text } => write!(line, " text {}", shorten(text)).unwrap(),
        }
    }
    if let Some(code) = tool.exit_code {
        write!(line, " exit {code}").unwrap();
    }
    if let Some(permission) = &tool.permission {
        write!(line, " {:?}", permission.decision).unwrap();
    }
    if tool.interrupted {
        line.push_str(" interrupted");
    }
    line.push(']');
}

fn turn_line(turn: &TurnEvent) -> String {
    match turn {
        TurnEvent::TurnStarted { turn_id, model_id, .. } => format!("turn {} ({model_id})", short(turn_id.as_str())),
        TurnEvent::TurnComplete { status, usage, .. } => {
            let usage = usage.unwrap_or_default();
            let cost = usage.cost_usd.map_or(String::new(), |cost| format!(" ${cost:.6}"));
            let status = format!("{status:?}").to_lowercase();
            format!("  {status}: {} in, {} out{cost}", usage.input_tokens, usage.output_tokens)
        }
        TurnEvent::TurnError { error_code, error_message, .. } => format!("  {error_code}: {error_message:?}"),
    }
}

fn translator_of(source: LineSource, agent_id: &str) -> Translator {
    let agent_id = AgentSessionId::parse(agent_id).unwrap();
    Translator::new(source, SessionId::new(&CliType::parse("claude-code").unwrap(), &agent_id), agent_id)
}

fn translator(source: LineSource) -> Translator {
    translator_of(source, SESSION)
}

/// Plays a transcript as the server would live it: one message at a time.
fn live(path: &Path) -> Play {
    let text = std::fs::read_to_string(path).unwrap();
    let mut play = Play::default();
    let mut translator: Option<Translator> = None;
    let mut queue = VecDeque::new();
    let mut turns = 0;
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let now = Timestamp::from_unix_ms(record["ms"].as_i64().unwrap());
        let line = &record["line"];
        let translator = translator.get_or_insert_with(|| {
            let id = session_of(&text).unwrap_or(SESSION.into());
            translator_of(LineSource::Live, &id)
        });
        if record["dir"] == "in" {
            if line["type"] == "user" {
                turns += 1;
                let id = line["uuid"].as_str().map_or(format!("turn-{turns}"), str::to_owned);
                let content = match &line["message"]["content"] {
                    Value::String(text) => text.clone(),
                    blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
                };
                queue.push_back((TurnId::parse(id).unwrap(), content));
            }
        } else {
            let line = ClaudeLine::parse(line.to_string().as_bytes()).unwrap();
            let outputs = translator.line(line, now);
            play.receive(outputs, now);
        }
        if translator.turn().is_none()
            && let Some((turn, text)) = queue.pop_front()
        {
            let outputs = translator.begin(turn, text, now);
            play.receive(outputs, now);
        }
    }
    play.end();
    play
}

fn session_of(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let record: Value = serde_json::from_str(line).ok()?;
        record["line"]["session_id"].as_str().map(str::to_owned)
    })
}

/// Plays a session file, entry by entry.
fn recorded(path: &Path) -> (Play, Vec<TurnRecord>) {
    let mut play = Play::default();
    let mut turns = Vec::new();
    let mut translator = translator(LineSource::File);
    let now = Timestamp::default();
    let mut receive = |outputs: Vec<TranslatorOutput>, play: &mut Play| {
        turns.extend(outputs.iter().filter_map(|output| match output {
            TranslatorOutput::TurnEnded(record) => Some(record.clone()),
            _ => None,
        }));
        play.receive(outputs, now);
    };
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let line = ClaudeLine::parse(line.as_bytes()).unwrap();
        receive(translator.line(line, now), &mut play);
    }
    let mut last = Vec::new();
    translator.close_recorded_turn(&mut last);
    receive(last, &mut play);
    (play, turns)
}

fn check(path: &Path, text: &str) {
    let expected = path.with_extension("snapshot");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        return std::fs::write(expected, text).unwrap();
    }
    let known = std::fs::read_to_string(&expected).unwrap_or_default();
    assert!(known == text, "{} differs from what is translated now:\n{text}", expected.display());
}

fn every_transcript(version: &str) {
    let mut paths: Vec<_> =
        std::fs::read_dir(data().join(version)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let transcripts: Vec<_> = paths.iter().filter(|path| path.extension().is_some_and(|end| end == "ndjson")).collect();
    assert!(!transcripts.is_empty());
    for path in transcripts {
        check(path, &live(path).text());
    }
}

#[test]
fn every_transcript_of_claude_code_2_1_325_becomes_the_items_a_person_reviewed() {
    every_transcript("claude-code-2.1.325");
}

#[test]
fn every_transcript_of_claude_code_2_1_197_becomes_the_items_a_person_reviewed() {
    every_transcript("claude-code-2.1.197");
}

#[test]
fn a_session_file_gives_the_same_items_as_the_turns_it_records() {
    let directory = data().join("claude-code-2.1.325");
    let path = directory.join("session-file-sample.jsonl");
    let (history, turns) = recorded(&path);
    check(&path, &history.text());
    let live = live(&directory.join("recommended-flags.ndjson"));
    assert_eq!(history.items(), live.items());
    let ends = |play: &Play| {
        let ends = play.shown.iter().filter_map(|shown| match shown {
            Shown::Turn(turn) if turn.is_end() => {
                Some(turn_line(turn).split(" $").next().unwrap_or_default().to_owned())
            }
            _ => None,
        });
        ends.collect::<Vec<_>>()
    };
    // A turn that was cut off in mid-stream has tokens in the file that the program does not count.
    let comparable = |ends: Vec<String>| ends.into_iter().filter(|end| !end.contains("cancelled")).collect::<Vec<_>>();
    assert_eq!(comparable(ends(&history)), comparable(ends(&live)));
    assert_eq!(turns.len(), 10);
}

/// All places in a value, as JSON pointers.
fn places(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                places(value, format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                places(value, format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
    found.push(at);
}

#[test]
fn no_line_with_a_field_of_another_kind_makes_it_panic_or_hang_a_turn() {
    let odd = [Value::Null, 7.into(), "-x/<b>".into(), Value::Array(vec![]), serde_json::json!({"type": "x"})];
    for transcript in ["special-tools-and-commands", "interrupt", "permissions", "error-midstream"] {
        let path = data().join("claude-code-2.1.325").join(transcript).with_extension("ndjson");
        let text = std::fs::read_to_string(path).unwrap();
        for round in 0..10 {
            let mut play = Play::default();
            let mut translator = translator(LineSource::Live);
            let now = Timestamp::default();
            for (number, line) in text.lines().enumerate() {
                let mut record: Value = serde_json::from_str(line).unwrap();
                let mut found = Vec::new();
                places(&record["line"], String::new(), &mut found);
                let place = &found[(number * 31 + round * 17) % found.len()];
                if let Some(field) = record["line"].pointer_mut(place) {
                    *field = odd[(number + round) % odd.len()].clone();
                }
                if translator.turn().is_none() {
                    let turn = TurnId::parse(format!("turn-{round}-{number}")).unwrap();
                    play.receive(translator.begin(turn, "prompt".into(), now), now);
                }
                if let Ok(line) = ClaudeLine::parse(record["line"].to_string().as_bytes()) {
                    let outputs = translator.line(line, now);
                    play.receive(outputs, now);
                }
            }
            play.end();
            assert!(play.turns.iter().all(|(_, processor)| processor.is_finished()));
        }
    }
}
