//! A growing text shows a full render at every moment, whatever the chunks, and readers who apply patches keep up.
//! The first byte chooses the chunks' length.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rendering::{LiveMarkdown, markdown};

#[path = "../../crates/rendering/tests/it/reader.rs"]
mod reader;

fuzz_target!(|data: &[u8]| {
    let Some((first, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let length = usize::from(*first % 9) + 1;
    let mut live = LiveMarkdown::new();
    let (mut eager, mut lazy) = (reader::Reader::default(), reader::Reader::default());
    let mut pushed = 0;
    let mut turn = 0_usize;
    while pushed < text.len() {
        let mut end = (pushed + length).min(text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        live.push(&text[pushed..end]);
        pushed = end;
        let full = markdown(&text[..pushed]);
        assert_eq!(live.blocks(), full, "after {:?}", &text[..pushed]);
        eager.catch_up(&live);
        eager.assert_shows(&full, &text[..pushed]);
        turn += 1;
        if turn.is_multiple_of(7) {
            lazy.catch_up(&live);
            lazy.assert_shows(&full, &text[..pushed]);
        }
    }
});
