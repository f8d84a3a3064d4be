//! The best common subsequence of two lists: pairs in the order of both, as many as can be, and of those the likeliest.

use std::collections::HashMap;
use std::hash::Hash;

/// How much speaks for a pair. One pair more counts for more than any likelihood.
pub(super) type Weight = u64;

/// The weight of a pair that nothing speaks against.
pub(super) const PAIR: Weight = 1 << 32;

/// More cells are not compared with each other: 16 MB for a moment.
const CELLS_MAX: usize = 16 * 1024 * 1024;
/// Lists with fewer cells are compared from their beginning, so that in doubt the newest is always taken.
const CHEAP_CELLS_MAX: usize = 1024 * 1024;

/// Pairs of the places in `rows` and `columns`. `perfect` is the highest weight there is.
pub(super) fn best_pairs(
    rows: &[usize],
    columns: &[usize],
    perfect: Weight,
    weight: impl Fn(usize, usize) -> Option<Weight>,
) -> Vec<(usize, usize)> {
    // Nothing is gained by leaving a perfect pair at an end out.
    let is_perfect = |(row, column): &(&usize, &usize)| weight(**row, **column) == Some(perfect);
    let tail = rows.iter().rev().zip(columns.iter().rev()).take_while(is_perfect).count();
    let (rows, last_rows) = rows.split_at(rows.len() - tail);
    let (columns, last_columns) = columns.split_at(columns.len() - tail);
    let is_cheap = rows.len().saturating_mul(columns.len()) <= CHEAP_CELLS_MAX;
    let head = if is_cheap { 0 } else { rows.iter().zip(columns).take_while(is_perfect).count() };
    let (first_rows, rows) = rows.split_at(head);
    let (first_columns, columns) = columns.split_at(head);
    let mut pairs: Vec<_> = first_rows.iter().copied().zip(first_columns.iter().copied()).collect();
    if is_small(rows, columns) {
        pairs.extend(compare_all(rows, columns, weight));
    }
    pairs.extend(last_rows.iter().copied().zip(last_columns.iter().copied()));
    pairs
}

/// Whether two lists are short enough to be compared completely.
pub(super) fn is_small(rows: &[usize], columns: &[usize]) -> bool {
    rows.len().saturating_mul(columns.len()) <= CELLS_MAX
}

fn compare_all(
    rows: &[usize],
    columns: &[usize],
    weight: impl Fn(usize, usize) -> Option<Weight>,
) -> Vec<(usize, usize)> {
    #[derive(Clone, Copy)]
    enum Step {
        Pair,
        Row,
        Column,
    }
    let width = columns.len();
    let mut steps = vec![Step::Row; rows.len() * width];
    let mut above = vec![0; width + 1];
    let mut present = vec![0; width + 1];
    for (place, row) in rows.iter().enumerate() {
        for (number, column) in columns.iter().enumerate() {
            // In doubt the newest row.
            let mut best = (present[number], Step::Column);
            if above[number + 1] > best.0 {
                best = (above[number + 1], Step::Row);
            }
            if let Some(paired) = weight(*row, *column).map(|weight| above[number] + weight)
                && paired >= best.0
            {
                best = (paired, Step::Pair);
            }
            present[number + 1] = best.0;
            steps[place * width + number] = best.1;
        }
        std::mem::swap(&mut above, &mut present);
    }
    let mut pairs = Vec::new();
    let (mut place, mut number) = (rows.len(), width);
    while place > 0 && number > 0 {
        match steps[(place - 1) * width + number - 1] {
            Step::Pair => {
                (place, number) = (place - 1, number - 1);
                pairs.push((rows[place], columns[number]));
            }
            Step::Row => place -= 1,
            Step::Column => number -= 1,
        }
    }
    pairs.reverse();
    pairs
}

/// Of pairs that are in the order of their second number, the most that are in the order of the first as well.
pub(super) fn in_order(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // The place of the lowest end of a run of each length, and what is in front of each pair.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (place, (first, _)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].0 < *first);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = place,
            None => ends.push(place),
        }
    }
    let mut run: Vec<_> =
        std::iter::successors(ends.last().copied(), |place| before[*place]).map(|place| pairs[place]).collect();
    run.reverse();
    run
}

/// For lists that are too long: pairs of what occurs once in both, in order.
pub(super) fn unique_pairs<K: Hash + Eq + Copy>(
    rows: &[usize],
    columns: &[usize],
    row_key: impl Fn(usize) -> Option<K>,
    column_key: impl Fn(usize) -> Option<K>,
) -> Vec<(usize, usize)> {
    let mut once: HashMap<K, (Vec<usize>, Vec<usize>)> = HashMap::new();
    for row in rows {
        if let Some(key) = row_key(*row) {
            once.entry(key).or_default().0.push(*row);
        }
    }
    for column in columns {
        if let Some(key) = column_key(*column) {
            once.entry(key).or_default().1.push(*column);
        }
    }
    let pair = |(rows, columns): (Vec<usize>, Vec<usize>)| match (&rows[..], &columns[..]) {
        ([row], [column]) => Some((*row, *column)),
        _ => None,
    };
    let mut pairs: Vec<_> = once.into_values().filter_map(pair).collect();
    pairs.sort_unstable_by_key(|(_, column)| *column);
    in_order(&pairs)
}

/// For lists that are too long even so: each of theirs with the newest of ours that is still free, from the end.
pub(super) fn newest_pairs<K: Hash + Eq + Copy>(
    rows: &[usize],
    columns: &[usize],
    row_key: impl Fn(usize) -> Option<K>,
    column_key: impl Fn(usize) -> Option<K>,
) -> Vec<(usize, usize)> {
    let mut places: HashMap<K, Vec<usize>> = HashMap::new();
    for row in rows {
        if let Some(key) = row_key(*row) {
            places.entry(key).or_default().push(*row);
        }
    }
    let mut pairs = Vec::new();
    let mut end = usize::MAX;
    for column in columns.iter().rev() {
        let Some(rows) = column_key(*column).and_then(|key| places.get(&key)) else { continue };
        if let Some(row) = rows.partition_point(|row| *row < end).checked_sub(1).map(|place| rows[place]) {
            pairs.push((row, *column));
            end = row;
        }
    }
    pairs.reverse();
    pairs
}
