//! The items of a session that are in memory: those that may still change, and the newest ones.
//!
//! Everything else is in the journal. From `edge` on all items are here; in front of it only those that may still change.
//! What is recorded and old is evicted, so a session takes the same memory however long it is.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use journal::{POSITION_GAP, Page, SessionHead, StoredItem, StoredTurn, TurnChange, TurnOrigin};
use protocol::{ItemId, SessionId, TurnEvent, TurnId, TurnRecord, TurnRecordStatus, TurnStatus};
use upserts::ItemUpdate;

use crate::item::{ItemCell, RenderingCache};

/// Settled items of the present turn that may still change: a fold holds as many.
pub(crate) const SETTLED_KEPT: usize = 64;
/// The same of each earlier turn that a fold holds.
pub(crate) const SETTLED_KEPT_EARLIER: usize = 4;
/// Turns that a fold holds.
pub(crate) const TURNS_KEPT: usize = 8;
/// When more items than this are here, all but the newest half are evicted.
const ITEMS_MAX: usize = 240;
/// The same by weight. An item that is open, or not recorded yet, stays in any case.
const BYTES_MAX: usize = 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// In display order.
    cells: Vec<Arc<ItemCell>>,
    by_id: HashMap<ItemId, Arc<ItemCell>>,
    /// In display order: those of the items here, and those that run.
    turns: Vec<Turn>,
    edge: Edge,
    /// The items that were settled last, of each of the last turns.
    settled: VecDeque<(TurnId, VecDeque<ItemId>)>,
    /// The newest number among what was evicted, or put in front of what is here.
    evicted_seq: u64,
    /// The lowest and the highest position in use.
    positions: (i64, i64),
    seq: u64,
    /// Its history was read, or it has none.
    is_ready: bool,
    cache: Arc<RenderingCache>,
}

/// Where the items in memory begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Edge {
    /// All items are here.
    #[default]
    Start,
    /// In front of this position there are more, in the journal.
    At(i64),
}

#[derive(Debug)]
struct Turn {
    record: TurnRecord,
    origin: TurnOrigin,
    position: i64,
    /// Its last change.
    seq: u64,
}

/// Items that are here, and where the journal has those in front of them.
#[derive(Debug, Default)]
pub(crate) struct Span {
    pub(crate) cells: Vec<Arc<ItemCell>>,
    /// Fewer than wanted are here: the others are to be read in front of this position.
    pub(crate) read_before: Option<i64>,
    pub(crate) more: bool,
}

/// A turn of the agent's own history, with its items in their final states.
#[derive(Debug)]
pub(crate) struct ForeignTurn {
    pub(crate) record: Option<TurnRecord>,
    pub(crate) items: Vec<ItemUpdate>,
}

