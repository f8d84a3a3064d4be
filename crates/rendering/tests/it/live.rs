//! A growing text shows, at every moment, what a full render of it shows.

use proptest::prelude::*;
use rendering::{LiveMarkdown, markdown};

use crate::reader::Reader;

/// Grows `text` chunk by chunk and compares with a full render after each; readers of different pace follow.
fn check(text: &str, chunk_lengths: &[usize]) {
    let mut live = LiveMarkdown::new();
    let (mut eager, mut lazy) = (Reader::default(), Reader::default());
    let mut pushed = 0;
    let mut lengths = chunk_lengths.iter().copied().cycle();
    let mut turn = 0;
    while pushed < text.len() {
        let mut end = (pushed + lengths.next().unwrap_or(1).max(1)).min(text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        live.push(&text[pushed..end]);
        pushed = end;
        let so_far = shown(&live, &text[..pushed]);
        let so_far = so_far.as_str();
        let full = markdown(so_far);
        assert_eq!(live.blocks(), full, "after {so_far:?}");
        eager.catch_up(&live);
        eager.assert_shows(&full, so_far);
        turn += 1;
        if turn % 7 == 0 || pushed == text.len() {
            lazy.catch_up(&live);
            lazy.assert_shows(&full, so_far);
        }
    }
    live.finish();
    let full = markdown(text);
    assert_eq!(live.blocks(), full, "all of {text:?}");
    eager.catch_up(&live);
    eager.assert_shows(&full, text);
}

/// What of a text is shown: all of it, or, where there are link definitions, all but a last line that may still grow.
fn shown(live: &LiveMarkdown, text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (shown, rest) = text.split_at(live.shown_len());
    let is_line = !rest.contains('\n') && (shown.is_empty() || shown.ends_with('\n'));
    assert!(rest.is_empty() || is_line && text.contains("]:"), "{rest:?} is not shown of {text:?}");
    shown.to_owned()
}

#[test]
fn a_live_text_can_move_between_threads() {
    fn check<T: Send + Sync + 'static>(_: T) {}
    check(LiveMarkdown::new());
    check(rendering::LiveTerminal::new(rendering::Cut::WHOLE));
}

#[test]
fn a_reader_that_never_saw_anything_gets_everything() {
    let mut live = LiveMarkdown::new();
    assert_eq!(live.patch_since(live.mark()), rendering::BlockPatch::default());
    live.push("# a\n\nb");
    let patch = live.patch_since(rendering::Mark::default());
    assert_eq!((patch.from, patch.keep), (0, 0));
    assert_eq!(patch.html, ["<h1>a</h1>", "<p>b</p>"]);
    let nothing = live.patch_since(live.mark());
    assert_eq!((nothing.from, nothing.keep, nothing.html.len()), (2, 0, 0));
}

/// Texts that once showed something else while they grew. Each broke a rule that had seemed right.
const FOUND: &[(&str, &str)] = &[
    ("a line of a vertical tab is a blank one", "a] \\\n\u{b}"),
    ("and one of a form feed", "<\na5\\\n\u{c}"),
    ("words after a picture stand after it", "![i](http://x.example/i.png) - and words"),
    ("an indented footnote inside a footnote starts a new one", "[^a]: note\n\n    [^a]: notea\nword"),
    ("only the first mark after a backslash is escaped", "!\u{10000}AA\\```===- [ ] ```rust\n-->===```===[^a]: note``"),
    (
        "emphasis does not keep a code mark inside it from opening",
        "*`*]a b c d e f g h i j k l m n o p q r s t u v w x y z `",
    ),
    ("a link's target may have spaces", "My ![foo b\u{16}\0\0\0\0\0\0\0ar](/path/to/train.jpg  \"title\"   )"),
    ("an item that is taken back makes its list tight again", "* ===let x = 1;\nword\n\n**"),
    (
        "a list below a paragraph is no part of it",
        "a | b\n* * ***``````- [ ] two words\n![i](http://x.example/i.png)\n[a]\n\n  # src/main.rs:12- [ ] \n_| a | b |",
    ),
    (
        "a blank line in front of an item makes its words a paragraph",
        "- [x] \n\n- `~~|---|---|The quick brown fox jumps over the lazy dog.   1. a@b.example**",
    ),
    ("a task without words says nothing about its list", "- [x] \n\n- words that go on and on and on *and* on"),
    ("quotes may be indented and close together", "   > > 1.  one\n>>\n>>     two\n>>\n>>     three *and* four"),
    ("code in an item may become a rule", "-     -      -      -\n"),
    ("and so in a quote and in another item", "> -     -      - \n\n1. *     *      * \n   -     -      -\n"),
    ("a number after a heading in an item may be a list", "- ## x\n  1. a"),
    (
        "a definition counts in the list below it",
        "[a]: http://x.example/\n1. https://a.example/b?c=d&e- [ ] ```rust\nword[a]",
    ),
    (
        "a definition's title may end lines later",
        "[foo]: /url \"a title that goes on and on\nand on and on and on and on and on\nand on and on and on\"",
    ),
];

#[test]
fn what_was_once_wrong_is_right() {
    for (_, text) in FOUND {
        check(text, &[1]);
        check(text, &[3, 7]);
    }
}

#[test]
fn what_acts_at_a_distance_reaches_what_was_shown_long_ago() {
    let filler = "Some words that are long enough to be settled before anything else arrives.\n\n".repeat(4);
    check(&format!("See [a], [b][a] and [^n].\n\n{filler}[a]: https://a.example/x \"t\"\n[^n]: a note\n\nend"), &[1]);
    check(&format!("[a]\n\n{filler}[a]: https://first.example\n\n{filler}[a]: https://second.example\n\n[a]"), &[5]);
    check(&format!("{}\nunderline\n---\nnext", filler.trim()), &[2]);
    check(
        "a long enough first line of | a paragraph with a pipe that goes on and on\n---|---\n| 1 | 2 |\n\nafter",
        &[1],
    );
    check(&format!("- {0}\n- {0}\n- {0}\n- {0}\n\n- now it is loose\n- {0}\n\nend of it", "words in an item"), &[1]);
    check(&format!("| a | b |\n|---|---|\n{}after\n\nend", "| some | cells |\n".repeat(12)), &[1]);
}

#[test]
fn what_grows_without_being_read_again_shows_a_full_render() {
    let code = "fn main() {\n    let s = \"a\nb\"; /* c\n d */ & <b>\n}\n\n";
    let indented = |by: &str| code.lines().map(|line| format!("{by}{line}\n")).collect::<String>().repeat(3);
    let rows = |by: &str| format!("{by}| a `x` | *b* |\n{by}|:--|--:|\n{}", format!("{by}| c | d & e |\n").repeat(6));
    let html = "<div>\n<p class=\"x\">some &amp; text</p>\n  <b>\n".repeat(4);
    for text in [
        format!(
            "1. Step one:\n\n   ```rust\n{}   ```\n\n   and then\n2. Step:\n   ~~~~\n{0}   ~~~\n   ~~~~\n- x",
            indented("   ")
        ),
        format!("- a\n  - b\n    ```rust\n{}    ```\n    ```rust\n{0}    ```\n\n- loose\n", indented("    ")),
        format!("> quote\n> ```sh\n{}> ```\n> more\n\nend", indented("> ")),
        format!("> [!WARNING]\n> Some *words* of it.\n>\n> ```js\n{}> ```\n{}\nend", indented("> "), rows("> ")),
        format!("- Figures:\n\n{}\n  after\n- {}\n", rows("  "), "words of an item ".repeat(8)),
        format!("{}\n\nafter\n\n{html}\n\n<!-- a\n\nb\n\n-->\nend", html.trim()),
        format!("{}\nafter\n\n\n{0}", indented("    ")),
        format!("<pre>\n{}</pre> tail\nend", indented("  ")),
    ] {
        check(&text, &[1]);
        check(&text, &[5]);
        check(&text, &[3, 11, 2]);
    }
}

#[test]
fn a_word_that_is_too_long_for_a_link_is_text_whole_and_live() {
    let letters = "abcdefghijklmnopqrstuvwxyz".repeat(170);
    let is_linked = |text: &str| markdown(text)[0].contains("<a href");
    assert!(is_linked(&format!("https://a.example/{}", &letters[..4_000])));
    assert!(!is_linked(&format!("https://a.example/{}", &letters[..4_200])));
    for text in [
        format!("see data:image/png;base64,{letters}https://a.example/x, and https://b.example/ x"),
        format!("see {letters}https://a.example/x:1&amp;more é and src/a.rs:12 x"),
        format!("https://a.example/{letters}`c`https://b.example/ x"),
    ] {
        check(&text, &[61, 5, 97]);
    }
}

/// A long paragraph that is open from its start is shown to its end at every moment, as slowly as it may come.
#[test]
fn a_long_open_paragraph_is_shown_to_its_end() {
    for open in ["**bold ", "[a link ", "`code ", "<b ", "[*_~"] {
        check(&format!("{open}{}", "and so on, *this* `way`, [on](x) and on ".repeat(80)), &[37]);
    }
}

#[test]
fn only_of_a_flood_of_marks_is_the_end_held_back() {
    let mut live = LiveMarkdown::new();
    for length in 1..=2_000 {
        live.push("[");
        assert_eq!(live.shown_len(), length);
    }
    for length in 2_001..=6_000 {
        live.push("[");
        assert!(length - live.shown_len() <= length / 64, "and only a little of it");
    }
    assert_ne!(live.shown_len(), 6_000);
    live.finish();
    assert_eq!(live.blocks(), markdown(&"[".repeat(6_000)));
    // What comes after a flood is shown as ever.
    live.push("\n\nwords");
    live.push("\n\nand *more*");
    assert_eq!(live.blocks(), markdown(&format!("{}\n\nwords\n\nand *more*", "[".repeat(6_000))));
}

/// Pieces of markdown that do something to their neighbours.
fn piece() -> impl Strategy<Value = String> {
    let pieces: &[&str] = &[
        "word",
        "two words",
        " ",
        "  ",
        "    ",
        "\t",
        "\n",
        "\n",
        "\n\n",
        "\n\n",
        "\r\n",
        "\r",
        "\u{b}",
        "\u{c}",
        "*",
        "**",
        "_",
        "__",
        "~~",
        "~",
        "`",
        "``",
        "```",
        "````",
        "```rust\n",
        "~~~",
        "let x = 1;\n",
        "# ",
        "## x\n",
        "===",
        "---",
        "- ",
        "* ",
        "+ ",
        "1. ",
        "2. ",
        "2) ",
        "10. ",
        "> ",
        ">",
        "- [ ] ",
        "- [x] ",
        "[",
        "]",
        "](",
        ")",
        "[a]",
        "[a]: http://x.example/",
        "[a]: /u \"t\"",
        "[b][a]",
        "![i](http://x.example/i.png)",
        "[^a]",
        "[^a]: note",
        "[^a]:",
        "\"title\"",
        "|",
        "| a | b |",
        "|---|---|",
        "a | b\n",
        "--|--\n",
        "| 1 | 2 |\n",
        "<",
        ">",
        "<b>",
        "</b>",
        "<div>",
        "<!--",
        "-->",
        "<script>",
        "<https://a.example>",
        "https://a.example/b?c=d&e",
        "www.a.example",
        "a@b.example",
        "src/main.rs:12",
        "\\",
        "&amp;",
        "&",
        "&#13;",
        ":",
        "é",
        "😀",
        "\u{a0}",
        "\u{feff}",
        "***",
        "* * *",
        "_ _ _",
        "> [!NOTE]\n",
        "a_b_c",
        "!",
        "(",
        "a\n",
        "a b c d e f g h i j k l m n o p q r s t u v w x y z ",
        "The quick brown fox jumps over the lazy dog. ",
        "x\n",
        "{",
        "$",
        "^",
        "lazy\n",
        "   ",
        "  - ",
        "-\t",
        "1)\t",
        ">\t",
        "\n===\n",
        "\n---\n",
        "=\n",
        "> ~~~\n",
        "> ```\n",
        "  ```\n",
        "\t```\n",
        "- | a | b |\n  |---|---|\n",
        "> [^a]: ",
        "    [^b]: ",
        "[a]:\n",
        "[a]: <x y> 'title\n",
        "<pre>",
        "<?php",
        "?>",
        "<![CDATA[",
        "]]>",
        "<!X",
        "</div>\n",
        "<x y=\"z\">\n",
        "\0",
        "\u{1}",
        "\u{c}",
        "e\u{301}",
        "\u{202e}",
        "\u{200d}",
        "\u{2028}",
        "\u{3000}",
        "\u{fdd1}",
        "👩\u{200d}👧",
    ];
    proptest::sample::select(pieces).prop_map(str::to_owned)
}

fn text() -> impl Strategy<Value = String> {
    let mostly_pieces = proptest::collection::vec(prop_oneof![9 => piece(), 1 => ".{0,4}"], 0..40);
    mostly_pieces.prop_map(|pieces| pieces.concat())
}

/// More with `PROPTEST_CASES`.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(500)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_chunking_of_any_text_shows_a_full_render_at_every_moment(
        text in text(),
        lengths in proptest::collection::vec(1usize..12, 1..6),
    ) {
        check(&text, &lengths);
        check(&text, &[1]);
    }
}
