//! Nothing that an agent or a user wrote becomes more than text in an exported HTML file.

use std::cell::RefCell;

use export::{Format, Redaction};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use protocol::TurnRecordStatus;

use crate::session::{everything, exported, header, turn};

const ELEMENTS: &str = "a article b blockquote body br code dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 \
    h6 head header hr html i img li main meta ol p pre section span strong style summary sup table tbody td th thead \
    time title tr ul";
const ATTRIBUTES: &str = "alt aria-label charset class content data-count data-line data-note data-path datetime dir \
    href http-equiv lang name rel role src start tabindex target title";

#[derive(Default)]
struct Sink {
    found: RefCell<Found>,
}

#[derive(Default)]
struct Found {
    styles: usize,
    policies: usize,
    open: Vec<String>,
    violations: Vec<String>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut found = self.found.borrow_mut();
        match token {
            Token::TagToken(tag) => {
                found.tag(&tag);
                match (tag.kind, &*tag.name) {
                    (TagKind::StartTag, "style") => return TokenSinkResult::RawData(RawKind::Rawtext),
                    (TagKind::StartTag, "title") => return TokenSinkResult::RawData(RawKind::Rcdata),
                    _ => {}
                }
            }
            Token::CommentToken(text) => found.violations.push(format!("a comment: {text}")),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl Found {
    fn tag(&mut self, tag: &Tag) {
        let name = tag.name.to_string();
        if !ELEMENTS.split_whitespace().any(|known| known == name) {
            self.violations.push(format!("element {name}"));
        }
        if tag.kind == TagKind::EndTag {
            if self.open.pop().as_ref() != Some(&name) {
                self.violations.push(format!("a closing {name} where it does not belong"));
            }
            return;
        }
        self.styles += usize::from(name == "style");
        for attribute in &tag.attrs {
            let (key, value) = (&*attribute.name.local, &*attribute.value);
            self.policies += usize::from(key == "http-equiv");
            let is_known = ATTRIBUTES.split_whitespace().any(|known| known == key);
            let leads_well = match key {
                "href" => {
                    ["http://", "https://", "mailto:"].iter().any(|scheme| value.to_lowercase().starts_with(scheme))
                }
                "src" => value.starts_with("data:image/"),
                _ => true,
            };
            if !is_known || !leads_well {
                self.violations.push(format!("{name} with {key}={value:?}"));
            }
        }
        if !["br", "hr", "img", "meta"].contains(&name.as_str()) {
            self.open.push(name);
        }
    }
}

fn check(text: &str, html: &str) {
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let found = tokenizer.sink.found.into_inner();
    assert_eq!(found.violations, Vec::<String>::new(), "{text:?}");
    assert_eq!((found.styles, found.policies), (1, 1), "{text:?}");
    assert!(found.open.is_empty(), "{text:?} left {:?} open", found.open);
}

/// As in the tests of `rendering`.
fn corpus() -> impl Iterator<Item = String> {
    let lines = include_str!("../../../rendering/tests/data/xss.txt").lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with("##")).map(|line| {
        let marks = [("\\n", "\n"), ("\\x1b", "\x1b"), ("\\x07", "\x07"), ("\\x01", "\x01"), ("\\u202e", "\u{202e}")];
        marks.iter().fold(line.to_owned(), |line, (from, to)| line.replace(from, to))
    })
}

#[test]
fn no_payload_of_the_corpus_becomes_more_than_text() {
    let mut count = 0;
    for payload in corpus() {
        let turns = [turn("t1", TurnRecordStatus::Error, Some(&payload))];
        let mut header = header(&payload);
        header.agent.clone_from(&payload);
        header.project_path = Some(payload.clone());
        let html = exported(Format::Html, Redaction::None, header, &turns, &everything(&payload));
        check(&payload, &html);
        count += 1;
    }
    assert!(count >= 200, "{count} payloads");
}
