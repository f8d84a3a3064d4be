//! The shape of an ACP line: JSON-RPC frames, and `session/update` decoded in two steps.
//!
//! Comes in: one line of an agent's stdout. Goes out: a typed frame, or the reason why it is none. Kept out: what any
//! of it means. The published types have no place for what a newer agent may send, so the envelope is read first and
//! its content second: what cannot be read is never fatal, and known by what it is not.

use std::borrow::Cow;

use agent_client_protocol_schema::v1 as acp;
use protocol::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::content::plain_message;
use crate::json;

pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const INTERNAL_ERROR: i64 = -32603;
pub(crate) const REQUEST_CANCELLED: i64 = -32800;
pub(crate) const AUTH_REQUIRED: i64 = -32000;
/// The agent has no such session.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;

/// One line of an agent. Its fields decide what it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RpcFrame<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// One message of an agent.
#[derive(Debug)]
pub(crate) enum RpcMessage<'a> {
    /// The id is the agent's own, in its own space: number, string or null.
    Request {
        id: &'a RawValue,
        method: Cow<'a, str>,
        params: &'a str,
    },
    Notification {
        method: Cow<'a, str>,
        params: &'a str,
    },
    /// The answer to a request of ours. `id` is none when it names no number, as for a line the agent could not read.
    Response {
        id: Option<u64>,
        outcome: Result<&'a str, RpcError>,
    },
}

/// An error as it is written on the wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<serde_json::Value>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// An error of a shape nobody agreed on is still an error: someone waits for it.
    fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|_| Self::new(INTERNAL_ERROR, text))
    }

    /// What a person reads. Agents hide the reason behind `Internal error`, in `data`, or in JSON inside of that.
    pub(crate) fn text(&self) -> String {
        let hidden = self.data.as_ref().and_then(|data| match data {
            serde_json::Value::String(text) => Some(text.as_str()),
            _ => ["message", "details"].iter().find_map(|key| data.get(key)?.as_str()),
        });
        let generic = self.message.is_empty() || self.message.eq_ignore_ascii_case("internal error");
        let message = match hidden {
            Some(hidden) if generic && !hidden.trim().is_empty() => hidden,
            _ if self.message.is_empty() => return format!("error {}", self.code),
            _ => self.message.strip_prefix("Internal error: ").unwrap_or(&self.message),
        };
        plain_message(message).trim().to_owned()
    }
}

/// Reads one line. The error is why it is not a message; such lines are skipped.
pub(crate) fn read(line: &str) -> Result<RpcMessage<'_>, serde_json::Error> {
    // A list would pass for a frame, field by field.
    if !line.trim_start().starts_with('{') {
        return Err(serde::de::Error::custom("not an object"));
    }
    let frame: RpcFrame<'_> = serde_json::from_str(line)?;
    let params = frame.params.map_or("null", RawValue::get);
    Ok(match (frame.method, frame.id) {
        (Some(method), Some(id)) => RpcMessage::Request { id, method, params },
        (Some(method), None) => RpcMessage::Notification { method, params },
        (None, id) => {
            if id.is_none() && frame.error.is_none() {
                return Err(serde::de::Error::custom("neither a method nor an id"));
            }
            let outcome = match frame.error {
                Some(error) => Err(RpcError::read(error.get())),
                None => Ok(frame.result.map_or("null", RawValue::get)),
            };
            RpcMessage::Response { id: id.and_then(our_id), outcome }
        }
    })
}

/// Our ids are numbers; some agents give them back as strings.
fn our_id(id: &RawValue) -> Option<u64> {
    id.get().trim_matches('"').parse().ok()
}

/// A request of ours, as a line.
pub(crate) fn request(id: u64, method: &str, params: &impl Serialize) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct RpcLine<'a, P> {
        jsonrpc: &'static str,
        id: u64,
        method: &'a str,
        params: &'a P,
    }
    serde_json::to_string(&RpcLine { jsonrpc: "2.0", id, method, params })
}

pub(crate) fn notification(method: &str, params: &impl Serialize) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct RpcLine<'a, P> {
        jsonrpc: &'static str,
        method: &'a str,
        params: &'a P,
    }
    serde_json::to_string(&RpcLine { jsonrpc: "2.0", method, params })
}

/// The answer to a request of the agent, under the id as it wrote it.
pub(crate) fn response(id: &RawValue, outcome: &Result<impl Serialize, RpcError>) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct RpcLine<'a, R> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a R>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a RpcError>,
    }
    let (result, error) = match outcome {
        Ok(result) => (Some(result), None),
        Err(error) => (None, Some(error)),
    };
    serde_json::to_string(&RpcLine { jsonrpc: "2.0", id, result, error })
}

/// Reads a `session/update`, which is nearly every line, in one pass. None for any other line.
pub(crate) fn read_update(line: &str) -> Option<UpdateEnvelope<'_>> {
    #[derive(Deserialize)]
    struct RpcLine<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
        #[serde(borrow)]
        params: UpdateEnvelope<'a>,
    }
    if !line.starts_with('{') {
        return None;
    }
    let line: RpcLine<'_> = serde_json::from_str(line).ok()?;
    (line.method == "session/update").then_some(line.params)
}

/// The envelope of `session/update`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UpdateEnvelope<'a> {
    #[serde(borrow)]
    pub(crate) session_id: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) update: &'a RawValue,
}

