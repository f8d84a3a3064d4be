//! Real agents: what they wrote live, and what they replay of it in another process.

use std::path::{Path, PathBuf};

use journal::TurnOrigin;
use protocol::{AgentSessionId, CliType, SessionId, StreamEvent};
use providers::claude::history::SessionFile;
use providers::claude::translate::{LineSource, Translator, TranslatorOutput};
use providers::claude::wire::ClaudeLine;
use serde_json::Value;

use super::*;

const CLAUDE_SESSION: &str = "00000306-0000-4000-8000-000000000306";

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../providers/tests/data")
}

fn recorded(file: &Path) -> Vec<(bool, Value)> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let line = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        (line["dir"] == "in", line["line"].take())
    };
    text.lines().map(line).collect()
}

fn folded(events: Vec<StreamEvent>) -> Vec<ItemUpdate> {
    upserts::fold(events, Timestamp::default())
}

/// The turn as the journal has it.
fn outline(turn: AgentTurn, origin: TurnOrigin) -> TurnOutline {
    TurnOutline {
        turn_id: turn.id,
        origin,
        position: 0,
        started_at: turn.started_at,
        has_ended: true,
        is_forgotten: false,
        prompt: turn.prompt,
        answer: turn.answer.map(|answer| answer.chars().take(400).collect()),
        items: turn.items,
        last_position: 0,
    }
}

/// As they would come from an agent that keeps none of its ids.
fn under_other_ids(turns: &[AgentTurn]) -> Vec<AgentTurn> {
    let other = |turn: &AgentTurn| {
        let id = TurnId::generate();
        let items = turn.items.iter().enumerate().map(|(place, _)| ItemId::from_foreign(&format!("{id}.{place}")));
        AgentTurn { items: items.collect(), id, ..turn.clone() }
    };
    turns.iter().map(other).collect()
}

#[track_caller]
fn check_same(name: &str, ours: &[TurnOutline], theirs: &[AgentTurn], is_whole: bool) {
    for theirs in [theirs.to_vec(), under_other_ids(theirs)] {
        let alignment = align(ours, &theirs, is_whole);
        let is_same = alignment.missing.is_empty() && alignment.forgotten.is_empty();
        assert!(is_same, "{name}: {alignment:?}\n{ours:#?}\n{theirs:#?}");
    }
}

/// The journal of one session, fed with what its agent wrote.
struct Recorded {
    name: String,
    ours: Vec<TurnOutline>,
    compared: usize,
}

impl Recorded {
    fn session(id: &str) -> SessionId {
        SessionId::new(&CliType::parse("acp").unwrap(), &AgentSessionId::parse(id).unwrap())
    }

    /// Goes on with the session that this file is about. What is not known by then is taken in, once.
    fn play(&mut self, file: &Path, session: &str) {
        let lines = recorded(file);
        for (place, (is_sent, message)) in lines.iter().enumerate() {
            let method = message["method"].as_str().unwrap_or_default();
            if !is_sent || message["params"]["sessionId"] != session {
                continue;
            }
            let answer =
                |(is_sent, line): &&(bool, Value)| !is_sent && line["id"] == message["id"] && line["method"].is_null();
            let end = lines[place..].iter().position(|line| answer(&line)).map_or(lines.len(), |end| place + end);
            let is_its = |line: &&(bool, Value)| !line.0 && line.1["params"]["sessionId"] == session;
            let text: String = lines[place..end].iter().filter(is_its).map(|(_, line)| format!("{line}\n")).collect();
            let read = |as_replay| {
                let history =
                    providers::acp::read_lines(Self::session(session), &text, as_replay, Timestamp::default());
                agent_turns(&folded(history.events))
            };
            match method {
                "session/prompt" => {
                    let mut turns = read(false);
                    turns[0].prompt = message["params"]["prompt"][0]["text"].as_str().map(str::to_owned);
                    self.ours.extend(turns.into_iter().map(|turn| outline(turn, TurnOrigin::Live)));
                }
                "session/load" if !text.is_empty() => self.compare(&read(true)),
                _ => {}
            }
        }
    }

    fn compare(&mut self, theirs: &[AgentTurn]) {
        if self.ours.is_empty() {
            let alignment = align(&[], theirs, true);
            assert_eq!(alignment.missing.len(), theirs.len());
            self.ours = theirs.iter().map(|turn| outline(turn.clone(), TurnOrigin::Agent)).collect();
        }
        self.compared += 1;
        check_same(&self.name, &self.ours, theirs, true);
        for newest in 1..theirs.len() {
            check_same(&self.name, &self.ours, &theirs[theirs.len() - newest..], false);
        }
    }
}

/// The sessions that a file names in requests with this method.
fn sessions(file: &Path, method: &str) -> Vec<String> {
    let lines = recorded(file).into_iter().filter(|(is_sent, line)| *is_sent && line["method"] == method);
    lines.filter_map(|(_, line)| Some(line["params"]["sessionId"].as_str()?.to_owned())).collect()
}

