//! What speaks for two turns being the same, and what against it.

use std::collections::HashMap;

use journal::TurnOutline;

use super::AgentTurn;
use super::prompt::{normalised, on_one_line};
use super::subsequence::{PAIR, Weight};

/// As much of an answer as is compared.
const ANSWER_CHARS_MAX: usize = 200;
/// As much of it as has to differ before it speaks against a turn: what follows may be written down otherwise.
const CONFLICT_CHARS: usize = 48;
/// Shorter answers ("Done.") are those of many turns.
const TELLING_ANSWER_CHARS: usize = 24;
/// Shorter texts ("continue") are found in many others.
const TELLING_PROMPT_BYTES: usize = 12;

/// The weight of a pair whose prompts are equal, whose answers agree, and which is not marked as forgotten.
pub(super) const PERFECT: Weight = PAIR + 5;

/// What is compared of a turn.
#[derive(Debug)]
pub(super) struct TurnText {
    /// The number of the user's text: equal texts have equal numbers. None for a turn without one.
    pub(super) prompt: Option<u32>,
    /// The user's text without any space.
    dense: String,
    answer: String,
    is_forgotten: bool,
}

/// Numbers of texts.
#[derive(Debug, Default)]
pub(super) struct Prompts(HashMap<String, u32>);

impl Prompts {
    pub(super) fn of_ours(&mut self, turn: &TurnOutline) -> TurnText {
        self.text(turn.prompt.as_deref(), turn.answer.as_deref(), turn.is_forgotten)
    }

    pub(super) fn of_theirs(&mut self, turn: &AgentTurn) -> TurnText {
        self.text(turn.prompt.as_deref(), turn.answer.as_deref(), false)
    }

    fn text(&mut self, prompt: Option<&str>, answer: Option<&str>, is_forgotten: bool) -> TurnText {
        let prompt = prompt.map(normalised).unwrap_or_default();
        let dense = prompt.replace(' ', "");
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let number = (!prompt.is_empty()).then(|| *self.0.entry(prompt).or_insert(next));
        let answer = on_one_line(answer.unwrap_or_default(), ANSWER_CHARS_MAX);
        TurnText { prompt: number, dense, answer, is_forgotten }
    }
}

impl TurnText {
    /// The weight of a pair with equal prompts. `keeps_ids`: the agent keeps our ids, so that another answer is another
    /// turn.
    pub(super) fn weight(&self, theirs: &Self, keeps_ids: bool) -> Option<Weight> {
        if self.prompt.is_none() || self.prompt != theirs.prompt {
            return None;
        }
        let likelihood = match (self.conflicts(theirs), self.answer.is_empty() == theirs.answer.is_empty()) {
            (true, _) if keeps_ids => return None,
            (true, _) => 0,
            (false, false) => 2,
            (false, true) => 4,
        };
        Some(PAIR + likelihood + u64::from(!self.is_forgotten))
    }

    /// The weight of a pair in the same gap whose prompts differ.
    pub(super) fn likeness(&self, theirs: &Self) -> Option<Weight> {
        let is_answer = self.has_answer_of(theirs);
        let is_prompt = self.is_like(theirs) && !self.conflicts(theirs);
        let is_bare = self.prompt.is_none() && theirs.prompt.is_none() && self.answer == theirs.answer;
        let likelihood = u64::from(is_answer) + u64::from(is_prompt) + u64::from(is_bare && !self.answer.is_empty());
        (likelihood > 0).then(|| PAIR + 2 * likelihood + u64::from(!self.is_forgotten))
    }

    /// Both have an answer, and they begin otherwise.
    pub(super) fn conflicts(&self, theirs: &Self) -> bool {
        let (ours, theirs) = (&self.answer, &theirs.answer);
        let common = ours.chars().zip(theirs.chars()).take_while(|(a, b)| a == b).count();
        let length = |answer: &str| answer.chars().take(CONFLICT_CHARS).count();
        common < length(ours).min(length(theirs))
    }

    /// Both have a text of the user's and an answer, and all of it differs.
    pub(super) fn contradicts(&self, theirs: &Self) -> bool {
        let differ = self.prompt.is_some() && theirs.prompt.is_some() && self.prompt != theirs.prompt;
        self.conflicts(theirs) && (differ && !self.is_like(theirs) || self.prompt.is_none() && theirs.prompt.is_none())
    }

    /// Nothing speaks against the same turn where only their places speak for it. An agent with an answer that we never
    /// got had another turn.
    pub(super) fn may_be(&self, theirs: &Self) -> bool {
        !self.conflicts(theirs) && (theirs.answer.is_empty() || !self.answer.is_empty())
    }

    pub(super) fn has_answer(&self) -> bool {
        !self.answer.is_empty()
    }

    fn has_answer_of(&self, theirs: &Self) -> bool {
        let (long, short) = match self.answer.len() < theirs.answer.len() {
            true => (&theirs.answer, &self.answer),
            false => (&self.answer, &theirs.answer),
        };
        long.starts_with(short.as_str()) && short.chars().count() >= TELLING_ANSWER_CHARS
    }

    /// One prompt is in the other: agents add to it in ways we do not know.
    pub(super) fn is_like(&self, theirs: &Self) -> bool {
        self.contains(theirs) || theirs.contains(self)
    }

    fn contains(&self, other: &Self) -> bool {
        other.dense.len() >= TELLING_PROMPT_BYTES && self.dense.contains(&other.dense)
    }

    /// Both prompts are in this one.
    pub(super) fn joins(&self, one: &Self, other: &Self) -> bool {
        self.contains(one) && self.dense.len() >= one.dense.len() + other.dense.len()
    }

    /// How many of the following turns have this prompt between them, divided. Only the last has an answer.
    pub(super) fn divided_among<'a>(&self, theirs: impl Iterator<Item = &'a Self>) -> Option<usize> {
        let mut left = self.dense.as_str();
        for (number, part) in theirs.enumerate() {
            left = left.strip_prefix(part.dense.as_str()).filter(|_| part.prompt.is_some())?;
            if left.is_empty() {
                return (number > 0).then_some(number + 1);
            }
            if part.has_answer() {
                return None;
            }
        }
        None
    }
}
