//! Any chunking of the same bytes gives the same lines, and no line is longer than the limit.
//! The first byte chooses the chunks' length.
#![no_main]

use agent_process::framing::LineFramer;
use libfuzzer_sys::fuzz_target;

const LIMIT_BYTES: usize = 64;

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else { return };
    let whole = lines(bytes.len().max(1), bytes);
    assert_eq!(lines(usize::from(*first) + 1, bytes), whole);
    assert!(whole.iter().flatten().all(|line| line.len() <= LIMIT_BYTES && !line.contains(&b'\n')));
});

/// The lines; none for one that was too long.
fn lines(chunk: usize, bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut framer = LineFramer::new(LIMIT_BYTES);
    let mut lines = Vec::new();
    for chunk in bytes.chunks(chunk) {
        framer.push(chunk);
        while let Some(line) = framer.next_line() {
            lines.push(line.ok().map(|line| line.into_bytes()));
        }
    }
    lines.extend(framer.finish().map(|line| Some(line.into_bytes())));
    lines
}
