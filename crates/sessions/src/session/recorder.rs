//! What of a session is not in the journal yet, and who waits until it is.
//!
//! Comes in: items, turns and facts that changed. Goes out: batches for the journal, one at a time, on a tick that all
//! sessions share; and deliveries to windows, in order. A delivery that confirms something (a message, the end of a turn)
//! waits until that is on the disk, and what comes after it waits behind it. If the disk fails, what changed stays here,
//! is delivered as not recorded, and is tried again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use indexmap::IndexMap;
use journal::{Batch, ItemChange, Journal, JournalError, SessionHead, TurnMark};
use protocol::{ItemId, SessionFacts, TurnId};
use tokio::sync::oneshot;
use tokio::time::Instant;
use upserts::Text;

use super::command::OpenCursor;
use crate::item::ItemCell;
use crate::transcript::Transcript;

/// What changes within one tick is recorded together. All sessions tick at the same moments, so that their batches share
/// a commit.
const TICK: Duration = Duration::from_millis(25);
/// How often a disk that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// How long a delivery waits for a disk that does not answer. Then it goes out as not recorded.
const HOLD_MAX: Duration = Duration::from_secs(5);
/// The start of a turn waits so long for the message that began it.
const MESSAGE_WAIT: Duration = Duration::from_millis(50);
/// Beyond so much that is not recorded the agent is not read any more.
const UNRECORDED_BYTES_MAX: usize = 64 * 1024 * 1024;

static FIRST_TICK: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);

fn next_tick() -> Instant {
    let since_tick = FIRST_TICK.elapsed().as_nanos() % TICK.as_nanos();
    Instant::now() + TICK.saturating_sub(Duration::from_nanos(u64::try_from(since_tick).unwrap_or(0)))
}

/// `D` is what goes to windows.
pub(super) struct Recorder<D> {
    journal: Arc<dyn Journal>,
    place: Place,
    changed: Changed,
    /// The text of open items that the journal has.
    texts: HashMap<ItemId, Text>,
    flight: Option<Flight>,
    write: WriteState,
    gate: Gate<D>,
}

/// Where the session stands in the journal.
#[derive(Debug)]
enum Place {
    /// This server has taken it over.
    Taken(SessionHead),
    /// It could not be taken over yet; this is how it will be.
    Expected(SessionHead),
}

#[derive(Debug, Default)]
struct Changed {
    items: IndexMap<ItemId, ChangedItem>,
    /// With the number of the first change.
    turns: IndexMap<TurnId, u64>,
    marks: Vec<TurnMark>,
    facts: bool,
    completes: bool,
}

#[derive(Clone, Debug)]
struct ChangedItem {
    cell: Arc<ItemCell>,
    first: u64,
}

#[derive(Debug)]
enum WriteState {
    Working,
    /// The next batch is due then.
    Due(Instant),
    /// The last one failed.
    Failing {
        retry_at: Instant,
    },
    /// The last one failed, and it is being tried again.
    Retrying,
}

/// A batch that is being recorded.
#[derive(Debug)]
struct Flight {
    answer: oneshot::Receiver<Result<(), JournalError>>,
    sent_at: Instant,
    /// With the text that the journal has afterwards; none of a settled item.
    items: Vec<(ItemId, ChangedItem, Option<Text>)>,
    turns: Vec<(TurnId, u64)>,
    marks: Vec<TurnMark>,
    facts: bool,
    completes: bool,
    /// All changes up to this number are in it, or were recorded before.
    through: u64,
}

/// Whether deliveries wait.
enum Gate<D> {
    Open,
    Closed {
        held: VecDeque<Held<D>>,
        /// When the batch that is waited for is sent at the latest; none once it was.
        commit_at: Option<Instant>,
        give_up_at: Instant,
    },
}

struct Held<D> {
    delivery: D,
    /// The number that has to be on the disk first.
    needs: Option<u64>,
}

/// When something that is confirmed is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confirm {
    /// It needs no confirmation.
    No,
    /// More that belongs to it is about to come.
    Soon,
    Now,
}

/// What [`Recorder::write_due`] found.
pub(super) enum Due<D> {
    Nothing,
    Released(Released<D>),
    /// The session has to be taken over first. What waits goes out as not recorded.
    TakeOver(Released<D>),
}

/// Deliveries that may go out, and whether they were recorded.
pub(super) struct Released<D> {
    pub(super) deliveries: Vec<D>,
    pub(super) recorded: bool,
}

impl<D> Recorder<D> {
    /// `is_taken`: this server has taken the session over.
    pub(super) fn new(journal: Arc<dyn Journal>, head: SessionHead, is_taken: bool) -> Self {
        let place = if is_taken { Place::Taken(head) } else { Place::Expected(head) };
        Self {
            journal,
            place,
            changed: Changed::default(),
            texts: HashMap::new(),
            flight: None,
            write: WriteState::Working,
            gate: Gate::Open,
        }
    }

