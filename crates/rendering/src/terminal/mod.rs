//! The output of a command, as a terminal shows it.
//!
//! Comes in: text with escape sequences, in any chunks. Goes out: one `<div class="line">…</div>` per line, coloured by
//! classes (`<span class="fg1 bold">`), carriage returns and progress bars resolved; the middle of long output as one
//! `<div class="cut" data-count="1200">⋯ 1,200 lines</div>`. Kept out: full-screen programs; their lines are shown as
//! they were written.
//!
//! Lines that the cursor can still reach are kept as cells, the others as HTML, and of those only a head and a tail.

mod escapes;
mod screen;
mod style;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::cut::{Cut, Lines, gap_into};
use crate::live::{BlockPatch, Changes, Mark, Position};
use crate::sanitize::sanitize;
use escapes::Parser;
use screen::Screen;

/// A command's output, complete.
pub fn terminal(text: &str, cut: Cut) -> Lines {
    let mut live = LiveTerminal::new(cut);
    live.push(text);
    let mut html = String::from("<div class=\"terminal\">");
    for block in live.blocks() {
        html.push_str(&block);
    }
    html.push_str("</div>");
    Lines { html, lines: live.lines(), hidden: live.hidden() }
}

/// A command's output while it is printed. Its blocks are lines; patches and marks are those of
/// [`LiveMarkdown`](crate::LiveMarkdown).
#[derive(Debug)]
pub struct LiveTerminal {
    cut: Cut,
    parser: Parser,
    screen: Screen,
    /// The first lines of the output.
    head: Vec<Arc<str>>,
    /// How many lines were dropped after them.
    hidden: usize,
    /// The lines after those. Up to twice the cut's tail: dropping them in batches keeps the cost of updating readers
    /// proportional to the output.
    tail: VecDeque<Arc<str>>,
    /// The screen's lines as they were last shown.
    shown: Vec<Arc<str>>,
    changes: Changes,
}

impl LiveTerminal {
    pub fn new(cut: Cut) -> Self {
        Self {
            cut,
            parser: Parser::default(),
            screen: Screen::default(),
            head: Vec::new(),
            hidden: 0,
            tail: VecDeque::new(),
            shown: Vec::new(),
            changes: Changes::default(),
        }
    }

    /// Appends output.
    pub fn push(&mut self, chunk: &str) {
        let (first, old) = (self.settled_blocks(), std::mem::take(&mut self.shown));
        let (mut left, mut dropped) = (0, false);
        // How many of the old lines are unchanged; a line that scrolls off the screen does not change for a reader.
        let mut same = 0;
        for c in chunk.chars() {
            let Some(action) = self.parser.step(c) else { continue };
            self.screen.act(action);
            while let Some(row) = self.screen.scroll_off() {
                let line: Arc<str> = sanitize(row.html()).into();
                same += usize::from(same == left && old.get(left) == Some(&line));
                left += 1;
                dropped |= self.keep(line);
            }
        }
        let stayed = old.get(left..).unwrap_or_default();
        let untouched = self.screen.untouched().min(stayed.len());
        self.shown.extend_from_slice(&stayed[..untouched]);
        self.shown.extend(self.screen.rows().skip(untouched).map(|row| Arc::from(sanitize(row.html()))));
        if same == left {
            same += stayed.iter().zip(&self.shown).take_while(|(old, new)| old == new).count();
        }
        if dropped {
            self.changes.record(Position::block(self.head.len().min(first + same)));
        } else if same < old.len() || same < left + self.shown.len() {
            self.changes.record(Position::block(first + same));
        }
    }

    /// Keeps a line that scrolled off the screen. Returns whether other lines were dropped for it.
    fn keep(&mut self, line: Arc<str>) -> bool {
        if self.head.len() < self.cut.head {
            self.head.push(line);
            return false;
        }
        self.tail.push_back(line);
        if self.tail.len() <= self.cut.tail.saturating_mul(2) {
            return false;
        }
        let dropped = self.tail.len() - self.cut.tail;
        self.tail.drain(..dropped);
        self.hidden += dropped;
        true
    }

    /// Blocks before the screen's own lines.
    fn settled_blocks(&self) -> usize {
        self.head.len() + usize::from(self.hidden > 0) + self.tail.len()
    }

    /// The number of lines so far, including the hidden ones.
    pub fn lines(&self) -> usize {
        self.head.len() + self.hidden + self.tail.len() + self.shown.len()
    }

    /// Lines that are not kept.
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// All lines that are kept, as they are now.
    pub fn blocks(&self) -> Vec<Arc<str>> {
        let gap = (self.hidden > 0).then(|| {
            let mut html = String::new();
            gap_into(&mut html, "cut", self.hidden);
            Arc::from(html)
        });
        self.head
            .iter()
            .cloned()
            .chain(gap)
            .chain(self.tail.iter().cloned())
            .chain(self.shown.iter().cloned())
            .collect()
    }

    /// The mark of a reader that has everything so far.
    pub fn mark(&self) -> Mark {
        self.changes.mark()
    }

    /// How a reader at `mark` gets up to date.
    pub fn patch_since(&self, mark: Mark) -> BlockPatch {
        let from = self.changes.since(mark).map_or(self.settled_blocks() + self.shown.len(), |position| position.block);
        let html = self.blocks().iter().skip(from).map(|line| line.to_string()).collect();
        BlockPatch { from, keep: 0, html }
    }
}
