//! The contract every kind of agent fulfils: a [`Provider`] opens sessions, an [`AgentSession`] is one of them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use protocol::{
    AgentInfo, AgentSessionId, AgentStatus, CliType, Continuity, Prompt, SessionFacts, SessionId, StreamEvent, TurnId,
    TurnRecord,
};
use tokio::sync::{mpsc, watch};

use crate::error::ProviderError;

/// How many events may wait between a provider and its session. When the queue is full the agent is not read.
pub const EVENT_QUEUE_MAX: usize = 256;

/// Drives one CLI type. It opens sessions; what happens in one goes through its [`AgentSession`].
#[async_trait]
pub trait Provider: Send + Sync + fmt::Debug {
    fn cli_type(&self) -> &CliType;

    /// The name people know it by, such as `Claude Code`.
    fn name(&self) -> &str;

    /// What pickers show. Looks for the program each time; starts no session.
    async fn describe(&self) -> AgentInfo;

    /// Starts the agent for a moment in this directory, to see that it can be used. Asks nothing of a model and keeps
    /// no session. Not for an agent that is in use.
    async fn probe(&self, directory: &Path) -> Result<Probe, ProviderError>;

    /// The state of the agent as a whole. A provider with one process per session reports the best of them.
    fn watch_status(&self) -> watch::Receiver<StatusReport>;

    /// Starts a conversation. On failure nothing is left behind.
    async fn create_session(&self, session: NewSession) -> Result<OpenedSession, ProviderError>;

    /// Opens a conversation that exists: its history, and the channel on which it continues. Starts no process where
    /// the history can be read without one. The caller makes sure that a session is open only once.
    async fn load_session(&self, session: StoredSession) -> Result<LoadedSession, ProviderError>;

    /// The whole history can be read again from the agent's own files, without a process. A session that nobody watches
    /// then need not stay in memory.
    fn keeps_history(&self) -> bool {
        false
    }

    /// Directories that the agent's own records say were worked in, newest first; only as many as are read quickly.
    async fn recent_directories(&self) -> Vec<String> {
        Vec::new()
    }

    /// Restarts the agent as a whole, because the user asked for it. Resolves when it is connected or has failed.
    async fn reconnect(&self) -> Result<(), ProviderError>;

    /// Cancels what runs, settles every turn and ends every process. The channels of all sessions close.
    async fn shutdown(&self);
}

/// One open conversation. Its events come on the channel of [`OpenedSession`]; dropping that channel detaches the
/// session.
#[async_trait]
pub trait AgentSession: Send + Sync + fmt::Debug {
    /// A process stands behind this session now.
    fn is_alive(&self) -> bool;

    /// Resolves when the turn has begun, with the id that everything of the turn carries. The user's own message is
    /// the first item of the turn.
    async fn send(&self, prompt: Prompt) -> Result<TurnId, ProviderError>;

    /// Asks the running turn to stop. With nothing running it does nothing.
    async fn cancel(&self) -> Result<(), ProviderError>;

    /// Sets one of the options that the session's facts offered (mode, model, …).
    async fn set_option(&self, option: &str, value: &str) -> Result<(), ProviderError>;

    /// Restarts what runs for this session, because the user asked for it. Resolves when it is connected or has failed.
    async fn reconnect(&self) -> Result<(), ProviderError>;

    /// The items before a cursor that an earlier answer gave.
    async fn older_history(&self, before: &HistoryCursor, limit: usize) -> Result<History, ProviderError>;

    /// Ends what runs for this session; its channel closes. The agent's own record of it stays.
    async fn close(&self) -> Result<(), ProviderError>;
}

/// What a moment with an agent has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// As the agent names it in its handshake.
    pub version: Option<String>,
    pub login: Login,
}

/// Whether the agent may use its model, as far as it reports that without asking the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Login {
    /// It does not report it.
    #[default]
    Unknown,
    /// It opened a session, or named its account in this text.
    Ready(Option<String>),
    /// What the user has to do.
    Needed(String),
}

