//! Claude Code: the `claude` program in its bidirectional stream-json mode, one process per live session.
//!
//! `wire` reads lines, `translate` gives them their meaning (with `tools`, `texts` and `facts`), `history` reads the
//! program's own session files through the same translation. `process` starts the program once `owner` knows that nobody
//! else has the session, `session` is the actor that owns one conversation, and this module is the [`Provider`] in front of them.
//!
//! In viewer mode every permission is given for once, but for two questions that are the user's: what AskUserQuestion
//! asks is shown and left to be answered in the chat, and a plan is approved only if the agent itself chose to plan.

mod describe;
mod facts;
pub mod history;
mod owner;
mod process;
mod request;
mod session;
mod texts;
mod tools;
pub mod translate;
pub mod wire;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use protocol::{AgentInfo, AgentSessionId, CliType, Continuity, TurnId};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;
use upserts::UpsertConfig;
use uuid::Uuid;

use self::history::SessionFile;
use self::session::{Command, Past, Session, SessionHandle};
use crate::permission::PermissionPolicy;
use crate::provider::{
    EVENT_QUEUE_MAX, History, HistoryCursor, Loaded, NewSession, OpenSession, Provider, ProviderError, ProviderSession,
    StatusReport, Trial,
};

/// How thoughts and turns name who made them; also the CLI type.
pub const PROVIDER_ID: &str = "claude-code";
const NAME: &str = "Claude Code";
const INSTALL_HINT: &str = "npm install -g @anthropic-ai/claude-code";
const LOGIN_HINT: &str = "claude /login";
/// Requests that wait for a session's actor. Each waits for its answer, so there are as many as there are callers.
const COMMANDS_MAX: usize = 32;

/// How Claude Code is run.
#[derive(Clone, Debug)]
pub struct ClaudeConfig {
    /// The command line that starts it, as in `CLAUDE_CMD`.
    pub command: String,
    /// For the start and the handshake.
    pub start_timeout: Duration,
    /// Silence in a turn after which it is told; nothing else happens.
    pub prompt_timeout: Duration,
    /// An idle process is ended after this and resumed on the next message; none: never.
    pub idle: Option<Duration>,
    /// The most that one turn may bring. One that brings more is stopped.
    pub turn_bytes_max: usize,
    /// Variables set, or with `None` removed, on top of our own environment. Also decides where its files are.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// The program that guards the processes, if not this one.
    pub guardian: Option<PathBuf>,
    pub permissions: PermissionPolicy,
}

impl Default for ClaudeConfig {
    fn default() -> Self {
        Self {
            command: "claude".into(),
            start_timeout: Duration::from_secs(15),
            prompt_timeout: Duration::from_secs(30),
            idle: Some(Duration::from_secs(15 * 60)),
            turn_bytes_max: UpsertConfig::default().turn_bytes_max,
            env: Vec::new(),
            guardian: None,
            permissions: PermissionPolicy::default(),
        }
    }
}

impl ClaudeConfig {
    /// Where the program keeps its files.
    fn config_dir(&self) -> PathBuf {
        let variable = |name: &str| match self.env.iter().rev().find(|(known, _)| known == name) {
            Some((_, value)) => value.clone(),
            None => std::env::var_os(name),
        };
        let named = variable("CLAUDE_CONFIG_DIR").filter(|path| !path.is_empty());
        named.map_or_else(|| PathBuf::from(variable("HOME").unwrap_or_default()).join(".claude"), PathBuf::from)
    }
}

/// Drives Claude Code.
#[derive(Debug)]
pub struct ClaudeProvider {
    shared: Arc<Shared>,
    versions: describe::Versions,
}

/// What the provider and its sessions have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    config: ClaudeConfig,
    cli_type: CliType,
    sessions: Mutex<HashMap<AgentSessionId, SessionHandle>>,
    status: watch::Sender<StatusReport>,
    /// The last turn of any session that asked the model was refused for want of a login.
    needs_login: AtomicBool,
    /// The sessions, and processes on their way out.
    tasks: TaskTracker,
}

impl Shared {
    fn sessions(&self) -> MutexGuard<'_, HashMap<AgentSessionId, SessionHandle>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session goes on under another id. False if that is somebody else's: a session has one owner.
    fn renamed(&self, old: &AgentSessionId, new: &AgentSessionId) -> bool {
        let mut sessions = self.sessions();
        if sessions.contains_key(new) {
            return false;
        }
        if let Some(handle) = sessions.remove(old) {
            sessions.insert(new.clone(), handle);
        }
        true
    }

    fn ended(&self, id: &AgentSessionId) {
        self.sessions().remove(id);
        self.status_changed();
    }

    /// A turn showed whether the model takes the login. That holds until another turn shows the opposite: what the program
    /// says of itself is only that it has one.
    fn login_failed(&self, has_failed: bool) {
        if self.needs_login.swap(has_failed, Ordering::Relaxed) != has_failed {
            self.status_changed();
        }
    }

