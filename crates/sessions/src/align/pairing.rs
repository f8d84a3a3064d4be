//! The pairs that are found, step by step: those by ids first, each later step only between the pairs of the earlier.

use std::ops::Range;

use journal::{TurnOrigin, TurnOutline};

use super::AgentTurn;
use super::evidence::{PERFECT, Prompts, TurnText};
use super::ids::OurIds;
use super::subsequence::{self, best_pairs, in_order};

/// Likeness costs more than equality: in a gap with more pairs than this it is not looked for.
const LIKENESS_CELLS_MAX: usize = 250_000;

#[derive(Debug)]
pub(super) struct Pairing<'a> {
    ours: &'a [TurnOutline],
    theirs: &'a [AgentTurn],
    our_texts: Vec<TurnText>,
    their_texts: Vec<TurnText>,
    our_partners: Vec<Partner>,
    their_partners: Vec<Partner>,
    /// A turn that ran here came back under our id: then a turn without a known id is another one.
    keeps_ids: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Partner {
    #[default]
    None,
    Turn(usize),
    /// What is in it is in another turn, or in another order, on the other side.
    Elsewhere,
}

/// Between two pairs that follow each other.
#[derive(Clone, Debug)]
struct Gap {
    ours: Range<usize>,
    theirs: Range<usize>,
}

impl<'a> Pairing<'a> {
    pub(super) fn new(ours: &'a [TurnOutline], theirs: &'a [AgentTurn]) -> Self {
        let mut prompts = Prompts::default();
        Self {
            our_texts: ours.iter().map(|turn| prompts.of_ours(turn)).collect(),
            their_texts: theirs.iter().map(|turn| prompts.of_theirs(turn)).collect(),
            our_partners: vec![Partner::None; ours.len()],
            their_partners: vec![Partner::None; theirs.len()],
            keeps_ids: false,
            ours,
            theirs,
        }
    }

    pub(super) fn pairs(&self) -> Vec<(usize, usize)> {
        let pair = |(ours, partner): (usize, &Partner)| match partner {
            Partner::Turn(theirs) => Some((ours, *theirs)),
            Partner::None | Partner::Elsewhere => None,
        };
        self.our_partners.iter().enumerate().filter_map(pair).collect()
    }

    /// The agent has this turn of ours.
    pub(super) fn has_ours(&self, number: usize) -> bool {
        self.our_partners[number] != Partner::None
    }

    /// We have this turn of the agent's.
    pub(super) fn has_theirs(&self, number: usize) -> bool {
        self.their_partners[number] != Partner::None
    }

    /// A message of the user began this turn of the agent's.
    pub(super) fn has_prompt(&self, number: usize) -> bool {
        self.their_texts[number].prompt.is_some()
    }

    /// The agent keeps ids, and wrote something in this turn: if it were ours it would be known.
    pub(super) fn is_known_by_its_id(&self, number: usize) -> bool {
        self.keeps_ids && self.their_texts[number].has_answer()
    }

    /// For each turn of the agent's, our turns between which it belongs.
    pub(super) fn gaps_of_theirs(&self) -> Vec<Range<usize>> {
        let mut start = 0;
        let starts = self.their_partners.iter().map(|partner| match partner {
            Partner::Turn(ours) => std::mem::replace(&mut start, ours + 1),
            Partner::None | Partner::Elsewhere => start,
        });
        let mut gaps: Vec<_> = starts.map(|start| start..self.ours.len()).collect();
        let mut end = self.ours.len();
        for (gap, partner) in gaps.iter_mut().zip(&self.their_partners).rev() {
            if let Partner::Turn(ours) = partner {
                end = *ours;
            }
            gap.end = end;
        }
        gaps
    }

