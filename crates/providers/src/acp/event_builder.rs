//! One step of the translation: events in the making, and what comes of them.

use std::sync::Arc;

use protocol::stream::{ItemDelta, ItemDone, ItemStart, ResponseDone};
use protocol::{
    EventId, FinalItem, ItemId, ItemType, Origin, ResponseStatus, SessionFacts, SessionId, StreamEvent, StreamPayload,
    Timestamp, TurnId, Usage,
};

/// The result of one step.
#[derive(Debug, Default)]
pub(crate) struct Translated {
    /// Turns that begin with these events.
    pub(crate) turns: Vec<TurnId>,
    pub(crate) events: Vec<StreamEvent>,
    pub(crate) facts: SessionFacts,
}

/// A turn that is opened for one step alone, because no other runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnTurn {
    /// The agent did something by itself: a response that starts and is done within the step.
    Response,
    /// Items that only need a turn to belong to, such as a notice: no response, so nothing else settles them.
    ItemsOnly,
}

/// Whose text it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    Agent,
    Thought,
    User,
    Notice,
}

/// Events in the making.
#[derive(Debug)]
pub(crate) struct EventBuilder {
    pub(crate) now: Timestamp,
    /// The turn that payloads belong to.
    pub(crate) turn: Option<TurnId>,
    pub(crate) begun: Vec<TurnId>,
    /// Each with its turn and its time.
    payloads: Vec<(TurnId, Timestamp, StreamPayload)>,
    /// Filled by a tool call's state; see [`Self::take_scratch`].
    pub(crate) scratch: Vec<StreamPayload>,
    pub(crate) facts: SessionFacts,
    /// Set when the turn was opened for this step alone.
    pub(crate) own_turn: Option<OwnTurn>,
}

impl EventBuilder {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            now,
            turn: None,
            begun: Vec::new(),
            payloads: Vec::new(),
            scratch: Vec::new(),
            facts: SessionFacts::default(),
            own_turn: None,
        }
    }

    pub(crate) fn push(&mut self, payload: StreamPayload) {
        if let Some(turn) = &self.turn {
            self.payloads.push((turn.clone(), self.now, payload));
        }
    }

    pub(crate) fn take_scratch(&mut self) {
        for payload in std::mem::take(&mut self.scratch) {
            self.push(payload);
        }
    }

    pub(crate) fn start(&mut self, item_id: ItemId, text: String, kind: TextKind, parent_item_id: Option<ItemId>) {
        let (item_type, origin) = match kind {
            TextKind::Agent => (ItemType::Message, None),
            TextKind::Thought => (ItemType::Reasoning, None),
            TextKind::User => (ItemType::Message, Some(Origin::User)),
            TextKind::Notice => (ItemType::Message, Some(Origin::System)),
        };
        let (initial_content, call_id, name, tool) = (Some(text), None, None, None);
        self.push(StreamPayload::ItemStart(ItemStart {
            item_id,
            item_type,
            initial_content,
            name,
            call_id,
            origin,
            parent_item_id,
            tool,
        }));
    }

    pub(crate) fn delta(&mut self, item_id: ItemId, delta_content: String) {
        if !delta_content.is_empty() {
            self.push(StreamPayload::ItemDelta(ItemDelta { item_id, delta_content, tool: None }));
        }
    }

    /// A message that is there all at once.
    pub(crate) fn message(&mut self, item_id: ItemId, content: &str, origin: Origin) {
        let final_item = FinalItem::Message { content: content.to_owned(), origin };
        self.push(StreamPayload::ItemDone(ItemDone { item_id, final_item }));
    }

    pub(crate) fn done(&mut self, status: ResponseStatus, finish_reason: Option<String>, usage: Option<Usage>) {
        self.push(StreamPayload::ResponseDone(ResponseDone { status, finish_reason, error: None, usage }));
    }

    pub(crate) fn finish(mut self, session: &SessionId) -> Translated {
        match self.own_turn {
            Some(OwnTurn::Response) => self.done(ResponseStatus::Completed, None, None),
            Some(OwnTurn::ItemsOnly) => self.settle_started(),
            None => {}
        }
        let event = |(turn_id, timestamp, payload)| StreamEvent {
            event_id: EventId::generate(),
            timestamp,
            turn_id,
            session_id: session.clone(),
            payload,
        };
        let events = self.payloads.into_iter().map(event).collect();
        Translated { turns: self.begun, events, facts: self.facts }
    }

    /// Settles every item that this step starts and does not end.
    fn settle_started(&mut self) {
        let payloads: Vec<&StreamPayload> = self.payloads.iter().map(|(_, _, payload)| payload).collect();
        let ends: Vec<StreamPayload> = payloads
            .iter()
            .filter_map(|payload| match payload {
                StreamPayload::ItemStart(start) if !payloads.iter().any(|other| ends_item(other, start)) => {
                    Some(end_of(start)?)
                }
                _ => None,
            })
            .collect();
        ends.into_iter().for_each(|end| self.push(end));
    }
}

/// Whether this is the end of an item that started so.
fn ends_item(payload: &StreamPayload, start: &ItemStart) -> bool {
    let StreamPayload::ItemDone(done) = payload else { return false };
    match &done.final_item {
        FinalItem::FunctionCallOutput { call_id, .. } => start.call_id.as_ref() == Some(call_id),
        FinalItem::FunctionCall { .. } => false,
        FinalItem::Message { .. } | FinalItem::Reasoning { .. } => done.item_id == start.item_id,
    }
}

/// Ends an item as it stands: an empty text leaves what it has. A call without a result was interrupted.
fn end_of(start: &ItemStart) -> Option<StreamPayload> {
    let content = String::new();
    let final_item = match start.item_type {
        ItemType::Message => FinalItem::Message { content, origin: start.origin.unwrap_or(Origin::Agent) },
        ItemType::Reasoning => FinalItem::Reasoning { content, provider_id: String::new() },
        ItemType::FunctionCall => {
            let mut detail = start.tool.as_deref().cloned().unwrap_or_default();
            detail.interrupted = true;
            let (call_id, tool) = (start.call_id.clone()?, Some(Arc::new(detail)));
            FinalItem::FunctionCallOutput { call_id, output: content, is_error: false, tool }
        }
        ItemType::FunctionCallOutput => return None,
    };
    let item_id = match start.item_type {
        ItemType::FunctionCall => ItemId::from_foreign(&format!("{}.output", start.item_id)),
        _ => start.item_id.clone(),
    };
    Some(StreamPayload::ItemDone(ItemDone { item_id, final_item }))
}
