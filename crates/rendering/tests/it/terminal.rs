//! Output as a terminal shows it.

use proptest::prelude::*;
use rendering::{Cut, LiveTerminal, Mark, terminal};

fn text_of(output: &str) -> Vec<String> {
    let mut live = LiveTerminal::new(Cut::WHOLE);
    live.push(output);
    live.blocks().iter().map(|line| line.replace("<div class=\"line\">", "").replace("\n</div>", "")).collect()
}

#[test]
fn carriage_returns_and_cursor_moves_end_in_what_one_would_see() {
    assert_eq!(text_of("one\ntwo\n"), ["one", "two"]);
    assert_eq!(text_of("10%\r50%\r100% done\nok"), ["100% done", "ok"]);
    assert_eq!(text_of("Downloading\r\x1b[KDone\n"), ["Done"]);
    assert_eq!(text_of("a: 1\nb: 1\n\x1b[2Aa: 2\nb: 2\n"), ["a: 2", "b: 2"]);
    assert_eq!(text_of("a\tb\x08c"), ["a       c"]);
    assert_eq!(text_of("x\r\ny\r\n"), ["x", "y"]);
    assert_eq!(text_of("\x1b]0;a title\x07after"), ["after"]);
    assert_eq!(text_of("\x1b]8;;https://x.example\x1b\\link\x1b]8;;\x1b\\"), ["link"]);
}

#[test]
fn colours_are_classes_and_text_is_escaped() {
    assert_eq!(text_of("\x1b[1;31merror\x1b[0m: <b>"), ["<span class=\"fg1 bold\">error</span>: &lt;b&gt;"]);
    assert_eq!(
        text_of("\x1b[38;5;208mx\x1b[38;2;0;200;0my\x1b[m"),
        ["<span class=\"fg11\">x</span><span class=\"fg2\">y</span>"]
    );
}

#[test]
fn long_output_keeps_its_head_and_its_tail_and_counts_the_rest() {
    let output: String = (0..10_000).map(|line| format!("line {line}\n")).collect();
    let shown = terminal(&output, Cut { head: 10, tail: 100 });
    assert_eq!(shown.lines, 10_000);
    assert!(shown.hidden > 9_600 && shown.hidden < 9_900, "{}", shown.hidden);
    assert!(shown.html.contains("line 9\n") && !shown.html.contains("line 10\n") && shown.html.contains("line 9999\n"));
    assert!(shown.html.contains(&format!("data-count=\"{}\"", shown.hidden)));
}

#[test]
fn telling_a_reader_about_long_output_costs_in_proportion_to_it() {
    let mut live = LiveTerminal::new(Cut { head: 10, tail: 50 });
    let mut mark = Mark::default();
    let mut lines = 0;
    for line in 0..5_000 {
        live.push(&format!("line {line}\n"));
        lines += live.patch_since(mark).html.len();
        mark = live.mark();
    }
    assert!(lines < 4 * 5_000, "{lines} lines sent for 5000");
}

#[test]
fn a_line_without_end_stays_bounded() {
    let shown = terminal(&"x".repeat(1_000_000), Cut::WHOLE);
    assert!(shown.html.len() < 5_000 && shown.html.contains('…'));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_chunking_shows_the_same_lines_and_readers_keep_up(
        pieces in proptest::collection::vec(proptest::sample::select(vec![
            "a", "text ", "\n", "\n\n\n", "\r", "\t", "\x08", "\x1b[A", "\x1b[3A", "\x1b[2B", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[J",
            "\x1b[2J", "\x1b[5C", "\x1b[G", "\x1b[31m", "\x1b[0m", "\x1b[1;44m", "\x1b", "[", "\x1b]0;t\x07", "é", "<&>", "0123456789\n",
            "l\nl\nl\nl\nl\nl\nl\nl\nl\nl\nl\nl\nl\nl\nl\nl\n",
        ]), 0..60),
        chunk in 1usize..9,
    ) {
        let text = pieces.concat();
        let cut = Cut { head: 3, tail: 4 };
        let mut live = LiveTerminal::new(cut);
        let (mut mark, mut shown) = (Mark::default(), Vec::new());
        let characters: Vec<char> = text.chars().collect();
        for part in characters.chunks(chunk) {
            live.push(&part.iter().collect::<String>());
            let patch = live.patch_since(mark);
            shown.truncate(patch.from);
            prop_assert_eq!(shown.len(), patch.from);
            shown.extend(patch.html);
            mark = live.mark();
            let blocks: Vec<String> = live.blocks().iter().map(|line| line.to_string()).collect();
            prop_assert_eq!(&shown, &blocks);
        }
        let mut whole = LiveTerminal::new(cut);
        whole.push(&text);
        prop_assert_eq!(live.blocks(), whole.blocks());
    }
}