    /// The best of all sessions is the state of the agent as a whole.
    fn status_changed(&self) {
        use protocol::AgentStatus::*;
        let rank = |report: &StatusReport| match report.status {
            Connected => 4,
            Starting => 3,
            Reconnecting => 2,
            Disconnected => 1,
            Idle => 0,
        };
        let mut best = self.sessions().values().map(SessionHandle::status).max_by_key(rank).unwrap_or_default();
        best.needs_login = self.needs_login.load(Ordering::Relaxed);
        self.status.send_if_modified(|known| {
            let changed = *known != best;
            *known = best;
            changed
        });
    }

    fn file(&self, project_dir: &std::path::Path, id: &AgentSessionId) -> Option<SessionFile> {
        SessionFile::find(&self.config.config_dir(), project_dir, &self.cli_type, id)
    }
}

impl ClaudeProvider {
    pub fn new(config: ClaudeConfig) -> Result<Self, protocol::IdError> {
        let shared = Shared {
            config,
            cli_type: CliType::parse(PROVIDER_ID)?,
            sessions: Mutex::new(HashMap::new()),
            status: watch::Sender::new(StatusReport::default()),
            needs_login: AtomicBool::new(false),
            tasks: TaskTracker::new(),
        };
        Ok(Self { shared: Arc::new(shared), versions: describe::Versions::default() })
    }

    /// Starts a session's actor. A session has one owner: a second one is refused.
    fn open(
        &self,
        id: &AgentSessionId,
        project_dir: PathBuf,
        past: Past,
        chosen: BTreeMap<String, String>,
    ) -> Result<(mpsc::Sender<Command>, ProviderSession), ProviderError> {
        let (commands, inbox) = mpsc::channel(COMMANDS_MAX);
        let (sender, events) = mpsc::channel(EVENT_QUEUE_MAX);
        let handle = SessionHandle::new(commands.clone());
        {
            let mut sessions = self.shared.sessions();
            if sessions.contains_key(id) {
                return Err(ProviderError::SessionOpen(id.clone()));
            }
            sessions.insert(id.clone(), handle.clone());
        }
        let shared = Arc::clone(&self.shared);
        let session = Session::new(shared, id.clone(), project_dir, handle, sender, past, chosen);
        self.shared.tasks.spawn(session.run(inbox));
        Ok((commands, ProviderSession { id: id.clone(), events }))
    }

    fn handle(&self, id: &AgentSessionId) -> Result<SessionHandle, ProviderError> {
        self.shared.sessions().get(id).cloned().ok_or_else(|| ProviderError::SessionNotFound(id.clone()))
    }

    /// Asks a session's actor and waits for its answer.
    async fn ask<T>(
        &self,
        id: &AgentSessionId,
        command: impl FnOnce(oneshot::Sender<Result<T, ProviderError>>) -> Command,
    ) -> Result<T, ProviderError> {
        let commands = self.handle(id)?.commands;
        ask(&commands, command).await.unwrap_or_else(|| Err(ProviderError::SessionNotFound(id.clone())))
    }

    async fn end(&self, handles: Vec<SessionHandle>) {
        for handle in &handles {
            handle.stop.cancel();
        }
        for handle in &handles {
            handle.commands.closed().await;
        }
    }
}

/// None if the actor is gone.
async fn ask<T>(
    commands: &mpsc::Sender<Command>,
    command: impl FnOnce(oneshot::Sender<Result<T, ProviderError>>) -> Command,
) -> Option<Result<T, ProviderError>> {
    let (reply, answer) = oneshot::channel();
    commands.send(command(reply)).await.ok()?;
    answer.await.ok()
}

/// Reads on a thread that may wait for the disk.
async fn read(file: SessionFile, before: Option<HistoryCursor>, items_max: usize) -> Result<History, ProviderError> {
    let failed = |detail: String| ProviderError::LoadFailed { detail };
    tokio::task::spawn_blocking(move || file.read(before.as_ref(), items_max))
        .await
        .map_err(|error| failed(error.to_string()))?
        .map_err(|error| failed(format!("Claude Code's session file cannot be read: {error}")))
}

#[async_trait]
impl Provider for ClaudeProvider {
    fn cli_type(&self) -> &CliType {
        &self.shared.cli_type
    }

    fn name(&self) -> &str {
        NAME
    }

    async fn describe(&self) -> AgentInfo {
        let StatusReport { status, needs_login, .. } = self.shared.status.borrow().clone();
        let info = self.versions.describe(&self.shared.config, self.shared.cli_type.clone(), status).await;
        if needs_login { AgentInfo { logged_in: Some(false), ..info } } else { info }
    }

