//! Which turns of the agent's own history our journal has already.
//!
//! Comes in: the turns of the journal, and those of a page of the agent's history. Goes out: which of them are the
//! same, which the journal lacks and where they go, and which the agent has no longer. Kept out: files, providers,
//! clocks.
//!
//! Agents replay a turn under other ids, with its text divided otherwise, with more around the user's words, or without
//! what came before a cancel. So a turn is recognised by what speaks for it, in this order: the agent's ids; the same
//! text of the user; in the same gap between two known turns, a similar text, the same answer, or the same number of
//! turns. In doubt two turns are one: a turn that is shown twice is worse than one that the agent has in other words.

mod evidence;
mod ids;
mod pairing;
mod prompt;
mod subsequence;

use std::collections::HashMap;

use journal::TurnOutline;
use protocol::{ItemId, Origin, Timestamp, TurnId};
use upserts::{ItemBody, ItemUpdate};

pub(crate) use self::ids::KnownIds;
use self::pairing::Pairing;

/// A turn of the agent's own history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentTurn {
    pub(crate) id: TurnId,
    /// Unset where the agent does not report it.
    pub(crate) started_at: Timestamp,
    /// The text of the user's message that began it.
    pub(crate) prompt: Option<String>,
    /// The agent's first message in it.
    pub(crate) answer: Option<String>,
    pub(crate) items: Vec<ItemId>,
    /// Where its items are in the page.
    pub(crate) places: Vec<usize>,
}

/// How two histories of one session go together. Numbers of turns are places in the lists that were compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Alignment {
    /// Ours and theirs, in order. Our version of the turn stands.
    pub(crate) matched: Vec<(usize, usize)>,
    /// Turns of the agent that our journal lacks, in order.
    pub(crate) missing: Vec<MissingTurn>,
    /// Turns of ours that are no longer in the agent's memory.
    pub(crate) forgotten: Vec<usize>,
    /// Turns of ours that are marked as forgotten and that the agent has.
    pub(crate) remembered: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MissingTurn {
    pub(crate) theirs: usize,
    /// Our turn that it follows; none: it is in front of all.
    pub(crate) after: Option<usize>,
}

/// The turns of a folded page of history, in the order in which they begin.
pub(crate) fn agent_turns(items: &[ItemUpdate]) -> Vec<AgentTurn> {
    let mut turns: Vec<AgentTurn> = Vec::new();
    let mut numbers: HashMap<&TurnId, usize> = HashMap::new();
    for (place, item) in items.iter().enumerate() {
        let number = *numbers.entry(&item.turn_id).or_insert(turns.len());
        if number == turns.len() {
            turns.push(AgentTurn {
                id: item.turn_id.clone(),
                started_at: item.source_timestamp,
                prompt: None,
                answer: None,
                items: Vec::new(),
                places: Vec::new(),
            });
        }
        let turn = &mut turns[number];
        turn.items.push(item.item_id.clone());
        turn.places.push(place);
        // What a sub-agent is asked and answers is not the turn's own.
        if let (ItemBody::Message { text, origin }, None) = (&item.body, &item.parent_item_id) {
            let kept = match origin {
                Origin::User => &mut turn.prompt,
                Origin::Agent => &mut turn.answer,
                Origin::System => continue,
            };
            kept.get_or_insert_with(|| text.to_string());
        }
    }
    turns
}

/// Compares the turns of our journal with those of the agent's history. `is_whole`: `theirs` begins with its beginning;
/// otherwise it is the newest part. Takes as long as the histories are long: call it beside the session's loop.
pub(crate) fn align(ours: &[TurnOutline], theirs: &[AgentTurn], is_whole: bool) -> Alignment {
    let mut pairing = Pairing::new(ours, theirs);
    pairing.pair_by_ids();
    pairing.pair_by_prompts();
    pairing.pair_in_doubt(is_whole);
    let matched = pairing.pairs();
    let missing = missing(ours, theirs, &pairing);
    // With nothing to compare nothing is known to be forgotten.
    let known_from = match matched.first() {
        _ if theirs.is_empty() => ours.len(),
        _ if is_whole => 0,
        Some((first, _)) => *first,
        None => ours.len(),
    };
    let is_forgotten = |number: &usize| {
        let turn = &ours[*number];
        *number >= known_from && !pairing.has_ours(*number) && turn.has_ended && !turn.is_forgotten && was_given(turn)
    };
    let forgotten = (0..ours.len()).filter(is_forgotten).collect();
    let remembered = (0..ours.len()).filter(|number| ours[*number].is_forgotten && pairing.has_ours(*number)).collect();
    Alignment { matched, missing, forgotten, remembered }
}

/// Whether the agent ever had the turn, as far as can be seen. One without a message of the user is not replayed as a
/// turn of its own; one with nothing but that message may have failed before it reached the agent.
fn was_given(turn: &TurnOutline) -> bool {
    turn.prompt.is_some() && (turn.answer.is_some() || turn.items.len() > 1)
}

fn missing(ours: &[TurnOutline], theirs: &[AgentTurn], pairing: &Pairing) -> Vec<MissingTurn> {
    let mut missing = Vec::new();
    let mut is_previous_missing = ours.is_empty();
    let mut place = 0;
    for ((number, turn), gap) in theirs.iter().enumerate().zip(pairing.gaps_of_theirs()) {
        let is_known = pairing.has_theirs(number);
        // What stands without a message of the user (a notice, a summary) is in another turn here, unless what is in
        // front of it is new as well.
        let is_turn = pairing.has_prompt(number) || is_previous_missing || pairing.is_known_by_its_id(number);
        if is_known || is_turn {
            is_previous_missing = !is_known;
        }
        if !is_known && is_turn {
            place = place_in(gap, ours, turn.started_at).max(place);
            missing.push(MissingTurn { theirs: number, after: place.checked_sub(1) });
        }
    }
    missing
}

/// How many of our turns come before one of the agent's that belongs into this gap of ours.
fn place_in(gap: std::ops::Range<usize>, ours: &[TurnOutline], at: Timestamp) -> usize {
    let is_later = |turn: &TurnOutline| {
        let is_known = !at.is_unset() && !turn.started_at.is_unset();
        !turn.has_ended || is_known && turn.started_at.unix_ms() > at.unix_ms()
    };
    let later = ours[gap.clone()].iter().rev().take_while(|turn| is_later(turn)).count();
    gap.end - later
}

#[cfg(test)]
#[path = "align_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "align_recorded_tests.rs"]
mod recorded_tests;
