//! Two texts → rows.

use std::collections::HashMap;
use std::ops::Range;

use similar::{Algorithm, DiffOp};

use super::rows::{Row, Side};

/// The most lines of both sides together that are compared exactly. An exact comparison is quadratic, some ten
/// milliseconds at worst. Longer edits are split at lines that occur once on both sides; see [`anchors`].
const EXACT_LINES_MAX: usize = 2_000;
/// The step limit for all parts of a long edit together: as many as one part of [`EXACT_LINES_MAX`] needs. What is left
/// is shown as removed and added as a whole.
const STEPS_MAX: usize = EXACT_LINES_MAX * EXACT_LINES_MAX;

pub(super) fn rows<'a>(old: &'a str, new: &'a str, context: usize) -> Vec<Row<'a>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut rows = Vec::new();
    let operations = operations(&old, &new);
    let last = operations.len().saturating_sub(1);
    for (index, operation) in operations.iter().enumerate() {
        match *operation {
            DiffOp::Equal { new_index, len, .. } => {
                let (before, after) = (if index == 0 { 0 } else { context }, if index == last { 0 } else { context });
                equal(&mut rows, &new, new_index, len, before, after);
            }
            DiffOp::Delete { old_index, old_len, .. } => side(&mut rows, Side::Del, &old, old_index, old_len),
            DiffOp::Insert { new_index, new_len, .. } => side(&mut rows, Side::Add, &new, new_index, new_len),
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                side(&mut rows, Side::Del, &old, old_index, old_len);
                side(&mut rows, Side::Add, &new, new_index, new_len);
            }
        }
    }
    rows
}

fn operations(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let prefix = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let suffix = old[prefix..].iter().rev().zip(new[prefix..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_middle, new_middle) = (prefix..old.len() - suffix, prefix..new.len() - suffix);
    let mut operations = Operations::default();
    operations.equal(0, 0, prefix);
    let mut steps_left = STEPS_MAX;
    let (mut old_from, mut new_from) = (old_middle.start, new_middle.start);
    if old_middle.len() + new_middle.len() > EXACT_LINES_MAX {
        for (old_at, new_at) in anchors(old, new, old_middle.clone(), new_middle.clone()) {
            operations.compare(old, new, old_from..old_at, new_from..new_at, &mut steps_left);
            operations.equal(old_at, new_at, 1);
            (old_from, new_from) = (old_at + 1, new_at + 1);
        }
    }
    operations.compare(old, new, old_from..old_middle.end, new_from..new_middle.end, &mut steps_left);
    operations.equal(old_middle.end, new_middle.end, suffix);
    operations.0
}

/// The longest sequence of lines that occur once on each side, in the same order. They did not change, so the parts
/// between them can be compared separately.
fn anchors(old: &[&str], new: &[&str], old_part: Range<usize>, new_part: Range<usize>) -> Vec<(usize, usize)> {
    let mut places: HashMap<&str, (usize, usize, usize, usize)> = HashMap::new();
    for at in old_part {
        let (count, place, ..) = places.entry(old[at]).or_default();
        (*count, *place) = (*count + 1, at);
    }
    for at in new_part {
        if let Some((_, _, count, place)) = places.get_mut(new[at]) {
            (*count, *place) = (*count + 1, at);
        }
    }
    let both = places.into_values().filter(|(in_old, _, in_new, _)| (*in_old, *in_new) == (1, 1));
    let mut pairs: Vec<(usize, usize)> = both.map(|(_, old_at, _, new_at)| (old_at, new_at)).collect();
    pairs.sort_unstable();
    // For each length the pair that ends the best sequence, and for each pair its predecessor.
    let (mut ends, mut before): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
    for (index, (_, new_at)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *new_at);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut sequence = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(index) = next {
        sequence.push(pairs[index]);
        next = before[index];
    }
    sequence.reverse();
    sequence
}

#[derive(Default)]
struct Operations(Vec<DiffOp>);

impl Operations {
    /// Extends the unchanged lines above, if there are any.
    fn equal(&mut self, old_index: usize, new_index: usize, len: usize) {
        match self.0.last_mut() {
            _ if len == 0 => {}
            Some(DiffOp::Equal { len: above, .. }) => *above += len,
            _ => self.0.push(DiffOp::Equal { old_index, new_index, len }),
        }
    }

    fn compare(
        &mut self,
        old: &[&str],
        new: &[&str],
        old_part: Range<usize>,
        new_part: Range<usize>,
        left: &mut usize,
    ) {
        let (old_index, old_len, new_index, new_len) = (old_part.start, old_part.len(), new_part.start, new_part.len());
        match (old_len, new_len) {
            (0, 0) => return,
            (0, _) => return self.0.push(DiffOp::Insert { old_index, new_index, new_len }),
            (_, 0) => return self.0.push(DiffOp::Delete { old_index, old_len, new_index }),
            _ => {}
        }
        let lines = old_len.saturating_add(new_len);
        match left.checked_sub(lines.saturating_mul(lines)) {
            None => self.0.push(DiffOp::Replace { old_index, old_len, new_index, new_len }),
            Some(rest) => {
                *left = rest;
                for mut operation in similar::capture_diff_slices(Algorithm::Myers, &old[old_part], &new[new_part]) {
                    shift(&mut operation, old_index, new_index);
                    match operation {
                        DiffOp::Equal { old_index, new_index, len } => self.equal(old_index, new_index, len),
                        other => self.0.push(other),
                    }
                }
            }
        }
    }
}

fn shift(operation: &mut DiffOp, by_old: usize, by_new: usize) {
    match operation {
        DiffOp::Equal { old_index, new_index, .. }
        | DiffOp::Delete { old_index, new_index, .. }
        | DiffOp::Insert { old_index, new_index, .. }
        | DiffOp::Replace { old_index, new_index, .. } => {
            *old_index += by_old;
            *new_index += by_new;
        }
    }
}

fn side<'a>(rows: &mut Vec<Row<'a>>, side: Side, lines: &[&'a str], start: usize, count: usize) {
    rows.extend((start..start + count).map(|index| Row::Line { side, number: Some(index + 1), text: lines[index] }));
}

/// A range of unchanged lines: some lines next to the changes, the others folded.
fn equal<'a>(rows: &mut Vec<Row<'a>>, new: &[&'a str], start: usize, count: usize, before: usize, after: usize) {
    // A fold of one line would take up as much space as the line.
    if count <= before.saturating_add(after).saturating_add(1) {
        return side(rows, Side::Same, new, start, count);
    }
    side(rows, Side::Same, new, start, before);
    rows.push(Row::Fold(count - before - after));
    side(rows, Side::Same, new, start + count - after, after);
}
