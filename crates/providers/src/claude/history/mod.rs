//! A session's history, read from Claude Code's own session file, without starting it.
//!
//! Comes in: where the program keeps its files, a project, a session. Goes out: [`History`], a page at a time from the
//! end. `location` finds the file, `page` picks the entries of the conversation, and the translation of live lines
//! gives them their meaning. Kept out: writing; the file is the program's.

mod backward;
mod location;
mod page;

pub(super) use location::recent_directories;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use protocol::{AgentSessionId, SessionFacts, SessionId, StreamEvent, Timestamp, TurnId, TurnRecord};
use serde::Deserialize;
use serde_json::json as json_value;

use super::NAME;
use super::translate::{LineSource, Translator, TranslatorOutput};
use super::wire::{ClaudeLine, ContentBlock};
use crate::json;
use crate::provider::{History, HistoryCursor};
use crate::unreadable::UnreadableLines;

/// What is read of sub-agents for one page. Each is shown whole, as it was live, unless there is more than this of
/// them.
const SUB_AGENTS_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Sub-agents of sub-agents are followed to this depth.
const DEPTH_MAX: usize = 4;

/// The file of one session.
#[derive(Clone, Debug)]
pub struct SessionFile {
    path: PathBuf,
    /// Our id, which the events carry.
    id: SessionId,
    agent_id: AgentSessionId,
}

impl SessionFile {
    /// None if the program has no such session in this project.
    pub fn find(config_dir: &Path, project_dir: &Path, id: &SessionId, agent_id: &AgentSessionId) -> Option<Self> {
        let path = location::session_file(config_dir, project_dir, agent_id)?;
        Some(Self { path, id: id.clone(), agent_id: agent_id.clone() })
    }

    /// Any file, as the one of this session.
    pub fn at(path: PathBuf, id: SessionId, agent_id: AgentSessionId) -> Self {
        Self { path, id, agent_id }
    }

    /// The newest items before a cursor, or before the end. Blocks on the disk.
    pub fn read(&self, before: Option<&HistoryCursor>, items_max: usize) -> io::Result<History> {
        let file = File::open(&self.path)?;
        let page = page::read(&file, before.map(|cursor| cursor.0), items_max, false)?;
        let mut replay = HistoryReplay::new(Translator::new(LineSource::File, self.id.clone(), self.agent_id.clone()));
        let sub_agents = SubAgents::of(&self.path);
        if let Some(opening) = &page.within {
            let at = opening.timestamp.as_deref().and_then(Timestamp::parse).unwrap_or_default();
            replay.translate(|translator, out| translator.within(TurnId::from_foreign(&opening.id), at, out));
        }
        for entry in &page.entries {
            replay.entry(entry, None, &sub_agents, 0);
        }
        replay.translate(|translator, out| translator.close_recorded_turn(out));
        if page.goes_on {
            // Its end comes with the page that has it.
            replay.turns.pop();
        }
        Ok(History {
            events: replay.events,
            turns: replay.turns,
            facts: replay.facts,
            older: page.older.map(HistoryCursor),
            ..History::default()
        })
    }
}

/// Entries played through the translation of live lines.
struct HistoryReplay {
    translator: Translator,
    events: Vec<StreamEvent>,
    turns: Vec<TurnRecord>,
    facts: SessionFacts,
    sub_agents_bytes: usize,
    reports: UnreadableLines,
}

impl HistoryReplay {
    fn new(translator: Translator) -> Self {
        Self {
            translator,
            events: Vec::new(),
            turns: Vec::new(),
            facts: SessionFacts::default(),
            sub_agents_bytes: 0,
            reports: UnreadableLines::default(),
        }
    }

    /// One entry, and after it the work of the sub-agents whose results it holds.
    fn entry(&mut self, entry: &[u8], parent: Option<&str>, sub_agents: &SubAgents, depth: usize) {
        let mut line = match ClaudeLine::parse(entry) {
            Ok(line) => line,
            Err(error) => {
                tracing::debug!(%error, "an entry of a session file cannot be read");
                return self.unreadable(entry);
            }
        };
        let mut ended = Vec::new();
        if let ClaudeLine::User(message) | ClaudeLine::Assistant(message) = &mut line {
            message.is_sidechain = false;
            message.parent_tool_use_id = parent.map(str::to_owned);
            ended.extend(message.message.content.iter().filter_map(|block| match block {
                ContentBlock::ToolResult { tool_use_id, .. } => Some(tool_use_id.clone()),
                _ => None,
            }));
        }
        let agent_id = match &line {
            ClaudeLine::User(message) => message.tool_use_result.as_ref().and_then(|result| result["agentId"].as_str()),
            _ => None,
        };
        let files: Vec<_> = ended.iter().filter_map(|call| Some((call, sub_agents.file(call, agent_id)?))).collect();
        self.translate(|translator, out| out.extend(translator.line(line, Timestamp::default())));
        if depth < DEPTH_MAX {
            for (call, file) in &files {
                self.sub_agent(call, file, sub_agents, depth + 1);
            }
        }
    }

