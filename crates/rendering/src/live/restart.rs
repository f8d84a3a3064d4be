//! Finds where in an open block a parser can restart, and the guard for that position.
//!
//! Comes in: a source that is one open block, perhaps already behind a guard. Goes out: the last position before which
//! nothing can change any more, and its [`Guard`]: a little text inside the same containers (lists, quotes, a
//! footnote), so that the parser interprets what follows correctly. Kept out: how a position is used. If a guard later
//! renders differently the caller stops using it, and the caller checks each position once against a full render.
//!
//! There are four kinds of positions: the start of an item; the start of another block inside an item, quote or
//! footnote; a word of a paragraph ([`paragraph`](super::paragraph)); a line of a table, of raw HTML or of code.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Tag, TagEnd};

use super::guard::{Guard, LEVELS_MAX, Level, RestartKind};
use super::paragraph::{ParagraphScan, SafeWord};
use crate::code;
use crate::markdown::Watch;

/// A guard is parsed again at each chunk, so its lines are limited to this length.
const GUARD_LINE_BYTES_MAX: usize = 512;

/// A restart position: in the source, and in the HTML of the block.
#[derive(Clone, Debug)]
pub(super) struct Restart {
    pub(super) at: usize,
    pub(super) html: usize,
    pub(super) guard: Guard,
    /// It is a line of highlighted code, which continues with the highlighter's state after the line above.
    pub(super) in_code: bool,
}

/// The last position of any kind, and the last one that is not a word of a paragraph.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    pub(super) last: Option<Restart>,
    pub(super) block: Option<Restart>,
}

impl Restarts {
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Restart> {
        self.last.iter_mut().chain(&mut self.block)
    }
}

/// Searches a source for restart positions while it is rendered.
pub(super) struct Search<'a> {
    source: &'a str,
    /// Everything before this is the `guard`.
    from: usize,
    guard: &'a Guard,
    levels: Vec<Level>,
    /// The table, raw HTML or code that is being read.
    lines: Option<OwnLines>,
    /// The paragraph that is being read.
    leaf: Option<ParagraphScan>,
    /// Inside a block whose text is not a paragraph: code, a heading, a table.
    opaque: bool,
    inline_depth: usize,
    /// The length of the HTML so far, and the position in it of the last word that was found.
    html: usize,
    word_html: usize,
    found: Restarts,
}

/// A block that is recognised by its first lines.
#[derive(Debug)]
struct OwnLines {
    at: usize,
    /// Where it starts in the HTML.
    html: usize,
    head: Option<String>,
    /// The language of a fence; `None` for all others.
    info: Option<String>,
    newlines: usize,
}

impl Watch for Search<'_> {
    fn event(&mut self, event: &Event<'_>, range: Range<usize>, html: &str, word: usize) -> Option<usize> {
        (self.html, self.word_html) = (html.len(), word);
        match event {
            Event::Start(Tag::TableRow) => self.row(range.start, html),
            Event::Start(tag) => self.start(tag, range.start),
            Event::End(tag) => self.end(*tag),
            Event::Text(text) => {
                self.inline(range.start);
                if let Some(leaf) = &mut self.leaf {
                    let start = range.start;
                    let word = leaf.text(self.source, text, range, self.inline_depth, self.from);
                    // The writer collects texts before it writes them. It reports the word's position in the HTML with a
                    // later event.
                    return word.map(|at| at - start);
                }
                if let Some(lines) = &mut self.lines {
                    lines.newlines += newlines(text);
                }
            }
            // A rule has no text: it only ends the paragraph above and may be a restart position itself.
            Event::Rule => {
                self.end_leaf();
                self.child(range.start);
            }
            // A task marker does not show whether the list is loose: in a loose list it may be the only content of an
            // item.
            Event::TaskListMarker(_) => {
                self.begin_item_text(range.start);
                if let Some(leaf) = &mut self.leaf {
                    leaf.other(range, false);
                }
            }
            Event::Html(line) => self.html_line(range.start, line, html),
            event => {
                self.inline(range.start);
                if let Some(leaf) = &mut self.leaf {
                    leaf.other(range, matches!(event, Event::SoftBreak | Event::HardBreak));
                }
            }
        }
        None
    }

    fn code_written(&mut self, complete_lines: usize) {
        self.html = complete_lines;
        self.code_line();
    }
}

