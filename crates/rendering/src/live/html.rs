//! The HTML of a block that grows at its end.

use super::changes::Position;

/// The HTML of a block whose first part is settled; only the remainder is rewritten.
#[derive(Debug, Default)]
pub(super) struct OpenHtml {
    html: String,
    settled: usize,
    settled_utf16: usize,
    /// Where the last change started, if there was one.
    changed: Option<usize>,
}

impl OpenHtml {
    pub(super) fn new(html: String) -> Self {
        Self { html, ..Self::default() }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.html
    }

    /// Settles everything up to this byte.
    pub(super) fn settle(&mut self, bytes: usize) {
        self.settled_utf16 += utf16(&self.html[self.settled..bytes]);
        self.settled = bytes;
    }

    /// Makes everything after this byte changeable again.
    pub(super) fn unsettle(&mut self, bytes: usize) {
        self.settled_utf16 = self.utf16_until(bytes);
        self.settled = bytes;
    }

    /// Replaces the part that is not settled. `settled` becomes settled, `rest` and `close` may be replaced again.
    pub(super) fn append(&mut self, settled: &str, rest: &str, close: &str) {
        let old = self.html.split_off(self.settled);
        self.html.push_str(settled);
        self.html.push_str(rest);
        self.html.push_str(close);
        let new = &self.html[self.settled..];
        self.changed = (old != new).then(|| self.settled + common_prefix(&old, new));
        self.settle(self.settled + settled.len());
    }

    /// Replaces everything from `from` up to the last `close` bytes. Returns how much of it is unchanged, unless all
    /// is.
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

    /// The number of UTF-16 units of the first `bytes` bytes.
    pub(super) fn utf16_until(&self, bytes: usize) -> usize {
        if bytes >= self.settled {
            self.settled_utf16 + utf16(&self.html[self.settled..bytes])
        } else {
            self.settled_utf16 - utf16(&self.html[bytes..self.settled])
        }
    }

    /// Where the last [`append`](Self::append) changed the HTML, if it did.
    pub(super) fn change(&self) -> Option<Position> {
        let bytes = self.changed?;
        // The end of the settled part may now be after the change.
        Some(Position { block: 0, bytes, utf16: self.utf16_until(bytes) })
    }
}

/// The length in bytes of the common prefix of two texts, in whole characters.
pub(super) fn common_prefix(a: &str, b: &str) -> usize {
    let mut length = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    while !a.is_char_boundary(length) || !b.is_char_boundary(length) {
        length -= 1;
    }
    length
}

pub(super) fn utf16(text: &str) -> usize {
    // Every character is one unit; characters of four bytes are two.
    text.bytes().map(|byte| usize::from(byte & 0xC0 != 0x80) + usize::from(byte >= 0xF0)).sum()
}
