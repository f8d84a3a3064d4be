//! What it costs to keep a reader up to date: in proportion to the text, whatever it is.

use rendering::LiveMarkdown;

use crate::reader::Reader;

const PROSE: &str =
    "The quick brown fox jumps over the lazy dog, then **rests** and reads `src/main.rs` again; nobody minds. ";
const CODE: &str = "    let total: usize = items.iter().map(|item| item.len()).sum(); // all of them\n";

/// Bytes of patches for a text in chunks.
fn streamed(text: &str, chunk: usize) -> usize {
    let mut live = LiveMarkdown::new();
    let mut reader = Reader::default();
    let mut bytes = 0;
    for part in text.as_bytes().chunks(chunk) {
        live.push(std::str::from_utf8(part).unwrap_or_default());
        bytes += reader.catch_up(&live);
    }
    live.finish();
    bytes += reader.catch_up(&live);
    reader.assert_shows(&rendering::markdown(text), "all of it");
    bytes
}

/// 48 KB in 2,000 chunks.
fn check(name: &str, text: &str) {
    let text: String = text.chars().cycle().take(48 * 1024).collect();
    check_whole(name, &text);
}

fn check_whole(name: &str, text: &str) {
    let bytes = streamed(text, text.len().div_ceil(2_000));
    println!("{name}: {bytes} bytes of patches for {} bytes of text", text.len());
    assert!(bytes <= 500_000, "{name} cost {bytes} bytes");
}

#[test]
fn one_long_paragraph_costs_what_was_added() {
    check("paragraph", PROSE);
}

#[test]
fn one_long_code_block_costs_what_was_added() {
    let lines = CODE.repeat(48 * 1024 / CODE.len());
    check_whole("code block", &format!("```rust\n{lines}"));
}

#[test]
fn mixed_text_costs_what_was_added() {
    check(
        "mixed",
        &format!(
            "## A heading\n\n{PROSE}\n{PROSE}\n\n```rust\n{CODE}{CODE}{CODE}```\n\n- one\n- two\n  - three\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> {PROSE}\n\n"
        ),
    );
}

#[test]
fn one_long_list_table_or_quote_costs_what_was_added() {
    let samples = [
        ("list", format!("- {PROSE}\n").repeat(60)),
        ("table", format!("| a | b |\n|---|---|\n{}", "| some text in a cell | and more of it |\n".repeat(150))),
        ("quote", format!("> {PROSE}\n").repeat(60)),
        ("alert", format!("> [!NOTE]\n{}", format!("> {PROSE}\n").repeat(60))),
        ("code in a list", format!("1. Step:\n\n   ```rust\n{}", format!("   {CODE}").repeat(75))),
        (
            "table in a list",
            format!("- Step:\n\n  | a | b |\n  |---|---|\n{}", "  | some text | and more |\n".repeat(200)),
        ),
        ("raw HTML", format!("<div>\n{}", "<p class=\"x\">some text in a tag</p>\n".repeat(150))),
        ("indented code", CODE.repeat(75)),
        ("one word", "abcdefghijklmnopqrstuvwxyz".repeat(400)),
    ];
    for (name, text) in samples {
        let bytes = streamed(&text, 24);
        println!("{name}: {bytes} bytes of patches for {} bytes of text", text.len());
        assert!(bytes <= 10 * text.len(), "{name} cost {bytes} bytes for {} of text", text.len());
    }
}

#[test]
fn a_link_definition_that_grows_is_sent_when_its_line_is_complete() {
    let mentions = format!("See [docs] and [the docs][docs]. {PROSE}\n\n").repeat(300);
    let definition = format!("[docs]: https://docs.example/{}", "a-path/".repeat(10));
    for (name, end) in [("a line", "\n"), ("the end of the text", "")] {
        let text = format!("{mentions}{definition}{end}");
        let bytes = streamed(&text, 5);
        let full: usize = rendering::markdown(&text).iter().map(|block| block.len()).sum();
        let before: usize = rendering::markdown(&mentions).iter().map(|block| block.len()).sum();
        println!("{name}: {bytes} bytes of patches for {} bytes of text, {full} of blocks", text.len());
        // What is shown without the links, with the closing tags of every chunk, and once more with the links.
        assert!(bytes <= 3 * before + 2 * full, "{name} cost {bytes} bytes for {full} of blocks");
    }
}

/// Marks that may still be closed keep a paragraph open from its start. Twice the text takes about twice the time; when each
/// chunk was parsed from the start of the text, it took four times as long.
#[test]
fn a_flood_of_open_marks_takes_time_in_proportion_to_its_length() {
    for mark in ["[", "]", "[a]", "*a ", "_a ", "``a "] {
        assert_flood_is_linear(mark);
    }
}

fn assert_flood_is_linear(mark: &str) {
    let cost = |marks: usize| {
        let text = mark.repeat(marks);
        let measure = || {
            let start = cpu_seconds();
            streamed(&text, 16);
            cpu_seconds() - start
        };
        // A cache that others emptied only ever adds.
        (0..2).map(|_| measure()).fold(f64::MAX, f64::min)
    };
    let (short, long) = (cost(2_500), cost(10_000));
    println!("{mark:?}: {:.1} times the time for 4 times the text, {long:.3} s", long / short);
    // Where the time of one thread is not counted, both are 0.
    assert!(long <= 9.0 * short, "{mark:?} took {short} s and, for four times the text, {long} s");
}

/// What this thread has used of a processor: what else the machine does is not counted. Linux only.
fn cpu_seconds() -> f64 {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    counted.split_whitespace().next().and_then(|time| time.parse::<f64>().ok()).unwrap_or_default() / 1e9
}
