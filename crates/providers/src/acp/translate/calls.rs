//! The calls of one turn, found by their id: a long turn has thousands, and each gets many updates.

use indexmap::{IndexMap, IndexSet};
use protocol::ItemId;

use crate::acp::tool::ToolState;

/// Calls that have ended and whose state is held: an agent may correct one after its end.
const ENDED_MAX: usize = 64;
/// Ids of earlier calls that are recognised. What comes for them is dropped.
const FORGOTTEN_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Calls {
    by_id: IndexMap<ItemId, ToolState>,
    forgotten: IndexSet<ItemId>,
    /// How many have not ended: asked for every update.
    open: usize,
}

impl Calls {
    pub(super) fn add(&mut self, call: ToolState) {
        self.forget_ended();
        self.open += usize::from(call.is_open());
        let before = self.by_id.insert(call.item_id.clone(), call);
        self.open -= usize::from(before.is_some_and(|before| before.is_open()));
    }

    /// Forgets the calls that ended longest ago, many at once, so that it is seldom done.
    fn forget_ended(&mut self) {
        if self.by_id.len() - self.open < 2 * ENDED_MAX {
            return;
        }
        let mut surplus = self.by_id.len() - self.open - ENDED_MAX;
        self.by_id.retain(|id, call| {
            let is_kept = call.is_open() || surplus == 0;
            if !is_kept {
                surplus -= 1;
                self.forgotten.insert(id.clone());
            }
            is_kept
        });
        if self.forgotten.len() > FORGOTTEN_MAX {
            self.forgotten.drain(..self.forgotten.len() - FORGOTTEN_MAX);
        }
    }

    pub(super) fn contains(&self, id: &ItemId) -> bool {
        self.by_id.contains_key(id) || self.forgotten.contains(id)
    }

    /// Lets a call change. None if there is no such call.
    pub(super) fn change<T>(&mut self, id: &ItemId, act: impl FnOnce(&mut ToolState) -> T) -> Option<T> {
        let call = self.by_id.get_mut(id)?;
        let was_open = call.is_open();
        let done = act(call);
        self.open = self.open + usize::from(call.is_open()) - usize::from(was_open);
        Some(done)
    }

    pub(super) fn has_open(&self) -> bool {
        self.open > 0
    }

    /// The calls that have not ended.
    pub(super) fn open(&self) -> impl Iterator<Item = &ToolState> {
        self.by_id.values().rev().filter(|call| call.is_open()).take(self.open)
    }

    /// The first call that shows this terminal.
    pub(super) fn with_terminal(&self, terminal: &str) -> Option<&ItemId> {
        self.by_id.values().find(|call| call.shows_terminal(terminal)).map(|call| &call.item_id)
    }
}
