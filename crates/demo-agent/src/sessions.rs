//! Sessions as files: prompts, answers and how each turn ended, one line each, to be replayed.
//!
//! Comes in: lines, each written before it is sent, so that nothing a user saw is lost with the program. Goes out: the
//! updates that replay all of it. A prompt that no end follows was interrupted, and is replayed as such.

use std::cell::Cell;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use agent_client_protocol_schema::v1 as acp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::texts;

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The directory they are in. None when there is nowhere to put them: then they end with the program.
#[derive(Debug)]
pub(crate) struct Sessions(Option<PathBuf>);

/// A session update as it was sent: it is only sent again, so nobody reads it into types.
pub(crate) type Update = serde_json::Map<String, Value>;

/// A line of the file: when, and one of the other fields.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionFileEntry {
    #[serde(default)]
    at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    update: Option<Update>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<End>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settings: Option<Settings>,
}

/// What is switched in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) mode: String,
    pub(crate) model: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self { mode: "chatty".into(), model: "demo-large".into() }
    }
}

/// How a prompt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    Finished,
    Cancelled,
    Failed,
    Crashed,
}

impl Sessions {
    /// In the data directory, else where the system keeps state.
    pub(crate) fn open() -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let data = variable("LIMINAL_DATA_DIR").map(|directory| directory.join("demo-agent"));
        let state = || variable("XDG_STATE_HOME").map(|directory| directory.join("liminal-builder/demo-agent"));
        let home = || std::env::home_dir().map(|home| home.join(".local/state/liminal-builder/demo-agent"));
        Self(data.or_else(state).or_else(home))
    }

    /// Where a session's next prompt is written down.
    pub(crate) fn record(&self, session: &str) -> Record {
        let opened = self.path(session).map(|path| append_to(&path).map_err(|error| (path, error)));
        let file = match opened {
            Some(Ok(file)) => Some(file),
            Some(Err((path, error))) => {
                eprintln!("this session will not survive: {}: {error}", path.display());
                None
            }
            None => None,
        };
        Record { file, failed: Cell::new(false) }
    }

    /// Whether it was ever spoken to.
    pub(crate) fn has_history(&self, session: &str) -> bool {
        self.path(session).is_some_and(|path| path.exists())
    }

    /// The conversation, and how it is set. None for a session that never was spoken to.
    pub(crate) fn history(&self, session: &str) -> Option<(Vec<Update>, Settings)> {
        let text = std::fs::read_to_string(self.path(session)?).ok()?;
        let settings = text.lines().rev().find_map(|line| read(line)?.settings);
        Some((replay(&text), settings.unwrap_or_default()))
    }

    /// Ids are ours; one of another form is nobody's.
    fn path(&self, session: &str) -> Option<PathBuf> {
        let directory: &Path = self.0.as_deref()?;
        uuid::Uuid::try_parse(session).ok().map(|id| directory.join(format!("{id}.jsonl")))
    }
}

/// For the user's eyes only, also where an earlier version made the directory.
fn append_to(path: &Path) -> std::io::Result<File> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory)?;
        std::fs::set_permissions(directory, Permissions::from_mode(DIRECTORY_MODE))?;
    }
    let file = OpenOptions::new().create(true).append(true).mode(FILE_MODE).open(path)?;
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}

/// The file of a session that speaks. Each line goes to the system at once: it outlives this program, however that ends.
#[derive(Debug)]
pub(crate) struct Record {
    file: Option<File>,
    /// Reported once; the answer goes on without it.
    failed: Cell<bool>,
}

impl Record {
    pub(crate) fn prompt(&self, prompt: &str) {
        self.write(SessionFileEntry { prompt: Some(prompt.to_owned()), ..SessionFileEntry::default() });
    }

    pub(crate) fn update(&self, update: &acp::SessionUpdate) {
        if let Ok(Value::Object(update)) = serde_json::to_value(update) {
            self.write(SessionFileEntry { update: Some(update), ..SessionFileEntry::default() });
        }
    }

    pub(crate) fn end(&self, end: End) {
        self.write(SessionFileEntry { end: Some(end), ..SessionFileEntry::default() });
    }

    pub(crate) fn settings(&self, settings: &Settings) {
        self.write(SessionFileEntry { settings: Some(settings.clone()), ..SessionFileEntry::default() });
    }

    fn write(&self, line: SessionFileEntry) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let line = SessionFileEntry { at_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX), ..line };
        let Some(mut file) = self.file.as_ref().filter(|_| !self.failed.get()) else { return };
        let written = serde_json::to_string(&line)
            .map_err(std::io::Error::from)
            .and_then(|line| file.write_all(format!("{line}\n").as_bytes()));
        if let Err(error) = written {
            eprintln!("the rest of this prompt will not survive: {error}");
            self.failed.set(true);
        }
    }
}

