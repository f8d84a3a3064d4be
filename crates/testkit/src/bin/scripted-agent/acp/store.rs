//! What outlives the scripted agent: its sessions, its log, and the gates a test opens.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

#[derive(Debug)]
pub(super) struct Store {
    /// None without a directory: then nothing outlives it.
    directory: Option<PathBuf>,
    sessions: AtomicU64,
}

impl Store {
    pub(super) fn open() -> Self {
        Self { directory: std::env::var_os("SCRIPTED_AGENT_STATE").map(PathBuf::from), sessions: AtomicU64::new(0) }
    }

    pub(super) fn new_session(&self) -> String {
        format!("s-{}-{}", std::process::id(), self.sessions.fetch_add(1, Ordering::Relaxed))
    }

    /// One line; each is there as a whole.
    pub(super) fn log(&self, line: &str) {
        self.append("log", line);
    }

    pub(super) fn remember(&self, session: &str, update: &Value) {
        self.append(&format!("session-{session}"), &update.to_string());
    }

    pub(super) fn history(&self, session: &str) -> Option<Vec<Value>> {
        let text = std::fs::read_to_string(self.directory.as_ref()?.join(format!("session-{session}"))).ok()?;
        Some(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// Those that got a prompt, in the order of their names.
    pub(super) fn sessions(&self) -> Vec<String> {
        let files = self.directory.as_ref().and_then(|directory| std::fs::read_dir(directory).ok());
        let name = |file: std::fs::DirEntry| Some(file.file_name().to_str()?.strip_prefix("session-")?.to_owned());
        let mut sessions: Vec<String> = files.into_iter().flatten().flatten().filter_map(name).collect();
        sessions.sort_unstable();
        sessions
    }

    pub(super) fn is_open(&self, gate: &str) -> bool {
        self.directory.as_ref().is_some_and(|directory| directory.join(format!("gate-{gate}")).exists())
    }

    fn append(&self, file: &str, line: &str) {
        let Some(directory) = &self.directory else { return };
        let file = OpenOptions::new().create(true).append(true).open(directory.join(file));
        // A test that took its directory away is over.
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }
}
