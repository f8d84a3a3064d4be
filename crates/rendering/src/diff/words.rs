//! The changed words of two lines that replace each other.

use std::ops::Range;

use similar::{Algorithm, DiffOp};

/// Longer lines are marked as changed as a whole.
const LINE_BYTES_MAX: usize = 1_000;
/// Lines with more words together are too: the comparison is quadratic.
const WORDS_MAX: usize = 600;
/// The step limit for all lines of one edit together. Enough for two thousand ordinary lines, some ten milliseconds at
/// worst.
const STEPS_MAX: usize = 4_000_000;

/// The steps that one edit may still use to compare words.
#[derive(Debug)]
pub(super) struct Steps(usize);

impl Default for Steps {
    fn default() -> Self {
        Self(STEPS_MAX)
    }
}

/// Parts of a line.
pub(super) type Parts = Vec<Range<usize>>;

/// The parts of `old` and `new` that are not in the other; `None` if the two have too little in common to be versions
/// of one line, or if the comparison would take too many steps.
pub(super) fn changed(old: &str, new: &str, steps: &mut Steps) -> Option<(Parts, Parts)> {
    if old.len() > LINE_BYTES_MAX || new.len() > LINE_BYTES_MAX {
        return None;
    }
    let (old_words, new_words) = (words(old), words(new));
    let count = old_words.len() + new_words.len();
    if count > WORDS_MAX {
        return None;
    }
    steps.0 = steps.0.checked_sub(count * count)?;
    let texts = |line: &str, words: &[Range<usize>]| -> Vec<String> {
        words.iter().map(|word| line[word.clone()].to_owned()).collect()
    };
    let operations = similar::capture_diff_slices(Algorithm::Myers, &texts(old, &old_words), &texts(new, &new_words));
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let mut shared = 0;
    for operation in operations {
        match operation {
            DiffOp::Equal { old_index, len, .. } => {
                shared += old_words[old_index..old_index + len]
                    .iter()
                    .map(|word| old[word.clone()].trim().len())
                    .sum::<usize>();
            }
            other => {
                extend(&mut removed, &old_words[other.old_range()]);
                extend(&mut added, &new_words[other.new_range()]);
            }
        }
    }
    let longer = old.trim().len().max(new.trim().len());
    (shared * 3 >= longer).then_some((removed, added))
}

fn extend(ranges: &mut Vec<Range<usize>>, words: &[Range<usize>]) {
    let (Some(first), Some(last)) = (words.first(), words.last()) else { return };
    ranges.push(first.start..last.end);
}

/// Words, runs of white space, and every other character separately.
fn words(line: &str) -> Parts {
    let class = |c: char| {
        if c.is_alphanumeric() || c == '_' {
            1
        } else if c.is_whitespace() {
            2
        } else {
            0
        }
    };
    let mut words = Parts::new();
    let mut last = 0;
    for (at, c) in line.char_indices() {
        let end = at + c.len_utf8();
        match words.last_mut() {
            Some(word) if class(c) != 0 && class(c) == last => word.end = end,
            _ => words.push(at..end),
        }
        last = class(c);
    }
    words
}