impl Transcript {
    /// Continues where the journal ends.
    pub(crate) fn after(head: &SessionHead) -> Self {
        let edge = if head.items == 0 { Edge::Start } else { Edge::At(i64::MAX) };
        Self { seq: head.seq, evicted_seq: head.seq, positions: (0, head.position), edge, ..Self::default() }
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn last_position(&self) -> i64 {
        self.positions.1
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready
    }

    pub(crate) fn set_ready(&mut self) {
        self.is_ready = true;
    }

    /// The newest page of the journal.
    pub(crate) fn fill(&mut self, session: &SessionId, page: Page) {
        self.edge = match page.items.first() {
            Some(first) if page.more => Edge::At(first.position),
            _ => Edge::Start,
        };
        self.evicted_seq = if page.more { self.seq } else { 0 };
        for item in page.items {
            let cell = self.stored_cell(session, item);
            self.by_id.insert(cell.id().clone(), Arc::clone(&cell));
            self.cells.push(cell);
        }
        self.turns = page.turns.into_iter().map(Turn::from).collect();
        self.is_ready = true;
    }

    fn stored_cell(&self, session: &SessionId, item: StoredItem) -> Arc<ItemCell> {
        let StoredItem { upsert, position, last, .. } = item;
        ItemCell::new(ItemUpdate::from_upsert(upsert, session.clone()), last, position, &self.cache)
    }

    /// The turns that run, and the items that are still open.
    pub(crate) fn unfinished(&self) -> (Option<TurnId>, Vec<Arc<ItemCell>>) {
        let turn = self.turns.iter().rev().find(|turn| turn.record.status == TurnRecordStatus::Running);
        let open = self.cells.iter().filter(|cell| !cell.is_final());
        (turn.map(|turn| turn.record.turn_id.clone()), open.cloned().collect())
    }

    /// Nobody watches: what was rendered is made again when someone does.
    pub(crate) fn forget_renderings(&self) {
        for cell in &self.cells {
            cell.forget_rendering();
        }
    }

    fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    fn next_position(&mut self) -> i64 {
        self.positions.1 += POSITION_GAP;
        self.positions.1
    }

    /// The newest state of an item, in its place.
    pub(crate) fn upsert(&mut self, update: ItemUpdate) -> (u64, Arc<ItemCell>) {
        let seq = self.next_seq();
        let is_settled = update.status.is_final();
        let cell = match self.by_id.get(&update.item_id) {
            Some(cell) => {
                let cell = Arc::clone(cell);
                cell.replace(update, seq);
                cell
            }
            None => {
                let position = self.next_position();
                let cell = ItemCell::new(update, seq, position, &self.cache);
                self.by_id.insert(cell.id().clone(), Arc::clone(&cell));
                self.cells.push(Arc::clone(&cell));
                cell
            }
        };
        if is_settled {
            self.note_settled(&cell);
        }
        (seq, cell)
    }

    fn note_settled(&mut self, cell: &Arc<ItemCell>) {
        let turn = cell.turn_id();
        let is_last = self.settled.back().is_some_and(|(last, _)| *last == turn);
        let Some((_, items)) = self.settled.iter_mut().rev().find(|(known, _)| *known == turn) else {
            if let Some((_, items)) = self.settled.back_mut() {
                items.drain(..items.len().saturating_sub(SETTLED_KEPT_EARLIER));
            }
            self.settled.push_back((turn, VecDeque::from([cell.id().clone()])));
            if self.settled.len() > TURNS_KEPT {
                self.settled.pop_front();
            }
            return;
        };
        if !items.contains(cell.id()) {
            items.push_back(cell.id().clone());
        }
        while items.len() > if is_last { SETTLED_KEPT } else { SETTLED_KEPT_EARLIER } {
            items.pop_front();
        }
    }

    /// What was read of an earlier server and was never settled there. It is known here from now on.
    pub(crate) fn adopt(&mut self, session: &SessionId, open: Page) {
        for item in open.items {
            if !self.by_id.contains_key(&item.upsert.item_id) {
                let cell = self.stored_cell(session, item);
                self.place(cell);
            }
        }
        for turn in open.turns {
            if !self.turns.iter().any(|known| known.record.turn_id == turn.record.turn_id) {
                self.turns.push(turn.into());
            }
        }
        self.turns.sort_by_key(|turn| turn.position);
    }

    fn place(&mut self, cell: Arc<ItemCell>) {
        let place = self.cells.partition_point(|other| other.position() < cell.position());
        self.by_id.insert(cell.id().clone(), Arc::clone(&cell));
        self.cells.insert(place, cell);
    }

    pub(crate) fn turn(&mut self, event: &TurnEvent) -> u64 {
        let seq = self.next_seq();
        match event {
            TurnEvent::TurnStarted { turn_id, model_id, at, .. } => {
                let position = self.next_position();
                let record = TurnRecord {
                    turn_id: turn_id.clone(),
                    status: TurnRecordStatus::Running,
                    started_at: *at,
                    ended_at: None,
                    model_id: (!model_id.is_empty()).then(|| model_id.clone()),
                    usage: None,
                    error_code: None,
                    error_message: None,
                    forgotten: false,
                };
                self.turns.push(Turn { record, origin: TurnOrigin::Live, position, seq });
            }
            TurnEvent::TurnComplete { turn_id, status, usage, at, .. } => {
                self.change_turn(turn_id, seq, |record| {
                    record.status = match status {
                        TurnStatus::Completed => TurnRecordStatus::Completed,
                        TurnStatus::Cancelled => TurnRecordStatus::Cancelled,
                    };
                    record.ended_at = Some(*at);
                    record.usage = *usage;
                });
            }
            TurnEvent::TurnError { turn_id, error_code, error_message, at, .. } => {
                self.change_turn(turn_id, seq, |record| {
                    record.status = TurnRecordStatus::Error;
                    record.ended_at = Some(*at);
                    record.error_code = Some(error_code.clone());
                    record.error_message = Some(error_message.clone());
                });
            }
        }
        seq
    }

    fn change_turn(&mut self, id: &TurnId, seq: u64, change: impl FnOnce(&mut TurnRecord)) {
        if let Some(turn) = self.turns.iter_mut().rev().find(|turn| turn.record.turn_id == *id) {
            change(&mut turn.record);
            turn.seq = seq;
        }
    }

    /// Whether a turn that is here is still remembered by its agent has changed. Gives its number.
    pub(crate) fn mark_forgotten(&mut self, id: &TurnId, forgotten: bool) -> u64 {
        let seq = self.next_seq();
        if !self.has_turn(id) {
            self.evicted_seq = seq;
        }
        self.change_turn(id, seq, |record| record.forgotten = forgotten);
        seq
    }

    /// The turns here that have ended and are not forgotten.
    pub(crate) fn ended_turns(&self) -> Vec<TurnId> {
        let records = self.turns.iter().map(|turn| &turn.record);
        let ended = records.filter(|record| record.status != TurnRecordStatus::Running && !record.forgotten);
        ended.map(|record| record.turn_id.clone()).collect()
    }

    /// A turn as the journal is to record it, its changes numbered from `first` on. None if it is not here.
    pub(crate) fn turn_change(&self, id: &TurnId, first: u64) -> Option<TurnChange> {
        let turn = self.turns.iter().rev().find(|turn| turn.record.turn_id == *id)?;
        let Turn { record, origin, position, seq } = turn;
        Some(TurnChange { record: record.clone(), origin: *origin, position: *position, first, last: *seq })
    }

    /// Turns of the agent's own history that we do not have, behind `after` and in front of all that follows it. Gives
    /// the changed items, and the turns with their numbers.
    pub(crate) fn insert(
        &mut self,
        turns: Vec<ForeignTurn>,
        after: Option<i64>,
        before: Option<i64>,
    ) -> (Vec<Arc<ItemCell>>, Vec<(TurnId, u64)>) {
        let count = turns.iter().map(|turn| turn.items.len() + 1).sum::<usize>();
        let mut positions = self.positions_between(after, before, count);
        let (mut cells, mut records) = (Vec::new(), Vec::new());
        let mut new_turns = Vec::new();
        for ForeignTurn { record, items } in turns {
            let position = positions.next().unwrap_or(self.positions.1);
            if let Some(record) = record.filter(|record| !self.has_turn(&record.turn_id)) {
                let seq = self.next_seq();
                records.push((record.turn_id.clone(), seq));
                new_turns.push(Turn { record, origin: TurnOrigin::Agent, position, seq });
            }
            for update in items {
                let (seq, position) = (self.next_seq(), positions.next().unwrap_or(self.positions.1));
                cells.push(ItemCell::new(update, seq, position, &self.cache));
            }
        }
        if before.is_some() {
            // Not behind all that a window has.
            self.evicted_seq = self.seq;
        }
        let first_new = cells.first().map(|cell| cell.position());
        for cell in &cells {
            // In front of the edge it is in the journal only, once it is recorded.
            if self.is_here(cell.position()) {
                self.by_id.insert(cell.id().clone(), Arc::clone(cell));
            }
        }
        let here: Vec<_> = cells.iter().filter(|cell| self.is_here(cell.position())).cloned().collect();
        if let Some(first_new) = first_new {
            let place = self.cells.partition_point(|cell| cell.position() < first_new);
            self.cells.splice(place..place, here);
        }
        self.turns.append(&mut new_turns);
        self.turns.sort_by_key(|turn| turn.position);
        (cells, records)
    }

    fn is_here(&self, position: i64) -> bool {
        match self.edge {
            Edge::Start => true,
            Edge::At(edge) => position >= edge,
        }
    }

    /// So many positions behind one and in front of another, in order.
    fn positions_between(
        &mut self,
        after: Option<i64>,
        before: Option<i64>,
        count: usize,
    ) -> impl Iterator<Item = i64> + use<> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let (start, step) = match (after, before) {
            (_, None) => {
                let start = after.unwrap_or(0).max(self.positions.1);
                self.positions.1 = start.saturating_add(POSITION_GAP.saturating_mul(count));
                (start, POSITION_GAP)
            }
            (None, Some(before)) => {
                let start = before.saturating_sub(POSITION_GAP.saturating_mul(count + 1));
                self.positions.0 = self.positions.0.min(start);
                (start, POSITION_GAP)
            }
            (Some(after), Some(before)) => (after, ((before - after) / (count + 1)).max(1)),
        };
        (1..=count).map(move |index| start.saturating_add(step.saturating_mul(index)))
    }