    /// A notice where an entry cannot be read, under the same id whenever the file is read.
    fn unreadable(&mut self, entry: &[u8]) {
        #[derive(Deserialize)]
        struct Name {
            uuid: String,
            #[serde(default)]
            timestamp: Option<String>,
        }
        let Ok(Name { uuid, timestamp }) = json::parse::<Name>(entry) else { return };
        let at = timestamp.as_deref().and_then(Timestamp::parse).unwrap_or_default();
        if let Some(message) = self.reports.report(NAME, &String::from_utf8_lossy(entry)) {
            self.translate(|translator, out| {
                out.extend(translator.left_out(format!("{uuid}.unreadable"), &message, at))
            });
        }
    }

    fn sub_agent(&mut self, call: &str, path: &Path, sub_agents: &SubAgents, depth: usize) {
        if self.sub_agents_bytes >= SUB_AGENTS_BYTES_MAX {
            return self.left_out(
                call,
                "What this sub-agent did is left out here: there is too much of it to be read at once.",
            );
        }
        match File::open(path).and_then(|file| page::read(&file, None, usize::MAX, true)) {
            Ok(page) => {
                if page.older.is_some() {
                    self.left_out(
                        call,
                        "What this sub-agent did first is left out here: there is too much of it to be read at once.",
                    );
                }
                self.sub_agents_bytes += page.entries.iter().map(Vec::len).sum::<usize>();
                for entry in &page.entries {
                    self.entry(entry, Some(call), sub_agents, depth);
                }
            }
            Err(error) => tracing::debug!(%error, "the file of a sub-agent cannot be read"),
        }
    }

    /// A notice in a sub-agent's work that something is missing there.
    fn left_out(&mut self, call: &str, text: &str) {
        let content = json_value!([{"type": "text", "text": format!("*{text}*")}]);
        let message = json_value!({"id": format!("{call}.left-out"), "content": content});
        let line = json_value!({"type": "assistant", "message": message, "parent_tool_use_id": call});
        if let Ok(line) = ClaudeLine::parse(line.to_string().as_bytes()) {
            self.translate(|translator, out| out.extend(translator.line(line, Timestamp::default())));
        }
    }

    fn translate(&mut self, step: impl FnOnce(&mut Translator, &mut Vec<TranslatorOutput>)) {
        let mut outputs = Vec::new();
        step(&mut self.translator, &mut outputs);
        for output in outputs {
            match output {
                TranslatorOutput::Event(event) => self.events.push(event),
                TranslatorOutput::TurnEnded(record) => {
                    if record.model_id.is_some() {
                        self.facts.model.clone_from(&record.model_id);
                    }
                    self.turns.push(record);
                }
                TranslatorOutput::Facts(facts) => self.facts.merge(facts),
                _ => {}
            }
        }
    }
}

/// The files of a session's sub-agents, by the call that started each.
#[derive(Debug, Default)]
struct SubAgents {
    directory: PathBuf,
    by_call: HashMap<String, PathBuf>,
}

impl SubAgents {
    fn of(session_file: &Path) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Meta {
            tool_use_id: Option<String>,
        }
        let directory = session_file.with_extension("").join("subagents");
        let mut by_call = HashMap::new();
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let Some(name) = path.to_str().and_then(|path| path.strip_suffix(".meta.json")) else { continue };
            let meta = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Meta>(&text).ok());
            if let Some(call) = meta.and_then(|meta| meta.tool_use_id) {
                by_call.insert(call, PathBuf::from(format!("{name}.jsonl")));
            }
        }
        Self { directory, by_call }
    }

    /// Older versions name the agent in the call's result only.
    fn file(&self, call: &str, agent_id: Option<&str>) -> Option<PathBuf> {
        let named = || {
            let id = agent_id.filter(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))?;
            let path = self.directory.join(format!("agent-{id}.jsonl"));
            path.is_file().then_some(path)
        };
        self.by_call.get(call).cloned().or_else(named)
    }
}
