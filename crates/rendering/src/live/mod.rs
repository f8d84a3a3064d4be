//! Markdown that is still being written.
//!
//! Comes in: text, appended in any chunks. Goes out: the blocks of a full render of the text so far, to the byte, and for
//! every reader the difference to what it has. Kept out: when to send, and to whom.
//!
//! How it stays linear:
//! - Blocks nothing can change any more are *settled*: never parsed or rendered again (see [`settle`]).
//! - Of the rest, usually one open block, only the end is parsed again: from the last line of an open code fence
//!   ([`fence`]); from the last word, block, item or line before which nothing can change in all others ([`open`],
//!   [`restart`]).
//! - Plain words that are added to any open text, and whatever is added to a line of code, are not parsed at all
//!   ([`plain`]).
//! - A link definition counts when its line is complete or the text is: while its address grows, everything that mentions
//!   it would be rendered and sent again at each chunk.
//! - Definitions act at a distance. Settled blocks that mention a label are rendered again when its meaning changes.
//! - [`changes`] remembers where each change began, so a reader gets only what it lacks, even after such a rewind.

mod changes;
mod fence;
mod guard;
mod html;
mod open;
mod plain;
mod restart;
mod settle;
mod tail;
mod words;

use std::sync::Arc;

pub use changes::Mark;
pub(crate) use changes::{Changes, Position};
use settle::{Absorbed, Settled};
use tail::{Grown, Tail};

use crate::markdown::ODD_SPACES;

/// A text that grows, as blocks of safe HTML.
#[derive(Debug, Default)]
pub struct LiveMarkdown {
    /// All text so far, with `\n` as the only line ending, and no odd spaces.
    text: String,
    /// The last character was a `\r`; a `\n` that follows is part of the same line ending.
    after_return: bool,
    settled: Settled,
    tail: Tail,
    changes: Changes,
    /// How much of the text the blocks show: all, but for what is held back at its end.
    shown: usize,
    /// The tail was a flood of open brackets when it was parsed last.
    is_flood: bool,
}

/// So many brackets that are not closed in one tail are a flood, never something that is written to be read. Each of them
/// keeps the tail open from its start: it would be parsed from there at every chunk. A flood is parsed again only after it
/// has grown by a part of it; all other texts are shown to their end at once.
const OPEN_BRACKETS_MAX: usize = 2_000;
/// How large a part: all that is parsed for a flood is then at most so many times as much as the text.
const FLOOD_PARTS: usize = 64;

/// Whether a text is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// More may come: a link definition in a last line without an end is held back.
    Open,
    Complete,
}

/// What a reader must do to be up to date: keep the first `from` blocks, keep the first `keep` UTF-16 units of block
/// `from` and continue it with `html[0]`, append the rest of `html` as further blocks. Whatever the reader had beyond
/// that is dropped; with no `html` at all, `from` blocks remain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockPatch {
    pub from: usize,
    pub keep: usize,
    pub html: Vec<String>,
}

impl LiveMarkdown {
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends text.
    pub fn push(&mut self, chunk: &str) {
        let before = self.text.len();
        self.append(chunk);
        if self.text.len() == before {
            return;
        }
        // Until `absorb`, the tail's first block has this number; a change in the tail is counted from it.
        let first_tail_block = self.settled.blocks.len();
        let source = &self.text[self.settled.bytes..];
        if let Some(Grown { changed }) = self.tail.grow_words(source, self.shown - self.settled.bytes) {
            self.shown = self.text.len();
            return self.record(first_tail_block, changed);
        }
        let waiting = &self.text[self.shown..];
        if self.is_flood && waiting.len() < source.len() / FLOOD_PARTS && !waiting.contains("\n\n") {
            return;
        }
        self.render(Ending::Open);
    }

    /// Nothing more comes: the last line is complete. The blocks are those of [`markdown`](crate::markdown) from now on.
    pub fn finish(&mut self) {
        if self.shown < self.text.len() {
            self.render(Ending::Complete);
        }
    }

