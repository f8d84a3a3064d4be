//! Nothing an agent sends becomes script, style, form, frame, handler, or a request to elsewhere.

use proptest::prelude::*;
use rendering::{Cut, DiffView};

use crate::strict::violations;

/// Payloads, one per line; `\n` in a line stands for a line break, `\x1b` and a few others for themselves.
fn corpus() -> impl Iterator<Item = String> {
    include_str!("../data/xss.txt").lines().filter(|line| !line.is_empty() && !line.starts_with("##")).map(|line| {
        let unescape =
            [("\\n", "\n"), ("\\x1b", "\x1b"), ("\\x07", "\x07"), ("\\x01", "\x01"), ("\\u202e", "\u{202e}")];
        unescape.iter().fold(line.to_owned(), |line, (from, to)| line.replace(from, to))
    })
}

fn outputs(text: &str) -> Vec<String> {
    vec![
        rendering::markdown(text).concat(),
        rendering::markdown(&format!("````{text}")).concat(),
        rendering::diff(Some("x"), text, "a.html", DiffView::default()).html,
        rendering::terminal(text, Cut::WHOLE).html,
        rendering::file_read(text, 1, text, Cut::WHOLE).html,
    ]
}

fn check(text: &str) {
    for html in outputs(text) {
        check_html(text, &html);
    }
}

fn check_html(text: &str, html: &str) {
    assert_eq!(violations(html), Vec::<String>::new(), "{text:?} gave {html}");
    assert_eq!(rendering::sanitized(html), html, "the last step has nothing left to do for {text:?}");
}

#[test]
fn no_payload_of_the_corpus_becomes_more_than_text() {
    let mut count = 0;
    for payload in corpus() {
        check(&payload);
        for frame in [
            "> {}",
            "- {}",
            "| a |\n|---|\n| {} |",
            "[x]({})",
            "![x]({})",
            "[a]: {}\n\n[a]",
            "```{}\nx\n```",
            "<div>{}",
            "**{}**",
        ] {
            let framed = frame.replace("{}", &payload);
            check_html(&framed, &rendering::markdown(&framed).concat());
        }
        count += 1;
    }
    assert!(count >= 200, "{count} payloads");
}

/// The corpus as one page, for a real browser to open under the product's policy (see `web/tests`).
#[test]
fn the_corpus_is_written_as_a_page() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("xss");
    std::fs::create_dir_all(&directory).expect("a directory for the page");
    let items: Vec<String> = corpus().map(|payload| outputs(&payload).concat()).collect();
    let page = format!("<!doctype html><meta charset=\"utf-8\"><title>corpus</title>\n{}\n", items.join("\n<hr>\n"));
    std::fs::write(directory.join("corpus.html"), page).expect("the page is written");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_becomes_more_than_text(text in "(\\PC|[\\n\\t\\r <>&\"'`*_\\[\\]()!#|:/-]){0,80}") {
        check(&text);
    }
}
