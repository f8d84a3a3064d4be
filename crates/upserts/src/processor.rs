//! The processor: its state, and how time and order decide what is emitted. `events` handles each event.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use protocol::{CallId, ErrorCode, ErrorDetail, ItemId, SessionId, StreamEvent, StreamPayload, TurnEvent, TurnId};

use crate::batch::{Change, NEVER};
use crate::config::{Pacing, UpsertConfig};
use crate::item::{Content, Item, State};
use crate::released::{Items, ReleasedIds};
use crate::tool::ToolCall;
use crate::update::{Emission, Moment};

/// What an item counts against the turn's limit besides its text.
const ITEM_BYTES: usize = 1024;
/// What an event counts that may leave an id behind.
const EVENT_BYTES: usize = 512;

/// Turns the stream events of one turn into upserts and turn events.
#[derive(Debug)]
pub struct UpsertProcessor {
    pub(crate) config: UpsertConfig,
    pub(crate) session_id: SessionId,
    pub(crate) turn_id: TurnId,
    /// The provider of thoughts that do not name one.
    pub(crate) provider_id: Arc<str>,
    /// In the order they started. An item is identified by its index.
    pub(crate) items: Items,
    pub(crate) released: ReleasedIds,
    /// What the source's item ids currently refer to.
    pub(crate) roles: HashMap<ItemId, Role>,
    pub(crate) calls: HashMap<CallId, usize>,
    /// How many items one source id was split into, where it was.
    pub(crate) parts: HashMap<ItemId, usize>,
    /// The one message or thought that may be open under each parent.
    pub(crate) open_texts: HashMap<Option<ItemId>, usize>,
    /// Settled items whose content is held, in the order in which they were settled.
    settled: VecDeque<usize>,
    /// Unsent changes, in the order in which each item first had one.
    waiting: Vec<Waiting>,
    /// The soonest time at which anything in `waiting` is due.
    next_due: Duration,
    open_items: usize,
    received_bytes: usize,
    pub(crate) phase: Phase,
}

/// What the source means by an item id.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    Item(usize),
    /// The output of a tool call, which belongs to that call's item.
    OutputOf(usize),
}

#[derive(Debug)]
enum Waiting {
    Item(usize),
    Turn(TurnEvent),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The turn has not started yet.
    Silent,
    Started,
    /// The end of the turn has been emitted; later events are still accepted.
    Ended,
    /// The limit is reached; nothing more is accepted.
    Full,
}

impl UpsertProcessor {
    pub fn new(config: UpsertConfig, session_id: SessionId, turn_id: TurnId) -> Self {
        Self {
            config,
            provider_id: session_id.cli_type().as_str().into(),
            session_id,
            turn_id,
            items: Items::default(),
            released: ReleasedIds::default(),
            roles: HashMap::new(),
            calls: HashMap::new(),
            parts: HashMap::new(),
            open_texts: HashMap::new(),
            settled: VecDeque::new(),
            waiting: Vec::new(),
            next_due: NEVER,
            open_items: 0,
            received_bytes: 0,
            phase: Phase::Silent,
        }
    }

    /// Processes one event. Never fails: the crate's documentation lists the outcome of every odd event.
    pub fn push(&mut self, event: StreamEvent, now: Moment) {
        if self.phase == Phase::Full {
            return;
        }
        self.received_bytes = self.received_bytes.saturating_add(bytes_of(&event.payload));
        if self.received_bytes > self.config.turn_bytes_max {
            let limit_mib = self.config.turn_bytes_max / (1024 * 1024);
            let message =
                format!("The agent sent more than {limit_mib} MiB in one turn and was stopped. The rest is not shown.");
            self.abort(ErrorDetail::new(ErrorCode::AgentProtocolError, message), now);
            self.phase = Phase::Full;
            return;
        }
        self.apply(event, now);
    }

    /// The emissions that are due, in order. Everything that arrived for one item since the last call is one emission.
    pub fn take(&mut self, now: Moment) -> Vec<Emission> {
        if now.elapsed < self.next_due || self.waiting.is_empty() {
            return Vec::new();
        }
        let Self { items, waiting, next_due, .. } = self;
        let is_forgotten = |item: &Item| item.state == State::Cancelled && !item.batch.shown;
        let is_due = |item: &Item| item.batch.due_at <= now.elapsed && !is_forgotten(item);
        // An item takes its place in the transcript with its first emission, so that of a later item takes the
        // unseen ones before it along.
        let newcomer = waiting.iter().rposition(|waiting| match waiting {
            Waiting::Item(slot) => !items[*slot].batch.shown && is_due(&items[*slot]),
            Waiting::Turn(_) => false,
        });
        // One is the rule; a Vec would start with room for four.
        let mut due = Vec::with_capacity(1);
        let mut position = 0;
        *next_due = NEVER;
        waiting.retain(|waiting| {
            let carried = newcomer.is_some_and(|newcomer| position < newcomer);
            position += 1;
            let slot = match waiting {
                Waiting::Item(slot) => *slot,
                Waiting::Turn(event) => {
                    due.push(Emission::Turn(event.clone()));
                    return false;
                }
            };
            let item = &mut items[slot];
            if is_forgotten(item) {
                item.batch.queued = false;
                return false;
            }
            if is_due(item) || (carried && !item.batch.shown) {
                due.push(Emission::Item(item.to_update(now.wall)));
                item.batch.sent(item.growing_bytes(), now.elapsed);
                return false;
            }
            *next_due = (*next_due).min(item.batch.due_at);
            true
        });
        due
    }

