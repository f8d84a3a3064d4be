//! How a session's last turn ended: what a server has to know again after a restart, before any agent is asked.

use protocol::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Longer error messages are cut in the record: the file is rewritten after every turn.
const REASON_CHARACTERS_MAX: usize = 2_000;

/// A turn ended and nobody has looked at it yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unseen {
    pub kind: UnseenKind,
    /// One line for lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub since: Timestamp,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnseenKind {
    Finished,
    Error,
}

/// The last turn that a message began. Agents whose history has no times and no ends get both from here, for this one turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastTurn {
    /// The beginning of its message.
    pub message: String,
    pub started_at: Timestamp,
    /// Missing when the server ended first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    pub end: TurnEnd,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum TurnEnd {
    Completed,
    Cancelled,
    Error { error_code: String, error_message: String },
}

impl TurnEnd {
    pub fn error(code: &str, message: &str) -> Self {
        let error_message = message.chars().take(REASON_CHARACTERS_MAX).collect();
        Self::Error { error_code: code.into(), error_message }
    }
}

/// Reads a value that a later build may write in another way. What cannot be read costs itself, not the whole record.
pub(crate) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let value = Option::<Value>::deserialize(deserializer)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()))
}
