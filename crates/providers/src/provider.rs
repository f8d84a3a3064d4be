//! The contract every kind of agent fulfils.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use protocol::{
    AgentInfo, AgentSessionId, AgentStatus, CliType, Continuity, ErrorCode, ErrorMessage, SessionFacts, TurnId,
    TurnRecord,
};
use tokio::sync::{mpsc, watch};
use upserts::{Emission, ItemUpdate};

/// How many events may wait between a provider and its session. Text that finds the queue full is merged, so a small
/// queue loses nothing and holds little memory.
pub const EVENT_QUEUE_MAX: usize = 256;

/// Drives one CLI type. Calls name a session by the agent's own id.
#[async_trait]
pub trait Provider: Send + Sync + fmt::Debug {
    fn cli_type(&self) -> &CliType;

    /// The name people know it by, such as `Claude Code`.
    fn name(&self) -> &str;

    /// What pickers show. Looks for the program each time; starts no session.
    async fn describe(&self) -> AgentInfo;

    /// Starts the agent for a moment in this directory, to see that it can be used; nothing is asked of a model and no
    /// session is kept. It is not for an agent that is in use.
    async fn try_out(&self, directory: &Path) -> Result<Trial, ProviderError>;

    /// The state of the agent as a whole. A provider with one process per session reports the best of them.
    fn watch_status(&self) -> watch::Receiver<StatusReport>;

    /// Starts a conversation. On failure nothing is left behind.
    async fn create_session(&self, session: NewSession) -> Result<ProviderSession, ProviderError>;

    /// Opens a conversation that exists: its history, and the channel on which it goes on. Starts no process where the
    /// history can be had without one. A session that is open already is an error: a session has one owner.
    async fn load_session(&self, session: OpenSession) -> Result<Loaded, ProviderError>;

    /// The items before a cursor that an earlier answer gave.
    async fn older_history(
        &self,
        id: &AgentSessionId,
        before: &HistoryCursor,
        limit: usize,
    ) -> Result<History, ProviderError>;

    /// Resolves when the turn has begun, with the id that everything of the turn carries. The user's own message is
    /// the first item of the turn.
    async fn send_message(&self, id: &AgentSessionId, text: &str) -> Result<TurnId, ProviderError>;

    /// Asks the running turn to stop. With nothing running it does nothing.
    async fn cancel_turn(&self, id: &AgentSessionId) -> Result<(), ProviderError>;

    /// Ends what runs for this session; its channel closes. The agent's own record of it stays.
    async fn kill_session(&self, id: &AgentSessionId) -> Result<(), ProviderError>;

    /// A process stands behind this session now.
    fn is_alive(&self, id: &AgentSessionId) -> bool;

    /// What was said can be read again from the agent's own files, without loss and without a process. A session nobody
    /// looks at then need not be held in memory.
    fn keeps_history(&self) -> bool {
        false
    }

    /// Directories that the agent's own records say were worked in, newest first; only as many as are read quickly.
    async fn recent_directories(&self) -> Vec<String> {
        Vec::new()
    }

    /// Sets one of the options the session's facts offered (mode, model, …).
    async fn set_option(&self, id: &AgentSessionId, option: &str, value: &str) -> Result<(), ProviderError>;

    /// Starts the agent anew by hand; without an id, the agent as a whole. Resolves when it is connected or has failed.
    async fn reconnect(&self, id: Option<&AgentSessionId>) -> Result<(), ProviderError>;

    /// Cancels what runs, settles what was said and ends every process. Sessions' channels close.
    async fn shutdown(&self);
}

/// What a moment with an agent has told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trial {
    /// As the agent names it in its handshake.
    pub version: Option<String>,
    pub login: Login,
}

/// Whether the agent may use its model, as far as it says without asking the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Login {
    /// It does not say.
    #[default]
    Unknown,
    /// It gave a session, or named its account in these words.
    Ready(Option<String>),
    /// What the user has to do.
    Needed(String),
}

#[derive(Clone, Debug)]
pub struct NewSession {
    pub project_dir: PathBuf,
}

#[derive(Clone, Debug)]
pub struct OpenSession {
    pub id: AgentSessionId,
    pub project_dir: PathBuf,
    /// The agent was given a message before. One that never was is not on the agent's disk: it is created anew, under
    /// the same id where the agent lets us choose it.
    pub prompted: bool,
    /// What the user has switched, as [`ProviderEvent::Chosen`] told it last. The agent gets no message before it is so
    /// again.
    pub chosen: BTreeMap<String, String>,
    /// How many of the newest items the history should hold.
    pub items_max: usize,
}

/// A live session: its id and all that it says, in order. Dropping the receiver lets the session go.
#[derive(Debug)]
pub struct ProviderSession {
    pub id: AgentSessionId,
    pub events: mpsc::Receiver<ProviderEvent>,
}

