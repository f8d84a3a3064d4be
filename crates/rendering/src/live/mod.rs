//! Markdown that is still growing.
//!
//! Comes in: text, appended in any chunks. Goes out: the blocks of a full render of the text so far, identical to the
//! byte, and for every reader the difference from what it has. Kept out: when to send, and to which reader.
//!
//! Why the cost stays linear:
//! - Blocks that nothing can change any more are *settled*: never parsed or rendered again (see [`settle`]).
//! - Of the remainder, usually one open block, only the end is parsed again: for an open code fence from its last line
//!   ([`fence`]); for other blocks from the last word, block, item or line before which nothing can change ([`open`],
//!   [`restart`]).
//! - Plain text added to an open paragraph, and anything added to a line of code, is not parsed at all ([`plain`]).
//! - A link definition takes effect when its line or the text is complete. Otherwise everything that refers to it would
//!   be rendered and sent again at each chunk while its address grows.
//! - A definition affects earlier text: settled blocks that refer to a label are rendered again when its definition
//!   changes.
//! - [`changes`] records where each change started, so a reader gets only what it lacks, even after such a change.

mod changes;
mod fence;
mod guard;
mod html;
mod open;
mod paragraph;
mod plain;
mod restart;
mod settle;
mod tail;

use std::sync::Arc;

pub use changes::Mark;
pub(crate) use changes::{Changes, Position};
use settle::{Absorbed, Settled};
use tail::{Grown, Tail};

use crate::markdown::ODD_SPACES;

/// A growing text, as blocks of safe HTML.
#[derive(Debug, Default)]
pub struct LiveMarkdown {
    /// The text so far, with `
    /// ` as the only line ending, and with odd spaces replaced.
    text: String,
    /// The last character was a `\r`; a following `
    /// ` belongs to the same line ending.
    after_return: bool,
    settled: Settled,
    tail: Tail,
    changes: Changes,
    /// How many bytes of the text the blocks show: all, except what is held back at the end.
    shown: usize,
    /// How many bytes of the tail each chunk has parsed again, if that is a flood of marks; otherwise 0.
    flood_bytes: usize,
}

/// So many marks in what each chunk parses again are a flood, not text for people: the parser found no position from
/// which it could start. A flood is parsed again only after it has grown by a fraction; all other texts are shown
/// completely at once.
const FLOOD_MARKS_MIN: usize = 2_000;
/// Marks that may have to be closed, or may close something, far away.
const MARKS: &[u8] = b"[]*_`~<";
/// This fraction: all parsing of a flood together then reads at most so many times the text.
const FLOOD_PARTS: usize = 64;

/// Whether a text is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// More may follow: a link definition in an incomplete last line is held back.
    Open,
    Complete,
}

/// How a reader gets up to date: keep the first `from` blocks; keep the first `keep` UTF-16 units of block `from` and
/// append `html[0]` to them; add the remaining `html` as further blocks. Anything else the reader had is dropped. With
/// an empty `html`, `from` blocks remain.
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
        // The number of the tail's first block until `absorb`; changes in the tail are relative to it.
        let first_tail_block = self.settled.blocks.len();
        let source = &self.text[self.settled.bytes..];
        if let Some(Grown { changed }) = self.tail.grow_plain(source, self.shown - self.settled.bytes) {
            self.shown = self.text.len();
            return self.record(first_tail_block, changed);
        }
        let waiting = &self.text[self.shown..];
        if waiting.len() < self.flood_bytes / FLOOD_PARTS && !waiting.contains("\n\n") {
            return;
        }
        self.render(Ending::Open);
    }

    /// The text is complete, and so is its last line. From now on the blocks equal those of
    /// [`markdown`](crate::markdown).
    pub fn finish(&mut self) {
        if self.shown < self.text.len() {
            self.render(Ending::Complete);
        }
    }

    /// How many bytes of the text are shown, with each line ending counted as one byte. It is the whole text, except
    /// for a link definition in an incomplete last line and the end of a flood of marks. [`finish`](Self::finish) shows
    /// these too.
    pub fn shown_len(&self) -> usize {
        self.shown
    }

    fn render(&mut self, ending: Ending) {
        self.render_tail(ending);
        let tail = &self.text[self.settled.bytes..];
        let again = &tail[self.tail.parsed_from(tail)..];
        self.flood_bytes = if is_flood(again) { again.len() } else { 0 };
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

fn is_flood(text: &str) -> bool {
    text.len() > FLOOD_MARKS_MIN && text.bytes().filter(|byte| MARKS.contains(byte)).count() > FLOOD_MARKS_MIN
}
