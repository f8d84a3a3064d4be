//! Links in a text: addresses, and references to files.
//!
//! Works word by word (a word has no ASCII white space), so that a text may be rendered in parts that are cut at
//! spaces.

use std::borrow::Cow;
use std::sync::LazyLock;

use linkify::{LinkFinder, LinkKind};

use super::references;
use crate::escape;
use crate::sanitize::{LINK_REL, is_link};

static FINDER: LazyLock<LinkFinder> = LazyLock::new(|| {
    let mut finder = LinkFinder::new();
    // Only with a scheme; otherwise every `main.rs` would be a site in Serbia.
    finder.kinds(&[LinkKind::Url, LinkKind::Email]).url_must_have_scheme(true);
    finder
});

/// A longer word is always text: it can grow without being searched again.
pub(crate) const LINK_WORD_BYTES_MAX: usize = 4096;

/// Appends text, with addresses and `file:line` as links.
pub(crate) fn text_into(html: &mut String, text: &str) {
    let mut plain = 0;
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let start = at;
        let mut interesting = false;
        while at < bytes.len() && !bytes[at].is_ascii_whitespace() {
            interesting |= match bytes[at] {
                b':' | b'@' | b'#' => true,
                b'w' => bytes[at..].starts_with(b"www."),
                _ => false,
            };
            at += 1;
        }
        if interesting && at - start <= LINK_WORD_BYTES_MAX {
            escape::text_into(html, &text[plain..start]);
            word_into(html, &text[start..at]);
            plain = at;
        }
        while at < bytes.len() && bytes[at].is_ascii_whitespace() {
            at += 1;
        }
    }
    escape::text_into(html, &text[plain..]);
}

/// Appends the text of a code span: as a whole it may be a reference to a file.
pub(super) fn code_into(html: &mut String, text: &str) {
    match references::whole(text) {
        Some(reference) => reference.link_into(html, text),
        None => escape::text_into(html, text),
    }
}

/// The opening tag of a markdown link, or `None` if its address is not allowed.
pub(super) fn opening(url: &str, title: &str) -> Option<String> {
    tag(url, "", title)
}

/// The opening tag for an image that is shown as a link.
pub(super) fn image_opening(url: &str, title: &str) -> Option<String> {
    tag(url, "class=\"image\" ", title)
}

fn tag(url: &str, class: &str, title: &str) -> Option<String> {
    if !is_link(url) {
        return place(url);
    }
    let mut tag = String::new();
    open_into(&mut tag, class, url, title);
    Some(tag)
}

fn place(path: &str) -> Option<String> {
    let mut tag = String::new();
    references::relative(path)?.open_into(&mut tag);
    Some(tag)
}

fn open_into(html: &mut String, class: &str, url: &str, title: &str) {
    html.push_str("<a ");
    html.push_str(class);
    html.push_str("href=\"");
    escape::attribute_into(html, url);
    if !title.is_empty() {
        html.push_str("\" title=\"");
        escape::attribute_into(html, title);
    }
    html.push_str("\" target=\"_blank\" rel=\"");
    html.push_str(LINK_REL);
    html.push_str("\">");
}

fn word_into(html: &mut String, word: &str) {
    let mut written = 0;
    for link in FINDER.links(word) {
        let url = match link.kind() {
            LinkKind::Email => Cow::Owned(format!("mailto:{}", link.as_str())),
            _ => Cow::Borrowed(link.as_str()),
        };
        if is_link(&url) {
            schemeless_into(html, &word[written..link.start()]);
            link_into(html, &url, link.as_str());
            written = link.end();
        }
    }
    schemeless_into(html, &word[written..]);
}

/// `www.` addresses and `file:line`.
fn schemeless_into(html: &mut String, word: &str) {
    let lead =
        word.find(|c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '~' | '_' | '@')).unwrap_or(word.len());
    let (before, rest) = word.split_at(lead);
    if rest.starts_with("www.") {
        let (address, after) = rest.split_at(address_end(rest));
        let url = format!("http://{address}");
        if address.get(4..).is_some_and(|host| host.contains('.')) && is_link(&url) {
            escape::text_into(html, before);
            link_into(html, &url, address);
            return escape::text_into(html, after);
        }
    }
    match references::leading(rest) {
        Some((reference, length)) => {
            escape::text_into(html, before);
            reference.link_into(html, &rest[..length]);
            escape::text_into(html, &rest[length..]);
        }
        None => escape::text_into(html, word),
    }
}

/// Where an address in a sentence ends: before the sentence's punctuation, a bracket it did not open, an entity.
fn address_end(word: &str) -> usize {
    let mut address = &word[..word.find('<').unwrap_or(word.len())];
    loop {
        let before = address.len();
        address = address.trim_end_matches(['?', '!', '.', ',', ':', '*', '_', '~', '\'', '"']);
        if address.ends_with(')') && address.matches(')').count() > address.matches('(').count() {
            address = &address[..address.len() - 1];
        }
        if let Some((start, entity)) = address.strip_suffix(';').and_then(|inside| inside.rsplit_once('&'))
            && entity.bytes().all(|byte| byte.is_ascii_alphanumeric())
        {
            address = start;
        }
        if address.len() == before {
            return before;
        }
    }
}

fn link_into(html: &mut String, url: &str, shown: &str) {
    open_into(html, "", url, "");
    escape::text_into(html, shown);
    html.push_str("</a>");
}
