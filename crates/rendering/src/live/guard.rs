//! What stands in front of a place inside containers, for a parser that starts there.

use pulldown_cmark::{BlockQuoteKind, Tag};

use crate::markdown::alert;

/// Deeper places are not looked for.
pub(super) const LEVELS_MAX: usize = 12;

/// Source to put in front of the rest of a block, and what it looks like.
#[derive(Clone, Debug, Default)]
pub(super) struct Guard {
    pub(super) source: String,
    pub(super) html: String,
    /// It ends in the first line of a paragraph, which may yet become the head of a table.
    pub(super) in_first_line: bool,
    /// If one of these follows, something before the guard may be closed by it.
    pub(super) closers: String,
    /// It ends inside a paragraph.
    pub(super) of_words: bool,
}

/// What follows the guard.
#[derive(Debug)]
pub(super) enum Place {
    /// A further item of the innermost list.
    Row,
    /// A further block in the innermost container.
    Block,
    /// A further word of a paragraph.
    Word { in_first_line: bool, closers: String },
    /// A further line of something that its own first `lines` make what it is: a fence, raw HTML, the head of a table.
    Line { lines: Vec<String>, html: String },
}

/// A container that is open at a place.
#[derive(Debug)]
pub(super) enum Level {
    /// `loose` once that is known. An item that is taken back (`*` becomes `**`) may make a list tight again, unless it
    /// `stays_loose`.
    List {
        first: Option<u64>,
        loose: Option<bool>,
        stays_loose: bool,
        items: usize,
    },
    /// The marker with its indentation and spaces, if it is simple enough to be written again.
    Item {
        start: usize,
        /// Where it begins in the HTML.
        html: usize,
        marker: Option<String>,
        children: usize,
    },
    Quote {
        alert: Option<BlockQuoteKind>,
        children: usize,
    },
    Footnote {
        label: String,
        children: usize,
    },
}

impl Level {
    pub(super) fn of(tag: &Tag<'_>) -> Option<Self> {
        match tag {
            Tag::List(first) => Some(Self::List { first: *first, loose: None, stays_loose: false, items: 0 }),
            Tag::BlockQuote(alert) => Some(Self::Quote { alert: *alert, children: 0 }),
            Tag::FootnoteDefinition(label) => Some(Self::Footnote { label: label.to_string(), children: 0 }),
            _ => None,
        }
    }

    /// How far it indents what is in it.
    pub(super) fn width(&self) -> Option<usize> {
        match self {
            Self::List { .. } => Some(0),
            Self::Item { marker, .. } => marker.as_ref().map(String::len),
            Self::Quote { .. } => Some(QUOTE.len()),
            Self::Footnote { .. } => Some(FOOTNOTE_INDENT.len()),
        }
    }
}

const QUOTE: &str = "> ";
const FOOTNOTE_INDENT: &str = "    ";

impl Guard {
    /// A guard inside `levels`, the outermost first. None if there is no simple one.
    pub(super) fn new(levels: &[Level], place: Place) -> Option<Self> {
        if levels.len() > LEVELS_MAX {
            return None;
        }
        let mut guard = Writer::default();
        let mut tight = false;
        let last = levels.len().saturating_sub(1);
        for (depth, level) in levels.iter().enumerate() {
            tight = false;
            match level {
                Level::List { loose: Some(true), stays_loose: false, .. } => return None,
                Level::List { first, loose, .. } => {
                    let Some(Level::Item { marker: Some(marker), .. }) = levels.get(depth + 1) else { return None };
                    // The words of a tight item show themselves whether the list is still tight.
                    let shows = depth + 1 == last && *loose == Some(false) && matches!(place, Place::Word { .. });
                    guard.list(*first, (*loose)?, marker, !shows);
                }
                Level::Item { marker, .. } => {
                    if depth == last && matches!(place, Place::Row) {
                        break;
                    }
                    guard.item(marker.as_ref()?);
                    tight = matches!(levels.get(depth.wrapping_sub(1)), Some(Level::List { loose: Some(false), .. }));
                }
                Level::Quote { alert: None, .. } => guard.open(QUOTE, QUOTE, "<blockquote>"),
                Level::Quote { alert: Some(kind), .. } => guard.alert(*kind),
                Level::Footnote { label, .. } => {
                    if !label.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                        return None;
                    }
                    let html = format!("<div class=\"footnote\" data-note=\"{label}\"><sup>{label}</sup>");
                    guard.open(&format!("[^{label}]: "), FOOTNOTE_INDENT, &html);
                }
            }
        }
        let of_words = matches!(place, Place::Word { .. });
        let (mut in_first_line, mut closers) = (false, String::new());
        match place {
            Place::Row => {}
            // A tight item has no blank line between its blocks.
            Place::Block if tight => return None,
            Place::Block => {
                guard.text("x\n", "<p>x</p>");
                guard.blank();
            }
            Place::Word { in_first_line: first, closers: open } => {
                guard.text("x\n", if tight { "x<br>x " } else { "<p>x<br>x " });
                guard.fresh = true;
                guard.text("x ", "");
                (in_first_line, closers) = (first, open);
            }
            Place::Line { lines, html } => {
                for line in lines {
                    guard.text(&line, "");
                    guard.fresh = true;
                }
                guard.html.push_str(&html);
            }
        }
        Some(Self { source: guard.source, html: guard.html, in_first_line, closers, of_words })
    }
}

#[derive(Default)]
struct Writer {
    source: String,
    html: String,
    /// What every further line begins with.
    indent: String,
    /// Whether a line begins here.
    fresh: bool,
}

impl Writer {
    fn text(&mut self, source: &str, html: &str) {
        if std::mem::take(&mut self.fresh) {
            self.source.push_str(&self.indent);
        }
        self.source.push_str(source);
        self.html.push_str(html);
    }

    fn blank(&mut self) {
        self.source.push_str(self.indent.trim_end());
        self.source.push('\n');
        self.fresh = true;
    }

    fn open(&mut self, source: &str, indent: &str, html: &str) {
        self.text(source, html);
        self.indent.push_str(indent);
    }

    fn alert(&mut self, kind: BlockQuoteKind) {
        let (open, title) = alert(kind);
        self.open(&format!("> [!{title}]\n"), QUOTE, &format!("{open}<p class=\"alert-title\">{title}</p>"));
        self.fresh = true;
    }

    /// A list, with a first item if that is needed to tell whether it is loose.
    fn list(&mut self, first: Option<u64>, loose: bool, marker: &str, first_item: bool) {
        let number: String = marker.chars().filter(char::is_ascii_digit).collect();
        let html = match (first, number.parse()) {
            (None, _) => "<ul>".to_owned(),
            (Some(_), Ok(1_u64)) => "<ol>".to_owned(),
            (Some(_), number) => format!("<ol start=\"{}\">", number.unwrap_or_default()),
        };
        if !first_item {
            return self.html.push_str(&html);
        }
        let item = if loose { "<li><p>x</p></li>" } else { "<li>x</li>" };
        self.text(&format!("{marker}x\n"), &format!("{html}{item}"));
        if loose {
            self.blank();
        }
        self.fresh = true;
    }

    fn item(&mut self, marker: &str) {
        self.text(marker, "<li>");
        self.indent.push_str(&" ".repeat(marker.len()));
    }
}
