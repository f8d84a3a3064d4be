//! Stream events: what a provider's translation of an agent's wire produces.
//!
//! They keep what a later ingestion into another store needs: the ids of session, turn, item and call, and the times at the
//! source and at the emission. What such a store derives from them (`turnSequenceNumber`, `llmTurnNumber`, `entryType`) is
//! its own to derive, and not part of this contract.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::ErrorDetail;
use crate::ids::{CallId, EventId, ItemId, SessionId, TurnId};
use crate::timestamp::Timestamp;
use crate::tool::ToolDetail;

/// The envelope every event of a turn shares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct StreamEvent {
    pub event_id: EventId,
    pub timestamp: Timestamp,
    pub turn_id: TurnId,
    pub session_id: SessionId,
    #[serde(flatten)]
    pub payload: StreamPayload,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
pub enum StreamPayload {
    ResponseStart(ResponseStart),
    ItemStart(ItemStart),
    ItemDelta(ItemDelta),
    ItemDone(ItemDone),
    ItemError(ItemError),
    ItemCancelled(ItemCancelled),
    ResponseDone(ResponseDone),
    ResponseError(ResponseError),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ResponseStart {
    pub model_id: String,
    pub provider_id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ItemType {
    Message,
    Reasoning,
    FunctionCall,
    FunctionCallOutput,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ItemStart {
    pub item_id: ItemId,
    pub item_type: ItemType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub initial_content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub call_id: Option<CallId>,
    /// Who speaks, for messages that are not the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub origin: Option<Origin>,
    /// The tool call this item belongs to, when a sub-agent speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub parent_item_id: Option<ItemId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, as = "Option<ToolDetail>"))]
    pub tool: Option<Arc<ToolDetail>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ItemDelta {
    pub item_id: ItemId,
    pub delta_content: String,
    /// For a tool call whose facts changed while it runs; replaces what was known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, as = "Option<ToolDetail>"))]
    pub tool: Option<Arc<ToolDetail>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ItemDone {
    pub item_id: ItemId,
    pub final_item: FinalItem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    User,
    Agent,
    System,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum FinalItem {
    Message {
        content: String,
        origin: Origin,
    },
    Reasoning {
        content: String,
        provider_id: String,
    },
    FunctionCall {
        name: String,
        call_id: CallId,
        #[cfg_attr(test, ts(type = "Record<string, unknown>"))]
        arguments: serde_json::Map<String, serde_json::Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional, as = "Option<ToolDetail>"))]
        tool: Option<Arc<ToolDetail>>,
    },
    FunctionCallOutput {
        call_id: CallId,
        output: String,
        is_error: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional, as = "Option<ToolDetail>"))]
        tool: Option<Arc<ToolDetail>>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ItemError {
    pub item_id: ItemId,
    pub error: ErrorDetail,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ItemCancelled {
    pub item_id: ItemId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ResponseStatus {
    Completed,
    Cancelled,
    Error,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ResponseDone {
    pub status: ResponseStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub finish_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub error: Option<ErrorDetail>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub usage: Option<Usage>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ResponseError {
    pub error: ErrorDetail,
}

/// Tokens a turn cost, as the agent counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    #[cfg_attr(test, ts(type = "number"))]
    pub input_tokens: u64,
    #[cfg_attr(test, ts(type = "number"))]
    pub output_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "number"))]
    pub cache_read_input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "number"))]
    pub cache_creation_input_tokens: Option<u64>,
    /// What this turn cost in US dollars, where the agent says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub cost_usd: Option<f64>,
}

/// Why a text is not a stream event, and at which field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct InvalidEvent {
    pub field: String,
    pub reason: String,
}

impl StreamEvent {
    /// Reads one event, in two steps so that an error can name the field.
    pub fn parse(text: &str) -> Result<Self, InvalidEvent> {
        use crate::client::fields;
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Envelope {
            event_id: EventId,
            timestamp: Timestamp,
            turn_id: TurnId,
            session_id: SessionId,
            r#type: String,
            payload: serde_json::Value,
        }
        fn payload<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> Result<T, InvalidEvent> {
            fields(value).map_err(|(field, reason)| InvalidEvent { field: format!("payload.{field}"), reason })
        }
        let value = serde_json::from_str(text)
            .map_err(|error| InvalidEvent { field: "event".into(), reason: format!("not JSON: {error}") })?;
        let envelope: Envelope = fields(value).map_err(|(field, reason)| InvalidEvent { field, reason })?;
        let body = envelope.payload;
        let payload = match envelope.r#type.as_str() {
            "response_start" => StreamPayload::ResponseStart(payload(body)?),
            "item_start" => StreamPayload::ItemStart(payload(body)?),
            "item_delta" => StreamPayload::ItemDelta(payload(body)?),
            "item_done" => StreamPayload::ItemDone(payload(body)?),
            "item_error" => StreamPayload::ItemError(payload(body)?),
            "item_cancelled" => StreamPayload::ItemCancelled(payload(body)?),
            "response_done" => StreamPayload::ResponseDone(payload(body)?),
            "response_error" => StreamPayload::ResponseError(payload(body)?),
            other => {
                return Err(InvalidEvent { field: "type".into(), reason: format!("unknown event type {other:?}") });
            }
        };
        Ok(Self {
            event_id: envelope.event_id,
            timestamp: envelope.timestamp,
            turn_id: envelope.turn_id,
            session_id: envelope.session_id,
            payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, payload: serde_json::Value) -> String {
        serde_json::json!({
            "eventId": "e1", "timestamp": "2026-11-15T21:15:56.000Z", "turnId": "t1", "sessionId": "codex:1",
            "type": kind, "payload": payload,
        })
        .to_string()
    }

    /// TC-1.1f.
    #[test]
    fn a_malformed_event_is_refused_with_the_field_at_fault() {
        let field = |text: &str| StreamEvent::parse(text).unwrap_err().field;
        assert_eq!(field("x"), "event");
        assert_eq!(field("{}"), "eventId");
        assert_eq!(field(&event("no_such", serde_json::json!({}))), "type");
        assert_eq!(field(&event("item_delta", serde_json::json!({"itemId": "i"}))), "payload.deltaContent");
        assert_eq!(field(&event("item_delta", serde_json::json!({"itemId": 7, "deltaContent": ""}))), "payload.itemId");
        let bad_item = serde_json::json!({"itemId": "i", "finalItem": {"type": "message", "origin": "agent"}});
        assert!(field(&event("item_done", bad_item)).starts_with("payload."));
    }
}
