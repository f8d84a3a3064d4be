//! Bodies of the HTTP API.

use serde::{Deserialize, Serialize};

use crate::ids::{CliType, ProjectId, SessionId, TurnId};
use crate::model::{SessionState, SessionSummary};
use crate::server::ErrorMessage;

/// `POST /api/session/create`: the project by its id or by its directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateSessionBody {
    pub cli_type: CliType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_dir: Option<String>,
}

/// Answer of create and load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionBody {
    pub session_id: SessionId,
    pub cli_type: CliType,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionListBody {
    pub sessions: Vec<SessionSummary>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStatusBody {
    pub session_id: SessionId,
    pub cli_type: CliType,
    pub is_alive: bool,
    pub state: SessionState,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendBody {
    pub content: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SentBody {
    pub turn_id: TurnId,
}

/// Answer of `POST /api/ticket`: where a browser gets in, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketBody {
    pub path: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    pub error: ErrorMessage,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthBody {
    pub status: String,
    pub version: String,
    pub uptime_ms: u64,
}
