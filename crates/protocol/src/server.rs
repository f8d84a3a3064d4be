//! What the server sends to a browser.

use serde::{Deserialize, Serialize};

use crate::agents::{AgentConfig, ProbeOutcome};
use crate::error::ErrorCode;
use crate::facts::SessionFacts;
use crate::ids::{CliType, ItemId, ProjectId, SessionId};
use crate::model::{
    AgentInfo, AgentStatus, PathCompletion, Project, RecentDirectory, ServerSettings, SessionState, SessionSummary,
    TurnRecord,
};
use crate::timestamp::Timestamp;
use crate::upsert::{TurnEvent, Upsert};

/// A message and, in an answer, the id of the request it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerFrame {
    #[serde(flatten)]
    pub message: ServerMessage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

fn recorded() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_recorded(recorded: &bool) -> bool {
    *recorded
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum ServerMessage {
    /// The first message on every socket.
    #[serde(rename = "server:hello")]
    ServerHello {
        version: String,
        /// Changes with every start of the server.
        instance: String,
        /// The user's home directory, so that paths can be shown short.
        home: String,
        /// What the user should know about the data directory, such as a damaged file that was set aside.
        notices: Vec<String>,
        /// The server's machine has a display, so that an editor or a terminal can be shown there.
        #[serde(default)]
        has_display: bool,
    },
    /// The notices of `server:hello` have changed; these replace them.
    #[serde(rename = "server:notices")]
    ServerNotices { notices: Vec<String> },
    #[serde(rename = "project:list")]
    ProjectList { projects: Vec<Project> },
    #[serde(rename = "project:added")]
    ProjectAdded { project: Project },
    /// To every window; something of the project itself is different.
    #[serde(rename = "project:updated")]
    ProjectUpdated { project: Project },
    #[serde(rename = "project:removed")]
    ProjectRemoved { project_id: ProjectId },
    #[serde(rename = "session:list")]
    SessionList { project_id: ProjectId, sessions: Vec<SessionSummary> },
    /// To every window; the one that asked has its `requestId` in it.
    #[serde(rename = "session:created")]
    SessionCreated { session_id: SessionId, project_id: ProjectId, session: SessionSummary },
    /// The items of a session. With `since`, only those that changed after that `seq`, to be merged; otherwise they
    /// replace what was shown.
    #[serde(rename = "session:history")]
    SessionHistory {
        session_id: SessionId,
        entries: Vec<Upsert>,
        /// Names the journal that `seq` counts in.
        journal_id: String,
        /// Rises whenever a server takes the session over.
        #[cfg_attr(test, ts(type = "number"))]
        epoch: u64,
        #[cfg_attr(test, ts(type = "number"))]
        seq: u64,
        /// There are older items, to be had by `session:page`.
        more: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional, type = "number"))]
        since: Option<u64>,
        turns: Vec<TurnRecord>,
        facts: SessionFacts,
        session: SessionSummary,
    },
    #[serde(rename = "session:upsert")]
    SessionUpsert {
        session_id: SessionId,
        #[cfg_attr(test, ts(type = "number"))]
        seq: u64,
        payload: Upsert,
    },
    #[serde(rename = "session:turn")]
    SessionTurn {
        session_id: SessionId,
        #[cfg_attr(test, ts(type = "number"))]
        seq: u64,
        payload: TurnEvent,
        /// False if the journal could not record it.
        #[serde(default = "recorded", skip_serializing_if = "is_recorded")]
        #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
        recorded: bool,
    },
    /// Older items, and the turns they belong to.
    #[serde(rename = "session:page")]
    SessionPage { session_id: SessionId, entries: Vec<Upsert>, more: bool, turns: Vec<TurnRecord> },
    #[serde(rename = "session:output")]
    SessionOutput { session_id: SessionId, item_id: ItemId, html: Vec<String> },
    #[serde(rename = "session:archived")]
    SessionArchived { session_id: SessionId },
    /// An archived session is back.
    #[serde(rename = "session:restored")]
    SessionRestored { session_id: SessionId, session: SessionSummary },
    #[serde(rename = "session:title-updated")]
    SessionTitleUpdated { session_id: SessionId, title: String },
    #[serde(rename = "session:state")]
    SessionState {
        session_id: SessionId,
        #[serde(flatten)]
        state: SessionState,
        last_active_at: Timestamp,
    },
    #[serde(rename = "session:facts")]
    SessionFacts { session_id: SessionId, facts: SessionFacts },
    /// To every window when something was changed, and to whoever asked.
    #[serde(rename = "settings:current")]
    SettingsCurrent { settings: ServerSettings },
    #[serde(rename = "path:completions")]
    PathCompletions { prefix: String, paths: Vec<PathCompletion> },
    #[serde(rename = "path:recents")]
    PathRecents { directories: Vec<RecentDirectory> },
    #[serde(rename = "agent:list")]
    AgentList { agents: Vec<AgentInfo> },
    /// Only to the window that asked: it holds the values of environment variables.
    #[serde(rename = "agent:config")]
    AgentConfig { config: AgentConfig },
    #[serde(rename = "agent:probed")]
    AgentProbed { outcome: ProbeOutcome },
    #[serde(rename = "agent:status")]
    AgentStatus {
        cli_type: CliType,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        session_id: Option<SessionId>,
        status: AgentStatus,
        /// While it reconnects: which try this is, of how many, and when the next one starts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        attempt: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        attempts_max: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional, type = "number"))]
        retry_in_ms: Option<u64>,
        /// The end of what the agent wrote to its standard error, when it was lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        detail: Option<String>,
    },
    /// A request was done and has no other answer.
    #[serde(rename = "ack")]
    Ack {},
    #[serde(rename = "error")]
    Error(ErrorMessage),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ErrorMessage {
    pub code: ErrorCode,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub field: Option<String>,
    /// What the agent or the system reported, for those who want to know more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub detail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub session_id: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub cli_type: Option<CliType>,
    /// The command that installs the missing program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub install_hint: Option<String>,
}

impl ErrorMessage {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            field: None,
            detail: None,
            session_id: None,
            cli_type: None,
            install_hint: None,
        }
    }
}

impl From<crate::client::InvalidMessage> for ErrorMessage {
    fn from(invalid: crate::client::InvalidMessage) -> Self {
        let message = ErrorCode::InvalidMessage.message("");
        let mut error = Self::new(ErrorCode::InvalidMessage, format!("{message} {invalid}"));
        error.field = (!invalid.field.is_empty()).then_some(invalid.field);
        error
    }
}

impl From<ServerMessage> for ServerFrame {
    fn from(message: ServerMessage) -> Self {
        Self { message, request_id: None }
    }
}
