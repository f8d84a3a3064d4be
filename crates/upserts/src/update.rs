//! The output: the state of an item with shared text, and turn events.

use std::sync::Arc;
use std::time::Duration;

use protocol::{
    CallId, ErrorDetail, ItemId, Origin, SessionId, Timestamp, ToolDetail, TurnEvent, TurnId, Upsert, UpsertBody,
    UpsertStatus, UpsertView,
};

use crate::text::Text;
use crate::weight::{arguments_bytes, detail_bytes};

/// What an item takes besides its text and its facts.
const ITEM_BYTES: usize = 1024;

/// A reading of the clock, given by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub wall: Timestamp,
    /// Of a clock that never goes back; where it starts does not matter.
    pub elapsed: Duration,
}

/// One thing to pass on. Order matters.
#[derive(Clone, Debug, PartialEq)]
pub enum Emission {
    Item(ItemUpdate),
    Turn(TurnEvent),
}

/// The accumulated state of one item; replaces what was known for its `item_id`. Cloning it copies no text.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemUpdate {
    pub turn_id: TurnId,
    pub session_id: SessionId,
    pub item_id: ItemId,
    /// The tool call this item belongs to, when a sub-agent speaks.
    pub parent_item_id: Option<ItemId>,
    /// Time of the last event about this item.
    pub source_timestamp: Timestamp,
    pub emitted_at: Timestamp,
    pub status: UpsertStatus,
    pub error: Option<ErrorDetail>,
    pub body: ItemBody,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ItemBody {
    Message {
        text: Text,
        origin: Origin,
    },
    Thinking {
        text: Text,
        provider_id: Arc<str>,
    },
    ToolCall {
        name: Arc<str>,
        arguments: Arc<serde_json::Map<String, serde_json::Value>>,
        call_id: CallId,
        output: Option<Text>,
        is_error: Option<bool>,
        tool: Option<Arc<ToolDetail>>,
    },
}

impl ItemBody {
    /// The part that grows: a message's or thought's text, or a tool call's output.
    pub fn text(&self) -> Option<&Text> {
        match self {
            Self::Message { text, .. } | Self::Thinking { text, .. } => Some(text),
            Self::ToolCall { output, .. } => output.as_ref(),
        }
    }
}

impl ItemUpdate {
    /// Its approximate size in memory.
    pub fn weight_bytes(&self) -> usize {
        let facts = match &self.body {
            ItemBody::Message { .. } | ItemBody::Thinking { .. } => 0,
            ItemBody::ToolCall { arguments, tool, .. } => {
                arguments_bytes(arguments) + tool.as_deref().map_or(0, detail_bytes)
            }
        };
        ITEM_BYTES + self.body.text().map_or(0, Text::len) + facts
    }

    /// The upsert of the plain contract, with the whole text.
    pub fn to_upsert(&self) -> Upsert {
        self.to_upsert_from(0)
    }

    /// The same, with the text (content or tool output) from this byte on.
    pub fn to_upsert_from(&self, byte: usize) -> Upsert {
        let body = match &self.body {
            ItemBody::Message { text, origin } => {
                UpsertBody::Message { content: text.from_byte(byte), origin: *origin }
            }
            ItemBody::Thinking { text, provider_id } => {
                UpsertBody::Thinking { content: text.from_byte(byte), provider_id: provider_id.as_ref().into() }
            }
            ItemBody::ToolCall { name, arguments, call_id, output, is_error, tool } => UpsertBody::ToolCall {
                tool_name: name.as_ref().into(),
                tool_arguments: arguments.clone(),
                call_id: call_id.clone(),
                tool_output: output.as_ref().map(|output| output.from_byte(byte)),
                tool_output_is_error: *is_error,
                tool: tool.clone(),
            },
        };
        Upsert {
            turn_id: self.turn_id.clone(),
            session_id: Some(self.session_id.clone()),
            item_id: self.item_id.clone(),
            source_timestamp: self.source_timestamp,
            emitted_at: self.emitted_at,
            status: self.status,
            error_code: self.error.as_ref().map(|error| error.code.clone()),
            error_message: self.error.as_ref().map(|error| error.message.clone()),
            parent_item_id: self.parent_item_id.clone(),
            body,
            view: UpsertView::default(),
        }
    }

    /// The item that an upsert of the plain contract describes.
    pub fn from_upsert(upsert: Upsert, session_id: SessionId) -> Self {
        let body = match upsert.body {
            UpsertBody::Message { content, origin } => ItemBody::Message { text: content.into(), origin },
            UpsertBody::Thinking { content, provider_id } => {
                ItemBody::Thinking { text: content.into(), provider_id: provider_id.into() }
            }
            UpsertBody::ToolCall { tool_name, tool_arguments, call_id, tool_output, tool_output_is_error, tool } => {
                ItemBody::ToolCall {
                    name: tool_name.into(),
                    arguments: tool_arguments,
                    call_id,
                    output: tool_output.map(Text::from),
                    is_error: tool_output_is_error,
                    tool,
                }
            }
        };
        let error =
            upsert.error_code.map(|code| ErrorDetail { code, message: upsert.error_message.unwrap_or_default() });
        Self {
            turn_id: upsert.turn_id,
            session_id,
            item_id: upsert.item_id,
            parent_item_id: upsert.parent_item_id,
            source_timestamp: upsert.source_timestamp,
            emitted_at: upsert.emitted_at,
            status: upsert.status,
            error,
            body,
        }
    }
}
