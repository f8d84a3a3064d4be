//! A scripted ACP agent of its own for each test, and what it was asked.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use agent_process::{AgentCommand, StopLadder};
use protocol::{AgentSessionId, CliType, SessionId, TurnId};
use providers::acp::{AcpAgent, AcpProvider, AcpSettings};
use providers::{History, NewSession, Provider, StoredSession};
use testkit::programs;
use upserts::ItemUpdate;

use crate::listener::{Listener, soon};

pub(crate) struct Bench {
    pub(crate) state: tempfile::TempDir,
    pub(crate) project: tempfile::TempDir,
    pub(crate) provider: AcpProvider,
}

impl Bench {
    /// An agent that was given these arguments.
    pub(crate) fn new(args: &[&str]) -> Self {
        Self::with(args, AcpSettings::default())
    }

    pub(crate) fn with(args: &[&str], settings: AcpSettings) -> Self {
        let state = tempfile::tempdir().unwrap();
        let provider = AcpProvider::new(agent(state.path(), args), settings_for_tests(settings));
        Self { state, project: tempfile::tempdir().unwrap(), provider }
    }

    /// Another provider over the same agent's files, as after a restart of ours.
    pub(crate) fn again(self, args: &[&str]) -> Self {
        let provider = AcpProvider::new(agent(self.state.path(), args), settings_for_tests(AcpSettings::default()));
        Self { provider, ..self }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.project.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn new_session(&self) -> NewSession {
        NewSession { project_dir: self.project.path().to_owned() }
    }

    pub(crate) fn stored_session(&self, id: &AgentSessionId) -> StoredSession {
        StoredSession {
            id: SessionId::new(self.provider.cli_type(), id),
            agent_id: id.clone(),
            project_dir: self.project.path().to_owned(),
            prompted: true,
            options: Default::default(),
            history: Default::default(),
            items_max: 200,
        }
    }

    pub(crate) async fn create(&self) -> Listener {
        Listener::new(soon("the session", self.provider.create_session(self.new_session())).await.unwrap())
    }

    pub(crate) async fn send(&self, listener: &Listener, text: &str) -> TurnId {
        soon("the turn", listener.send(text)).await.unwrap()
    }

    /// Sends, and listens to the end of the turn.
    pub(crate) async fn turn(&self, listener: &mut Listener, text: &str) -> TurnId {
        let turn = self.send(listener, text).await;
        listener.until_end_of(&turn).await;
        turn
    }

    pub(crate) fn release(&self, gate: &str) {
        std::fs::write(self.state.path().join(format!("gate-{gate}")), "").unwrap();
    }

    /// What the agent was asked so far, over all its processes.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.state.path().join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn count(&self, line: &str) -> usize {
        self.log().iter().filter(|logged| logged.starts_with(line)).count()
    }

    pub(crate) async fn until_logged(&self, line: &str) {
        until(&format!("{line:?} in the agent's log"), || self.count(line) > 0).await;
    }

    pub(crate) async fn pid(&self) -> u32 {
        self.provider.process_id().await.unwrap()
    }

    /// Kills the agent's process as the system would.
    pub(crate) async fn kill(&self) -> u32 {
        let pid = self.pid().await;
        kill(pid);
        pid
    }
}

/// The items of a history, each in its final state.
pub(crate) fn items_of(history: &History) -> Vec<ItemUpdate> {
    upserts::fold(history.events.clone(), SystemTime::now().into())
}

pub(crate) fn agent(state: &Path, args: &[&str]) -> AcpAgent {
    let command = AgentCommand::new(programs::scripted_agent())
        .arg("acp")
        .args(args.iter().copied())
        .env("SCRIPTED_AGENT_STATE", state)
        .guardian(programs::scripted_agent());
    AcpAgent {
        cli_type: CliType::parse("scripted").unwrap(),
        name: "Scripted".into(),
        command,
        install_hint: Some("cargo build -p testkit".into()),
        version: None,
        codex_home: None,
    }
}

/// Patient where patience costs nothing, brisk at the end.
fn settings_for_tests(settings: AcpSettings) -> AcpSettings {
    let stop = StopLadder { grace_eof: Duration::from_secs(2), grace_term: Duration::from_secs(1) };
    AcpSettings { start_timeout: settings.start_timeout.max(Duration::from_secs(60)), stop, ..settings }
}

pub(crate) fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

pub(crate) fn is_running(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

/// Looks until it is so.
pub(crate) async fn until(what: &str, seen: impl Fn() -> bool) {
    soon(what, async {
        while !seen() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
