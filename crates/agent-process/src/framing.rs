//! Bytes in any chunks to lines with a limit.
//!
//! Comes in: whatever a read returned. Goes out: whole lines, and one [`TooLong`] for each line over the limit, after
//! which framing finds its feet at the next newline. Kept out: I/O, clocks and UTF-8. Any chunking of the same bytes
//! gives the same lines, and no input makes it hold more than one line of the limit and one chunk.

use std::borrow::Cow;

/// The longest line by default. Agents put whole files and images into one message, so it is generous; a program that
/// never ends its line must still meet an end.
pub const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Room offered to each read: what a pipe holds on Linux, so one read empties it.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

/// One line without its line ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    bytes: Vec<u8>,
    ended: bool,
}

impl Line {
    /// The line as it came, valid UTF-8 or not.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The line as it came, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The line as text; what is not UTF-8 shows as `U+FFFD`.
    pub fn to_str_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// Whether there is nothing but white space in it.
    pub fn is_blank(&self) -> bool {
        self.bytes.trim_ascii().is_empty()
    }

    /// False for a last line that the stream broke off before its newline.
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

/// Cuts a stream into lines. Feed it with [`push`](Self::push) or read straight into [`space`](Self::space), take
/// lines until there is none, repeat; at the end of the stream [`finish`](Self::finish) gives what has no newline.
#[derive(Debug)]
pub struct LineFramer {
    limit_bytes: usize,
    buffer: Vec<u8>,
    /// Everything before is handed out.
    start: usize,
    /// `start..scanned` holds no newline, so no byte is searched twice. Never below `start`.
    scanned: usize,
    /// The rest of a line that was too long is dropped up to its newline.
    skipping: bool,
}

impl Default for LineFramer {
    fn default() -> Self {
        Self::new(LINE_BYTES_MAX)
    }
}

impl LineFramer {
    /// A framer for lines of at most `limit_bytes`, their newline not counted.
    pub fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, buffer: Vec::new(), start: 0, scanned: 0, skipping: false }
    }

    /// Appends bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.drop_handed_out();
        self.buffer.extend_from_slice(bytes);
    }

    /// The buffer with room for a read at its end; append to it, change nothing else.
    pub fn space(&mut self) -> &mut Vec<u8> {
        self.drop_handed_out();
        let held = self.buffer.len();
        if self.buffer.capacity() - held < CHUNK_BYTES {
            // Doubling keeps long lines linear; the limit keeps the last doubling from overshooting it.
            let growth = held.min(self.limit_bytes.saturating_sub(held)).saturating_add(CHUNK_BYTES);
            self.buffer.reserve_exact(growth);
        }
        &mut self.buffer
    }

    /// The next whole line, or word that one was too long; `None` when more bytes are needed.
    pub fn next_line(&mut self) -> Option<Result<Line, TooLong>> {
        loop {
            let Some(found) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                return self.check_unended().map(Err);
            };
            let end = self.scanned + found;
            if self.skipping {
                self.skipping = false;
                self.hand_out_to(end + 1);
                continue;
            }
            if end - self.start > self.limit_bytes {
                self.hand_out_to(end + 1);
                return Some(Err(self.too_long()));
            }
            return Some(Ok(self.take(end)));
        }
    }

    /// At the end of the stream, after the last [`next_line`](Self::next_line): a last line without its newline.
    pub fn finish(&mut self) -> Option<Line> {
        let rest = self.buffer.split_off(self.start);
        let skipped = std::mem::take(&mut self.skipping);
        *self = Self::new(self.limit_bytes);
        (!skipped && !rest.is_empty()).then(|| trimmed(rest, false))
    }

    /// What is held has no newline: it may wait for one within the limit, beyond it the memory is given back.
    fn check_unended(&mut self) -> Option<TooLong> {
        let over = self.buffer.len() - self.start > self.limit_bytes;
        if self.skipping {
            self.hand_out_to(self.buffer.len());
        } else if over {
            *self = Self { skipping: true, ..Self::new(self.limit_bytes) };
            return Some(self.too_long());
        }
        None
    }

    fn take(&mut self, end: usize) -> Line {
        // A long line leaves with its buffer, so tens of megabytes are not copied; a short one is copied out, so it
        // does not keep a whole buffer alive.
        if self.start == 0 && end >= CHUNK_BYTES {
            let rest = self.buffer.split_off(end + 1);
            let mut bytes = std::mem::replace(&mut self.buffer, rest);
            bytes.truncate(end);
            self.scanned = 0;
            return trimmed(bytes, true);
        }
        let bytes = self.buffer[self.start..end].to_vec();
        self.hand_out_to(end + 1);
        trimmed(bytes, true)
    }

    fn hand_out_to(&mut self, end: usize) {
        self.start = end;
        self.scanned = end;
    }

    fn drop_handed_out(&mut self) {
        // Called between reads, when what is left is the beginning of one line at most.
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
    }

    fn too_long(&self) -> TooLong {
        TooLong { limit_bytes: self.limit_bytes }
    }
}

fn trimmed(mut bytes: Vec<u8>, ended: bool) -> Line {
    if ended && bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    Line { bytes, ended }
}

#[cfg(test)]
#[path = "framing_tests.rs"]
mod tests;
