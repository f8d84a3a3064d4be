//! The source that is put before a restart position inside containers, so that a parser can start there.

use pulldown_cmark::{BlockQuoteKind, Tag};

use crate::markdown::alert;

/// Positions inside more containers are not used.
pub(super) const LEVELS_MAX: usize = 12;

/// Source to put before the remaining source of a block, and its HTML.
#[derive(Clone, Debug, Default)]
pub(super) struct Guard {
    pub(super) source: String,
    pub(super) html: String,
    /// It ends in the first line of a paragraph, which may still become the head of a table.
    pub(super) in_first_line: bool,
    /// These characters may close something that was opened before the guard.
    pub(super) closers: String,
    /// It ends inside a paragraph.
    pub(super) in_paragraph: bool,
}

/// What follows the guard.
#[derive(Debug)]
pub(super) enum RestartKind {
    /// Another item of the innermost list.
    Row,
    /// Another block in the innermost container.
    Block,
    /// Another word of a paragraph.
    Word { in_first_line: bool, closers: String },
    /// Another line of a block that is recognised by its first `lines`: a fence, raw HTML, a table.
    Line { lines: Vec<String>, html: String },
}

/// A container that is open at a restart position.
#[derive(Debug)]
pub(super) enum Level {
    /// `loose` is `None` until it is known. If an item disappears (`*` becomes `**`) a loose list may become tight
    /// again, unless it `stays_loose`.
    List {
        first: Option<u64>,
        loose: Option<bool>,
        stays_loose: bool,
        items: usize,
    },
    /// The marker with its indentation and spaces, if it is simple enough to be repeated.
    Item {
        start: usize,
        /// Where it starts in the HTML.
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

    /// The width of the indentation of its content.
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
    /// A guard inside `levels`, outermost first. `None` if there is no simple one.
    pub(super) fn new(levels: &[Level], kind: RestartKind) -> Option<Self> {
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
                    // The text of a tight item itself shows whether the list is still tight.
                    let in_word = matches!(kind, RestartKind::Word { .. });
                    let shows_tightness = depth + 1 == last && *loose == Some(false) && in_word;
                    guard.list(*first, (*loose)?, marker, !shows_tightness);
                }
                Level::Item { marker, .. } => {
                    if depth == last && matches!(kind, RestartKind::Row) {
                        break;
                    }
                    guard.item(marker.as_ref()?);
                    tight = matches!(levels.get(depth.wrapping_sub(1)), Some(Level::List { loose: Some(false), .. }));
                }
                Level::Quote { alert: None, .. } => guard.open(QUOTE, QUOTE, "<blockquote>"),
                Level::Quote { alert: Some(alert), .. } => guard.alert(*alert),
                Level::Footnote { label, .. } => {
                    if !label.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                        return None;
                    }
                    let html = format!("<div class=\"footnote\" data-note=\"{label}\"><sup>{label}</sup>");
                    guard.open(&format!("[^{label}]: "), FOOTNOTE_INDENT, &html);
                }
            }
        }
        let in_paragraph = matches!(kind, RestartKind::Word { .. });
        let (mut in_first_line, mut closers) = (false, String::new());
        match kind {
            RestartKind::Row => {}
            // A tight item has no blank line between its blocks.
            RestartKind::Block if tight => return None,
            RestartKind::Block => {
                guard.text("x\n", "<p>x</p>");
                guard.blank();
            }
            RestartKind::Word { in_first_line: first, closers: open } => {
                guard.text("x\n", if tight { "x<br>x " } else { "<p>x<br>x " });
                guard.fresh = true;
                guard.text("x ", "");
                (in_first_line, closers) = (first, open);
            }
            RestartKind::Line { lines, html } => {
                for line in lines {
                    guard.text(&line, "");
                    guard.fresh = true;
                }
                guard.html.push_str(&html);
            }
        }
        Some(Self { source: guard.source, html: guard.html, in_first_line, closers, in_paragraph })
    }
}

#[derive(Default)]
struct Writer {
    source: String,
    html: String,
    /// The prefix of every following line.
    indent: String,
    /// Whether the next text starts a line.
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

    /// A list, with a first item if that is needed to determine whether it is loose.
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
