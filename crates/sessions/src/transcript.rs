//! The items of a session, in order, with their present states.
//!
//! No session takes the machine's memory: when a turn ends and more is here than [`TRANSCRIPT_BYTES_MAX`], the oldest items
//! are evicted, and a line in front reports it. The turn that just ended stays whole; what one turn may bring is bounded.

use std::collections::HashMap;
use std::sync::Arc;

use protocol::{ItemId, Origin, TurnEvent, TurnId, TurnRecord, TurnRecordStatus, TurnStatus, UpsertStatus};
use providers::HistoryCursor;
use upserts::{ItemBody, ItemUpdate, Text};

use crate::item::{ItemCell, RenderingCache};
use crate::session::HistoryPage;

/// What is held of one session. Years of conversation, or some hundred pictures.
const TRANSCRIPT_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The item in place of what was evicted.
const EVICTED_ID: &str = "let-go";
const EVICTED_TEXT: &str = "The earlier part of this conversation is no longer kept here, to spare memory. \
    What the agent keeps of it is shown after the next start of Liminal Builder.";

#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// Newest last. Older pages are put in front as they are fetched.
    cells: Vec<Arc<ItemCell>>,
    by_id: HashMap<ItemId, Arc<ItemCell>>,
    turns: Vec<TurnRecord>,
    /// What the first so many cells weigh; the others came since a turn last ended.
    weighed: usize,
    weight_bytes: usize,
    older: Option<HistoryCursor>,
    /// The newest number among the items that were evicted: a window that has not seen all of those cannot be sent the others only.
    evicted: u64,
    seq: u64,
    /// The last number used for this session before; older numbers mean nothing here.
    base: u64,
    cache: Arc<RenderingCache>,
}

