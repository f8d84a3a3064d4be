//! Where in an open block a parser can start again, and what must stand in front of that place.
//!
//! Comes in: a source that is one open block, perhaps already behind a guard. Goes out: the last place in it before which
//! nothing can change any more, and the [`Guard`] for it: a few words inside the same containers (lists, quotes, a
//! footnote), so that the parser takes what follows for what it is. Kept out: whether the guess was right. The caller
//! renders both ways and compares, and a guard that one day looks different ends the shortcut.
//!
//! There are three kinds of places: the start of an item or a row, the start of a further block inside an item, quote or
//! footnote, and a word of a paragraph ([`words`](super::words)).

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

use super::guard::{Guard, LEVELS_MAX, Level, Place};
use super::words::{Word, Words};
use crate::markdown::options;

/// A place to start again.
#[derive(Clone, Debug)]
pub(super) struct Restart {
    pub(super) at: usize,
    pub(super) guard: Guard,
}

/// The last place, and the last one that is no word of a paragraph.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    pub(super) last: Option<Restart>,
    pub(super) block: Option<Restart>,
}

/// The last places after `from` in `source`, of which everything before `from` is the `guard`.
pub(super) fn last_restarts(source: &str, from: usize, guard: &Guard) -> Restarts {
    let mut search = Search {
        source,
        from,
        guard,
        levels: Vec::new(),
        table: 0,
        leaf: None,
        opaque: false,
        inline_depth: 0,
        found: Restarts::default(),
    };
    let mut depth = 0;
    for (event, range) in Parser::new_ext(source, options()).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                depth += 1;
                search.start(&tag, range.start);
            }
            Event::End(tag) => {
                depth -= 1;
                search.end(tag);
                if depth == 0 {
                    // Whatever follows is another block.
                    break;
                }
            }
            Event::Text(text) => {
                search.inline(range.start);
                if let Some(leaf) = &mut search.leaf {
                    leaf.text(source, &text, range, search.inline_depth, from);
                }
            }
            Event::Rule => {
                search.end_leaf();
                search.child(range.start);
            }
            Event::Html(_) => {}
            event => {
                search.inline(range.start);
                if let Some(leaf) = &mut search.leaf {
                    leaf.other(range, matches!(event, Event::SoftBreak | Event::HardBreak));
                }
            }
        }
    }
    search.found
}

struct Search<'a> {
    source: &'a str,
    from: usize,
    guard: &'a Guard,
    levels: Vec<Level>,
    /// Where the table begins that is being read.
    table: usize,
    /// The paragraph that is being read.
    leaf: Option<Words>,
    /// Inside a block whose text is no paragraph: code, a heading, a table.
    opaque: bool,
    inline_depth: usize,
    found: Restarts,
}

