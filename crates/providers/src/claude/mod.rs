//! Claude Code: the `claude` program in its bidirectional stream-json mode, one process per live session.
//!
//! `wire` reads lines, `translate` gives them their meaning (with `tools`, `texts` and `facts`), `history` reads the
//! program's own session files through the same translation. `process` starts the program once `session_owner` finds
//! that no other process has the session, `session` is the actor that owns one conversation, and this module is the
//! [`Provider`] in front of them.
//!
//! In viewer mode every permission is given once, but for two questions that are the user's: what AskUserQuestion asks
//! is shown, to be answered in the chat, and a plan is approved automatically only if the agent itself decided to plan.

mod describe;
mod facts;
pub mod history;
mod process;
mod request;
mod session;
mod session_owner;
mod texts;
mod tools;
pub mod translate;
pub mod wire;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use protocol::{AgentInfo, AgentSessionId, CliType, Continuity, SessionId, StreamEvent, StreamPayload};
use tokio::sync::{mpsc, watch};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use self::history::SessionFile;
use self::session::{ClaudeCommand, ClaudeSession, ClaudeSessionHandle, KnownHistory, SessionControl, SessionStart};
use crate::error::ProviderError;
use crate::permission::PermissionPolicy;
use crate::provider::{
    EVENT_QUEUE_MAX, History, HistoryCursor, HistoryWanted, LoadedSession, NewSession, OpenedSession, Probe, Provider,
    StatusReport, StoredSession,
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
    /// Silence in a turn after which it is reported; nothing else happens.
    pub prompt_timeout: Duration,
    /// An idle process is ended after this and resumed on the next message; none: never.
    pub idle: Option<Duration>,
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
    shared: Arc<ClaudeShared>,
    versions: describe::Versions,
}

/// What the provider and its sessions have in common.
#[derive(Debug)]
pub(crate) struct ClaudeShared {
    config: ClaudeConfig,
    cli_type: CliType,
    /// The sessions that are open: for the state of the agent as a whole, and for the end of them all.
    open: Mutex<Vec<Arc<SessionControl>>>,
    status: watch::Sender<StatusReport>,
    /// The last turn of any session that asked the model was refused because a login is missing.
    needs_login: AtomicBool,
    /// The sessions, and processes that are being stopped.
    tasks: TaskTracker,
}

impl ClaudeShared {
    fn open_sessions(&self) -> MutexGuard<'_, Vec<Arc<SessionControl>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session continues under another id of the program's. False if another open session has that id: two of them
    /// would write into one conversation.
    fn claim_agent_id(&self, session: &Arc<SessionControl>, id: &AgentSessionId) -> bool {
        // Under the lock, so that two sessions cannot claim one id at once.
        let open = self.open_sessions();
        if open.iter().any(|other| !Arc::ptr_eq(other, session) && other.agent_id() == *id) {
            return false;
        }
        session.set_agent_id(id.clone());
        true
    }

    fn session_ended(&self, session: &Arc<SessionControl>) {
        self.open_sessions().retain(|other| !Arc::ptr_eq(other, session));
        self.status_changed();
    }

    /// A turn showed whether the model accepts the login. That holds until another turn shows the opposite: the program
    /// itself reports only that it has one.
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
        let best = self.open_sessions().iter().map(|session| session.status()).max_by_key(rank);
        let mut best = best.unwrap_or_default();
        best.needs_login = self.needs_login.load(Ordering::Relaxed);
        self.status.send_if_modified(|known| {
            let changed = *known != best;
            *known = best;
            changed
        });
    }

    fn session_file(&self, project_dir: &Path, id: &SessionId, agent_id: &AgentSessionId) -> Option<SessionFile> {
        SessionFile::find(&self.config.config_dir(), project_dir, id, agent_id)
    }
}

impl ClaudeProvider {
    pub fn new(config: ClaudeConfig) -> Result<Self, protocol::IdError> {
        let shared = ClaudeShared {
            config,
            cli_type: CliType::parse(PROVIDER_ID)?,
            open: Mutex::new(Vec::new()),
            status: watch::Sender::new(StatusReport::default()),
            needs_login: AtomicBool::new(false),
            tasks: TaskTracker::new(),
        };
        Ok(Self { shared: Arc::new(shared), versions: describe::Versions::default() })
    }

    /// Starts a session's actor.
    fn open(&self, start: SessionStart) -> (Arc<SessionControl>, OpenedSession) {
        let (commands, inbox) = mpsc::channel(COMMANDS_MAX);
        let (sender, events) = mpsc::channel(EVENT_QUEUE_MAX);
        let control = Arc::new(SessionControl::new(commands, start.agent_id.clone()));
        self.shared.open_sessions().push(control.clone());
        let agent_id = start.agent_id.clone();
        let handle = ClaudeSessionHandle {
            shared: self.shared.clone(),
            control: control.clone(),
            session_id: start.id.clone(),
            project_dir: start.project_dir.clone(),
            recorded_as: agent_id.clone(),
        };
        let session = ClaudeSession::new(self.shared.clone(), control.clone(), start, sender);
        self.shared.tasks.spawn(session.run(inbox));
        (control, OpenedSession { agent_id, session: Arc::new(handle), events })
    }
}