    /// Drops the content of items that were settled and taken, but of the last `keep` of them: whoever took them holds it.
    /// Later changes of the others are ignored; text that continues one of them begins a new item, as after any end.
    pub fn release_settled(&mut self, keep: usize) {
        while self.settled.len() > keep
            && let Some(slot) = self.settled.front().copied()
        {
            if self.items.get(slot).is_some_and(|item| item.batch.queued) {
                return;
            }
            self.settled.pop_front();
            if let Some(item) = self.items.remove(slot) {
                self.forget(slot, &item);
            }
        }
    }

    fn forget(&mut self, slot: usize, item: &Item) {
        self.released.insert(item);
        for id in &item.source_ids {
            if matches!(self.roles.get(id), Some(Role::Item(known) | Role::OutputOf(known)) if *known == slot) {
                self.roles.remove(id);
            }
        }
        if let Content::Tool(call) = &item.content
            && self.calls.get(&call.call_id) == Some(&slot)
        {
            self.calls.remove(&call.call_id);
        }
        let held = item.weight_bytes() + ITEM_BYTES + EVENT_BYTES;
        self.received_bytes = self.received_bytes.saturating_sub(held);
    }

    /// The `elapsed` time at which [`UpsertProcessor::take`] should be called; `None` if nothing is waiting.
    pub fn deadline(&self) -> Option<Duration> {
        (self.next_due != NEVER).then_some(self.next_due)
    }

    /// The source is gone: open items are emitted with status `error` and what was received, then the turn's error.
    /// After the end of the turn only late items are settled.
    pub fn abort(&mut self, error: ErrorDetail, now: Moment) {
        self.fail_turn(error, now.wall, now);
    }

    /// The turn has ended, every item is settled and everything has been taken. Late events may still be pushed.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Ended | Phase::Full) && self.open_items == 0 && self.waiting.is_empty()
    }

    /// The turn has exceeded its limit and was ended.
    pub fn is_full(&self) -> bool {
        self.phase == Phase::Full
    }

    /// Adds an item and returns its place.
    pub(crate) fn add(&mut self, item: Item) -> usize {
        // Also those that nobody started: each stray delta can make one.
        self.received_bytes = self.received_bytes.saturating_add(ITEM_BYTES);
        self.open_items += 1;
        self.items.push(item)
    }

    /// Records that an item has changed.
    pub(crate) fn changed(&mut self, slot: usize, change: Change, now: Moment) {
        let item = &mut self.items[slot];
        let growth = item.tool_mut().map_or(0, ToolCall::take_growth);
        self.received_bytes = self.received_bytes.saturating_add(growth);
        let bytes = item.growing_bytes();
        item.batch.note(&self.config.pacing, change, bytes, now.elapsed);
        if self.phase == Phase::Ended && self.config.pacing == Pacing::WholeTurn && !item.is_open() {
            item.batch.due_at = Duration::ZERO;
        }
        self.next_due = self.next_due.min(item.batch.due_at);
        if !item.batch.queued {
            item.batch.queued = true;
            self.waiting.push(Waiting::Item(slot));
        }
    }

    /// Ends an open item, or changes the end of a settled one.
    pub(crate) fn settle(&mut self, slot: usize, state: State, now: Moment) {
        let item = &mut self.items[slot];
        let change = if item.is_open() { Change::Settled } else { Change::Progress };
        if item.is_open() {
            self.settled.push_back(slot);
            self.open_items -= 1;
            if self.open_texts.get(&item.parent) == Some(&slot) {
                self.open_texts.remove(&item.parent);
            }
        }
        item.state = state;
        if let Some(text) = item.text_mut() {
            text.shrink_to_fit();
        }
        self.changed(slot, change, now);
    }

    /// Queues a turn event. The end of the turn does not wait, and nothing queued before it may come after it.
    pub(crate) fn queue_turn_event(&mut self, event: TurnEvent) {
        if event.is_end() {
            for waiting in &self.waiting {
                if let Waiting::Item(slot) = waiting {
                    self.items[*slot].batch.due_at = Duration::ZERO;
                }
            }
        }
        self.waiting.push(Waiting::Turn(event));
        self.next_due = Duration::ZERO;
    }
}

/// The size of an event itself; items and details of tool calls are counted where they are stored.
fn bytes_of(payload: &StreamPayload) -> usize {
    use protocol::FinalItem;
    let text_bytes = match payload {
        // By far the most, and they leave nothing but their text.
        StreamPayload::ItemDelta(delta) => return delta.delta_content.len(),
        StreamPayload::ItemStart(start) => start.initial_content.as_ref().map_or(0, String::len),
        StreamPayload::ItemDone(done) => match &done.final_item {
            FinalItem::Message { content, .. } | FinalItem::Reasoning { content, .. } => content.len(),
            FinalItem::FunctionCallOutput { output, .. } => output.len(),
            FinalItem::FunctionCall { .. } => 0,
        },
        StreamPayload::ItemError(failed) => failed.error.message.len(),
        _ => 0,
    };
    EVENT_BYTES + text_bytes
}
