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
        // A link definition in the last line is held back until its line is complete, and so is the end of a flood.
        let normal = text[..pushed].replace("\r\n", "\n").replace('\r', "\n");
        let (shown, rest) = normal.split_at(live.shown_len());
        let is_flood = normal.bytes().filter(|byte| b"[]*_`~<".contains(byte)).count() > 2_000;
        assert!(rest.is_empty() || normal.contains("]:") || is_flood, "{rest:?} is not shown of {normal:?}");
        let full = markdown(shown);
        assert_eq!(live.blocks(), full, "after {:?}", &text[..pushed]);
        eager.catch_up(&live);
        eager.assert_shows(&full, &text[..pushed]);
        turn += 1;
        if turn.is_multiple_of(7) {
            lazy.catch_up(&live);
            lazy.assert_shows(&full, &text[..pushed]);
        }
    }
    live.finish();
    assert_eq!(live.blocks(), markdown(text), "all of {text:?}");
});
