//! Bodies of the HTTP API.

use serde::{Deserialize, Serialize};

use crate::ids::{CliType, ProjectId, SessionId, TurnId};
use crate::model::{SessionState, SessionSummary};
use crate::server::ErrorMessage;
use crate::timestamp::Timestamp;

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
    /// False if the journal could not record the message.
    pub recorded: bool,
}

/// Answer of `GET /api/usage`: what sessions used, one row per session and day, newest day first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageBody {
    /// Today, in the time zone of the server.
    pub today: String,
    pub rows: Vec<UsageRow>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageRow {
    /// As in `2026-11-18`.
    pub day: String,
    pub session_id: SessionId,
    pub title: String,
    pub project_id: ProjectId,
    /// Missing when the project was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_name: Option<String>,
    pub cli_type: CliType,
    pub turns: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_input_tokens: u64,
    pub cache_creation_input_tokens: u64,
    /// Missing when the agent reported no cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl UsageRow {
    /// Of every kind.
    pub fn tokens(&self) -> u64 {
        let kinds =
            [self.input_tokens, self.output_tokens, self.cache_read_input_tokens, self.cache_creation_input_tokens];
        kinds.into_iter().fold(0, u64::saturating_add)
    }
}

/// Answer of `GET /api/journal`: what is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JournalStatsBody {
    /// Missing if the journal is in memory only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// On the disk, with its write-ahead log.
    pub file_bytes: u64,
    /// Free pages inside the file, which are used again.
    pub free_bytes: u64,
    /// Left on the disk that the file is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_free_bytes: Option<u64>,
    pub format: i64,
    pub items: u64,
    pub turns: u64,
    /// Those with the most bytes first.
    pub sessions: Vec<JournalSession>,
}

/// What is recorded of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JournalSession {
    pub session_id: SessionId,
    /// Missing if there is no such session any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub items: u64,
    pub turns: u64,
    /// Of text, arguments and outputs.
    pub said_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Timestamp>,
}

/// Answer of `POST /api/journal/check`. Both lists are empty if nothing is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalCheckBody {
    /// Damage of the file.
    pub damage: Vec<String>,
    /// What the rows say that cannot be true.
    pub contradictions: Vec<String>,
    pub items: u64,
}

impl JournalCheckBody {
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty() && self.contradictions.is_empty()
    }
}

/// `POST /api/journal/prune`: turns that ended before a moment, or so long ago. One of the two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PruneBody {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Timestamp>,
}

/// What was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrunedBody {
    pub turns: u64,
    pub items: u64,
    /// Given back to the disk.
    pub freed_bytes: u64,
}

/// Answer of `POST /api/ticket`: where a browser gets in, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketBody {
    pub path: String,
    /// A page that leads there, in a file for the user alone: to be opened instead where a command line can be read by
    /// others and this system cannot tell whose a connection is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// A browser that was let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrowserInfo {
    pub id: String,
    /// As in "Firefox on Linux".
    pub label: String,
    pub added_at: Timestamp,
    pub last_used_at: Timestamp,
    /// The one that asks.
    pub is_current: bool,
}

/// Answer of `GET /api/browsers`, in the order added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrowserListBody {
    /// False where the server runs with `--no-auth`: every browser is let in.
    pub is_required: bool,
    pub browsers: Vec<BrowserInfo>,
}

/// `POST /api/browsers/revoke`: one of them, or all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokeBody {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// The ids of those that are no longer let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedBody {
    pub revoked: Vec<String>,
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
