//! One step of the translation: events in the making, and what comes of them.

use protocol::stream::{ItemDelta, ItemDone, ItemStart, ResponseDone};
use protocol::{
    EventId, FinalItem, ItemId, ItemType, Origin, ResponseStatus, SessionFacts, SessionId, StreamEvent, StreamPayload,
    Timestamp, TurnId, Usage,
};

/// The result of one step.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// Turns that begin with these events.
    pub(crate) begun: Vec<TurnId>,
    pub(crate) events: Vec<StreamEvent>,
    pub(crate) facts: SessionFacts,
    /// What begins is no turn, though its items need one to belong to: a notice between turns, or the rest of a replay.
    pub(crate) is_aside: bool,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    Agent,
    Thought,
    User,
    Notice,
}

/// Events in the making.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) now: Timestamp,
    /// The turn that payloads belong to.
    pub(crate) turn: Option<TurnId>,
    pub(crate) begun: Vec<TurnId>,
    /// Each with its turn and its time.
    payloads: Vec<(TurnId, Timestamp, StreamPayload)>,
    /// Filled by a tool call's state; see [`Self::take_scratch`].
    pub(crate) scratch: Vec<StreamPayload>,
    pub(crate) facts: SessionFacts,
    /// The turn was opened for this step alone.
    pub(crate) ends_turn: bool,
    /// And nobody is to be told of it; see [`Output::is_aside`].
    pub(crate) is_aside: bool,
}

impl Step {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            now,
            turn: None,
            begun: Vec::new(),
            payloads: Vec::new(),
            scratch: Vec::new(),
            facts: SessionFacts::default(),
            ends_turn: false,
            is_aside: false,
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

    pub(crate) fn start(&mut self, item_id: ItemId, text: String, voice: Voice, parent_item_id: Option<ItemId>) {
        let (item_type, origin) = match voice {
            Voice::Agent => (ItemType::Message, None),
            Voice::Thought => (ItemType::Reasoning, None),
            Voice::User => (ItemType::Message, Some(Origin::User)),
            Voice::Notice => (ItemType::Message, Some(Origin::System)),
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

    pub(crate) fn into_output(mut self, session: &SessionId) -> Output {
        if self.ends_turn {
            self.done(ResponseStatus::Completed, None, None);
        }
        let event = |(turn_id, timestamp, payload)| StreamEvent {
            event_id: EventId::generate(),
            timestamp,
            turn_id,
            session_id: session.clone(),
            payload,
        };
        let events = self.payloads.into_iter().map(event).collect();
        Output { begun: self.begun, events, facts: self.facts, is_aside: self.is_aside }
    }
}