    pub(super) fn pair_by_ids(&mut self) {
        let ids = OurIds::of(self.ours);
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for (number, turn) in self.theirs.iter().enumerate() {
            let is_live = |ours: usize| self.ours[ours].origin == TurnOrigin::Live;
            // Some agents number their turns, and give a number out again.
            let same = ids.turn(&turn.id).filter(|ours| is_live(*ours) || !self.differs(*ours, number));
            self.keeps_ids |= same.is_some_and(is_live);
            let text = &self.their_texts[number];
            let sharing: Vec<usize> =
                ids.sharing(turn).into_iter().filter(|ours| !self.our_texts[*ours].contradicts(text)).collect();
            if same.is_some() || !sharing.is_empty() {
                self.their_partners[number] = Partner::Elsewhere;
            }
            for ours in same.iter().chain(&sharing) {
                self.our_partners[*ours] = Partner::Elsewhere;
            }
            if let Some(ours) = same.or(sharing.first().copied()) {
                pairs.push((ours, number));
            }
        }
        self.pair_likeliest(pairs);
    }

    /// Of several turns of the agent's that have parts of one of ours, one is its partner.
    fn pair_likeliest(&mut self, mut pairs: Vec<(usize, usize)>) {
        let rank = |(ours, theirs): (usize, usize)| {
            let is_same = self.ours[ours].turn_id == self.theirs[theirs].id;
            let has_prompt = self.our_texts[ours].prompt == self.their_texts[theirs].prompt;
            (!is_same, !has_prompt, theirs)
        };
        pairs.sort_by_key(|pair| (pair.0, rank(*pair)));
        pairs.dedup_by_key(|(ours, _)| *ours);
        pairs.sort_unstable_by_key(|(_, theirs)| *theirs);
        self.pair(in_order(&pairs));
    }