impl Search<'_> {
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
                    loose.get_or_insert(true);
                }
                self.child(at);
                self.begin_leaf(at);
            }
            Tag::TableRow => {
                if self.levels.is_empty() {
                    self.row(at);
                }
            }
            Tag::TableHead | Tag::TableCell => {}
            Tag::Item => {
                self.end_leaf();
                if let Some(Level::List { items, .. }) = self.levels.last_mut() {
                    *items += 1;
                }
                self.levels.push(Level::Item { start: at, marker: None, children: 0 });
            }
            tag => {
                self.end_leaf();
                if matches!(tag, Tag::Table(_)) {
                    self.table = at;
                }
                if matches!(tag, Tag::CodeBlock(CodeBlockKind::Indented)) {
                    // Its indentation would have to be told from that of what is around it.
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
        if self.leaf.is_none()
            && !self.opaque
            && let [.., Level::List { loose, .. }, Level::Item { .. }] = &mut self.levels[..]
        {
            loose.get_or_insert(false);
            self.child(at);
            self.begin_leaf(at);
        }
    }

    /// A block inside the innermost container begins here.
    fn child(&mut self, at: usize) {
        if self.levels.len() > LEVELS_MAX {
            return;
        }
        let line = self.source[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let complete = self.source[at..].contains('\n');
        let column = self.column();
        let Some(level) = self.levels.last_mut() else { return };
        let first = match level {
            Level::Item { start, marker, children } => {
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
            Level::List { .. } | Level::Other => return,
        };
        if complete && is_blank_inside(self.source, line) {
            self.blank_above(line, first);
        }
        if !complete || line <= self.from {
            return;
        }
        if first {
            // The start of an item is one as well, if it is not the first of its list.
            if let Some(Level::Item { start, .. }) = self.levels.last()
                && line_start(self.source, *start) == line
            {
                self.keep(line, Place::Row);
            }
        } else if is_blank_inside(self.source, line) {
            self.keep(line, Place::Block);
        }
    }

    /// A complete line of an item has a blank one above it. If that is between items or blocks, the list stays loose.
    fn blank_above(&mut self, line: usize, first: bool) {
        if let [.., Level::List { items, stays_loose, .. }, Level::Item { start, .. }] = &mut self.levels[..] {
            *stays_loose |= !first || *items > 1 && line_start(self.source, *start) == line;
        }
    }

    /// How far the content of the containers around the innermost one is indented.
    fn column(&self) -> Option<usize> {
        self.levels[..self.levels.len().saturating_sub(1)].iter().map(Level::width).sum()
    }

    fn row(&mut self, at: usize) {
        let line = line_start(self.source, at);
        if line > self.from {
            // Whatever becomes of this line, the rows above stay. The guard is the head of the table and the line below it.
            let lines = &self.source[self.table..];
            let head = lines.match_indices('\n').nth(1).map_or(0, |(newline, _)| self.table + newline + 1);
            if head <= line {
                self.found.last = Some(Restart { at: line, guard: Guard::table(&self.source[..head]) });
            }
        }
    }

    fn begin_leaf(&mut self, at: usize) {
        // In the guard's own paragraph, what was open before it still is.
        let closers = if at < self.from { self.guard.closers.as_str() } else { "" };
        self.leaf = Some(Words::new(self.source, at, closers));
    }

    fn end_leaf(&mut self) {
        self.inline_depth = 0;
        let Some(leaf) = self.leaf.take() else { return };
        if let Some(Word { at, closers }) = leaf.found().cloned() {
            let began_here = leaf.start() >= self.from;
            let line_start = if began_here { leaf.start() } else { self.from };
            let in_first_line = (began_here || self.guard.in_first_line) && !self.source[line_start..at].contains('\n');
            self.keep(at, Place::Word { in_first_line, closers });
        }
    }

    fn keep(&mut self, at: usize, place: Place) {
        let is_word = matches!(place, Place::Word { .. });
        if let Some(guard) = Guard::new(&self.levels, place) {
            let restart = Restart { at, guard };
            if !is_word {
                self.found.block = Some(restart.clone());
            }
            self.found.last = Some(restart);
        }
    }
}

/// What stands in front of the content of an item, if that is on its first line: indentation, sign, spaces.
fn item_marker(source: &str, start: usize, content: usize, column: usize) -> Option<String> {
    let line = line_start(source, start);
    let sign = source.get(start..content)?;
    let before = source.get(line..start)?;
    let indent = before.len().checked_sub(column)?;
    let spaces = sign.len() - sign.trim_end_matches(' ').len();
    let plain = indent < 4
        && before.bytes().all(|byte| byte != b'\t')
        && (1..=4).contains(&spaces)
        && sign.trim_end_matches(' ').bytes().all(|byte| byte.is_ascii_digit() || b"-*+.)".contains(&byte))
        && sign.bytes().filter(|byte| b"-*+.)".contains(byte)).count() == 1;
    plain.then(|| format!("{}{sign}", " ".repeat(indent)))
}

fn line_start(source: &str, at: usize) -> usize {
    source[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Whether the line above has nothing but the signs of quotes.
fn is_blank_inside(source: &str, line: usize) -> bool {
    let Some(above) = source[..line].strip_suffix('\n') else { return false };
    above[line_start(above, above.len())..].bytes().all(|byte| matches!(byte, b' ' | b'>'))
}
