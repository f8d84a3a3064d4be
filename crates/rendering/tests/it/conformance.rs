//! The examples of CommonMark and of GitHub's extensions, as a table of pass and fail with each deviation explained.
//!
//! What is compared is structure: elements and texts. Our own dress (classes, `rel`, captions, line breaks for single
//! newlines, pictures as links) is taken off both sides first. The table is `conformance.md`; `UPDATE=1` writes it.

use std::cell::RefCell;
use std::fmt::Write;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use pulldown_cmark::{Event, Options, Parser};

#[derive(Debug, PartialEq)]
enum Verdict {
    Pass,
    Deviates(&'static str),
    Unexplained,
}

#[test]
fn every_example_of_the_specifications_passes_or_deviates_for_a_reason() {
    let mut table = String::from(
        "# Conformance\n\nEvery example of the specifications, written by the test `conformance`. Compared by structure; our own dress (classes, \
         captions, `rel`, `<br>` for single newlines, pictures as links) is taken off first.\n",
    );
    let mut unexplained = Vec::new();
    for (name, data) in [
        ("CommonMark 0.31.2", include_str!("../data/commonmark.json")),
        ("GitHub's extensions", include_str!("../data/gfm.json")),
    ] {
        let examples: Vec<serde_json::Value> = serde_json::from_str(data).expect("the examples are JSON");
        let mut rows = String::new();
        let mut passed = 0;
        for example in &examples {
            let text = |key: &str| example[key].as_str().unwrap_or_default();
            let (markdown, html) = (text("markdown"), text("html"));
            let title = format!("{} {}", text("section"), example["example"]);
            match verdict(markdown, html) {
                Verdict::Pass => passed += 1,
                Verdict::Deviates(reason) => writeln!(rows, "| {title} | {reason} |").expect("writing to a string"),
                Verdict::Unexplained => unexplained.push((
                    title,
                    markdown.to_owned(),
                    html.to_owned(),
                    rendering::markdown(markdown).concat(),
                )),
            }
        }
        let count = examples.len();
        write!(table, "\n## {name}: {passed} of {count} pass\n\n| deviates | because |\n|---|---|\n{rows}")
            .expect("writing to a string");
    }
    assert!(
        unexplained.is_empty(),
        "{} unexplained, the first: {:#?}",
        unexplained.len(),
        &unexplained[..unexplained.len().min(5)]
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/conformance.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &table).expect("the table is written");
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(kept, table, "the table is out of date: run with UPDATE=1");
}

fn verdict(markdown: &str, expected: &str) -> Verdict {
    let ours = structure(&rendering::markdown(markdown).concat());
    let theirs = structure(expected);
    if ours == theirs {
        return Verdict::Pass;
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    if Parser::new_ext(markdown, options).any(|event| matches!(event, Event::Html(_) | Event::InlineHtml(_))) {
        return Verdict::Deviates("raw HTML is shown as text");
    }
    let links = |tokens: &[String]| tokens.iter().filter(|token| token.starts_with("<a ")).count();
    if without_links(&ours) == without_links(&theirs) {
        return Verdict::Deviates(if links(&ours) > links(&theirs) {
            "addresses in text are links (GitHub's extension)"
        } else if links(&ours) < links(&theirs) && !markdown.contains(['[', '<']) {
            "a domain of one letter is not taken for one"
        } else if links(&ours) < links(&theirs) {
            "a target that is neither http, https, mailto nor a path is no link"
        } else {
            "the same link, written differently"
        });
    }
    let mut plain = String::new();
    pulldown_cmark::html::push_html(&mut plain, Parser::new_ext(markdown, options));
    if structure(&plain) != theirs {
        return Verdict::Deviates("the parser reads it differently");
    }
    let mut extended = String::new();
    pulldown_cmark::html::push_html(
        &mut extended,
        Parser::new_ext(markdown, options | Options::ENABLE_FOOTNOTES | Options::ENABLE_GFM),
    );
    if structure(&extended) != theirs {
        return Verdict::Deviates("an extension reads it differently");
    }
    Verdict::Unexplained
}

fn without_links(tokens: &[String]) -> String {
    let kept: Vec<&str> =
        tokens.iter().filter(|token| !token.starts_with("<a ") && *token != "</a>").map(String::as_str).collect();
    kept.concat().split_whitespace().collect()
}

/// Elements and texts, without our dress and without white space between them.
fn structure(html: &str) -> Vec<String> {
    let tokenizer = Tokenizer::new(Structure::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let mut tokens = tokenizer.sink.tokens.into_inner();
    for token in &mut tokens {
        if !token.starts_with('<') {
            *token = token.split_whitespace().collect::<Vec<_>>().join(" ");
        }
    }
    tokens.retain(|token| !token.is_empty());
    tokens
}

#[derive(Default)]
struct Structure {
    tokens: RefCell<Vec<String>>,
    in_caption: RefCell<bool>,
}

impl TokenSink for Structure {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut tokens = self.tokens.borrow_mut();
        let mut push_text = |text: &str| match tokens.last_mut() {
            Some(last) if !last.starts_with('<') => last.push_str(text),
            _ => tokens.push(text.replace('<', "‹")),
        };
        match token {
            Token::CharacterTokens(text) if !*self.in_caption.borrow() => push_text(&text.replace('<', "‹")),
            Token::TagToken(tag) => {
                let opens = tag.kind == TagKind::StartTag;
                let attribute = |name: &str| {
                    let found = tag.attrs.iter().find(|attribute| &*attribute.name.local == name);
                    found.map(|attribute| attribute.value.to_string())
                };
                match &*tag.name {
                    "figcaption" => *self.in_caption.borrow_mut() = opens,
                    "figure" | "div" | "i" | "span" | "input" => {}
                    "br" => push_text("\n"),
                    "img" => {
                        let shown =
                            attribute("alt").filter(|alt| !alt.is_empty()).or(attribute("src")).unwrap_or_default();
                        tokens.push(format!("<a {}>", decoded(&attribute("src").unwrap_or_default())));
                        tokens.push(shown);
                        tokens.push("</a>".into());
                    }
                    "a" if opens => {
                        let target = attribute("href").or(attribute("data-path")).unwrap_or_default();
                        tokens.push(format!("<a {}>", decoded(&target)));
                    }
                    "ol" if opens => tokens.push(format!("<ol {}>", attribute("start").unwrap_or_default())),
                    "th" | "td" if opens => {
                        let alignment = attribute("class").or(attribute("style")).unwrap_or_default();
                        tokens.push(format!("<{} {}>", tag.name, alignment.trim_start_matches("text-align: ")));
                    }
                    name => tokens.push(format!("<{}{name}>", if opens { "" } else { "/" })),
                }
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// Percent-encoding undone, so that two spellings of one address compare equal.
fn decoded(url: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = url.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match hex {
            Some(value) if byte == b'%' => {
                bytes.push(value);
                rest = &after[2..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