/// One `session/update`. A new tool call and a change of one have the same fields, all but the id optional.
#[derive(Debug)]
pub(crate) enum Update {
    UserText(acp::ContentChunk),
    AgentText(acp::ContentChunk),
    Thought(acp::ContentChunk),
    ToolCall(acp::ToolCallUpdate),
    ToolCallUpdate(acp::ToolCallUpdate),
    Plan(acp::Plan),
    Commands(acp::AvailableCommandsUpdate),
    Mode(acp::CurrentModeUpdate),
    Options(acp::ConfigOptionUpdate),
    Info(acp::SessionInfoUpdate),
    Usage(acp::UsageUpdate),
    Notice(acp::Notice),
    Compaction(acp::CompactionUpdate),
    CompactionSummary(acp::CompactionSummaryChunk),
    /// A kind we do not know, or one we know with content we do not. A later version of the protocol may have it.
    Unknown {
        kind: String,
    },
    /// No JSON.
    Unreadable {
        reason: String,
    },
}

impl Update {
    /// What cannot be read as it is may still be read once it is repaired.
    pub(crate) fn read(text: &str) -> Self {
        match Self::read_as_is(text) {
            Self::Unreadable { reason } => {
                json::repaired(text).map_or(Self::Unreadable { reason }, |repaired| Self::read_as_is(&repaired))
            }
            update => update,
        }
    }

    /// Reads by kind rather than through the published enum: that one has no place for the unknown, and would buffer
    /// every update to find its tag.
    fn read_as_is(text: &str) -> Self {
        #[derive(Deserialize)]
        struct Tag<'a> {
            #[serde(rename = "sessionUpdate", borrow)]
            kind: Cow<'a, str>,
        }
        let kind = match serde_json::from_str::<Tag<'_>>(text) {
            Ok(tag) => tag.kind,
            Err(error) if error.is_data() => return Self::Unknown { kind: String::new() },
            Err(error) => return Self::Unreadable { reason: error.to_string() },
        };
        fn typed<T: DeserializeOwned>(text: &str, make: fn(T) -> Update) -> Result<Update, serde_json::Error> {
            serde_json::from_str(text).map(make)
        }
        let update = match kind.as_ref() {
            "agent_message_chunk" => typed(text, Self::AgentText),
            "agent_thought_chunk" => typed(text, Self::Thought),
            "user_message_chunk" => typed(text, Self::UserText),
            "tool_call" => typed(text, Self::ToolCall),
            "tool_call_update" => typed(text, Self::ToolCallUpdate),
            "plan" => typed(text, Self::Plan),
            "available_commands_update" => typed(text, Self::Commands),
            "current_mode_update" => typed(text, Self::Mode),
            "config_option_update" => typed(text, Self::Options),
            "session_info_update" => typed(text, Self::Info),
            "usage_update" => typed(text, Self::Usage),
            "notice" => typed(text, Self::Notice),
            "compaction_update" => typed(text, Self::Compaction),
            "compaction_summary_chunk" => typed(text, Self::CompactionSummary),
            _ => Ok(Self::Unknown { kind: kind.as_ref().to_owned() }),
        };
        update.unwrap_or_else(|error| match error.is_data() {
            true => Self::Unknown { kind: kind.into_owned() },
            false => Self::Unreadable { reason: error.to_string() },
        })
    }
}

impl Update {
    /// When it was sent first, if the agent reports it. The protocol has no place for it but `_meta`.
    pub(crate) fn sent_at(&self) -> Option<Timestamp> {
        let meta = match self {
            Self::UserText(chunk) | Self::AgentText(chunk) | Self::Thought(chunk) => chunk.meta.as_ref(),
            Self::ToolCall(call) | Self::ToolCallUpdate(call) => call.meta.as_ref(),
            Self::Usage(usage) => usage.meta.as_ref(),
            _ => None,
        };
        meta?.get("timestampMs")?.as_i64().map(Timestamp::from_unix_ms)
    }

    /// Part of the conversation, rather than of what is known about it.
    pub(crate) fn is_content(&self) -> bool {
        matches!(
            self,
            Self::UserText(_)
                | Self::AgentText(_)
                | Self::Thought(_)
                | Self::ToolCall(_)
                | Self::ToolCallUpdate(_)
                | Self::Notice(_)
                | Self::Compaction(_)
                | Self::CompactionSummary(_)
        )
    }
}

/// The result of `session/prompt`. Its own type, for a stop reason we do not know must not lose the turn's end.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptResult {
    pub(crate) stop_reason: String,
    #[serde(default)]
    pub(crate) usage: Option<TokenUse>,
}

impl PromptResult {
    /// What a cancelled prompt is answered with, for a turn whose answer is not waited for.
    pub(crate) fn cancelled() -> Self {
        Self { stop_reason: "cancelled".into(), usage: None }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TokenUse {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cached_read_tokens: Option<u64>,
    pub(crate) cached_write_tokens: Option<u64>,
}

/// What `session/new`, `load` and `resume` have in common. `models` is from before config options.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SessionSetup {
    pub(crate) session_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) modes: Option<acp::SessionModeState>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) config_options: Option<Vec<acp::SessionConfigOption>>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) models: Option<LegacyModels>,
}

/// What cannot be read counts as missing: a new kind of option must not cost the session.
fn lenient<'de, D: serde::Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_else(|error| {
        tracing::debug!(%error, "unreadable part of a session's setup");
        None
    }))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LegacyModels {
    pub(crate) current_model_id: String,
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
