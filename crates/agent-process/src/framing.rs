//! Splits a byte stream into lines of limited length.
//!
//! Comes in: the bytes of each read. Goes out: whole lines, and one [`TooLong`] for each line over the limit; after it
//! framing continues at the next newline. Kept out: I/O, clocks and UTF-8. Any chunking of the same bytes gives the
//! same lines, and no input makes it hold more than one line of the limit and one chunk.

use std::borrow::Cow;

/// The longest line by default. It is generous because agents put whole files and images into one message, but a line
/// that never ends must still hit a limit.
pub const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Free space for each read: the size of a pipe on Linux, so that one read empties it.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

/// One line without its line ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputLine {
    bytes: Vec<u8>,
    ended: bool,
}

impl OutputLine {
    /// The bytes of the line, valid UTF-8 or not.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of the line, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The line as text; invalid UTF-8 becomes `U+FFFD`.
    pub fn to_str_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// Whether it contains only white space.
    pub fn is_blank(&self) -> bool {
        self.bytes.trim_ascii().is_empty()
    }

    /// False for a last line that has no newline because the stream ended.
    pub fn is_ended(&self) -> bool {
        self.ended
    }
}

/// A line exceeded the limit and is being skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than {limit_bytes} bytes")]
pub struct TooLong {
    /// The limit it exceeded.
    pub limit_bytes: usize,
}

/// Splits a stream into lines. Append with [`push`](Self::push) or read straight into [`space`](Self::space), then call
/// [`next_line`](Self::next_line) until it returns `None`, and repeat. At the end of the stream
/// [`finish`](Self::finish) returns the line without a newline.
#[derive(Debug)]
pub struct LineFramer {
    limit_bytes: usize,
    buffer: Vec<u8>,
    /// Everything before this index has been returned.
    start: usize,
    /// `start..scanned` holds no newline, so no byte is searched twice. Never below `start`.
    scanned: usize,
    /// A line was too long: its remaining bytes are dropped up to the newline.
    skipping: bool,
}

impl Default for LineFramer {
    fn default() -> Self {
        Self::new(LINE_BYTES_MAX)
    }
}

impl LineFramer {
    /// A framer for lines of at most `limit_bytes`, without their newline.
    pub fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, buffer: Vec::new(), start: 0, scanned: 0, skipping: false }
    }

    /// Appends bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.drop_returned();
        self.buffer.extend_from_slice(bytes);
    }

    /// The buffer, with free space for a read. Only append to it.
    pub fn space(&mut self) -> &mut Vec<u8> {
        self.drop_returned();
        let held = self.buffer.len();
        if self.buffer.capacity() - held < CHUNK_BYTES {
            // Doubling keeps the cost of long lines linear; the limit keeps the last doubling from overshooting it.
            let growth = held.min(self.limit_bytes.saturating_sub(held)).saturating_add(CHUNK_BYTES);
            self.buffer.reserve_exact(growth);
        }
        &mut self.buffer
    }

    /// The next whole line, or the error that one was too long; `None` when more bytes are needed.
    pub fn next_line(&mut self) -> Option<Result<OutputLine, TooLong>> {
        loop {
            let Some(found) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                return self.check_unended().map(Err);
            };
            let end = self.scanned + found;
            if self.skipping {
                self.skipping = false;
                self.mark_returned(end + 1);
                continue;
            }
            if end - self.start > self.limit_bytes {
                self.mark_returned(end + 1);
                return Some(Err(self.too_long()));
            }
            return Some(Ok(self.take(end)));
        }
    }

    /// At the end of the stream, after the last [`next_line`](Self::next_line): the last line, if it has no newline.
    pub fn finish(&mut self) -> Option<OutputLine> {
        let rest = self.buffer.split_off(self.start);
        let skipped = std::mem::take(&mut self.skipping);
        *self = Self::new(self.limit_bytes);
        (!skipped && !rest.is_empty()).then(|| trimmed(rest, false))
    }

    /// The buffer holds no newline. Within the limit it waits for one; over the limit its memory is freed.
    fn check_unended(&mut self) -> Option<TooLong> {
        let over = self.buffer.len() - self.start > self.limit_bytes;
        if self.skipping {
            self.mark_returned(self.buffer.len());
        } else if over {
            *self = Self { skipping: true, ..Self::new(self.limit_bytes) };
            return Some(self.too_long());
        }
        None
    }

    fn take(&mut self, end: usize) -> OutputLine {
        // A long line takes the buffer with it, so that megabytes are not copied. A short line is copied, so that it
        // does not keep a large buffer alive.
        if self.start == 0 && end >= CHUNK_BYTES {
            let rest = self.buffer.split_off(end + 1);
            let mut bytes = std::mem::replace(&mut self.buffer, rest);
            bytes.truncate(end);
            self.scanned = 0;
            return trimmed(bytes, true);
        }
        let bytes = self.buffer[self.start..end].to_vec();
        self.mark_returned(end + 1);
        trimmed(bytes, true)
    }

    fn mark_returned(&mut self, end: usize) {
        self.start = end;
        self.scanned = end;
    }

    fn drop_returned(&mut self) {
        // Called between reads, when at most the beginning of one line is left.
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
    }

    fn too_long(&self) -> TooLong {
        TooLong { limit_bytes: self.limit_bytes }
    }
}

fn trimmed(mut bytes: Vec<u8>, ended: bool) -> OutputLine {
    if ended && bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    OutputLine { bytes, ended }
}

#[cfg(test)]
#[path = "framing_tests.rs"]
mod tests;