fn new_agent_id() -> Result<AgentSessionId, ProviderError> {
    AgentSessionId::parse(Uuid::new_v4().to_string()).map_err(|error| ProviderError::Internal(error.to_string()))
}

/// Reads on a thread that may wait for the disk.
async fn read_history(
    file: SessionFile,
    before: Option<HistoryCursor>,
    items_max: usize,
) -> Result<History, ProviderError> {
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

    async fn probe(&self, directory: &Path) -> Result<Probe, ProviderError> {
        let started = process::start(&self.shared.config, directory, &new_agent_id()?, false).await?;
        started.process.handle.stop(process::STOP).await;
        let version = started.answer["claude_code_version"].as_str().map(str::to_owned);
        Ok(Probe { version, login: facts::login(&started.answer["account"]) })
    }

    fn watch_status(&self) -> watch::Receiver<StatusReport> {
        self.shared.status.subscribe()
    }

    async fn create_session(&self, session: NewSession) -> Result<OpenedSession, ProviderError> {
        let agent_id = new_agent_id()?;
        let (control, opened) = self.open(SessionStart {
            id: SessionId::new(&self.shared.cli_type, &agent_id),
            agent_id,
            project_dir: session.project_dir,
            history: KnownHistory::None,
            options: Default::default(),
        });
        if let Err(error) = control.ask(|reply| ClaudeCommand::Start { reply }).await {
            control.stop();
            control.ended().await;
            return Err(match error {
                ProviderError::SessionNotFound(_) => {
                    ProviderError::CreateFailed { detail: "the session ended as it began".into() }
                }
                error => error,
            });
        }
        Ok(opened)
    }

    async fn load_session(&self, session: StoredSession) -> Result<LoadedSession, ProviderError> {
        let StoredSession { id, agent_id, project_dir, prompted, options, history: wanted, items_max } = session;
        let is_compared = wanted == HistoryWanted::Compare;
        let read = match self.shared.session_file(&project_dir, &id, &agent_id) {
            Some(file) => match read_history(file, None, items_max).await {
                Ok(history) => Some(history),
                Err(error) if is_compared => {
                    tracing::warn!(session = %agent_id, %error, "a history cannot be compared");
                    None
                }
                Err(error) => return Err(error),
            },
            // It was never on the disk; it begins under its id with the first message.
            None if is_compared || !prompted => Some(History::default()),
            None => {
                let detail = "Claude Code no longer has this conversation. It deletes old ones, after 30 days unless \
                              its setting cleanupPeriodDays says otherwise.";
                return Err(ProviderError::LoadFailed { detail: detail.into() });
            }
        };
        let is_item = |event: &StreamEvent| matches!(event.payload, StreamPayload::ItemDone(_));
        let has_items = read.as_ref().map(|history| history.events.iter().any(is_item));
        let known = match has_items {
            // Without a look into the file nothing is known to be lost.
            Some(true) | None => KnownHistory::Kept,
            // The program has nothing of the conversation.
            Some(false) if prompted || is_compared => KnownHistory::Lost,
            Some(false) => KnownHistory::None,
        };
        let (_, opened) = self.open(SessionStart { id, agent_id, project_dir, history: known, options });
        let continuity = if known == KnownHistory::Lost { Continuity::Copy } else { Continuity::Dormant };
        let history = History { continuity, ..read.unwrap_or_default() };
        Ok(LoadedSession { opened, history, has_history: has_items.unwrap_or_default() })
    }

    fn keeps_history(&self) -> bool {
        true
    }

    async fn recent_directories(&self) -> Vec<String> {
        let config_dir = self.shared.config.config_dir();
        let read = self.shared.tasks.spawn_blocking(move || history::recent_directories(&config_dir));
        read.await.unwrap_or_default()
    }

    async fn reconnect(&self) -> Result<(), ProviderError> {
        let lost: Vec<_> = self.shared.open_sessions().iter().filter(|session| session.is_lost()).cloned().collect();
        for session in lost {
            session.ask(|reply| ClaudeCommand::Reconnect { reply }).await?;
        }
        Ok(())
    }

    async fn shutdown(&self) {
        self.versions.stop_asking();
        let open = self.shared.open_sessions().clone();
        open.iter().for_each(|session| session.stop());
        for session in open {
            session.ended().await;
        }
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}
