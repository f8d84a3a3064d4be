//! Lines that are designed to keep a grammar busy, for every grammar.

use syntect::parsing::{ParseState, SyntaxReference};

use super::super::{Highlighter, SYNTAXES};
use super::*;

/// Each is repeated up to the longest line that is highlighted: words joined by marks, open brackets and quotes, and
/// the delimiters of strings, comments, tags, numbers, variables and calls.
const PATTERNS: [&str; 46] = [
    "-a", "_a", "a.", "(", "[", "{", "<", "\"", "'", "\\", "a ", "aA", "0", "..", "::", "/*", "#{", "$(", "=>", "a,",
    "&a;", "@a", "a-", "a(", "<a ", "a:", "`", "$a", // These were not used to choose the limits.
    "(a", "a=", "${", "{{", "//", "|-", "!a", "a\"", "\\a", "aa ", "1.", "a::", "->", "/a/", "[a](", "\ta", "é",
    "日本",
];
/// No line takes more of a processor than this. The engine is optimised in every build, so one bound holds for all.
const LINE_TIME_MAX_MS: f64 = 50.0;

/// The limit for a block, in release builds. More than half of it is a reserve for a busy machine.
const BLOCK_TIME_MAX_MS: f64 = if cfg!(debug_assertions) { 10_000.0 } else { 2_000.0 };
/// The patterns that were slowest in short lines.
const SLOW_IN_SHORT_LINES: [&str; 8] = ["-a", "a-", "a\"", "_a", "a.", "a(", "a:", "$a"];

/// The longest line that is highlighted.
fn line(pattern: &str) -> String {
    line_of(pattern, LINE_BYTES_MAX)
}

fn line_of(pattern: &str, bytes_max: usize) -> String {
    let mut line = String::new();
    for character in pattern.chars().cycle() {
        if line.len() + character.len_utf8() >= bytes_max {
            break;
        }
        line.push(character);
    }
    line.push('\n');
    line
}

/// The CPU time of this thread in milliseconds. Only Linux reports it; elsewhere nothing is asserted.
fn cpu_ms() -> f64 {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    counted.split_whitespace().next().and_then(|time| time.parse::<f64>().ok()).unwrap_or_default() / 1e6
}

/// How long the grammar takes for the line, with its expressions already compiled.
fn time(syntax: &SyntaxReference, line: &str) -> f64 {
    let once = || {
        let start = cpu_ms();
        ParseState::new(syntax).parse_line(line, &SYNTAXES).map(drop).ok();
        cpu_ms() - start
    };
    // Only slow lines are measured again: the first time may have compiled the grammar.
    let first = once();
    if first > LINE_TIME_MAX_MS / 4.0 { first.min(once()) } else { first }
}

fn clocked(syntax: &SyntaxReference, line: &str) -> f64 {
    let start = std::time::Instant::now();
    ParseState::new(syntax).parse_line(line, &SYNTAXES).map(drop).ok();
    start.elapsed().as_secs_f64() * 1e3
}

#[test]
fn no_line_keeps_any_grammar_busy() {
    let mut slowest: Vec<(f64, &str, &str)> = Vec::new();
    for syntax in SYNTAXES.syntaxes() {
        for pattern in PATTERNS {
            slowest.push((time(syntax, &line(pattern)), &syntax.name, pattern));
        }
    }
    slowest.sort_by(|a, b| b.0.total_cmp(&a.0));
    println!("{} lines, the slowest in ms: {:?}", slowest.len(), &slowest[..8]);
    let (worst, grammar, pattern) = slowest[0];
    assert!(worst < LINE_TIME_MAX_MS, "{pattern:?} in {grammar} took {worst} ms");
}

/// Short lines of every length: the time of a block is the time of one line times the number that the limit allows.
#[test]
fn no_block_keeps_any_grammar_busy() {
    let mut slowest: Vec<(f64, usize, &str, &str)> = Vec::new();
    for syntax in SYNTAXES.syntaxes() {
        for pattern in SLOW_IN_SHORT_LINES {
            for bytes in [30, 90, 250] {
                let line = line_of(pattern, bytes);
                // The first run may compile the grammar. These times are below the resolution of the CPU time, so wall
                // time is used; the minimum of three is the least disturbed.
                let took = (0..3).map(|_| clocked(syntax, &line)).fold(f64::INFINITY, f64::min);
                slowest.push((took * (WORK_MAX / cost(&line)) as f64, bytes, &syntax.name, pattern));
            }
        }
    }
    slowest.sort_by(|a, b| b.0.total_cmp(&a.0));
    println!("{} blocks, the slowest in ms: {:?}", slowest.len(), &slowest[..8]);
    let (worst, bytes, grammar, pattern) = slowest[0];
    assert!(worst < BLOCK_TIME_MAX_MS, "lines of {pattern:?} of {bytes} bytes in {grammar} took {worst} ms");
}

#[test]
fn a_block_is_plain_once_its_limit_is_used_up() {
    let count = |language: &str, line: &str| {
        let mut highlighter = Highlighter::new(language);
        (0..WORK_MAX).take_while(|_| highlighter.spans(line).len() > 2).count()
    };
    for (language, text) in [("rust", "let x = \"a\"; // b\n".to_owned()), ("scss", line("a: -b; "))] {
        assert_eq!(count(language, &text), WORK_MAX / cost(&text), "{language}");
    }
    let ordinary = "    let total: usize = items.iter().map(Item::len).sum();\n";
    assert!(WORK_MAX / cost(ordinary) * ordinary.len() > 60_000, "ordinary code is highlighted much longer");
}

#[test]
fn both_sides_of_an_edit_and_the_parts_of_a_file_share_one_budget() {
    let text = "let x = \"a\"; // b\n";
    let (mut old, mut new) = Highlighter::pair("rust");
    let mut lines = 0;
    for highlighter in [&mut old, &mut new] {
        while highlighter.spans(text).len() > 2 {
            lines += 1;
            highlighter.restart();
        }
        highlighter.restart();
        assert_eq!(highlighter.spans(text).len(), 1, "a gap resets nothing");
    }
    assert!(lines * cost(text) <= WORK_MAX);
}
