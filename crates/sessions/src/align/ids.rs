//! Ids of turns and items: what they say about two turns, and new ones where an agent gives out the same again.

use std::collections::{HashMap, HashSet};

use journal::TurnOutline;
use protocol::{ItemId, TurnId};
use upserts::ItemUpdate;

use super::AgentTurn;

/// Which of our turns has an id.
#[derive(Debug)]
pub(super) struct OurIds<'a> {
    turns: HashMap<&'a TurnId, usize>,
    items: HashMap<&'a ItemId, usize>,
}

impl<'a> OurIds<'a> {
    pub(super) fn of(ours: &'a [TurnOutline]) -> Self {
        let turns = ours.iter().enumerate().map(|(number, turn)| (&turn.turn_id, number)).collect();
        let items =
            ours.iter().enumerate().flat_map(|(number, turn)| turn.items.iter().map(move |item| (item, number)));
        Self { turns, items: items.collect() }
    }

    pub(super) fn turn(&self, id: &TurnId) -> Option<usize> {
        self.turns.get(id).copied()
    }

    /// Our turns that have items of this one, those with the most first. In a turn with the same id, ids that are made
    /// from that one say no more than it does.
    pub(super) fn sharing(&self, turn: &AgentTurn) -> Vec<usize> {
        let derived = format!("{}.", turn.id);
        let same = self.turn(&turn.id);
        let is_evidence = |item: &ItemId, number: usize| Some(number) != same || !item.as_str().starts_with(&derived);
        let mut counts: Vec<(usize, usize)> = Vec::new();
        for item in &turn.items {
            let Some(number) = self.items.get(item).copied().filter(|number| is_evidence(item, *number)) else {
                continue;
            };
            match counts.iter_mut().find(|(known, _)| *known == number) {
                Some((_, count)) => *count += 1,
                None => counts.push((number, 1)),
            }
        }
        counts.sort_by_key(|(number, count)| (std::cmp::Reverse(*count), *number));
        counts.into_iter().map(|(number, _)| number).collect()
    }
}

/// Ids that the journal has for a session. An agent that numbers its turns gives out a number again after a rewind.
#[derive(Debug, Default)]
pub(crate) struct KnownIds {
    turns: HashSet<TurnId>,
    items: HashSet<ItemId>,
}

impl KnownIds {
    pub(crate) fn of(ours: &[TurnOutline]) -> Self {
        Self {
            turns: ours.iter().map(|turn| turn.turn_id.clone()).collect(),
            items: ours.iter().flat_map(|turn| turn.items.iter().cloned()).collect(),
        }
    }

    /// The id of a missing turn and its items, all under ids that the journal does not have. They are known from then
    /// on.
    pub(crate) fn take_in(&mut self, turn: &AgentTurn, page: &[ItemUpdate]) -> (TurnId, Vec<ItemUpdate>) {
        let turn_id = unused(turn.id.as_str(), |id| self.turns.insert(TurnId::from_foreign(id)));
        let turn_id = TurnId::from_foreign(&turn_id);
        let mut renamed: HashMap<&ItemId, ItemId> = HashMap::new();
        for item in &turn.items {
            let id = unused(item.as_str(), |id| self.items.insert(ItemId::from_foreign(id)));
            renamed.insert(item, ItemId::from_foreign(&id));
        }
        let items = turn.places.iter().filter_map(|place| page.get(*place)).map(|item| {
            let new = |id: &ItemId| renamed.get(id).unwrap_or(id).clone();
            let (item_id, parent_item_id) = (new(&item.item_id), item.parent_item_id.as_ref().map(new));
            ItemUpdate { item_id, parent_item_id, turn_id: turn_id.clone(), ..item.clone() }
        });
        (turn_id.clone(), items.collect())
    }
}

/// The id, or that id with a number behind it.
fn unused(id: &str, mut insert: impl FnMut(&str) -> bool) -> String {
    let mut candidate = id.to_owned();
    let mut number = 1;
    while !insert(&candidate) {
        number += 1;
        candidate = format!("{id}~{number}");
    }
    candidate
}
