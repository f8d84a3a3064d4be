//! The turns that have been seen, and where one ends and the next begins.

use std::collections::{HashMap, HashSet};

use protocol::{TurnId, TurnRecord, TurnRecordStatus, Upsert};

/// Every turn once, in the order of its first page, in its newest state.
#[derive(Debug, Default)]
pub(crate) struct TurnList {
    turns: Vec<TurnRecord>,
    places: HashMap<TurnId, usize>,
}

impl TurnList {
    pub(crate) fn add(&mut self, turns: &[TurnRecord]) {
        for turn in turns {
            match self.places.get(&turn.turn_id) {
                Some(place) => self.turns[*place] = turn.clone(),
                None => {
                    self.places.insert(turn.turn_id.clone(), self.turns.len());
                    self.turns.push(turn.clone());
                }
            }
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &TurnRecord> {
        self.turns.iter()
    }
}

/// Follows the items from turn to turn.
#[derive(Debug, Default)]
pub(crate) struct TurnOrder {
    present: Option<TurnRecord>,
    begun: HashSet<TurnId>,
}

/// What happens in front of an item.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// The turn that ends here.
    pub(crate) ended: Option<TurnRecord>,
    /// Another turn begins.
    pub(crate) begins: bool,
}

impl TurnOrder {
    /// To be called for each item. An item of a turn that has ended already belongs to the present one.
    pub(crate) fn step(&mut self, turns: &[TurnRecord], item: &Upsert) -> Step {
        let known = turns.iter().find(|turn| turn.turn_id == item.turn_id);
        let is_same = self.present.as_ref().is_some_and(|present| present.turn_id == item.turn_id);
        if is_same {
            // It may have ended since.
            self.present = known.cloned().or(self.present.take());
            return Step::default();
        }
        if !self.begun.insert(item.turn_id.clone()) {
            return Step::default();
        }
        Step { ended: std::mem::replace(&mut self.present, known.cloned()), begins: true }
    }

    pub(crate) fn finish(&mut self) -> Option<TurnRecord> {
        self.present.take()
    }
}

/// How a turn ended, if there is something to say about it.
pub(crate) fn outcome(turn: &TurnRecord) -> Option<String> {
    match turn.status {
        TurnRecordStatus::Completed => None,
        TurnRecordStatus::Running => Some("Still running when this was exported".into()),
        TurnRecordStatus::Cancelled => Some("Stopped".into()),
        TurnRecordStatus::Error => {
            let reason = turn.error_message.as_deref().filter(|reason| !reason.trim().is_empty());
            Some(format!("Turn ended: {}", reason.unwrap_or("it failed")))
        }
    }
}