    /// In front of all items and turns that were received since the session was opened.
    pub(crate) fn first_position(&self) -> i64 {
        self.positions.0
    }

    pub(crate) fn get(&self, id: &ItemId) -> Option<&Arc<ItemCell>> {
        self.by_id.get(id)
    }

    pub(crate) fn turns(&self) -> Vec<TurnRecord> {
        self.turns.iter().map(|turn| turn.record.clone()).collect()
    }

    /// The turns of these items that are here.
    pub(crate) fn turns_of(&self, cells: &[Arc<ItemCell>]) -> Vec<TurnRecord> {
        let shown: HashSet<TurnId> = cells.iter().map(|cell| cell.turn_id()).collect();
        let turns = self.turns.iter().filter(|turn| shown.contains(&turn.record.turn_id));
        turns.map(|turn| turn.record.clone()).collect()
    }

    fn has_turn(&self, id: &TurnId) -> bool {
        self.turns.iter().any(|turn| turn.record.turn_id == *id)
    }

    /// The turns that changed after a number.
    pub(crate) fn turns_since(&self, seq: u64) -> Vec<TurnRecord> {
        self.turns.iter().filter(|turn| turn.seq > seq).map(|turn| turn.record.clone()).collect()
    }

    /// The newest `limit` items.
    pub(crate) fn newest(&self, limit: usize) -> Span {
        self.span(self.cells.len(), limit)
    }

