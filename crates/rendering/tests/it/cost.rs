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