    pub(super) fn head(&self) -> &SessionHead {
        match &self.place {
            Place::Taken(head) | Place::Expected(head) => head,
        }
    }

    /// The epoch of a cursor. Until the session is taken over its numbers may be given again, so none of them is continued.
    pub(super) fn epoch(&self) -> u64 {
        if self.is_taken() { self.head().epoch } else { 0 }
    }

    /// It has to be taken over before anything can be recorded.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self.place, Place::Taken(_))
    }

    pub(super) fn taken_over(&mut self, taken: Result<SessionHead, JournalError>) {
        match taken {
            Ok(head) if head.seq == self.head().seq => {
                self.place = Place::Taken(head);
                self.write = WriteState::Due(Instant::now());
            }
            Ok(head) => {
                tracing::error!(recorded = head.seq, "the journal has more of the session than was read");
                self.failed();
            }
            Err(_) => self.failed(),
        }
    }

    /// Replaces what is known of the session's place, when its history was read.
    pub(super) fn set_head(&mut self, head: SessionHead, is_taken: bool) {
        self.place = if is_taken { Place::Taken(head) } else { Place::Expected(head) };
    }

    pub(super) fn item_changed(&mut self, cell: &Arc<ItemCell>, seq: u64) {
        self.changed
            .items
            .entry(cell.id().clone())
            .or_insert_with(|| ChangedItem { cell: Arc::clone(cell), first: seq });
        self.note_change();
    }

    pub(super) fn turn_changed(&mut self, turn: &TurnId, seq: u64) {
        self.changed.turns.entry(turn.clone()).or_insert(seq);
        self.note_change();
    }

    pub(super) fn turn_marked(&mut self, mark: TurnMark) {
        self.changed.marks.push(mark);
        self.note_change();
    }

    pub(super) fn facts_changed(&mut self, changed: &SessionFacts) {
        if !lasting(changed).is_empty() {
            self.changed.facts = true;
            self.note_change();
        }
    }

    /// The agent's own history is known from its beginning.
    pub(super) fn complete(&mut self) {
        if !self.head().is_complete && !std::mem::replace(&mut self.changed.completes, true) {
            self.note_change();
        }
    }

    fn note_change(&mut self) {
        if matches!(self.write, WriteState::Working) {
            self.write = WriteState::Due(next_tick());
        }
    }

    pub(super) fn is_item_recorded(&self, id: &ItemId) -> bool {
        let is_flying = |flight: &Flight| flight.items.iter().any(|(item, ..)| item == id);
        !self.changed.items.contains_key(id) && !self.flight.as_ref().is_some_and(is_flying)
    }

    pub(super) fn is_turn_recorded(&self, id: &TurnId) -> bool {
        let is_flying = |flight: &Flight| flight.turns.iter().any(|(turn, _)| turn == id);
        !self.changed.turns.contains_key(id) && !self.flight.as_ref().is_some_and(is_flying)
    }

    /// All that changed is in the journal.
    pub(super) fn is_clean(&self) -> bool {
        self.flight.is_none() && self.changed.is_empty()
    }

    /// All that changed is in the journal, or cannot be written now.
    pub(super) fn is_settled(&self) -> bool {
        self.is_clean() || self.is_failing() && !self.is_holding()
    }

    /// Whether the agent may be read: nothing waits for the disk, and not too much is unrecorded.
    pub(super) fn takes_events(&self) -> bool {
        let is_waiting = matches!(&self.gate, Gate::Closed { commit_at: None, .. });
        let is_full = self.is_failing() && self.unrecorded_bytes() > UNRECORDED_BYTES_MAX;
        !is_waiting && !is_full
    }

    /// The last batch failed, or the disk does not answer.
    fn is_failing(&self) -> bool {
        let hangs = self.flight.as_ref().is_some_and(|flight| flight.sent_at.elapsed() > HOLD_MAX);
        hangs || matches!(self.write, WriteState::Failing { .. } | WriteState::Retrying)
    }

    fn unrecorded_bytes(&self) -> usize {
        let bytes = |item: &ChangedItem| {
            let known = self.texts.get(item.cell.id()).map_or(0, Text::len);
            item.cell.weight_bytes().saturating_sub(known)
        };
        let flying = self.flight.iter().flat_map(|flight| flight.items.iter().map(|(_, item, _)| item));
        self.changed.items.values().chain(flying).map(bytes).sum()
    }

    /// When [`Self::write_due`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let write_at = match (&self.write, &self.flight) {
            (_, Some(_)) | (WriteState::Working | WriteState::Retrying, None) => None,
            (WriteState::Due(at) | WriteState::Failing { retry_at: at }, None) => Some(*at),
        };
        let gate_at = match &self.gate {
            Gate::Open => None,
            Gate::Closed { commit_at: Some(at), give_up_at, .. } if self.flight.is_none() => {
                Some((*at).min(*give_up_at))
            }
            Gate::Closed { give_up_at, .. } => Some(*give_up_at),
        };
        write_at.into_iter().chain(gate_at).min()
    }

    /// Sends the next batch if one is due.
    pub(super) fn write_due(&mut self, transcript: &Transcript, facts: &SessionFacts) -> Due<D> {
        let now = Instant::now();
        if let Some(released) = self.give_up(now) {
            return Due::Released(released);
        }
        if self.flight.is_none() && matches!(self.write, WriteState::Retrying) {
            return match &self.gate {
                Gate::Closed { commit_at: Some(at), .. } if *at <= now => {
                    Due::Released(self.release(transcript.seq(), false))
                }
                _ => Due::Nothing,
            };
        }
        if self.flight.is_none()
            && let Gate::Closed { commit_at: at @ Some(_), .. } = &mut self.gate
            && at.is_some_and(|at| at <= now)
        {
            *at = None;
            self.write = if self.is_failing() { WriteState::Failing { retry_at: now } } else { WriteState::Due(now) };
        }
        let is_due = match &self.write {
            WriteState::Working | WriteState::Retrying => false,
            WriteState::Due(at) | WriteState::Failing { retry_at: at } => *at <= now,
        };
        if !is_due || self.flight.is_some() {
            return Due::Nothing;
        }
        if self.changed.is_empty() {
            // A batch on a tick has brought it already.
            self.write = WriteState::Working;
            return Due::Released(self.release(transcript.seq(), true));
        }
        if !self.is_taken() {
            // One at a time: the answer is the next step.
            self.write = WriteState::Retrying;
            return Due::TakeOver(self.release(transcript.seq(), false));
        }
        self.write(transcript, facts);
        Due::Nothing
    }

    /// Sends all that changed, unless a batch is under way.
    pub(super) fn write_now(&mut self, transcript: &Transcript, facts: &SessionFacts) {
        if self.flight.is_none() {
            self.write(transcript, facts);
        }
    }

    fn write(&mut self, transcript: &Transcript, facts: &SessionFacts) {
        let confirmed = matches!(self.gate, Gate::Closed { .. });
        let Changed { items, turns, marks, facts: facts_changed, completes } = std::mem::take(&mut self.changed);
        let (mut changes, mut flying) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
        for (id, item) in items {
            let update = item.cell.update();
            let last = item.cell.seq();
            let text = update.body.text().cloned();
            let is_settled = update.status.is_final();
            let known = self.texts.get(&id).filter(|_| !is_settled);
            let text_from = match (known, &text) {
                (Some(known), Some(text)) if text.continues(known) => known.len(),
                _ => 0,
            };
            changes.push(ItemChange {
                upsert: update.to_upsert_from(text_from),
                text_from,
                position: item.cell.position(),
                first: item.first,
                last,
            });
            flying.push((id, item, (!is_settled).then(|| text.unwrap_or_default())));
        }
        let turn_changes = turns.iter().filter_map(|(id, first)| transcript.turn_change(id, *first)).collect();
        let batch = Batch {
            session: self.head().key,
            confirmed,
            items: changes,
            turns: turn_changes,
            marks: marks.clone(),
            facts: facts_changed.then(|| lasting(facts)),
            completes,
        };
        let answer = self.journal.append(batch);
        self.write = if self.is_failing() { WriteState::Retrying } else { WriteState::Working };
        self.flight = Some(Flight {
            answer,
            sent_at: Instant::now(),
            items: flying,
            turns: turns.into_iter().collect(),
            marks,
            facts: facts_changed,
            completes,
            through: transcript.seq(),
        });
    }

    /// Resolves when the batch under way is recorded, or could not be.
    pub(super) async fn answered(&mut self) -> Result<(), JournalError> {
        match &mut self.flight {
            Some(flight) => (&mut flight.answer).await.unwrap_or(Err(JournalError::Closed)),
            None => std::future::pending().await,
        }
    }

    /// The batch has ended. Gives what may be delivered now.
    pub(super) fn finished(&mut self, result: &Result<(), JournalError>) -> Released<D> {
        let Some(flight) = self.flight.take() else { return Released { deliveries: Vec::new(), recorded: true } };
        let through = flight.through;
        match result {
            Ok(()) => self.recorded(flight),
            Err(_) => self.put_back(flight),
        }
        self.release(through, result.is_ok())
    }

    fn recorded(&mut self, flight: Flight) {
        for (id, _, text) in flight.items {
            match text {
                Some(text) => drop(self.texts.insert(id, text)),
                None => drop(self.texts.remove(&id)),
            }
        }
        if flight.completes
            && let Place::Taken(head) = &mut self.place
        {
            head.is_complete = true;
        }
        if !matches!(self.write, WriteState::Due(_)) {
            let is_changed = !self.changed.is_empty();
            self.write = if is_changed { WriteState::Due(next_tick()) } else { WriteState::Working };
        }
    }

    /// What could not be recorded is tried again, with what changed since.
    fn put_back(&mut self, flight: Flight) {
        for (id, item, _) in flight.items {
            let entry = self.changed.items.entry(id).or_insert_with(|| item.clone());
            entry.first = entry.first.min(item.first);
        }
        for (id, first) in flight.turns {
            let entry = self.changed.turns.entry(id).or_insert(first);
            *entry = (*entry).min(first);
        }
        // Whatever the journal has of them: the next batch brings their whole text.
        self.texts.clear();
        self.changed.marks.splice(0..0, flight.marks);
        self.changed.facts |= flight.facts;
        self.changed.completes |= flight.completes;
        self.failed();
    }

    fn failed(&mut self) {
        self.write = WriteState::Failing { retry_at: Instant::now() + RETRY };
    }

    /// The number behind which a window is sent what it missed, if what it has seen is known here.
    pub(super) fn since(&self, cursor: &OpenCursor, seq: u64) -> Option<u64> {
        let head = self.head();
        if cursor.journal_id.as_deref().is_some_and(|id| id != self.journal.id()) {
            return None;
        }
        let end = match cursor.epoch {
            None => seq,
            Some(epoch) if epoch == head.epoch => seq,
            Some(epoch) => head.epoch_ends.iter().find(|(earlier, _)| *earlier == epoch)?.1,
        };
        (cursor.seq <= end).then_some(cursor.seq)
    }

    /// Takes a delivery. Gives it back if nothing has to be waited for.
    pub(super) fn deliver(&mut self, delivery: D, seq: u64, confirm: Confirm) -> Option<D> {
        let needs = (confirm != Confirm::No).then_some(seq);
        let now = Instant::now();
        match &mut self.gate {
            Gate::Open if confirm == Confirm::No => return Some(delivery),
            Gate::Open => {
                let commit_at = Some(if confirm == Confirm::Soon { now + MESSAGE_WAIT } else { now });
                let held = VecDeque::from([Held { delivery, needs }]);
                self.gate = Gate::Closed { held, commit_at, give_up_at: now + HOLD_MAX };
            }
            Gate::Closed { held, commit_at, .. } => {
                held.push_back(Held { delivery, needs });
                if confirm == Confirm::Now
                    && let Some(at) = commit_at
                {
                    *at = now;
                }
            }
        }
        None
    }

    pub(super) fn is_holding(&self) -> bool {
        matches!(self.gate, Gate::Closed { .. })
    }

    /// Everything up to this number was recorded, or failed to be.
    fn release(&mut self, through: u64, recorded: bool) -> Released<D> {
        let now = Instant::now();
        let mut deliveries = Vec::new();
        if let Gate::Closed { held, commit_at, give_up_at } = &mut self.gate
            && commit_at.is_none_or(|at| at <= now)
        {
            while held.front().is_some_and(|first| first.needs.is_none_or(|needs| needs <= through)) {
                deliveries.extend(held.pop_front().map(|first| first.delivery));
            }
            if held.is_empty() {
                self.gate = Gate::Open;
            } else {
                (*commit_at, *give_up_at) = (Some(now), now + HOLD_MAX);
            }
        }
        Released { deliveries, recorded }
    }

    /// The disk does not answer: what waits for it goes out as not recorded.
    fn give_up(&mut self, now: Instant) -> Option<Released<D>> {
        let Gate::Closed { give_up_at, .. } = &self.gate else { return None };
        if *give_up_at > now {
            return None;
        }
        let Gate::Closed { held, .. } = std::mem::replace(&mut self.gate, Gate::Open) else { return None };
        Some(Released { deliveries: held.into_iter().map(|held| held.delivery).collect(), recorded: false })
    }

    /// All that waits, for the end of the session's task.
    pub(super) fn take_held(&mut self) -> Vec<D> {
        match std::mem::replace(&mut self.gate, Gate::Open) {
            Gate::Open => Vec::new(),
            Gate::Closed { held, .. } => held.into_iter().map(|held| held.delivery).collect(),
        }
    }
}

impl Changed {
    fn is_empty(&self) -> bool {
        self.items.is_empty() && self.turns.is_empty() && self.marks.is_empty() && !self.facts && !self.completes
    }
}

/// What of the facts is true tomorrow too.
fn lasting(facts: &SessionFacts) -> SessionFacts {
    SessionFacts { silent_ms: None, activity: None, branch: None, ..facts.clone() }
}

impl<D> std::fmt::Debug for Recorder<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("place", &self.place).finish_non_exhaustive()
    }
}
