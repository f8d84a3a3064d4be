//! One item of a turn: its content, and how it is settled.

use std::sync::Arc;

use protocol::{ErrorDetail, ItemId, Origin, SessionId, Timestamp, TurnId, UpsertStatus};

use crate::batch::Batch;
use crate::text::Text;
use crate::tool::ToolCall;
use crate::update::{ItemBody, ItemUpdate};

#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) item_id: ItemId,
    pub(crate) turn_id: TurnId,
    pub(crate) session_id: SessionId,
    pub(crate) parent: Option<ItemId>,
    /// The earlier part of the same source item, which something closed.
    pub(crate) continues: Option<usize>,
    /// The total length of all those parts.
    pub(crate) bytes_before: usize,
    pub(crate) source_timestamp: Timestamp,
    pub(crate) content: Content,
    pub(crate) state: State,
    pub(crate) batch: Batch,
    /// The source's ids that stand for it.
    pub(crate) source_ids: Vec<ItemId>,
}

#[derive(Debug)]
pub(crate) enum Content {
    Message { text: Text, origin: Origin },
    Thinking { text: Text, provider_id: Arc<str> },
    Tool(ToolCall),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    Complete,
    Error(ErrorDetail),
    /// Withdrawn by its source: never emitted if it was not, and closed if it was. Later events of it are ignored.
    Cancelled,
}

impl Item {
    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// The text of a message or a thought.
    pub(crate) fn text_mut(&mut self) -> Option<&mut Text> {
        match &mut self.content {
            Content::Message { text, .. } | Content::Thinking { text, .. } => Some(text),
            Content::Tool(_) => None,
        }
    }

    pub(crate) fn tool_mut(&mut self) -> Option<&mut ToolCall> {
        match &mut self.content {
            Content::Tool(tool) => Some(tool),
            Content::Message { .. } | Content::Thinking { .. } => None,
        }
    }

    pub(crate) fn is_tool(&self) -> bool {
        matches!(self.content, Content::Tool(_))
    }

    /// The part that grows.
    pub(crate) fn growing(&self) -> Option<&Text> {
        match &self.content {
            Content::Message { text, .. } | Content::Thinking { text, .. } => Some(text),
            Content::Tool(tool) => tool.output.as_ref(),
        }
    }

    pub(crate) fn growing_bytes(&self) -> usize {
        self.growing().map_or(0, Text::len)
    }

    /// What it holds, roughly.
    pub(crate) fn weight_bytes(&self) -> usize {
        let facts = match &self.content {
            Content::Message { .. } | Content::Thinking { .. } => 0,
            Content::Tool(call) => call.facts_bytes(),
        };
        self.growing_bytes() + facts
    }

    pub(crate) fn to_update(&self, emitted_at: Timestamp) -> ItemUpdate {
        let (status, error) = match &self.state {
            State::Open if self.batch.shown => (UpsertStatus::Update, None),
            State::Open => (UpsertStatus::Create, None),
            State::Complete | State::Cancelled => (UpsertStatus::Complete, None),
            State::Error(error) => (UpsertStatus::Error, Some(error.clone())),
        };
        let body = match &self.content {
            Content::Message { text, origin } => ItemBody::Message { text: text.clone(), origin: *origin },
            Content::Thinking { text, provider_id } => {
                ItemBody::Thinking { text: text.clone(), provider_id: provider_id.clone() }
            }
            Content::Tool(tool) => tool.to_body(),
        };
        ItemUpdate {
            turn_id: self.turn_id.clone(),
            session_id: self.session_id.clone(),
            item_id: self.item_id.clone(),
            parent_item_id: self.parent.clone(),
            source_timestamp: self.source_timestamp,
            emitted_at,
            status,
            error,
            body,
        }
    }
}

/// Sets the final text: appends what is missing, or starts a new buffer if the text differs. An empty final text is
/// ignored, so the received text stays. Returns whether anything changed.
pub(crate) fn conclude(text: &mut Text, wording: &str) -> bool {
    if wording.is_empty() {
        return false;
    }
    let known_bytes = text.with_str(|known| wording.starts_with(known).then_some(known.len()));
    match known_bytes {
        Some(known_bytes) if known_bytes == wording.len() => return false,
        Some(known_bytes) => text.append(&wording[known_bytes..]),
        None => *text = Text::from(wording),
    }
    true
}