impl Transcript {
    /// Numbers go on where an earlier transcript of the same session ended, so that a window which saw that one is not
    /// sent a part of this one as if it were the remainder.
    pub(crate) fn after(base: u64) -> Self {
        Self { seq: base, base, ..Self::default() }
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Nothing was received or loaded yet.
    pub(crate) fn is_new(&self) -> bool {
        self.seq == self.base
    }

    /// Whether a window that has seen all up to this number can be sent what follows.
    pub(crate) fn can_go_on_from(&self, seq: u64) -> bool {
        seq <= self.seq && (self.base == 0 || seq > self.base) && seq >= self.evicted
    }

    /// The turn that runs, and the items that are still open.
    pub(crate) fn unfinished(&self) -> (Option<TurnId>, Vec<Arc<ItemCell>>) {
        let turn = self.turns.iter().rev().find(|turn| turn.status == TurnRecordStatus::Running);
        let open = self.cells.iter().filter(|cell| !cell.is_final());
        (turn.map(|turn| turn.turn_id.clone()), open.cloned().collect())
    }

    /// Nobody watches: what was rendered is made again when someone does.
    pub(crate) fn forget_renderings(&self) {
        for cell in &self.cells {
            cell.forget_rendering();
        }
    }

    /// Takes the next number for a message.
    pub(crate) fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    /// The newest state of an item, in its place.
    pub(crate) fn upsert(&mut self, update: ItemUpdate) -> (u64, Arc<ItemCell>) {
        let seq = self.next_seq();
        let cell = match self.by_id.get(&update.item_id) {
            Some(cell) => {
                cell.replace(update, seq);
                Arc::clone(cell)
            }
            None => {
                let cell = ItemCell::new(update, seq, &self.cache);
                self.by_id.insert(cell.id().clone(), Arc::clone(&cell));
                self.cells.push(Arc::clone(&cell));
                cell
            }
        };
        (seq, cell)
    }

    pub(crate) fn turn(&mut self, event: &TurnEvent) -> u64 {
        match event {
            TurnEvent::TurnStarted { turn_id, model_id, at, .. } => {
                self.turns.push(TurnRecord {
                    turn_id: turn_id.clone(),
                    status: TurnRecordStatus::Running,
                    started_at: *at,
                    ended_at: None,
                    model_id: (!model_id.is_empty()).then(|| model_id.clone()),
                    usage: None,
                    error_code: None,
                    error_message: None,
                    forgotten: false,
                });
            }
            TurnEvent::TurnComplete { turn_id, status, usage, at, .. } => {
                if let Some(record) = self.turn_mut(turn_id.as_str()) {
                    record.status = match status {
                        TurnStatus::Completed => TurnRecordStatus::Completed,
                        TurnStatus::Cancelled => TurnRecordStatus::Cancelled,
                    };
                    record.ended_at = Some(*at);
                    record.usage = *usage;
                }
            }
            TurnEvent::TurnError { turn_id, error_code, error_message, at, .. } => {
                if let Some(record) = self.turn_mut(turn_id.as_str()) {
                    record.status = TurnRecordStatus::Error;
                    record.ended_at = Some(*at);
                    record.error_code = Some(error_code.clone());
                    record.error_message = Some(error_message.clone());
                }
            }
        }
        if event.is_end() {
            self.make_room();
        }
        self.next_seq()
    }

    /// Evicts the oldest items when there are too many, down to half, so that it is seldom done.
    fn make_room(&mut self) {
        self.weigh();
        let Some(newest_turn) = self.turns.last().map(|turn| turn.turn_id.clone()) else { return };
        if self.weight_bytes <= TRANSCRIPT_BYTES_MAX {
            return;
        }
        let mut count = 0;
        for cell in &self.cells {
            if self.weight_bytes <= TRANSCRIPT_BYTES_MAX / 2 || cell.update().turn_id == newest_turn {
                break;
            }
            // A correction after the turn may have changed it.
            self.weight_bytes = self.weight_bytes.saturating_sub(cell.weight_bytes());
            count += 1;
        }
        for cell in self.cells.drain(..count) {
            self.evicted = self.evicted.max(cell.seq());
            self.by_id.remove(cell.id());
        }
        let Some(first) = self.cells.first().map(|cell| cell.update()).filter(|_| count > 0) else { return };
        let left = self.turns.iter().position(|turn| turn.turn_id == first.turn_id).unwrap_or(0);
        self.turns.drain(..left);
        self.older = None;
        let notice = ItemUpdate {
            item_id: ItemId::from_foreign(EVICTED_ID),
            parent_item_id: None,
            status: UpsertStatus::Complete,
            error: None,
            body: ItemBody::Message { text: Text::from(EVICTED_TEXT), origin: Origin::System },
            ..first
        };
        // For whoever opens the session from now on; windows that show the items keep them.
        let notice = ItemCell::new(notice, 0, &self.cache);
        self.by_id.insert(notice.id().clone(), Arc::clone(&notice));
        self.weight_bytes += notice.weight_bytes();
        self.cells.insert(0, notice);
        self.weighed = self.cells.len();
    }

    fn weigh(&mut self) {
        self.weight_bytes += self.cells[self.weighed..].iter().map(|cell| cell.weight_bytes()).sum::<usize>();
        self.weighed = self.cells.len();
    }

    /// Enough is here: older items are not fetched unless somebody asks for just those.
    pub(crate) fn is_heavy(&self) -> bool {
        self.weight_bytes > TRANSCRIPT_BYTES_MAX / 2
    }

    /// The line that stands for what was evicted, if anything was.
    pub(crate) fn evicted_notice(&self) -> Option<&Arc<ItemCell>> {
        self.by_id.get(&ItemId::from_foreign(EVICTED_ID))
    }

    fn turn_mut(&mut self, id: &str) -> Option<&mut TurnRecord> {
        self.turns.iter_mut().rev().find(|record| record.turn_id.as_str() == id)
    }

    /// The history of a session that was just loaded. Gives its items with their numbers.
    pub(crate) fn load(&mut self, page: HistoryPage) -> Vec<(u64, Arc<ItemCell>)> {
        self.older = page.older;
        self.turns = page.turns;
        let items = page.items.into_iter().map(|update| self.upsert(update)).collect();
        self.weigh();
        items
    }

    /// An older page, put in front. Items known already keep their place.
    pub(crate) fn prepend(&mut self, page: HistoryPage) {
        // A cursor that leads nowhere would be followed for ever.
        self.older = page.older.filter(|older| self.older.as_ref() != Some(older));
        let mut cells = Vec::with_capacity(page.items.len() + self.cells.len());
        for update in page.items {
            if !self.by_id.contains_key(&update.item_id) {
                // Older than any number a window may hold, so no window waits for it.
                let cell = ItemCell::new(update, 0, &self.cache);
                self.by_id.insert(cell.id().clone(), Arc::clone(&cell));
                cells.push(cell);
            }
        }
        self.weight_bytes += cells.iter().map(|cell| cell.weight_bytes()).sum::<usize>();
        self.weighed += cells.len();
        cells.append(&mut self.cells);
        self.cells = cells;
        let mut turns = page.turns;
        turns.retain(|turn| self.turns.iter().all(|known| known.turn_id != turn.turn_id));
        turns.append(&mut self.turns);
        self.turns = turns;
    }

    /// The cursor to fetch before more can be shown, if the provider holds older items.
    pub(crate) fn older(&self) -> Option<&HistoryCursor> {
        self.older.as_ref()
    }

    pub(crate) fn get(&self, id: &ItemId) -> Option<&Arc<ItemCell>> {
        self.by_id.get(id)
    }

    pub(crate) fn turns(&self) -> &[TurnRecord] {
        &self.turns
    }

    /// The newest `limit` items and whether there are more.
    pub(crate) fn newest(&self, limit: usize) -> (Vec<Arc<ItemCell>>, bool) {
        let from = self.cells.len().saturating_sub(limit);
        (self.cells[from..].to_vec(), from > 0 || self.older.is_some())
    }

    /// Up to `limit` items in front of one, as far as they are in memory, and whether there are more. None if it is not here.
    pub(crate) fn before(&self, id: &ItemId, limit: usize) -> Option<(Vec<Arc<ItemCell>>, bool)> {
        let end = self.cells.iter().position(|cell| cell.id() == id)?;
        let from = end.saturating_sub(limit);
        Some((self.cells[from..end].to_vec(), from > 0 || self.older.is_some()))
    }

    /// Everything that changed after a number.
    pub(crate) fn since(&self, seq: u64) -> Vec<Arc<ItemCell>> {
        self.cells.iter().filter(|cell| cell.seq() > seq).cloned().collect()
    }
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
