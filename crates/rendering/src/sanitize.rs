//! The last step of every output of this crate: an allow-list of elements and attributes.
//!
//! Comes in: HTML from our own writers. Goes out: HTML made of the elements, attributes and values of [`ALLOWED`].
//! There is no `style`, `id`, `name`, event handler, form, frame, script, and no URL but http, https, mailto and small
//! `data:` images. One table serves two readers:
//!
//! - [`is_clean`], a strict recogniser of the exact HTML of our writers. It refuses everything it does not know. It
//!   makes sanitizing every line of a growing block affordable.
//! - [`ammonia`], a real HTML parser, for what the recogniser refused.
//!
//! Property tests and fuzzing check that both agree (ammonia changes nothing that the recogniser accepted).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};

use crate::highlight::CLASSES;

/// The allowed values of an attribute.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// Any text: the browser only shows it or passes it to our own code.
    Text,
    /// Digits.
    Number,
    /// Exactly one of these.
    OneOf(&'static [&'static str]),
    /// White-space separated words, each one of these.
    Words(&'static [&'static str]),
    /// An absolute http, https or mailto address.
    Link,
    /// A picture inside the page.
    Picture,
}

/// `rel` of every link. It is not in the table: ammonia sets it itself, always last.
pub(crate) const LINK_REL: &str = "noopener noreferrer nofollow";

const ALIGNMENT: &[(&str, Rule)] = &[("class", Rule::OneOf(&["left", "center", "right"]))];
const NONE: &[(&str, Rule)] = &[];

/// Every allowed element, with its attributes.
const ALLOWED: &[(&str, &[(&str, Rule)])] = &[
    (
        "a",
        &[
            ("class", Rule::OneOf(&["ref", "image"])),
            ("href", Rule::Link),
            ("title", Rule::Text),
            ("data-path", Rule::Text),
            ("data-line", Rule::Number),
            ("role", Rule::OneOf(&["link"])),
            ("tabindex", Rule::OneOf(&["0"])),
            ("target", Rule::OneOf(&["_blank"])),
        ],
    ),
    ("b", &[("class", Rule::OneOf(&["hi"]))]),
    ("blockquote", &[("class", Rule::Words(&["alert", "note", "tip", "important", "warning", "caution"]))]),
    ("br", NONE),
    ("code", NONE),
    ("del", NONE),
    (
        "div",
        &[
            (
                "class",
                Rule::Words(&[
                    "table", "footnote", "diff", "file", "terminal", "line", "add", "del", "same", "fold", "cut",
                    "note",
                ]),
            ),
            ("data-note", Rule::Text),
            ("data-count", Rule::Number),
        ],
    ),
    ("em", NONE),
    ("figcaption", NONE),
    ("figure", &[("class", Rule::OneOf(&["code", "image"]))]),
    ("h1", NONE),
    ("h2", NONE),
    ("h3", NONE),
    ("h4", NONE),
    ("h5", NONE),
    ("h6", NONE),
    ("hr", NONE),
    (
        "i",
        &[
            ("class", Rule::OneOf(&["box", "k", "f", "s", "t", "n", "p", "c", "a", "d"])),
            ("role", Rule::OneOf(&["img"])),
            ("aria-label", Rule::OneOf(&["done", "to do"])),
        ],
    ),
    ("img", &[("src", Rule::Picture), ("alt", Rule::Text)]),
    ("li", &[("class", Rule::Words(&["task", "done"]))]),
    ("ol", &[("start", Rule::Number)]),
    ("p", &[("class", Rule::OneOf(&["html", "alert-title"]))]),
    ("pre", NONE),
    (
        "span",
        &[(
            "class",
            Rule::Words(&[
                "num",
                "sign",
                "src",
                "bold",
                "dim",
                "italic",
                "underline",
                "strike",
                "inverse",
                "fg0",
                "fg1",
                "fg2",
                "fg3",
                "fg4",
                "fg5",
                "fg6",
                "fg7",
                "fg8",
                "fg9",
                "fg10",
                "fg11",
                "fg12",
                "fg13",
                "fg14",
                "fg15",
                "bg0",
                "bg1",
                "bg2",
                "bg3",
                "bg4",
                "bg5",
                "bg6",
                "bg7",
                "bg8",
                "bg9",
                "bg10",
                "bg11",
                "bg12",
                "bg13",
                "bg14",
                "bg15",
            ]),
        )],
    ),
    ("strong", NONE),
    ("sup", &[("class", Rule::OneOf(&["note"])), ("data-note", Rule::Text)]),
    ("table", NONE),
    ("tbody", NONE),
    ("td", ALIGNMENT),
    ("th", ALIGNMENT),
    ("thead", NONE),
    ("tr", NONE),
    ("ul", NONE),
];

/// Elements without a closing tag.
const VOID: &[&str] = &["br", "hr", "img"];

