//! The cost of rendering. Compare ratios, not absolute times: streaming with one full render, a long open block with a
//! short one. Run with `cargo bench -p rendering`.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use rendering::{Cut, DiffView, LiveMarkdown, Mark};

fn main() {
    // The grammars are unpacked and compiled before anything is measured.
    for language in ["rust", "ts", "tsx", "js", "python", "bash", "json", "go"] {
        black_box(rendering::markdown(&format!("```{language}\nlet x = \"a\"; // b\n```\n")));
    }
    divan::main();
}

const PROSE: &str = "The quick brown fox jumps over the lazy dog, then **rests** and reads `src/main.rs` again; \
    see https://example.com/a?b=c for more. It is not quite what one would expect, but nobody seems to mind it much.\n\n";
const CODE: &str = "    let total: usize = items.iter().map(|item| item.len()).sum(); // all of them\n";

fn sample(name: &str, bytes: usize) -> String {
    let unit = match name {
        "prose" => PROSE.to_owned(),
        "paragraph" => PROSE.trim().to_owned() + " ",
        "code" => return format!("```rust\n{}", CODE.repeat(bytes / CODE.len())),
        _ => format!(
            "## A heading\n\n{PROSE}- one `a.rs:1`\n- two\n\n```rust\nfn main() {{\n{}}}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n",
            CODE.repeat(4)
        ),
    };
    unit.chars().cycle().take(bytes).collect()
}

/// One render of a complete text.
#[divan::bench(args = [("prose", 100), ("prose", 50), ("paragraph", 50), ("code", 50), ("mixed", 50)])]
fn full(bencher: Bencher, (name, kilobytes): (&str, usize)) {
    let text = sample(name, kilobytes * 1_000);
    bencher.counter(BytesCount::of_str(&text)).bench(|| rendering::markdown(black_box(&text)));
}

/// 50 KB in chunks of five characters, a reader kept up to date after each: less than ten times `full`.
#[divan::bench(args = ["mixed", "prose", "paragraph", "code"], sample_count = 10)]
fn streamed(bencher: Bencher, name: &str) {
    let text = sample(name, 50_000);
    bencher.counter(BytesCount::of_str(&text)).bench(|| {
        let mut live = LiveMarkdown::new();
        let mut mark = Mark::default();
        for chunk in text.as_bytes().chunks(5) {
            live.push(std::str::from_utf8(chunk).unwrap_or_default());
            black_box(live.patch_since(mark));
            mark = live.mark();
        }
        live
    });
}

/// One more line in an open code block: the same whether ten or a thousand are there.
#[divan::bench(args = [10, 1_000])]
fn line_added_to_an_open_block_of(bencher: Bencher, lines: usize) {
    bencher
        .with_inputs(|| {
            let mut live = LiveMarkdown::new();
            live.push(&format!("```rust\n{}", CODE.repeat(lines)));
            live.push(CODE);
            live
        })
        .bench_local_refs(|live| {
            let mark = live.mark();
            live.push(CODE);
            live.patch_since(mark)
        });
}

/// One more word in an open paragraph: the same whether it is short or 50 KB long.
#[divan::bench(args = [500, 50_000])]
fn word_added_to_an_open_paragraph_of(bencher: Bencher, bytes: usize) {
    let text = sample("paragraph", bytes);
    bencher
        .with_inputs(|| {
            let mut live = LiveMarkdown::new();
            for chunk in text.as_bytes().chunks(40) {
                live.push(std::str::from_utf8(chunk).unwrap_or_default());
            }
            live
        })
        .bench_local_refs(|live| {
            let mark = live.mark();
            live.push("word ");
            live.patch_since(mark)
        });
}

#[divan::bench]
fn diff_of_a_thousand_lines(bencher: Bencher) {
    let old = CODE.repeat(1_000);
    let new = old.replacen("total", "sum", 5);
    bencher.bench(|| rendering::diff(Some(black_box(&old)), &new, "a.rs", DiffView::default()));
}

#[divan::bench]
fn terminal_of_100_kb(bencher: Bencher) {
    let text = "\x1b[32mok\x1b[0m some test name that is long enough ... 12 ms\n".repeat(1_700);
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| rendering::terminal(black_box(&text), Cut { head: 100, tail: 100 }));
}