    async fn try_out(&self, directory: &Path) -> Result<Trial, ProviderError> {
        let id = AgentSessionId::parse(Uuid::new_v4().to_string())
            .map_err(|error| ProviderError::Internal(error.to_string()))?;
        let started = process::start(&self.shared.config, directory, &id, false).await?;
        started.process.handle.stop(process::STOP).await;
        let version = started.answer["claude_code_version"].as_str().map(str::to_owned);
        Ok(Trial { version, login: facts::login(&started.answer["account"]) })
    }

    fn watch_status(&self) -> watch::Receiver<StatusReport> {
        self.shared.status.subscribe()
    }

    async fn create_session(&self, session: NewSession) -> Result<ProviderSession, ProviderError> {
        let id = AgentSessionId::parse(Uuid::new_v4().to_string())
            .map_err(|error| ProviderError::Internal(error.to_string()))?;
        let (commands, session) = self.open(&id, session.project_dir, Past::None, BTreeMap::new())?;
        match ask(&commands, |reply| Command::Start { reply }).await {
            Some(Ok(())) => Ok(session),
            Some(Err(error)) => {
                self.kill_session(&id).await.ok();
                Err(error)
            }
            None => Err(ProviderError::CreateFailed { detail: "the session ended as it began".into() }),
        }
    }

    async fn load_session(&self, session: OpenSession) -> Result<Loaded, ProviderError> {
        let OpenSession { id, project_dir, prompted, chosen, items_max } = session;
        let history = match self.shared.file(&project_dir, &id) {
            Some(file) => read(file, None, items_max).await?,
            // It was never on the disk; it begins under its id with the first message.
            None if !prompted => History::default(),
            None => {
                let detail = "Claude Code no longer has this conversation. It deletes old ones, after 30 days unless \
                              its setting cleanupPeriodDays says otherwise.";
                return Err(ProviderError::LoadFailed { detail: detail.into() });
            }
        };
        let past = match (history.items.is_empty(), prompted) {
            (false, _) => Past::Kept,
            // The file holds nothing of what was said.
            (true, true) => Past::Lost,
            (true, false) => Past::None,
        };
        let (_, session) = self.open(&id, project_dir, past, chosen)?;
        let continuity = if past == Past::Lost { Continuity::Copy } else { Continuity::Dormant };
        Ok(Loaded { session, history: History { continuity, ..history } })
    }

    async fn older_history(
        &self,
        id: &AgentSessionId,
        before: &HistoryCursor,
        limit: usize,
    ) -> Result<History, ProviderError> {
        let (project_dir, recorded_as) = self.ask(id, |reply| Command::Record { reply }).await?;
        let file = self.shared.file(&project_dir, &recorded_as);
        let file = file.ok_or_else(|| ProviderError::LoadFailed { detail: "its session file is gone".into() })?;
        read(file, Some(before.clone()), limit).await
    }

    async fn send_message(&self, id: &AgentSessionId, text: &str) -> Result<TurnId, ProviderError> {
        let text = text.to_owned();
        self.ask(id, |reply| Command::Send { text, reply }).await
    }

    async fn cancel_turn(&self, id: &AgentSessionId) -> Result<(), ProviderError> {
        self.ask(id, |reply| Command::Cancel { reply }).await
    }

    async fn kill_session(&self, id: &AgentSessionId) -> Result<(), ProviderError> {
        let handle = self.handle(id)?;
        self.end(vec![handle]).await;
        Ok(())
    }

    fn is_alive(&self, id: &AgentSessionId) -> bool {
        self.handle(id).is_ok_and(|handle| handle.is_alive())
    }

    fn keeps_history(&self) -> bool {
        true
    }

    async fn recent_directories(&self) -> Vec<String> {
        let config_dir = self.shared.config.config_dir();
        let read = self.shared.tasks.spawn_blocking(move || history::recent_directories(&config_dir));
        read.await.unwrap_or_default()
    }

    async fn set_option(&self, id: &AgentSessionId, option: &str, value: &str) -> Result<(), ProviderError> {
        let (option, value) = (option.to_owned(), value.to_owned());
        self.ask(id, |reply| Command::SetOption { option, value, reply }).await
    }

    async fn reconnect(&self, id: Option<&AgentSessionId>) -> Result<(), ProviderError> {
        if let Some(id) = id {
            return self.ask(id, |reply| Command::Reconnect { reply }).await;
        }
        let lost: Vec<_> = {
            let sessions = self.shared.sessions();
            let lost = sessions.iter().filter(|(_, handle)| handle.is_lost());
            lost.map(|(id, _)| id.clone()).collect()
        };
        for id in lost {
            self.ask(&id, |reply| Command::Reconnect { reply }).await?;
        }
        Ok(())
    }

    async fn shutdown(&self) {
        self.versions.stop_asking();
        let handles: Vec<_> = self.shared.sessions().values().cloned().collect();
        self.end(handles).await;
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}