/// The last step: returns `html` unchanged if it is what our writers may write, otherwise what a real HTML parser and
/// the allow-list leave of it.
pub(crate) fn sanitize(html: String) -> String {
    if is_clean(&html) { html } else { sanitized(&html) }
}

/// What a real HTML parser and the allow-list leave of any `html`: everything, for the output of this crate.
pub fn sanitized(html: &str) -> String {
    CLEANER.clean(html).to_string()
}

/// Whether a link may lead to `url`.
pub(crate) fn is_link(url: &str) -> bool {
    let allowed = |scheme: &str| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let is_allowed = allowed("http://") || allowed("https://") || allowed("mailto:");
    is_allowed && (has_plain_host(url) || ammonia::Url::parse(url).is_ok())
}

/// Whether `url` is a web address whose host every parser accepts: labels of letters, digits and hyphens, the last of
/// them not a number. Most are, and this check runs again with every word that follows.
fn has_plain_host(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else { return false };
    let host = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let is_plain = |word: &str| {
        !word.is_empty()
            && !word.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--"))
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    last.starts_with(|first: char| first.is_ascii_alphabetic()) && host.split('.').all(is_plain)
}

/// Whether `url` is an image created by us: an allowed type, base64.
fn is_picture(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("data:image/") else { return false };
    let Some((kind, data)) = rest.split_once(";base64,") else { return false };
    matches!(kind, "png" | "jpeg" | "gif" | "webp")
        && data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
}

fn rule(element: &str, attribute: &str) -> Option<Rule> {
    let (_, attributes) = ALLOWED.iter().find(|(name, _)| *name == element)?;
    attributes.iter().find(|(name, _)| *name == attribute).map(|(_, rule)| *rule)
}

fn is_allowed(rule: Rule, value: &str) -> bool {
    match rule {
        Rule::Text => true,
        Rule::Number => !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()),
        Rule::OneOf(words) => words.contains(&value),
        Rule::Words(words) => !value.is_empty() && value.split(' ').all(|word| words.contains(&word)),
        Rule::Link => is_link(value),
        Rule::Picture => is_picture(value),
    }
}

/// Built once: ammonia checks its configuration when it cleans, so a test covers it.
static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    debug_assert!(CLASSES.iter().all(|class| matches!(rule("i", "class"), Some(rule) if is_allowed(rule, class))));
    let mut builder = Builder::empty();
    let attributes: HashMap<&str, HashSet<&str>> = ALLOWED
        .iter()
        .map(|(element, attributes)| (*element, attributes.iter().map(|(name, _)| *name).collect()))
        .collect();
    builder
        .tags(ALLOWED.iter().map(|(element, _)| *element).collect())
        .tag_attributes(attributes)
        .url_schemes(["http", "https", "mailto", "data"].into())
        .url_relative(UrlRelative::Deny)
        .link_rel(Some(LINK_REL))
        .attribute_filter(|element, attribute, value| {
            let allowed = match (element, attribute) {
                ("a", "rel") => value == LINK_REL,
                _ => rule(element, attribute).is_some_and(|rule| is_allowed(rule, value)),
            };
            allowed.then_some(Cow::Borrowed(value))
        });
    builder
});

/// Deeper nesting is not accepted as ours.
const OPEN_MAX: usize = 64;

/// Whether `html` is balanced, written exactly as our writers do, and uses only the allow-list.
pub(crate) fn is_clean(html: &str) -> bool {
    let mut open = [""; OPEN_MAX];
    let mut depth = 0;
    let mut rest = html;
    loop {
        let Some(text) = clean_text(rest.as_bytes()) else { return false };
        rest = &rest[text..];
        let Some(tag) = rest.strip_prefix('<') else { return depth == 0 };
        if let Some(closing) = tag.strip_prefix('/') {
            let Some(end) = closing.bytes().position(|byte| byte == b'>') else { return false };
            if depth == 0 || open[depth - 1] != &closing[..end] {
                return false;
            }
            depth -= 1;
            rest = &closing[end + 1..];
            continue;
        }
        let Some((element, after)) = opening_tag(tag) else { return false };
        if !VOID.contains(&element) {
            let Some(place) = open.get_mut(depth) else { return false };
            *place = element;
            depth += 1;
        }
        rest = after;
    }
}