/// The updates that bring the file's conversation back.
fn replay(text: &str) -> Vec<Update> {
    let mut updates: Vec<Update> = Vec::new();
    let (mut is_open, mut last_at) = (false, 0);
    for line in text.lines() {
        let Some(line) = read(line) else { continue };
        if let Some(prompt) = line.prompt {
            if is_open {
                updates.push(interruption(last_at));
            }
            is_open = true;
            updates.push(dated(text_update("user_message_chunk", &prompt), line.at_ms));
        }
        if let Some(update) = line.update {
            let joined = updates.last_mut().is_some_and(|last| join(last, &update));
            if !joined {
                updates.push(dated(update, line.at_ms));
            }
        }
        last_at = line.at_ms;
        let Some(end) = line.end else { continue };
        is_open = false;
        match end {
            End::Finished => {}
            End::Cancelled => updates.push(interruption(last_at)),
            End::Failed => updates.push(failure(texts::FAILURE, last_at)),
            End::Crashed => updates.push(failure(texts::CRASH, last_at)),
        }
    }
    if is_open {
        updates.push(interruption(last_at));
    }
    updates
}

fn text_update(kind: &str, text: &str) -> Update {
    let content = json!({"type": "text", "text": text});
    Update::from_iter([("sessionUpdate".to_owned(), kind.into()), ("content".to_owned(), content)])
}

/// Adds when it was. The protocol leaves `_meta` for such things.
fn dated(mut update: Update, at_ms: u64) -> Update {
    if at_ms > 0 {
        let meta = update.entry("_meta").or_insert_with(|| json!({}));
        if meta.is_null() {
            *meta = json!({});
        }
        if let Value::Object(meta) = meta {
            meta.insert("timestampMs".to_owned(), at_ms.into());
        }
    }
    update
}

/// The first versions wrote bare updates. What is no line, as the last one of a program that was killed, is passed over.
fn read(line: &str) -> Option<SessionFileEntry> {
    let bare = |line| serde_json::from_str(line).ok().filter(|update: &Update| update.contains_key("sessionUpdate"));
    serde_json::from_str(line)
        .ok()
        .or_else(|| bare(line).map(|update| SessionFileEntry { update: Some(update), ..SessionFileEntry::default() }))
}

/// The protocol has no update for it in a replay. This is what Claude Code leaves where it was stopped, and clients know it.
fn interruption(at_ms: u64) -> Update {
    dated(text_update("user_message_chunk", "[Request interrupted by user]"), at_ms)
}

/// Nor has it one for this. Liminal Builder reads it in `_meta`; to other clients it says nothing.
fn failure(message: &str, at_ms: u64) -> Update {
    let meta = json!({"liminal": {"turnFailed": message}});
    let update = [("sessionUpdate".to_owned(), "session_info_update".into()), ("_meta".to_owned(), meta)];
    dated(Update::from_iter(update), at_ms)
}

/// A text that came word by word is replayed in one piece.
fn join(last: &mut Update, next: &Update) -> bool {
    let is_text = |update: &Update| {
        matches!(
            update.get("sessionUpdate").and_then(Value::as_str),
            Some("agent_message_chunk" | "agent_thought_chunk")
        ) && update.get("messageId").is_some_and(Value::is_string)
    };
    if !is_text(last) || ["sessionUpdate", "messageId"].iter().any(|&field| last.get(field) != next.get(field)) {
        return false;
    }
    let Some(more) = next.get("content").and_then(|content| content["text"].as_str()) else { return false };
    match last.get_mut("content").and_then(|content| content.get_mut("text")) {
        Some(Value::String(text)) => {
            text.push_str(more);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(update: &Update) -> &str {
        match update.get("content") {
            Some(content) => content["text"].as_str().unwrap(),
            None => update["_meta"]["liminal"]["turnFailed"].as_str().unwrap(),
        }
    }

    fn all_texts(updates: &[Update]) -> Vec<&str> {
        updates.iter().map(text_of).collect()
    }

    const CHUNK: &str =
        r#"{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"so "},"messageId":"m"}}"#;

    #[test]
    fn a_prompt_without_an_end_is_replayed_as_interrupted_with_all_that_was_sent() {
        let half = r#"{"update":{"sessionUpdate":"agent_mess"#;
        let text = format!("{{\"prompt\":\"one\"}}\n{CHUNK}\n{CHUNK}\n{half}\n{{\"prompt\":\"two\"}}\n{CHUNK}");
        let interrupted = "[Request interrupted by user]";
        assert_eq!(all_texts(&replay(&text)), ["one", "so so ", interrupted, "two", "so ", interrupted]);
    }

    #[test]
    fn every_end_is_replayed() {
        let ends = ["finished", "cancelled", "failed", "crashed"];
        let text = ends.map(|end| format!("{{\"prompt\":\"{end}\"}}\n{{\"end\":\"{end}\"}}"));
        let updates = replay(&text.join("\n"));
        let interrupted = "[Request interrupted by user]";
        assert_eq!(
            all_texts(&updates),
            ["finished", "cancelled", interrupted, "failed", texts::FAILURE, "crashed", texts::CRASH]
        );
    }

    #[test]
    fn files_of_the_first_versions_are_read() {
        let user = r#"{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"hello"}}"#;
        let agent =
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I am"},"messageId":"m"}"#;
        assert_eq!(all_texts(&replay(&format!("{user}\n{agent}\n"))), ["hello", "I am"]);
    }
}
