//! Two texts → rows.

use similar::{Algorithm, DiffOp};

use super::rows::{Row, Side};

/// Beyond this many pairs of lines to compare, what differs is shown as removed and added as a whole: the exact answer
/// would take seconds and nobody reads such an edit line by line.
const PAIRS_MAX: usize = 25_000_000;

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
    let (old_middle, new_middle) = (&old[prefix..old.len() - suffix], &new[prefix..new.len() - suffix]);
    let mut operations = Vec::new();
    if prefix > 0 {
        operations.push(DiffOp::Equal { old_index: 0, new_index: 0, len: prefix });
    }
    if old_middle.len().saturating_mul(new_middle.len()) > PAIRS_MAX {
        operations.push(DiffOp::Replace {
            old_index: prefix,
            old_len: old_middle.len(),
            new_index: prefix,
            new_len: new_middle.len(),
        });
    } else {
        for mut operation in similar::capture_diff_slices(Algorithm::Myers, old_middle, new_middle) {
            shift(&mut operation, prefix);
            operations.push(operation);
        }
    }
    if suffix > 0 {
        operations.push(DiffOp::Equal { old_index: old.len() - suffix, new_index: new.len() - suffix, len: suffix });
    }
    operations
}

fn shift(operation: &mut DiffOp, by: usize) {
    match operation {
        DiffOp::Equal { old_index, new_index, .. }
        | DiffOp::Delete { old_index, new_index, .. }
        | DiffOp::Insert { old_index, new_index, .. }
        | DiffOp::Replace { old_index, new_index, .. } => {
            *old_index += by;
            *new_index += by;
        }
    }
}

fn side<'a>(rows: &mut Vec<Row<'a>>, side: Side, lines: &[&'a str], start: usize, count: usize) {
    rows.extend((start..start + count).map(|index| Row::Line { side, number: Some(index + 1), text: lines[index] }));
}

/// An unchanged stretch: some lines next to the changes, the rest folded.
fn equal<'a>(rows: &mut Vec<Row<'a>>, new: &[&'a str], start: usize, count: usize, before: usize, after: usize) {
    // A fold of one line would take the line's place.
    if count <= before.saturating_add(after).saturating_add(1) {
        return side(rows, Side::Same, new, start, count);
    }
    side(rows, Side::Same, new, start, before);
    rows.push(Row::Fold(count - before - after));
    side(rows, Side::Same, new, start + count - after, after);
}