/// Reads `name attribute="value" …>` and returns the name and what follows, if all of it is allowed.
fn opening_tag(tag: &str) -> Option<(&str, &str)> {
    let name_end = tag.bytes().position(|byte| matches!(byte, b' ' | b'>'))?;
    let (element, mut rest) = tag.split_at(name_end);
    let (_, attributes) = ALLOWED.iter().find(|(name, _)| *name == element)?;
    let mut seen: [&str; 8] = [""; 8];
    let mut count = 0;
    while let Some(attribute) = rest.strip_prefix(' ') {
        let (name, value) = attribute.split_once("=\"")?;
        let (value, after) = value.split_once('"')?;
        if seen[..count].contains(&name) || count == seen.len() || !is_clean_text(value) || value.contains('>') {
            return None;
        }
        let allowed = match attributes.iter().find(|(known, _)| *known == name) {
            Some((_, rule)) => is_allowed(*rule, &plain(value)),
            None => element == "a" && name == "rel" && value == LINK_REL,
        };
        if !allowed {
            return None;
        }
        seen[count] = name;
        count += 1;
        rest = after;
    }
    // Ammonia adds `rel` to every link, as the last attribute.
    if element == "a" && (count == 0 || seen[count - 1] != "rel") {
        return None;
    }
    Some((element, rest.strip_prefix('>')?))
}

fn is_clean_text(text: &str) -> bool {
    clean_text(text.as_bytes()) == Some(text.len())
}

/// The length of the text up to a `<` or the end; `None` if it contains something that a parser would interpret. (`"`
/// is harmless outside attributes, and ends them inside.)
fn clean_text(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if !NOTABLE[usize::from(byte)] {
            at += 1;
            continue;
        }
        match byte {
            b'<' => return Some(at),
            b'&' => {
                let entities = ["&amp;", "&lt;", "&gt;", "&quot;", "&nbsp;"];
                at += entities.iter().find(|entity| bytes[at..].starts_with(entity.as_bytes()))?.len();
            }
            0xC2 if bytes.get(at + 1) != Some(&0xA0) => at += 1,
            _ => return None,
        }
    }
    Some(at)
}

/// Bytes that are allowed in text only in certain positions, or not at all.
const NOTABLE: [bool; 256] = {
    let mut table = [false; 256];
    let notable = [b'<', b'>', b'&', 0, b'\r', 0xC2];
    let mut at = 0;
    while at < notable.len() {
        table[notable[at] as usize] = true;
        at += 1;
    }
    table
};

fn plain(value: &str) -> Cow<'_, str> {
    if !value.contains('&') {
        return Cow::Borrowed(value);
    }
    let value = value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&nbsp;", "\u{a0}");
    Cow::Owned(value.replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_of_the_cleaner_is_consistent() {
        assert_eq!(sanitized("<p>hi <b>x</b><script>alert(1)</script></p>"), "<p>hi <b>x</b></p>");
    }

    #[test]
    fn a_link_keeps_its_address_and_gets_its_rel() {
        let html = r#"<a href="https://a.example/?b=1&amp;c" target="_blank" rel="noopener noreferrer nofollow">x</a>"#;
        assert!(is_clean(html));
        assert_eq!(sanitized(html), html);
        assert_eq!(
            sanitized(r#"<a href="javascript:alert(1)" onclick="x()">x</a>"#),
            r#"<a rel="noopener noreferrer nofollow">x</a>"#
        );
    }

    proptest::proptest! {
        #[test]
        fn a_plain_host_is_one_that_the_parser_takes(host in "[a-zA-Z0-9.xn-]{0,24}", rest in "([/?#:@\\\\].{0,12})?") {
            let url = format!("https://{host}{rest}");
            proptest::prop_assert!(!has_plain_host(&url) || ammonia::Url::parse(&url).is_ok(), "{url}");
        }
    }

    #[test]
    fn most_hosts_are_plain_and_odd_ones_are_left_to_the_parser() {
        for url in ["https://example.com/a?b=c", "http://localhost", "https://a-b.c1.Example#x"] {
            assert!(has_plain_host(url), "{url}");
        }
        for url in [
            "https://1.2.3.4/",
            "https://a.b.1",
            "https://xn--a.b",
            "https://a..b",
            "https://a:80/",
            "https://u@a",
            "https://",
            "https:///a",
            "ftp://a.b",
            "https://é.b",
        ] {
            assert!(!has_plain_host(url), "{url}");
        }
    }

    #[test]
    fn the_recogniser_refuses_everything_our_writers_do_not_write() {
        for html in [
            "<p>",
            "</p>",
            "<p></em>",
            "<script></script>",
            "<p onclick=\"x\"></p>",
            "<p class='html'></p>",
            "<P></P>",
            "<p >x</p>",
            "<p>a & b</p>",
            "<p>&#60;</p>",
            "<a href=\"javascript:x\" rel=\"noopener noreferrer nofollow\">x</a>",
            "<a href=\"https://x.example\">x</a>",
            "<i class=\"zz\"></i>",
            "<img src=\"https://x.example/a.png\" alt=\"\">",
            "<img src=\"data:image/svg+xml;base64,AAAA\" alt=\"\">",
            "<!-- x -->",
            "<p>\u{a0}</p>",
        ] {
            assert!(!is_clean(html), "{html}");
        }
    }
}