    /// Up to `limit` items in front of one. None if that one is not here.
    pub(crate) fn before(&self, id: &ItemId, limit: usize) -> Option<Span> {
        let position = self.by_id.get(id)?.position();
        let end = self.cells.partition_point(|cell| cell.position() < position);
        if !self.is_here(position) {
            return Some(Span { read_before: Some(position), more: true, ..Span::default() });
        }
        Some(self.span(end, limit))
    }

    fn span(&self, end: usize, limit: usize) -> Span {
        let start = match self.edge {
            Edge::Start => 0,
            Edge::At(edge) => self.cells.partition_point(|cell| cell.position() < edge).min(end),
        };
        let from = end.saturating_sub(limit).max(start);
        let cells = self.cells[from..end].to_vec();
        let (is_short, is_cut) = (cells.len() < limit, self.edge != Edge::Start);
        let edge = match self.edge {
            Edge::At(edge) if is_short => Some(cells.first().map_or(edge, |cell| cell.position())),
            _ => None,
        };
        Span { more: from > start || is_cut, read_before: edge, cells }
    }

    /// Items that were read from the journal; those that are here too are newer here.
    pub(crate) fn overlay(&self, session: &SessionId, items: Vec<StoredItem>) -> Vec<Arc<ItemCell>> {
        let cell = |item: StoredItem| match self.by_id.get(&item.upsert.item_id) {
            Some(cell) => Arc::clone(cell),
            None => self.stored_cell(session, item),
        };
        items.into_iter().map(cell).collect()
    }

