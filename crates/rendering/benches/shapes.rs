//! The cost of streaming for every shape of text: 50 KB in chunks of five characters, with a reader that is updated
//! after each, relative to one full render. Measured in CPU time where the system reports it, so that a busy machine
//! does not matter. Run with `cargo bench -p rendering --bench shapes`, with names of shapes to measure only those.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rendering::{LiveMarkdown, Mark};

const PROSE: &str = "The quick brown fox jumps over the lazy dog, then **rests** and reads `src/main.rs` again; \
    see https://example.com/a?b=c for more. It is not quite what one would expect, but nobody seems to mind it much.";
const CODE: &str = "    let total: usize = items.iter().map(|item| item.len()).sum(); // all of them\n";
const BYTES: usize = 50_000;
const ENOUGH: Duration = Duration::from_millis(60);
const BATCHES: usize = 5;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    // The grammars are unpacked and compiled before anything is measured.
    for language in ["rust", "ts", "tsx", "js", "python", "bash", "json", "go"] {
        black_box(rendering::markdown(&format!("```{language}\nlet x = \"a\"; // b\n```\n")));
    }
    println!("{:<34} {:>10} {:>12} {:>8}", "shape", "full", "streamed", "ratio");
    for (name, text) in shapes() {
        if !wanted.is_empty() && !wanted.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        let full = cost(|| drop(black_box(rendering::markdown(black_box(&text)))));
        let streamed = cost(|| stream(&text));
        let ratio = streamed.as_secs_f64() / full.as_secs_f64();
        println!("{name:<34} {full:>10.1?} {streamed:>12.1?} {ratio:>7.1}×");
    }
}

fn shapes() -> Vec<(&'static str, String)> {
    let mixed = format!(
        "## A heading\n\n{PROSE}\n\n- one `a.rs:1`\n- two\n\n```rust\nfn main() {{\n{}}}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n",
        CODE.repeat(4)
    );
    let nested = format!("- {PROSE}\n  - {PROSE}\n    - {PROSE}\n");
    vec![
        ("prose", cycle("", &format!("{PROSE}\n\n"))),
        ("one paragraph", cycle("", &format!("{PROSE} "))),
        ("one paragraph of many lines", cycle("", &format!("{PROSE}\n"))),
        ("mixed", cycle("", &mixed)),
        ("code", cycle("```rust\n", CODE)),
        ("code without a language", cycle("```\n", CODE)),
        ("code in a list item", cycle("1. Step:\n\n   ```rust\n", &format!("   {CODE}"))),
        ("list", cycle("", &format!("- {PROSE}\n"))),
        ("loose list", cycle("", &format!("- {PROSE}\n\n"))),
        ("nested list", cycle("", &nested)),
        ("list inside one item", cycle("- Steps:\n", &format!("  - {PROSE}\n"))),
        ("one item of many paragraphs", cycle("- ", &format!("{PROSE}\n\n  "))),
        ("one item of one paragraph", cycle("- ", &format!("{PROSE}\n  "))),
        ("alert", cycle("> [!NOTE]\n", &format!("> {PROSE}\n>\n"))),
        (
            "table in a list item",
            cycle("- Figures:\n\n  | a | b |\n  |---|---|\n", "  | some text in a cell | and `more` of it |\n"),
        ),
        ("table", cycle("| a | b |\n|---|---|\n", "| some text in a cell | and `more` of it |\n")),
        ("quote", cycle("", &format!("> {PROSE}\n>\n"))),
        ("quote of one paragraph", cycle("", &format!("> {PROSE}\n"))),
        ("footnote of many paragraphs", cycle("[^a]: ", &format!("{PROSE}\n\n    "))),
        ("paragraph after an open `", cycle("An open ` mark. ", &format!("{} ", PROSE.replace('`', "")))),
        ("paragraph after an open [", cycle("An open [mark. ", &format!("{PROSE} "))),
        ("paragraph after an open *", cycle("An open *mark. ", &format!("{} ", PROSE.replace('*', "")))),
        ("raw HTML", cycle("<div>\n", "<p class=\"x\">some text in a tag</p>\n")),
        ("indented code", cycle("", CODE)),
        ("one word that may be an address", cycle("data:image/png;base64,", "abcdefghijklmnopqrstuvwxyz")),
        ("one word", cycle("", "abcdefghijklmnopqrstuvwxyz")),
        ("brackets", cycle("", "[")),
        ("stars", cycle("", "*a ")),
    ]
}

fn cycle(start: &str, unit: &str) -> String {
    start.chars().chain(unit.chars().cycle()).take(BYTES).collect()
}

fn stream(text: &str) {
    let mut live = LiveMarkdown::new();
    let mut mark = Mark::default();
    for chunk in text.as_bytes().chunks(5) {
        live.push(std::str::from_utf8(chunk).unwrap_or_default());
        black_box(live.patch_since(mark));
        mark = live.mark();
    }
}

/// What it costs: the best of some batches, since whatever else the machine does only ever adds. A batch is long enough
/// for the system's clock, which may tick in milliseconds.
fn cost(mut work: impl FnMut()) -> Duration {
    (0..BATCHES).map(|_| batch(&mut work)).min().unwrap_or_default()
}

fn batch(work: &mut impl FnMut()) -> Duration {
    let (start, cpu) = (Instant::now(), cpu_time());
    let mut times = 0;
    loop {
        work();
        times += 1;
        let spent = match (cpu, cpu_time()) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => start.elapsed(),
        };
        if spent >= ENOUGH {
            return spent / times;
        }
    }
}

/// What this thread has used, as Linux counts it.
fn cpu_time() -> Option<Duration> {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    counted.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}
