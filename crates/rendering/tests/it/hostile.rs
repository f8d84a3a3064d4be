//! Texts that were made to keep a renderer busy: the whole render takes time in proportion to their
//! length, and so does each chunk of a live one.

use rendering::{LiveMarkdown, Mark};

const BYTES: usize = 10_000;

fn cycle(unit: &str, bytes: usize) -> String {
    unit.chars().cycle().take(bytes).collect()
}

/// Grows `text` in chunks with a reader that keeps up.
fn stream(text: &str, chunk: usize) -> String {
    let mut live = LiveMarkdown::new();
    let mut mark = Mark::default();
    for part in text.as_bytes().chunks(chunk) {
        live.push(std::str::from_utf8(part).unwrap_or_default());
        std::hint::black_box(live.patch_since(mark));
        mark = live.mark();
    }
    live.finish();
    live.blocks().concat()
}

#[test]
fn texts_made_to_be_slow_are_rendered_whole_and_live() {
    let texts = [
        ("quotes", cycle(">", 10_000)),
        ("quotes with spaces", cycle("> ", 10_000)),
        ("nested items", cycle("- ", 10_000)),
        ("brackets", cycle("[", BYTES)),
        ("brackets and words", cycle("[a ", BYTES)),
        ("pictures", cycle("![a", BYTES)),
        ("closed brackets", cycle("[a](", BYTES)),
        ("stars", cycle("*a ", BYTES)),
        ("stars and underscores", cycle("*a _b ", BYTES)),
        ("strikes", cycle("~~a ", BYTES)),
        ("backticks of all lengths", (1..140).map(|count| format!("{} ", "`".repeat(count))).collect()),
        ("tags", cycle("<a ", BYTES)),
        ("comments", cycle("<!-- a ", BYTES)),
        ("entities", cycle("&a", BYTES)),
        ("wide table", format!("{}\n{}\n{}", cycle("|a", 4_000), cycle("|-", 4_000), cycle("|\n", 4_000))),
        ("footnotes", cycle("[^a]", BYTES)),
        ("definitions", cycle("[a]: b\n", BYTES)),
        ("emails", cycle("a@", BYTES)),
        ("addresses", cycle("http://a.b/(", BYTES)),
    ];
    for (name, text) in texts {
        let full = rendering::markdown(&text).concat();
        assert_eq!(stream(&text, text.len().div_ceil(200)), full, "{name}");
    }
}

#[test]
fn ten_megabytes_in_one_line_are_rendered() {
    let text = cycle("words and words ", 10_000_000);
    assert_eq!(stream(&text, 100_000), rendering::markdown(&text).concat());
}

/// The one difference that is known: the parser stops resolving references after 100 KB of targets, and counts what it
/// parses at once. Up to that, and in what it says besides, a live text equals a full render.
#[test]
fn references_to_long_targets_are_limited_per_parse() {
    let long = cycle("y", 1_000);
    let text = |count| format!("[a]: http://x.example/{long}\n\n{}", "See [a].\n\n".repeat(count));
    assert_eq!(stream(&text(90), 5), rendering::markdown(&text(90)).concat());

    let full = rendering::markdown(&text(200)).concat();
    assert!(full.len() < 130_000, "a full render stops at the limit, {} bytes", full.len());
    assert!(full.ends_with("<p>See [a].</p>"), "what is over it is text");
    let live = stream(&text(200), 5);
    assert!(live.len() < 250_000 && live.ends_with("</a>.</p>"), "each part of a live text has a limit of its own");
}