impl<'a> Search<'a> {
    /// Searches `source` after `from`; everything before `from` is the `guard`.
    pub(super) fn new(source: &'a str, from: usize, guard: &'a Guard) -> Self {
        Self {
            source,
            from,
            guard,
            levels: Vec::new(),
            lines: None,
            leaf: None,
            opaque: false,
            inline_depth: 0,
            html: 0,
            word_html: 0,
            found: Restarts::default(),
        }
    }

    pub(super) fn found(self) -> Restarts {
        self.found
    }

    fn start(&mut self, tag: &Tag<'_>, at: usize) {
        match tag {
            Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. } => {
                self.inline(at);
                self.inline_depth += 1;
                if let Some(leaf) = &mut self.leaf {
                    leaf.begin_line(at);
                }
            }
            Tag::Paragraph => {
                self.end_leaf();
                if let [.., Level::List { loose, .. }, Level::Item { .. }] = &mut self.levels[..] {
                    // The parser emits a paragraph directly inside an item only in a loose list.
                    loose.get_or_insert(true);
                }
                self.child(at);
                self.begin_leaf(at);
            }
            Tag::TableHead | Tag::TableCell => {}
            Tag::Item => {
                self.end_leaf();
                if let Some(Level::List { items, .. }) = self.levels.last_mut() {
                    *items += 1;
                }
                self.levels.push(Level::Item { start: at, html: self.html, marker: None, children: 0 });
            }
            tag => {
                self.end_leaf();
                let info = match tag {
                    Tag::CodeBlock(CodeBlockKind::Fenced(info)) => Some(info.to_string()),
                    _ => None,
                };
                self.lines = Some(OwnLines { at, html: self.html, head: None, info, newlines: 0 });
                if matches!(tag, Tag::CodeBlock(CodeBlockKind::Indented)) {
                    // No position is recorded, because the code's indentation cannot be separated from that of its
                    // containers.
                    if let Some(Level::Item { children, .. }) = self.levels.last_mut() {
                        *children += 1;
                    }
                } else {
                    self.child(at);
                }
                match Level::of(tag) {
                    Some(level) => self.levels.push(level),
                    None => self.opaque = true,
                }
            }
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image => {
                self.inline_depth = self.inline_depth.saturating_sub(1);
            }
            TagEnd::Item | TagEnd::List(_) | TagEnd::BlockQuote(_) | TagEnd::FootnoteDefinition => {
                self.end_leaf();
                self.levels.pop();
            }
            TagEnd::TableHead | TagEnd::TableRow | TagEnd::TableCell => {}
            _ => {
                self.end_leaf();
                self.opaque = false;
            }
        }
    }

    /// Inline content; directly in an item it is the paragraph of a tight list.
    fn inline(&mut self, at: usize) {
        if !self.opaque
            && let [.., Level::List { loose, .. }, Level::Item { .. }] = &mut self.levels[..]
        {
            loose.get_or_insert(false);
        }
        self.begin_item_text(at);
    }

    fn begin_item_text(&mut self, at: usize) {
        if self.leaf.is_none() && !self.opaque && matches!(self.levels.last(), Some(Level::Item { .. })) {
            self.child(at);
            self.begin_leaf(at);
        }
    }

    /// A block inside the innermost container starts here.
    fn child(&mut self, at: usize) {
        if self.levels.len() > LEVELS_MAX {
            return;
        }
        let line = self.source[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let complete = self.source[at..].contains('\n');
        let column = self.column();
        let Some(level) = self.levels.last_mut() else { return };
        let first = match level {
            Level::Item { start, marker, children, .. } => {
                *children += 1;
                if *children == 1 {
                    *marker = column.and_then(|column| item_marker(self.source, *start, at, column));
                }
                *children == 1
            }
            Level::Quote { children, .. } | Level::Footnote { children, .. } => {
                *children += 1;
                *children == 1
            }
            Level::List { .. } => return,
        };
        // An incomplete line may still become part of the block above, so its blank line proves nothing yet.
        if complete && is_blank_inside(self.source, line) {
            self.blank_above(line, first);
        }
        // A position inside the guard would be no progress.
        if !complete || line <= self.from {
            return;
        }
        if first {
            // The start of an item is a restart position as well, if only its indentation comes before it.
            if let Some(&Level::Item { start, html, .. }) = self.levels.last()
                && self.source.get(line..start).is_some_and(|before| before.bytes().all(|byte| b" >".contains(&byte)))
            {
                // An item's tag has been written by now; the restart is before it.
                self.html = html;
                self.keep(line, RestartKind::Row);
            }
        } else if is_blank_inside(self.source, line) {
            self.keep(line, RestartKind::Block);
        }
    }

    /// A complete line of an item has a blank line above it. If that is between items or blocks, the list stays loose.
    fn blank_above(&mut self, line: usize, first: bool) {
        if let [.., Level::List { items, stays_loose, .. }, Level::Item { start, .. }] = &mut self.levels[..] {
            *stays_loose |= !first || *items > 1 && line_start(self.source, *start) == line;
        }
    }

    /// The indentation of the content of the containers around the innermost one.
    fn column(&self) -> Option<usize> {
        self.levels[..self.levels.len().saturating_sub(1)].iter().map(Level::width).sum()
    }

    /// A row cannot change the rows above. The guard is the head of the table and the line below it.
    fn row(&mut self, at: usize, html: &str) {
        let Some(lines) = &mut self.lines else { return };
        // At the first row the HTML since the start of the table is its head: the HTML of the guard.
        let head_html = lines.head.get_or_insert_with(|| html[lines.html..].to_owned()).clone();
        let (table, line) = (lines.at, line_start(self.source, at));
        if line > self.from
            && let Some(head) = self.first_line(table)
            && let Some(below) = self.second_line(table)
        {
            self.keep(line, RestartKind::Line { lines: vec![head, below], html: head_html });
        }
    }

    /// Another line of raw HTML outside any container.
    fn html_line(&mut self, at: usize, line: &str, html: &str) {
        let Some(lines) = &mut self.lines else { return };
        let first = lines.at;
        if line_start(self.source, first) == line_start(self.source, at) {
            return;
        }
        let head_html = lines.head.get_or_insert_with(|| html[lines.html..].to_owned()).clone();
        if at > self.from
            && self.levels.is_empty()
            && line_start(self.source, at) == at
            && !line.trim_ascii().is_empty()
            && let Some(head) = self.first_line(first)
        {
            self.keep(at, RestartKind::Line { lines: vec![head], html: head_html });
        }
    }

    /// The last line of code that is not closed.
    fn code_line(&mut self) {
        let Some(OwnLines { at: start, info, newlines: complete, .. }) = self.lines.take() else { return };
        let Some(at) = self.source.rfind('\n').map(|newline| newline + 1) else { return };
        let line = line_start(self.source, start);
        let first =
            if info.is_some() { self.source[line..].find('\n').map_or(at, |below| line + below + 1) } else { line };
        // If a newline of the source is not part of the code, the code has ended before the end of the source.
        if at <= self.from.max(first) || complete != newlines(&self.source[first..]) {
            return;
        }
        let mut html = String::new();
        code::open_into(&mut html, info.as_deref().unwrap_or_default());
        let lines = if info.is_some() {
            self.first_line(start)
        } else {
            // Indented code has no opening line, so the guard is a line of code of its own.
            html.push_str("x\n");
            let last = &self.source[at..];
            (self.levels.is_empty() && last.starts_with("    ") && !last.trim_ascii().is_empty())
                .then(|| "    x\n".to_owned())
        };
        if let Some(line) = lines {
            self.keep(at, RestartKind::Line { lines: vec![line], html });
            if let Some(last) = &mut self.found.last {
                last.in_code = info.is_some() && last.at == at;
            }
        }
    }

    /// The line in which a block starts at `at`, if it starts where the content of its containers starts.
    fn first_line(&self, at: usize) -> Option<String> {
        let line = line_start(self.source, at);
        let content = line + self.inner_column()?;
        if self.levels.is_empty() || at == content { self.line_from(line, content) } else { None }
    }

    /// The line below that one.
    fn second_line(&self, at: usize) -> Option<String> {
        let line = at + self.source[at..].find('\n')? + 1;
        let content = line + self.inner_column()?;
        let indent = self.source.get(line..content)?;
        indent.bytes().all(|byte| matches!(byte, b' ' | b'>')).then(|| self.line_from(line, content))?
    }

    fn line_from(&self, line: usize, content: usize) -> Option<String> {
        let rest = self.source.get(content..)?;
        let end = content + rest.find('\n')? + 1;
        (end - line <= GUARD_LINE_BYTES_MAX).then(|| self.source[content..end].to_owned())
    }

    fn inner_column(&self) -> Option<usize> {
        self.levels.iter().map(Level::width).sum()
    }

    fn begin_leaf(&mut self, at: usize) {
        // In the guard's paragraph, what was open before the guard is still open.
        let closers = if at < self.from { self.guard.closers.as_str() } else { "" };
        self.leaf = Some(ParagraphScan::new(self.source, at, closers));
    }

    fn end_leaf(&mut self) {
        self.inline_depth = 0;
        let Some(leaf) = self.leaf.take() else { return };
        if let Some(SafeWord { at, closers }) = leaf.found().cloned() {
            let began_here = leaf.start() >= self.from;
            let line_start = if began_here { leaf.start() } else { self.from };
            // Only the first line of a paragraph can become the head of a table.
            let in_first_line = (began_here || self.guard.in_first_line) && !self.source[line_start..at].contains('\n');
            // The restart is at the word, not at the end of the HTML so far.
            self.html = self.word_html;
            self.keep(at, RestartKind::Word { in_first_line, closers });
        }
    }

    fn keep(&mut self, at: usize, kind: RestartKind) {
        let is_block = matches!(kind, RestartKind::Row | RestartKind::Block);
        if let Some(guard) = Guard::new(&self.levels, kind) {
            let restart = Restart { at, html: self.html, guard, in_code: false };
            if is_block {
                self.found.block = Some(restart.clone());
            }
            self.found.last = Some(restart);
        }
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// The marker of an item, if its content is on the same line: indentation, sign, spaces.
fn item_marker(source: &str, start: usize, content: usize, column: usize) -> Option<String> {
    let line = line_start(source, start);
    let sign = source.get(start..content)?;
    let before = source.get(line..start)?;
    let indent = before.len().checked_sub(column)?;
    let spaces = sign.len() - sign.trim_end_matches(' ').len();
    let plain = indent < 4
        // No tab, no footnote label in the same line, and quotes with the same width as the guard's.
        && before.bytes().all(|byte| byte != b'\t' && byte != b'[')
        && before.bytes().skip(column).all(|byte| byte == b' ')
        && (1..=4).contains(&spaces)
        && sign.trim_end_matches(' ').bytes().all(|byte| byte.is_ascii_digit() || b"-*+.)".contains(&byte))
        && sign.bytes().filter(|byte| b"-*+.)".contains(byte)).count() == 1;
    plain.then(|| format!("{}{sign}", " ".repeat(indent)))
}

fn line_start(source: &str, at: usize) -> usize {
    source[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Whether the line above contains only spaces and quote signs.
fn is_blank_inside(source: &str, line: usize) -> bool {
    let Some(above) = source[..line].strip_suffix('\n') else { return false };
    above[line_start(above, above.len())..].bytes().all(|byte| matches!(byte, b' ' | b'>'))
}
