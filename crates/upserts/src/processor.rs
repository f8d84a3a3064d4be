//! The processor: what it holds, how time and order decide what goes out. What each event means is in `events`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use protocol::{CallId, ErrorCode, ErrorDetail, ItemId, SessionId, StreamEvent, StreamPayload, TurnEvent, TurnId};

use crate::batch::{Change, NEVER};
use crate::config::{Pacing, UpsertConfig};
use crate::item::{Item, State};
use crate::tool::ToolCall;
use crate::update::{Emission, Moment};

/// What an item is charged against the turn's limit besides its text.
const ITEM_BYTES: usize = 1024;
/// What an event is charged that may leave an id behind.
const EVENT_BYTES: usize = 512;

/// Turns the stream events of one turn into upserts and turn events.
#[derive(Debug)]
pub struct UpsertProcessor {
    pub(crate) config: UpsertConfig,
    pub(crate) session_id: SessionId,
    pub(crate) turn_id: TurnId,
    /// Who thinks, until a thought says so itself.
    pub(crate) provider_id: Arc<str>,
    /// In order of beginning. An item is known by its place here.
    pub(crate) items: Vec<Item>,
    /// What the source's item ids stand for now.
    pub(crate) roles: HashMap<ItemId, Role>,
    pub(crate) calls: HashMap<CallId, usize>,
    /// How many items one source id was split into, where it was.
    pub(crate) parts: HashMap<ItemId, usize>,
    /// The one message or thought that may be open under each parent.
    pub(crate) open_texts: HashMap<Option<ItemId>, usize>,
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
    /// Nothing said of the turn yet.
    Silent,
    Started,
    /// The turn's end has been said; what comes now is late, and welcome.
    Ended,
    /// The limit is reached; nothing more is taken in.
    Full,
}

impl UpsertProcessor {
    pub fn new(config: UpsertConfig, session_id: SessionId, turn_id: TurnId) -> Self {
        Self {
            config,
            provider_id: session_id.cli_type().as_str().into(),
            session_id,
            turn_id,
            items: Vec::new(),
            roles: HashMap::new(),
            calls: HashMap::new(),
            parts: HashMap::new(),
            open_texts: HashMap::new(),
            waiting: Vec::new(),
            next_due: NEVER,
            open_items: 0,
            received_bytes: 0,
            phase: Phase::Silent,
        }
    }

    /// Takes in one event. Never fails: what each odd event leads to is written in the crate's documentation.
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

    /// What is due now, in order. Whatever arrived since the last call for one item goes out together.
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

    /// The `elapsed` time at which [`UpsertProcessor::take`] wants to be called; none if nothing waits for time.
    pub fn deadline(&self) -> Option<Duration> {
        (self.next_due != NEVER).then_some(self.next_due)
    }

    /// The source is gone: what is open goes out with status `error` and what was received, then the turn's error. After the
    /// end of the turn only late items are left to settle.
    pub fn abort(&mut self, error: ErrorDetail, now: Moment) {
        self.fail_turn(error, now.wall, now);
    }

    /// The turn has ended, every item is settled and everything has been taken. Late events may still be pushed.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Ended | Phase::Full) && self.open_items == 0 && self.waiting.is_empty()
    }

    /// The turn has brought more than it may, and has ended for it.
    pub fn is_full(&self) -> bool {
        self.phase == Phase::Full
    }

    /// Adds an item and returns its place.
    pub(crate) fn add(&mut self, item: Item) -> usize {
        let slot = self.items.len();
        // Also those that nobody started: each stray delta can make one.
        self.received_bytes = self.received_bytes.saturating_add(ITEM_BYTES);
        self.items.push(item);
        self.open_items += 1;
        slot
    }

    /// Notes that an item has something to say.
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

    /// Ends an open item, or gives an ended one another end.
    pub(crate) fn settle(&mut self, slot: usize, state: State, now: Moment) {
        let item = &mut self.items[slot];
        let change = if item.is_open() { Change::Settled } else { Change::Progress };
        if item.is_open() {
            self.open_items -= 1;
            if self.open_texts.get(&item.parent) == Some(&slot) {
                self.open_texts.remove(&item.parent);
            }
        }
        item.state = state;
        if let Some(text) = item.text_mut() {
            text.release_spare_room();
        }
        self.changed(slot, change, now);
    }

    /// Queues a turn event. The turn's end waits for nothing, and nothing said before it may come after it.
    pub(crate) fn say(&mut self, event: TurnEvent) {
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

/// What an event brings by itself; items and the facts of tool calls are charged where they are kept.
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
