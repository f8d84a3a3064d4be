//! The real Claude Code, driven by the provider, against the scripted model.

mod history;
mod processes;
mod turns;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use providers::claude::{ClaudeConfig, ClaudeProvider};
use providers::{NewSession, Provider, StoredSession};
use testkit::programs;
use testkit::scripted_model::ScriptedModel;
use upserts::{ItemBody, ItemUpdate};

use crate::claude_faults::stored;
use crate::listener::{Listener, soon};

/// A home, a project and a model of its own for each test.
struct Bench {
    home: tempfile::TempDir,
    project: tempfile::TempDir,
    model: ScriptedModel,
}

impl Bench {
    async fn new() -> Self {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(project.path().join("README.md"), "# Demo\n\nA small demo project.\n").unwrap();
        Self { home, project, model: ScriptedModel::start().await.unwrap() }
    }

    fn config(&self) -> ClaudeConfig {
        let mut env: Vec<(OsString, Option<OsString>)> = Vec::new();
        env.push(("HOME".into(), Some(self.home.path().into())));
        env.push(("CLAUDE_CODE_MAX_RETRIES".into(), Some("1".into())));
        env.extend(self.model.claude_environment().map(|(name, value)| (name.into(), Some(value.into()))));
        // Nothing of whoever runs the tests.
        for name in ["CLAUDE_CONFIG_DIR", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_MODEL", "CLAUDE_CODE_OAUTH_TOKEN"] {
            env.push((name.into(), None));
        }
        ClaudeConfig {
            command: programs::claude().to_str().unwrap().to_owned(),
            start_timeout: Duration::from_secs(60),
            env,
            guardian: Some(programs::scripted_agent().to_owned()),
            ..ClaudeConfig::default()
        }
    }

    fn provider(&self) -> ClaudeProvider {
        ClaudeProvider::new(self.config()).unwrap()
    }

    fn project_dir(&self) -> PathBuf {
        self.project.path().to_owned()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.project.path().join(name)
    }

    async fn create(&self, provider: &ClaudeProvider) -> Listener {
        let new = NewSession { project_dir: self.project_dir() };
        Listener::new(soon("the session", provider.create_session(new)).await.unwrap())
    }

    /// A session that the agent has, as it is stored.
    fn stored(&self, agent_id: &protocol::AgentSessionId) -> StoredSession {
        StoredSession { prompted: true, items_max: 200, ..stored(agent_id, self.project_dir()) }
    }
}

fn tool<'a>(items: &[&'a ItemUpdate], tool: &str) -> &'a ItemUpdate {
    let found = items.iter().find(|item| matches!(&item.body, ItemBody::ToolCall { name, .. } if &**name == tool));
    found.unwrap_or_else(|| panic!("no {tool} among {items:#?}"))
}

fn detail(item: &ItemUpdate) -> &protocol::ToolDetail {
    match &item.body {
        ItemBody::ToolCall { tool: Some(detail), .. } => detail,
        other => panic!("not a tool call: {other:?}"),
    }
}

fn output(item: &ItemUpdate) -> String {
    item.body.text().map(ToString::to_string).unwrap_or_default()
}

/// The programs that work in this directory: their process ids and what they are.
pub(crate) fn programs_in(directory: &Path) -> Vec<(i32, PathBuf)> {
    let directory = directory.canonicalize().unwrap();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let works_here = std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == directory);
        let program = std::fs::read_link(entry.path().join("exe"));
        if let (true, Ok(program)) = (works_here, program) {
            found.push((pid, program));
        }
    }
    found
}

/// Kills the program that works in this directory, as `kill -9` would.
fn kill_claude(directory: &Path) {
    let mut found = programs_in(directory);
    found.retain(|(_, program)| program.ends_with("claude"));
    let [(pid, _)] = found[..] else { panic!("one process for the session, no more: {found:?}") };
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