#[derive(Debug)]
pub struct Loaded {
    pub session: ProviderSession,
    pub history: History,
}

/// A stretch of a session's past, oldest first, every item in its final state.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub items: Vec<ItemUpdate>,
    pub turns: Vec<TurnRecord>,
    pub facts: SessionFacts,
    /// Where older items can be had; none when this is the beginning.
    pub older: Option<HistoryCursor>,
    pub continuity: Continuity,
}

/// A place in a session's past, in the provider's own terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryCursor(pub u64);

/// One thing a session says. One channel carries all kinds, so their order survives.
#[derive(Clone, Debug)]
pub enum ProviderEvent {
    Emission(Emission),
    Facts(SessionFacts),
    /// The process behind this session changed its state.
    Status(StatusReport),
    /// Whether the agent remembers has changed.
    Continuity(Continuity),
    /// The options that the user has switched, each as it is now, to be kept for [`OpenSession::chosen`].
    Chosen(BTreeMap<String, String>),
    /// The agent goes on under another session id, under which it was given no message yet: it was asked to (`/clear`), or
    /// had nothing under the old one.
    IdChanged(AgentSessionId),
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
    /// It runs, but did not stop when asked to. Only said of one session.
    pub hangs: bool,
    /// Its last turn failed because it is not logged in. Only said of the agent as a whole.
    pub needs_login: bool,
}

impl From<AgentStatus> for StatusReport {
    fn from(status: AgentStatus) -> Self {
        Self { status, ..Self::default() }
    }
}

/// Why a call failed. `name` is the agent's, `detail` what it or the system said.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProviderError {
    #[error("agent type not supported: {0}")]
    UnsupportedCliType(CliType),
    #[error("{name} is not installed: {detail}")]
    NotInstalled { name: String, install_hint: Option<String>, detail: String },
    #[error("{name} did not complete its handshake: {detail}")]
    Handshake { name: String, detail: String },
    #[error("{name} wants a login: {detail}")]
    LoginRequired { name: String, detail: String },
    #[error("{name} is not connected")]
    Unavailable { name: String },
    #[error("{name} answered with an error: {message}")]
    Protocol { name: String, message: String },
    #[error("{name} stopped: {detail}")]
    Crashed { name: String, detail: String },
    #[error("no session {0}")]
    SessionNotFound(AgentSessionId),
    #[error("session {0} is open already")]
    SessionOpen(AgentSessionId),
    #[error("could not load the session: {detail}")]
    LoadFailed { detail: String },
    #[error("could not create the session: {detail}")]
    CreateFailed { detail: String },
    #[error("a turn is running")]
    TurnInProgress,
    #[error("{0}")]
    Internal(String),
}

impl ProviderError {
    /// Exhaustive on purpose: a new variant has to choose its wire code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::UnsupportedCliType(_) => ErrorCode::UnsupportedCliType,
            Self::NotInstalled { .. } => ErrorCode::AgentNotInstalled,
            Self::Handshake { .. } => ErrorCode::AgentHandshakeFailed,
            Self::LoginRequired { .. } | Self::Protocol { .. } => ErrorCode::AgentProtocolError,
            Self::Unavailable { .. } => ErrorCode::AgentUnavailable,
            Self::Crashed { .. } => ErrorCode::ProcessCrash,
            Self::SessionNotFound(_) => ErrorCode::SessionNotFound,
            Self::SessionOpen(_) | Self::Internal(_) => ErrorCode::InternalError,
            Self::LoadFailed { .. } => ErrorCode::SessionLoadFailed,
            Self::CreateFailed { .. } => ErrorCode::SessionCreateFailed,
            Self::TurnInProgress => ErrorCode::TurnInProgress,
        }
    }

    /// What the user reads, with what the agent said beside it.
    pub fn to_message(&self) -> ErrorMessage {
        let (about, detail, hint) = match self {
            Self::UnsupportedCliType(cli_type) => (cli_type.as_str(), None, None),
            Self::NotInstalled { name, install_hint, detail } => (name.as_str(), Some(detail), install_hint.clone()),
            Self::Handshake { name, detail } | Self::Crashed { name, detail } => (name.as_str(), Some(detail), None),
            Self::LoginRequired { detail, .. } => (detail.as_str(), None, None),
            Self::Unavailable { name } => (name.as_str(), None, None),
            Self::Protocol { message, .. } => (message.as_str(), None, None),
            Self::LoadFailed { detail } | Self::CreateFailed { detail } | Self::Internal(detail) => {
                ("", Some(detail), None)
            }
            Self::SessionNotFound(_) | Self::SessionOpen(_) | Self::TurnInProgress => ("", None, None),
        };
        let mut message = ErrorMessage::new(self.code(), self.code().message(about));
        message.detail = detail.filter(|detail| !detail.is_empty()).cloned();
        message.install_hint = hint;
        message
    }
}
