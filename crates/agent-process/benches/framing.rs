//! How fast bytes become lines.

use std::hint::black_box;

use agent_process::framing::LineFramer;
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};

const STREAM_BYTES: usize = 16 * 1024 * 1024;

/// One read of a pipe.
const CHUNK_BYTES: usize = 64 * 1024;

fn main() {
    divan::main();
}

/// A stream of lines of one length, read in chunks as from a pipe.
#[divan::bench(args = [20, 200, 2_000, 200_000, 15_000_000])]
fn lines_of(bencher: Bencher<'_, '_>, line_bytes: usize) {
    let line = [vec![b'x'; line_bytes - 1], vec![b'\n']].concat();
    let count = STREAM_BYTES / line_bytes;
    let stream = line.repeat(count);
    bencher.counter(BytesCount::new(stream.len())).counter(ItemsCount::new(count)).bench(|| {
        let mut framer = LineFramer::default();
        let mut lines = 0;
        for chunk in black_box(&stream).chunks(CHUNK_BYTES) {
            framer.space().extend_from_slice(chunk);
            while let Some(line) = framer.next_line() {
                black_box(&line);
                lines += usize::from(line.is_ok());
            }
        }
        assert_eq!(lines, count);
    });
}