#[derive(Clone, Debug)]
pub struct NewSession {
    pub project_dir: PathBuf,
}

/// A session that exists, as our own record describes it.
#[derive(Clone, Debug)]
pub struct StoredSession {
    /// Our id, which never changes. Every event of the session carries it.
    pub id: SessionId,
    /// The agent's present id for it.
    pub agent_id: AgentSessionId,
    pub project_dir: PathBuf,
    /// The agent was given a message under `agent_id`. One that never was is not on the agent's disk: it is created
    /// again, under the same id where the agent lets us choose it.
    pub prompted: bool,
    /// The options that the user set, as [`ProviderEvent::Options`] reported them last. They are set again before the
    /// agent gets a message.
    pub options: BTreeMap<String, String>,
    pub history: HistoryWanted,
    /// How many of the newest items the history should hold.
    pub items_max: usize,
}

/// What the caller needs of the agent's own history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistoryWanted {
    /// The newest items: our journal has none of the session's turns.
    #[default]
    Newest,
    /// Our journal has turns of the session. The agent's history is read only if that costs nothing extra, to be
    /// compared. The session opens also when the agent has lost it: as [`Continuity::Copy`], and the next message
    /// begins another session of the agent's.
    Compare,
}

/// A session that is open: the handle to it and all its events, in order.
#[derive(Debug)]
pub struct OpenedSession {
    /// The agent's id for it. Our own id of a new session is formed from it, once.
    pub agent_id: AgentSessionId,
    pub session: Arc<dyn AgentSession>,
    pub events: mpsc::Receiver<ProviderEvent>,
}

#[derive(Debug)]
pub struct LoadedSession {
    pub opened: OpenedSession,
    pub history: History,
    /// The agent's own history was read. If not, `history` holds only facts and continuity.
    pub has_history: bool,
}

/// A page of a session's history, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The stream events of its turns. Folded, they give every item in its final state.
    pub events: Vec<StreamEvent>,
    pub turns: Vec<TurnRecord>,
    pub facts: SessionFacts,
    /// Where older items start; none when this is the beginning.
    pub older: Option<HistoryCursor>,
    pub continuity: Continuity,
}

/// A position in a session's history, in the provider's own terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryCursor(pub u64);

/// One event of a session. One channel carries all kinds, so their order survives.
#[derive(Clone, Debug)]
pub enum ProviderEvent {
    /// A turn begins; its stream events follow. Items between turns (a notice) come as a turn without a response:
    /// neither `response_start` nor `response_done`.
    TurnBegan(TurnId),
    Stream(StreamEvent),
    Facts(SessionFacts),
    /// The process behind this session changed its state.
    Status(StatusReport),
    /// Whether the agent remembers has changed.
    Continuity(Continuity),
    /// The options that the user has set, each with its present value, to be stored for [`StoredSession::options`].
    Options(BTreeMap<String, String>),
    /// The agent continues under another id of its own, under which it was given no message yet: it was asked to
    /// (`/clear`), or had nothing under the old one. What was said before is not in its memory. Our id stays.
    AgentIdChanged(AgentSessionId),
}

/// The state of a process, and how its restarts go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusReport {
    pub status: AgentStatus,
    pub attempt: Option<u32>,
    pub attempts_max: Option<u32>,
    pub retry_in_ms: Option<u64>,
    /// Why it was lost, with the end of its standard error.
    pub detail: Option<String>,
    /// It runs, but did not stop when asked to. Only reported of one session.
    pub hangs: bool,
    /// Its last turn failed because it is not logged in. Only reported of the agent as a whole.
    pub needs_login: bool,
}

impl From<AgentStatus> for StatusReport {
    fn from(status: AgentStatus) -> Self {
        Self { status, ..Self::default() }
    }
}
