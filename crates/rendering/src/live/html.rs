//! The HTML of a block that grows at its end.

use super::changes::Position;

/// A block of which a first part is settled and only the rest is written again.
#[derive(Debug, Default)]
pub(super) struct OpenHtml {
    html: String,
    settled: usize,
    settled_utf16: usize,
    /// Where the last change began, if it was one.
    changed: Option<usize>,
}

impl OpenHtml {
    pub(super) fn new(html: String) -> Self {
        Self { html, ..Self::default() }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.html
    }

    /// Settles everything up to a position.
    pub(super) fn settle(&mut self, bytes: usize) {
        self.settled_utf16 += utf16(&self.html[self.settled..bytes]);
        self.settled = bytes;
    }

    /// Takes back what was settled after a position.
    pub(super) fn unsettle(&mut self, bytes: usize) {
        self.settled_utf16 = self.utf16_until(bytes);
        self.settled = bytes;
    }

    /// Replaces what is not settled: `settled` is from now on, `rest` and `close` may be replaced again.
    pub(super) fn go_on(&mut self, settled: &str, rest: &str, close: &str) {
        let old = self.html.split_off(self.settled);
        self.html.push_str(settled);
        self.html.push_str(rest);
        self.html.push_str(close);
        let new = &self.html[self.settled..];
        self.changed = (old != new).then(|| self.settled + common_prefix(&old, new));
        self.settle(self.settled + settled.len());
    }

    /// Replaces everything from `from` up to the last `close` bytes. Says how much of it stayed, if not all did.
    pub(super) fn replace(&mut self, from: usize, close: usize, with: &str) -> Option<usize> {
        let range = from..self.html.len() - close;
        let old = &self.html[range.clone()];
        if old == with {
            return None;
        }
        let common = common_prefix(old, with);
        self.html.replace_range(range.start + common..range.end, &with[common..]);
        Some(common)
    }

    /// How many UTF-16 units the first so many bytes are.
    pub(super) fn utf16_until(&self, bytes: usize) -> usize {
        if bytes >= self.settled {
            self.settled_utf16 + utf16(&self.html[self.settled..bytes])
        } else {
            self.settled_utf16 - utf16(&self.html[bytes..self.settled])
        }
    }

    /// Where the last [`go_on`](Self::go_on) made a difference, if it did.
    pub(super) fn change(&self) -> Option<Position> {
        let bytes = self.changed?;
        // What was just settled may lie behind the change.
        Some(Position { block: 0, bytes, utf16: self.utf16_until(bytes) })
    }
}

/// How many bytes two texts have in common at their start, in whole characters.
pub(super) fn common_prefix(a: &str, b: &str) -> usize {
    let mut length = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    while !a.is_char_boundary(length) || !b.is_char_boundary(length) {
        length -= 1;
    }
    length
}

pub(super) fn utf16(text: &str) -> usize {
    // Every character is one unit, those of four bytes are two.
    text.bytes().map(|byte| usize::from(byte & 0xC0 != 0x80) + usize::from(byte >= 0xF0)).sum()
}
