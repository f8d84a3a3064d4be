//! Any bytes in any chunks give the same lines, whatever their length.

use proptest::prelude::*;

use super::*;

/// The output of a framer: lines with whether they had a newline, and `None` for a line that was too long.
type Framed = Vec<Option<(Vec<u8>, bool)>>;

fn frame(limit_bytes: usize, chunks: &[&[u8]]) -> Framed {
    let mut framer = LineFramer::new(limit_bytes);
    let mut framed = Framed::new();
    for (number, chunk) in chunks.iter().enumerate() {
        // Both ways to append must give the same result.
        if number % 2 == 0 {
            framer.push(chunk);
        } else {
            framer.space().extend_from_slice(chunk);
        }
        while let Some(line) = framer.next_line() {
            framed.push(line.ok().map(|line| (line.bytes, line.ended)));
        }
        assert!(framer.buffer.len() - framer.start <= limit_bytes, "holds more than a line");
    }
    framed.extend(framer.finish().map(|line| Some((line.bytes, line.ended))));
    framed
}

/// The same result, computed over the whole stream at once.
fn frame_plainly(limit_bytes: usize, stream: &[u8]) -> Framed {
    let mut lines: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    let rest = lines.pop().unwrap_or_default();
    let mut framed: Framed = lines
        .into_iter()
        .map(|line| (line.len() <= limit_bytes).then(|| (line.strip_suffix(b"\r").unwrap_or(line).to_vec(), true)))
        .collect();
    if !rest.is_empty() {
        framed.push((rest.len() <= limit_bytes).then(|| (rest.to_vec(), false)));
    }
    framed
}

fn whole(text: &str) -> Option<(Vec<u8>, bool)> {
    Some((text.as_bytes().to_vec(), true))
}

#[test]
fn lines_are_returned_without_newlines_and_blank_lines_too() {
    assert_eq!(frame(10, &[b"one\ntwo\r\n\n\r\n"]), [whole("one"), whole("two"), whole(""), whole("")]);
}

#[test]
fn a_last_line_without_newline_is_returned_and_marked() {
    assert_eq!(frame(10, &[b"one\nhal", b"f\r"]), [whole("one"), Some((b"half\r".to_vec(), false))]);
}

#[test]
fn a_line_of_exactly_the_limit_passes_and_one_byte_more_does_not() {
    assert_eq!(frame(4, &[b"four\nfives\nnext\n"]), [whole("four"), None, whole("next")]);
}

#[test]
fn a_line_too_long_is_reported_before_its_end_and_its_memory_is_freed() {
    let mut framer = LineFramer::new(1000);
    framer.push(&[b'x'; 1001]);
    assert_eq!(framer.next_line(), Some(Err(TooLong { limit_bytes: 1000 })));
    assert_eq!(framer.buffer.capacity(), 0);
    for _ in 0..100 {
        framer.push(&[b'x'; 1000]);
        assert_eq!(framer.next_line(), None);
    }
    assert!(framer.buffer.capacity() <= 2000, "{}", framer.buffer.capacity());
    framer.push(b"x\nnext\n");
    assert_eq!(framer.next_line().unwrap().unwrap().as_bytes(), b"next");
}

#[test]
fn a_line_that_is_not_utf8_keeps_its_bytes() {
    let mut framer = LineFramer::default();
    framer.push(b"a\xff\xfeb\n");
    let line = framer.next_line().unwrap().unwrap();
    assert_eq!(line.as_bytes(), b"a\xff\xfeb");
    assert_eq!(line.to_str_lossy(), "a\u{fffd}\u{fffd}b");
}

#[test]
fn free_space_for_reads_stops_growing_at_the_limit() {
    let limit_bytes = 1024 * 1024;
    let mut framer = LineFramer::new(limit_bytes);
    while framer.buffer.len() <= limit_bytes {
        framer.space().extend_from_slice(&[b'x'; CHUNK_BYTES]);
    }
    assert!(framer.buffer.capacity() <= limit_bytes + 2 * CHUNK_BYTES, "{}", framer.buffer.capacity());
}

/// Few different bytes, so that newlines and carriage returns meet in every combination.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![3 => Just(b'a'), 1 => Just(b'\n'), 1 => Just(b'\r'), 1 => Just(0xff)], 0..200)
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_lines(
        stream in stream(),
        cuts in prop::collection::vec(1usize..20, 0..100),
        limit_bytes in 0usize..30,
    ) {
        let mut chunks = Vec::new();
        let mut rest = stream.as_slice();
        for cut in cuts {
            let (chunk, after) = rest.split_at(cut.min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        chunks.push(rest);
        prop_assert_eq!(frame(limit_bytes, &chunks), frame_plainly(limit_bytes, &stream));
    }

    #[test]
    fn long_lines_survive_any_chunking(lengths in prop::collection::vec(0usize..300_000, 1..6), cut in 1usize..100_000) {
        let mut stream = Vec::new();
        for (number, length) in lengths.iter().enumerate() {
            stream.resize(stream.len() + length, b'a' + number as u8);
            stream.push(b'\n');
        }
        let chunks: Vec<&[u8]> = stream.chunks(cut).collect();
        prop_assert!(frame(200_000, &chunks) == frame_plainly(200_000, &stream));
    }
}
