//! Texts that were made to keep a renderer busy: all of them are done with in time proportional to their length.

use rendering::{LiveMarkdown, Mark};

const BYTES: usize = 50_000;

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
    live.blocks().concat()
}

#[test]
fn texts_made_to_be_slow_are_rendered_whole_and_live() {
    let texts = [
        ("quotes", cycle(">", 10_000)),
        ("quotes with spaces", cycle("> ", 20_000)),
        ("nested items", cycle("- ", 20_000)),
        ("brackets", cycle("[", BYTES)),
        ("brackets and words", cycle("[a ", BYTES)),
        ("pictures", cycle("![a", BYTES)),
        ("closed brackets", cycle("[a](", BYTES)),
        ("stars", cycle("*a ", BYTES)),
        ("stars and underscores", cycle("*a _b ", BYTES)),
        ("strikes", cycle("~~a ", BYTES)),
        ("backticks of all lengths", (1..300).map(|count| format!("{} ", "`".repeat(count))).collect()),
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
        let start = std::time::Instant::now();
        let full = rendering::markdown(&text).concat();
        let whole = start.elapsed();
        let live = stream(&text, text.len().div_ceil(500));
        println!("{name}: whole {whole:?}, live {:?} ({} bytes)", start.elapsed() - whole, full.len());
        assert_eq!(live, full, "{name}");
    }
}

#[test]
fn ten_megabytes_in_one_line_are_rendered() {
    let text = cycle("words and words ", 10_000_000);
    let start = std::time::Instant::now();
    let full = rendering::markdown(&text).concat();
    println!("one line: whole {:?}", start.elapsed());
    assert_eq!(stream(&text, 100_000), full);
    println!("one line: live {:?}", start.elapsed());
}
