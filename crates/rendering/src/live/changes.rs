//! Which blocks have changed since when, so that every reader gets only what it lacks.
//!
//! Each change of the rendered blocks has a number and a position: everything before the position is unchanged. A
//! reader that has seen change *n* is up to date before the smallest position of all changes after *n*.

use std::cmp::Ordering;

/// How many changes are recorded exactly; older ones are merged more and more.
const EXACT: usize = 512;

/// What a reader has seen: all changes up to this number. The default has seen nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(u64);

/// A position in the rendered blocks: the number of whole blocks, and of bytes (and UTF-16 units) of the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) block: usize,
    pub(crate) bytes: usize,
    pub(crate) utf16: usize,
}

impl Position {
    pub(crate) fn block(block: usize) -> Self {
        Self { block, bytes: 0, utf16: 0 }
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Position {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.block, self.bytes).cmp(&(other.block, other.bytes))
    }
}

/// The changes that still matter: their numbers and positions both increase.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    latest: Mark,
    log: Vec<(Mark, Position)>,
}

impl Changes {
    pub(crate) fn mark(&self) -> Mark {
        self.latest
    }

    /// Everything from `position` on may have changed.
    pub(crate) fn record(&mut self, position: Position) {
        self.latest.0 += 1;
        // A change at an earlier position covers the ones at later positions.
        while self.log.last().is_some_and(|(_, last)| *last >= position) {
            self.log.pop();
        }
        self.log.push((self.latest, position));
        if self.log.len() > 2 * EXACT {
            self.coarsen();
        }
    }

    /// The position up to which a reader at `mark` is up to date; `None` if it has everything.
    pub(crate) fn since(&self, mark: Mark) -> Option<Position> {
        let next = self.log.partition_point(|(number, _)| *number <= mark);
        self.log.get(next).map(|(_, position)| *position)
    }

    /// Merges pairs of changes in the older half: the later number with the earlier position. An old reader may get a
    /// little more than it lacks, never less.
    fn coarsen(&mut self) {
        for pair in 0..EXACT / 2 {
            self.log[pair] = (self.log[2 * pair + 1].0, self.log[2 * pair].1);
        }
        self.log.drain(EXACT / 2..EXACT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(block: usize, bytes: usize) -> Position {
        Position { block, bytes, utf16: bytes }
    }

    #[test]
    fn a_reader_lacks_everything_after_the_topmost_change_it_missed() {
        let mut changes = Changes::default();
        changes.record(at(0, 0));
        changes.record(at(3, 5));
        let mark = changes.mark();
        changes.record(at(4, 0));
        assert_eq!(changes.since(mark), Some(at(4, 0)));
        changes.record(at(2, 7));
        changes.record(at(9, 0));
        assert_eq!(changes.since(mark), Some(at(2, 7)));
        assert_eq!(changes.since(Mark::default()), Some(at(0, 0)));
        assert_eq!(changes.since(changes.mark()), None);
    }

    #[test]
    fn a_long_log_stays_short_and_never_omits_a_change() {
        let mut changes = Changes::default();
        let mut marks = Vec::new();
        for bytes in 0..10_000 {
            changes.record(at(0, bytes));
            marks.push(changes.mark());
        }
        assert!(changes.log.len() <= 2 * EXACT);
        for (bytes, mark) in marks.iter().enumerate().take(9_999) {
            assert!(changes.since(*mark).unwrap() <= at(0, bytes + 1));
        }
        assert_eq!(changes.since(marks[9_900]), Some(at(0, 9_901)), "recent readers are exact");
    }
}