    /// How much of the text is shown, in bytes as [`text_len`](Self::text_len) counts them. It is all of it, but for a link
    /// definition in a last line that may still grow, and for the end of a flood of open brackets. [`finish`](Self::finish)
    /// shows the rest.
    pub fn shown_len(&self) -> usize {
        self.shown
    }

    fn render(&mut self, ending: Ending) {
        self.render_tail(ending);
        self.is_flood = is_flood(&self.text[self.settled.bytes..]);
    }

    fn render_tail(&mut self, ending: Ending) {
        let first_tail_block = self.settled.blocks.len();
        let source = &self.text[self.settled.bytes..];
        if let Some(Grown { changed }) = self.tail.grow(source, &self.settled.definitions) {
            self.shown = self.text.len();
            return self.record(first_tail_block, changed);
        }
        let mut rendered = self.tail.render(source, &self.settled.definitions);
        self.shown = self.text.len();
        let last_line = source.rfind('\n').map_or(0, |end| end + 1);
        let is_held = ending == Ending::Open && rendered.has_link_definition_after(last_line);
        if is_held {
            self.shown = self.settled.bytes + last_line;
            rendered = self.tail.render(&source[..last_line], &self.settled.definitions);
        }
        let Absorbed { rewound, open } = self.settled.absorb(&self.text[..self.shown], rendered);
        let left = &self.settled.blocks[first_tail_block..];
        let rest = &self.text[self.settled.bytes..self.shown];
        let outside = self.settled.rest_defines_nothing(rest).then_some(&self.settled.definitions);
        let changed = self.tail.replace(left, open, rest, outside);
        if is_held {
            self.tail.close();
        }
        match rewound {
            Some(position) => self.changes.record(position),
            None => self.record(first_tail_block, changed),
        }
    }

    fn record(&mut self, first_tail_block: usize, changed: Option<Position>) {
        if let Some(position) = changed {
            self.changes.record(Position { block: first_tail_block + position.block, ..position });
        }
    }

    fn append(&mut self, chunk: &str) {
        let evened = chunk.contains(ODD_SPACES).then(|| chunk.replace(ODD_SPACES, " "));
        let mut rest = evened.as_deref().unwrap_or(chunk);
        if self.after_return && !rest.is_empty() {
            self.after_return = false;
            rest = rest.strip_prefix('\n').unwrap_or(rest);
        }
        while let Some(at) = rest.find('\r') {
            self.text.push_str(&rest[..at]);
            self.text.push('\n');
            rest = &rest[at + 1..];
            match rest.strip_prefix('\n') {
                Some(after) => rest = after,
                None if rest.is_empty() => self.after_return = true,
                None => {}
            }
        }
        self.text.push_str(rest);
    }

    /// All blocks as they are now.
    pub fn blocks(&self) -> Vec<Arc<str>> {
        let tail = self.tail.blocks().map(Arc::from);
        self.settled.blocks.iter().cloned().chain(tail).collect()
    }

    /// What a reader that has been given everything so far has seen. [`Mark::default`] has seen nothing.
    pub fn mark(&self) -> Mark {
        self.changes.mark()
    }

    /// What a reader at `mark` must do to be up to date. Doing it twice does no harm.
    pub fn patch_since(&self, mark: Mark) -> BlockPatch {
        let settled = &self.settled.blocks;
        let tail = self.tail.blocks();
        let Some(position) = self.changes.since(mark) else {
            return BlockPatch { from: settled.len() + tail.len(), ..BlockPatch::default() };
        };
        let changed_settled = settled.iter().skip(position.block).map(|html| &**html);
        let changed_tail = tail.skip(position.block.saturating_sub(settled.len()));
        let mut html: Vec<&str> = changed_settled.chain(changed_tail).collect();
        if let Some(first) = html.first_mut() {
            *first = &first[position.bytes..];
        }
        BlockPatch { from: position.block, keep: position.utf16, html: html.into_iter().map(str::to_owned).collect() }
    }
}

fn is_flood(tail: &str) -> bool {
    let count = |bracket| tail.bytes().filter(|byte| *byte == bracket).count();
    tail.len() > OPEN_BRACKETS_MAX && count(b'[') > OPEN_BRACKETS_MAX + count(b']')
}