    /// Whether all that changed after this number is here.
    pub(crate) fn covers(&self, seq: u64) -> bool {
        seq >= self.evicted_seq
    }

    /// Everything here that changed after a number.
    pub(crate) fn since(&self, seq: u64) -> Vec<Arc<ItemCell>> {
        self.cells.iter().filter(|cell| cell.seq() > seq).cloned().collect()
    }

    /// Evicts what is recorded, old and settled, when more is here than needed.
    pub(crate) fn evict(&mut self, is_recorded: impl Fn(&ItemId) -> bool, is_turn_recorded: impl Fn(&TurnId) -> bool) {
        let bytes: usize = self.cells.iter().map(|cell| cell.weight_bytes()).sum();
        if self.cells.len() <= ITEMS_MAX && bytes <= BYTES_MAX {
            if let (Edge::At(edge), true) = (self.edge, self.turns.len() > ITEMS_MAX) {
                self.evict_turns(edge, is_turn_recorded);
            }
            return;
        }
        let kept: HashSet<ItemId> = self.settled.iter().flat_map(|(_, items)| items).cloned().collect();
        let (mut bytes, mut left) = (bytes, self.cells.len());
        let mut evicted = HashSet::new();
        let mut edge = None;
        for cell in &self.cells {
            if left <= ITEMS_MAX / 2 && bytes <= BYTES_MAX / 2 || left <= 1 || !is_recorded(cell.id()) {
                break;
            }
            edge = Some(cell.position() + 1);
            left -= 1;
            bytes = bytes.saturating_sub(cell.weight_bytes());
            // In front of the edge it stays as long as it may change.
            if cell.is_final() && !kept.contains(cell.id()) {
                evicted.insert(cell.id().clone());
                self.evicted_seq = self.evicted_seq.max(cell.seq());
            }
        }
        let Some(edge) = edge else { return };
        self.cells.retain(|cell| !evicted.contains(cell.id()));
        self.by_id.retain(|id, _| !evicted.contains(id));
        self.edge = match self.edge {
            Edge::At(earlier) if earlier != i64::MAX => Edge::At(edge.max(earlier)),
            _ => Edge::At(edge),
        };
        self.evict_turns(edge, is_turn_recorded);
    }

    /// Turns stay that run, or of which something is here.
    fn evict_turns(&mut self, edge: i64, is_recorded: impl Fn(&TurnId) -> bool) {
        let shown: HashSet<TurnId> = self.cells.iter().map(|cell| cell.turn_id()).collect();
        let mut evicted_seq = self.evicted_seq;
        self.turns.retain(|turn| {
            let stays = turn.position >= edge
                || turn.record.status == TurnRecordStatus::Running
                || shown.contains(&turn.record.turn_id)
                || !is_recorded(&turn.record.turn_id);
            if !stays {
                evicted_seq = evicted_seq.max(turn.seq);
            }
            stays
        });
        self.evicted_seq = evicted_seq;
    }
}

impl From<StoredTurn> for Turn {
    fn from(StoredTurn { record, origin, position, last }: StoredTurn) -> Self {
        Self { record, origin, position, seq: last }
    }
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