    /// Both have a text of the user's and it is not the same, or neither has one and they answer otherwise.
    fn differs(&self, ours: usize, theirs: usize) -> bool {
        let (ours, theirs) = (&self.our_texts[ours], &self.their_texts[theirs]);
        match (ours.prompt, theirs.prompt) {
            (Some(a), Some(b)) => a != b && !ours.is_like(theirs),
            (None, None) => ours.conflicts(theirs),
            // Of a long turn only the end may be in the page.
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    pub(super) fn pair_by_prompts(&mut self) {
        for gap in self.gaps() {
            let (ours, theirs) = self.unpaired(&gap);
            let pairs = self.equal_prompts(&ours, &theirs);
            self.pair(pairs);
        }
    }

    fn equal_prompts(&self, ours: &[usize], theirs: &[usize]) -> Vec<(usize, usize)> {
        let weight =
            |ours: usize, theirs: usize| self.our_texts[ours].weight(&self.their_texts[theirs], self.keeps_ids);
        if subsequence::is_small(ours, theirs) {
            return best_pairs(ours, theirs, PERFECT, weight);
        }
        let our_prompt = |number: usize| self.our_texts[number].prompt;
        let their_prompt = |number: usize| self.their_texts[number].prompt;
        let mut pairs = Vec::new();
        let (mut ours, mut theirs) = (ours, theirs);
        let anchors = subsequence::unique_pairs(ours, theirs, our_prompt, their_prompt);
        for anchor in anchors.into_iter().map(Some).chain([None]) {
            let place = |list: &[usize], number: Option<usize>| {
                number.map_or(list.len(), |number| list.partition_point(|known| *known < number))
            };
            let (our_part, our_rest) = ours.split_at(place(ours, anchor.map(|(number, _)| number)));
            let (their_part, their_rest) = theirs.split_at(place(theirs, anchor.map(|(_, number)| number)));
            pairs.extend(match subsequence::is_small(our_part, their_part) {
                true => best_pairs(our_part, their_part, PERFECT, weight),
                false => subsequence::newest_pairs(our_part, their_part, our_prompt, their_prompt),
            });
            pairs.extend(anchor);
            (ours, theirs) = (our_rest.get(1..).unwrap_or_default(), their_rest.get(1..).unwrap_or_default());
        }
        pairs
    }

    /// What is left between two pairs, on both sides, may be the same in other words.
    pub(super) fn pair_in_doubt(&mut self, is_whole: bool) {
        if !self.keeps_ids {
            for gap in self.gaps() {
                self.pair_divided(&gap);
            }
            for gap in self.gaps() {
                let (ours, theirs) = self.unpaired(&gap);
                if ours.len().saturating_mul(theirs.len()) <= LIKENESS_CELLS_MAX {
                    let likeness =
                        |ours: usize, theirs: usize| self.our_texts[ours].likeness(&self.their_texts[theirs]);
                    let pairs = best_pairs(&ours, &theirs, u64::MAX, likeness);
                    self.pair(pairs);
                }
            }
            for gap in self.gaps() {
                if is_whole || gap.ours.start > 0 {
                    self.pair_by_place(&gap);
                }
            }
        }
        self.find_joined();
    }

    /// One message of the user's that the agent has as several.
    fn pair_divided(&mut self, gap: &Gap) {
        let (ours, theirs) = self.unpaired(gap);
        if ours.len().saturating_mul(theirs.len()) > LIKENESS_CELLS_MAX {
            return;
        }
        let mut first = 0;
        for number in ours {
            let parts = (first..theirs.len()).find_map(|start| {
                let texts = theirs[start..].iter().map(|number| &self.their_texts[*number]);
                Some((start, start + self.our_texts[number].divided_among(texts)?))
            });
            if let Some((start, end)) = parts {
                theirs[start..end].iter().for_each(|part| self.their_partners[*part] = Partner::Elsewhere);
                self.pair(vec![(number, theirs[end - 1])]);
                first = end;
            }
        }
    }

    /// As many turns of the user's on both sides, and none contradicts the other in its place.
    fn pair_by_place(&mut self, gap: &Gap) {
        let (mut ours, mut theirs) = self.unpaired(gap);
        ours.retain(|number| {
            let turn = &self.ours[*number];
            self.our_texts[*number].prompt.is_some() && turn.has_ended && !turn.is_forgotten
        });
        theirs.retain(|number| self.has_prompt(*number));
        let may_be = |(ours, theirs): (&usize, &usize)| self.our_texts[*ours].may_be(&self.their_texts[*theirs]);
        if ours.len() == theirs.len() && ours.iter().zip(&theirs).all(may_be) {
            self.pair(ours.into_iter().zip(theirs).collect());
        }
    }

    /// Messages of the user's that the agent has joined with the one before or after.
    fn find_joined(&mut self) {
        let pairs = self.pairs();
        for gap in self.gaps() {
            let (ours, theirs) = self.unpaired(&gap);
            if !theirs.is_empty() {
                continue;
            }
            let before = pairs.partition_point(|(ours, _)| *ours < gap.ours.start).checked_sub(1);
            let after = pairs.partition_point(|(ours, _)| *ours < gap.ours.end);
            let around = [before, Some(after)].into_iter().flatten().filter_map(|place| pairs.get(place));
            let around: Vec<_> = around.collect();
            for number in ours {
                let text = &self.our_texts[number];
                let is_joined = |(partner, theirs): &&(usize, usize)| {
                    self.their_texts[*theirs].joins(text, &self.our_texts[*partner])
                };
                if around.iter().any(is_joined) {
                    self.our_partners[number] = Partner::Elsewhere;
                }
            }
        }
    }

    fn pair(&mut self, pairs: Vec<(usize, usize)>) {
        for (ours, theirs) in pairs {
            self.our_partners[ours] = Partner::Turn(theirs);
            self.their_partners[theirs] = Partner::Turn(ours);
        }
    }

    fn gaps(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let mut start = (0, 0);
        for (ours, theirs) in self.pairs().into_iter().chain([(self.ours.len(), self.theirs.len())]) {
            gaps.push(Gap { ours: start.0..ours, theirs: start.1..theirs });
            start = (ours + 1, theirs + 1);
        }
        gaps.retain(|gap| !gap.ours.is_empty());
        gaps
    }

    fn unpaired(&self, gap: &Gap) -> (Vec<usize>, Vec<usize>) {
        let ours = gap.ours.clone().filter(|number| !self.has_ours(*number));
        let theirs = gap.theirs.clone().filter(|number| !self.has_theirs(*number));
        (ours.collect(), theirs.collect())
    }
}
