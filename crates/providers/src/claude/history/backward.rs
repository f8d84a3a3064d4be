//! The lines of a file, last one first, without reading more of it than is asked for.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What one read takes, at least. A longer line makes the reads longer, so that its cost stays linear.
const CHUNK_BYTES: usize = 128 * 1024;
/// A longer line is passed over; it could not be shown anyway.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Reads lines from an offset back to the beginning.
#[derive(Debug)]
pub(super) struct BackwardLines<'a> {
    file: &'a File,
    /// Bytes of the file from `start` on that were read and not given out yet.
    held: Vec<u8>,
    start: u64,
    /// The line being read is over the limit and is dropped as it comes.
    too_long: bool,
}

impl<'a> BackwardLines<'a> {
    /// The lines that end before `end`.
    pub(super) fn new(file: &'a File, end: u64) -> Self {
        Self { file, held: Vec::new(), start: end, too_long: false }
    }

    /// The line before the last one given, and where it begins. Empty lines come too.
    pub(super) fn next_line(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        loop {
            // The newline at the very end closes this line; the one before it closes the previous one.
            let body = self.held.strip_suffix(b"\n").unwrap_or(&self.held);
            if let Some(newline) = memchr::memrchr(b'\n', body) {
                let line = self.held.split_off(newline + 1);
                let offset = self.start + newline as u64 + 1;
                return Ok(Some((offset, self.finish(line))));
            }
            if self.start == 0 {
                let line = std::mem::take(&mut self.held);
                return Ok((!line.is_empty()).then(|| (0, self.finish(line))));
            }
            self.read_more()?;
        }
    }

    fn finish(&mut self, mut line: Vec<u8>) -> Vec<u8> {
        if std::mem::take(&mut self.too_long) {
            return Vec::new();
        }
        while matches!(line.last(), Some(b'\n' | b'\r')) {
            line.pop();
        }
        line
    }

    fn read_more(&mut self) -> io::Result<()> {
        if self.held.len() > LINE_BYTES_MAX {
            self.too_long = true;
            self.held.clear();
        }
        let wanted = CHUNK_BYTES.max(self.held.len()) as u64;
        let from = self.start.saturating_sub(wanted);
        let mut chunk = vec![0; usize::try_from(self.start - from).unwrap_or(CHUNK_BYTES)];
        self.file.read_exact_at(&mut chunk, from)?;
        chunk.append(&mut self.held);
        self.held = chunk;
        self.start = from;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines(text: &[u8]) -> Vec<(u64, String)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let mut lines = BackwardLines::new(&file, text.len() as u64);
        let mut found = Vec::new();
        while let Some((offset, line)) = lines.next_line().unwrap() {
            found.push((offset, String::from_utf8(line).unwrap()));
        }
        found
    }

    #[test]
    fn lines_come_last_first_with_where_they_begin() {
        let expected = vec![(6, "three".to_owned()), (4, "b".into()), (0, "one".into())];
        assert_eq!(lines(b"one\nb\nthree\n"), expected);
        assert_eq!(lines(b"one\nb\nthree"), expected, "the last newline may be missing");
        assert_eq!(lines(b""), vec![]);
        assert_eq!(lines(b"\n\n"), vec![(1, String::new()), (0, String::new())]);
    }

    #[test]
    fn lines_longer_than_a_read_are_whole() {
        let long = "x".repeat(CHUNK_BYTES * 3 + 17);
        let text = format!("first\n{long}\nlast\n");
        let found = lines(text.as_bytes());
        assert_eq!(found.len(), 3);
        assert_eq!((found[0].1.as_str(), found[2].1.as_str()), ("last", "first"));
        assert!(found[1].1 == long && found[1].0 == 6);
    }
}
