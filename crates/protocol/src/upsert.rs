//! Upserts and turn events: the accumulated state of an item, and the life of a turn, as the browser gets them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{CallId, ItemId, SessionId, TurnId};
use crate::stream::{Origin, Usage};
use crate::timestamp::Timestamp;
use crate::tool::ToolDetail;

/// Replaces what was shown for its `item_id`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Upsert {
    pub turn_id: TurnId,
    /// Always there in the plain contract. On a `view` socket an `update` leaves it out: the message around it has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub session_id: Option<SessionId>,
    pub item_id: ItemId,
    /// Like `session_id`, not sent again in an `update` on a `view` socket; so is `emitted_at`. Left out, too, where an
    /// agent's history does not say when it was: no time is shown rather than a false one.
    #[serde(default, skip_serializing_if = "Timestamp::is_unset")]
    pub source_timestamp: Timestamp,
    #[serde(default, skip_serializing_if = "Timestamp::is_unset")]
    pub emitted_at: Timestamp,
    pub status: UpsertStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub error_code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub error_message: Option<String>,
    /// The tool call this item belongs to, when a sub-agent speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub parent_item_id: Option<ItemId>,
    #[serde(flatten)]
    pub body: UpsertBody,
    /// Only on a `view` socket.
    #[serde(flatten)]
    pub view: UpsertView,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum UpsertStatus {
    Create,
    Update,
    Complete,
    Error,
}

impl UpsertStatus {
    /// The item is settled: it is not running. What its source says of it later comes under a final status too.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Complete | Self::Error)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum UpsertBody {
    Message {
        content: String,
        origin: Origin,
    },
    Thinking {
        content: String,
        provider_id: String,
    },
    ToolCall {
        tool_name: String,
        #[cfg_attr(test, ts(type = "Record<string, unknown>"))]
        tool_arguments: Arc<serde_json::Map<String, serde_json::Value>>,
        call_id: CallId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        tool_output: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        tool_output_is_error: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional, as = "Option<ToolDetail>"))]
        tool: Option<Arc<ToolDetail>>,
    },
}

/// What our own page gets in addition: only the text that was added, and rendered HTML.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct UpsertView {
    /// UTF-16 offset at which `content` (or `toolOutput`) continues what the page already has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub content_from: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub blocks: Option<BlockPatch>,
    /// Rendered forms of a tool call's contents (diffs, files, images), whole each time they change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub sections: Option<Vec<ToolSection>>,
}

/// Keep the first `from` blocks; keep the first `keep` UTF-16 units of block `from`'s HTML and continue it with
/// `html[0]`; then append the rest. Applying it twice is the same as once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct BlockPatch {
    pub from: usize,
    pub keep: usize,
    #[cfg_attr(test, ts(type = "string[]"))]
    pub html: Vec<Arc<str>>,
}

/// One rendered content of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ToolSection {
    pub kind: SectionKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub path: Option<String>,
    #[cfg_attr(test, ts(type = "string"))]
    pub html: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub added: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub removed: Option<usize>,
    /// Lines left out of `html`; the whole comes by `session:output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub cut_lines: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum SectionKind {
    Diff,
    File,
    Image,
    Text,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum TurnEvent {
    TurnStarted {
        turn_id: TurnId,
        session_id: SessionId,
        model_id: String,
        provider_id: String,
        at: Timestamp,
    },
    TurnComplete {
        turn_id: TurnId,
        session_id: SessionId,
        status: TurnStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        usage: Option<Usage>,
        at: Timestamp,
    },
    TurnError {
        turn_id: TurnId,
        session_id: SessionId,
        error_code: String,
        error_message: String,
        at: Timestamp,
    },
}

impl TurnEvent {
    pub fn turn_id(&self) -> &TurnId {
        match self {
            Self::TurnStarted { turn_id, .. }
            | Self::TurnComplete { turn_id, .. }
            | Self::TurnError { turn_id, .. } => turn_id,
        }
    }

    /// The turn is over.
    pub fn is_end(&self) -> bool {
        !matches!(self, Self::TurnStarted { .. })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    Completed,
    Cancelled,
}