#[test]
fn every_recorded_replay_is_known_to_a_journal_that_has_seen_the_session() {
    let mut compared = Vec::new();
    for agent in std::fs::read_dir(data()).unwrap().map(|agent| agent.unwrap().path()) {
        let name = agent.file_name().unwrap().to_string_lossy().into_owned();
        for files in [
            &["load-1-create", "load-2-session-load", "load-3-resume-close-delete"][..],
            &["prompt-content-blocks", "prompt-content-blocks-loaded"][..],
        ] {
            let files: Vec<_> = files.iter().map(|file| agent.join(file).with_extension("ndjson")).collect();
            let Some(session) =
                files.iter().filter(|file| file.exists()).find_map(|file| sessions(file, "session/load").pop())
            else {
                continue;
            };
            let mut recorded = Recorded { name: name.clone(), ours: Vec::new(), compared: 0 };
            for file in files.iter().filter(|file| file.exists()) {
                recorded.play(file, &session);
            }
            compared.push((name.clone(), recorded.compared, recorded.ours.len()));
        }
    }
    compared.sort();
    // Gemini refuses the load.
    let expected = [
        ("claude-agent-acp-0.49.0", 1, 7),
        ("claude-agent-acp-0.99.1", 1, 1),
        ("claude-agent-acp-0.99.1", 2, 9),
        ("codex-acp-2.6.0", 1, 1),
        ("codex-acp-2.6.0", 2, 9),
        ("gemini-cli-0.61.0", 0, 3),
        ("opencode-1.18.33", 2, 9),
        ("zed-codex-acp-0.16.0", 2, 9),
    ];
    let expected: Vec<_> =
        expected.iter().map(|(name, compared, turns)| ((*name).to_owned(), *compared, *turns)).collect();
    assert_eq!(compared, expected);
}

/// Ten turns of the real Claude Code, as it wrote them.
fn claude_live(file: &Path) -> Vec<TurnOutline> {
    let agent_id = AgentSessionId::parse(CLAUDE_SESSION).unwrap();
    let id = SessionId::new(&CliType::parse("claude-code").unwrap(), &agent_id);
    let mut translator = Translator::new(LineSource::Live, id, agent_id);
    let mut events = Vec::new();
    for (is_sent, message) in recorded(file) {
        let outputs = match is_sent {
            true if message["type"] == "user" => {
                let turn = TurnId::from_foreign(message["uuid"].as_str().unwrap());
                let text = message["message"]["content"].as_str().unwrap().to_owned();
                translator.begin(turn, text, Timestamp::default())
            }
            true => Vec::new(),
            false => translator.line(ClaudeLine::parse(message.to_string().as_bytes()).unwrap(), Timestamp::default()),
        };
        events.extend(outputs.into_iter().filter_map(|output| match output {
            TranslatorOutput::Event(event) => Some(event),
            _ => None,
        }));
    }
    agent_turns(&folded(events)).into_iter().map(|turn| outline(turn, TurnOrigin::Live)).collect()
}

#[test]
fn the_session_file_of_claude_code_is_known_to_a_journal_that_has_seen_its_turns() {
    let directory = data().join("claude-code-2.1.325");
    let ours = claude_live(&directory.join("recommended-flags.ndjson"));
    let agent_id = AgentSessionId::parse(CLAUDE_SESSION).unwrap();
    let id = SessionId::new(&CliType::parse("claude-code").unwrap(), &agent_id);
    let file = SessionFile::at(directory.join("session-file-sample.jsonl"), id, agent_id);
    let whole = agent_turns(&folded(file.read(None, usize::MAX).unwrap().events));
    assert_eq!((ours.len(), whole.len()), (10, 10));
    let alignment = align(&ours, &whole, true);
    assert_eq!(alignment.matched, (0..10).map(|number| (number, number)).collect::<Vec<_>>());
    check_same("whole", &ours, &whole, true);
    for items_max in 1..40 {
        let page = file.read(None, items_max).unwrap();
        let is_whole = page.older.is_none();
        check_same("page", &ours, &agent_turns(&folded(page.events)), is_whole);
    }
    // What the journal lacks is found wherever it is.
    for number in 0..ours.len() {
        let mut fewer = ours.clone();
        fewer.remove(number);
        let alignment = align(&fewer, &whole, true);
        assert_eq!(alignment.missing, [MissingTurn { theirs: number, after: number.checked_sub(1) }]);
        let alignment = align(&fewer, &under_other_ids(&whole), true);
        assert_eq!(alignment.missing, [MissingTurn { theirs: number, after: number.checked_sub(1) }]);
        assert!(alignment.forgotten.is_empty());
    }
}
