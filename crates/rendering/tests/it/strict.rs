//! A strict reading of HTML, written apart from the crate's own allow-list: what may stand in a page, and nothing else.
//! Tests and fuzz targets share it.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

const ELEMENTS: &[&str] = &[
    "a",
    "b",
    "blockquote",
    "br",
    "code",
    "del",
    "div",
    "em",
    "figcaption",
    "figure",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "img",
    "li",
    "ol",
    "p",
    "pre",
    "span",
    "strong",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
];
const VOID: &[&str] = &["br", "hr", "img"];

/// Every way in which `html` is more than it may be.
pub(crate) fn violations(html: &str) -> Vec<String> {
    let sink = Sink::default();
    let tokenizer = Tokenizer::new(sink, TokenizerOpts { exact_errors: true, ..TokenizerOpts::default() });
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let Found { open, mut violations } = tokenizer.sink.found.into_inner();
    if !open.is_empty() {
        violations.push(format!("never closed: {open:?}"));
    }
    violations
}

#[derive(Default)]
struct Sink {
    found: RefCell<Found>,
}

#[derive(Default)]
struct Found {
    open: Vec<String>,
    violations: Vec<String>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut found = self.found.borrow_mut();
        match token {
            Token::TagToken(tag) => found.tag(&tag),
            Token::CharacterTokens(_) | Token::EOFToken => {}
            // Control characters in text are errors to the letter of the standard, and harmless.
            Token::ParseError(error) if error.contains("Bad character") => {}
            Token::ParseError(error) => found.violations.push(format!("parse error: {error}")),
            Token::NullCharacterToken => found.violations.push("a null character".into()),
            Token::CommentToken(text) => found.violations.push(format!("a comment: {text}")),
            Token::DoctypeToken(_) => found.violations.push("a doctype".into()),
        }
        TokenSinkResult::Continue
    }
}

impl Found {
    fn tag(&mut self, tag: &Tag) {
        let name = tag.name.to_string();
        if !ELEMENTS.contains(&name.as_str()) {
            self.violations.push(format!("element {name}"));
        }
        if tag.kind == TagKind::EndTag {
            if self.open.pop().as_ref() != Some(&name) || !tag.attrs.is_empty() {
                self.violations.push(format!("a closing {name} where it does not belong"));
            }
            return;
        }
        if tag.self_closing {
            self.violations.push(format!("self-closing {name}"));
        }
        let attribute = |wanted: &str| {
            tag.attrs.iter().find(|attribute| &*attribute.name.local == wanted).map(|attribute| &*attribute.value)
        };
        for attribute in &tag.attrs {
            let (key, value) = (&*attribute.name.local, &*attribute.value);
            if !may_say(&name, key, value) {
                self.violations.push(format!("{name} with {key}={value:?}"));
            }
        }
        if attribute("href").is_some()
            && (attribute("target") != Some("_blank") || attribute("rel") != Some("noopener noreferrer nofollow"))
        {
            self.violations.push("a link without target or rel".into());
        }
        if !VOID.contains(&name.as_str()) {
            self.open.push(name);
        }
    }
}

fn may_say(element: &str, attribute: &str, value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    match (element, attribute) {
        (_, "class") => {
            value.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b' ' | b'-'))
        }
        ("a", "href") => ["http://", "https://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme)),
        ("a", "title" | "data-path" | "data-line" | "role" | "tabindex" | "target" | "rel") => true,
        ("i", "role" | "aria-label") | ("div" | "sup", "data-note") | ("div", "data-count") | ("ol", "start") => true,
        ("img", "src") => {
            ["png", "jpeg", "gif", "webp"].iter().any(|kind| value.starts_with(&format!("data:image/{kind};base64,")))
        }
        ("img", "alt") => true,
        _ => false,
    }
}
