//! An open list or table at the end of a text: only its last items or rows are parsed again.
//!
//! In front of them goes a guard that makes the parser take them for what they are: an item of the same kind of list, or
//! the head of the table. If the guard itself then looks different, the block is no longer what it was (a list becomes
//! loose by one blank line, and all its items with it), and is rendered again as a whole.

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::html::OpenHtml;
use crate::markdown::{Block, Definitions, Kind, Renderer, options};

/// Looking for a later place to start costs about as much as parsing, so it is done every so many bytes.
const STEP_BYTES: usize = 96;

#[derive(Debug)]
pub(super) struct OpenRows {
    guard: String,
    /// What the guard looks like, up to where the next item or row goes.
    guard_html: String,
    close: &'static str,
    kind: Kind,
    /// Where the parser starts again: the start of an item or a row.
    at: usize,
    next_look: usize,
    /// Remembers the code in the last items.
    renderer: Renderer,
}

impl OpenRows {
    /// Takes over a list or table that is the whole tail, once it is long enough to be worth it.
    pub(super) fn take_over(source: &str, block: &Block, outside: &Definitions, html: &mut OpenHtml) -> Option<Self> {
        if source.len() < STEP_BYTES || !source[..block.source.start].trim_ascii().is_empty() {
            return None;
        }
        let Shape { guard, guard_html, close, starts } = shape(source, html.as_str())?;
        let mut rows = Self {
            guard,
            guard_html,
            close,
            kind: block.kind,
            at: restart(&starts)?,
            next_look: source.len() + STEP_BYTES,
            renderer: Renderer::default(),
        };
        let (rest, _) = rows.render_rest(source, outside)?;
        let settled = html.as_str().strip_suffix(rows.close)?.strip_suffix(&rest)?.len();
        html.settle(settled);
        Some(rows)
    }

    /// Goes on with what was added to the tail's source. Returns what closes the HTML if words may follow. `None` if it is
    /// no longer the same list or table.
    pub(super) fn grow(&mut self, source: &str, outside: &Definitions, html: &mut OpenHtml) -> Option<Option<usize>> {
        let (rest, close) = self.render_rest(source, outside)?;
        html.go_on("", &rest, self.close);
        if source.len() >= self.next_look {
            self.next_look = source.len() + STEP_BYTES;
            self.advance(source, outside, html, &rest);
        }
        Some(close)
    }

    /// Moves on to a later item or row, if there is one.
    fn advance(&mut self, source: &str, outside: &Definitions, html: &mut OpenHtml, rest: &str) -> Option<()> {
        let whole = format!("{}{}", self.guard, &source[self.at..]);
        let starts: Vec<usize> =
            starts(&whole).into_iter().filter_map(|start| start.checked_sub(self.guard.len())).collect();
        let before = self.at;
        self.at += restart(&starts)?;
        match self.render_rest(source, outside) {
            Some((later, _)) if rest.ends_with(&later) => html.settle(html.settled().len() + rest.len() - later.len()),
            _ => self.at = before,
        }
        Some(())
    }

    fn render_rest(&mut self, source: &str, outside: &Definitions) -> Option<(String, Option<usize>)> {
        let mut rendered = self.renderer.render(&format!("{}{}", self.guard, &source[self.at..]), outside);
        let block = rendered.blocks.pop()?;
        if block.kind != self.kind || !rendered.blocks.is_empty() || !rendered.definitions.is_empty() {
            return None;
        }
        Some((block.html.strip_prefix(&self.guard_html)?.strip_suffix(self.close)?.to_owned(), block.close))
    }
}

struct Shape {
    guard: String,
    guard_html: String,
    close: &'static str,
    starts: Vec<usize>,
}

fn shape(source: &str, html: &str) -> Option<Shape> {
    let starts = starts(source);
    let first = *starts.first()?;
    if html.starts_with("<div class=\"table\">") {
        // The head and the line below it.
        let head_end = html.find("<tbody>")? + "<tbody>".len();
        let guard = source[..first].to_owned();
        return Some(Shape { guard, guard_html: html[..head_end].to_owned(), close: "</tbody></table></div>", starts });
    }
    let (close, opening) = if html.starts_with("<ul>") { ("</ul>", "<ul>") } else { ("</ol>", "<ol>") };
    let line = &source[first..];
    let indent = line.len() - line.trim_start_matches(' ').len();
    let digits = line[indent..].bytes().take_while(u8::is_ascii_digit).count();
    let sign = line[indent + digits..].chars().next()?;
    if !html.starts_with("<ul>") && !html.starts_with("<ol") || !matches!(sign, '-' | '*' | '+' | '.' | ')') {
        return None;
    }
    // An item with nothing but a paragraph tells whether the list is loose.
    let loose = is_loose(source)?;
    let number = if digits > 0 { "1" } else { "" };
    let guard = format!("{}{number}{sign} x\n{}", " ".repeat(indent), if loose { "\n" } else { "" });
    let guard_html = format!("{opening}{}", if loose { "<li><p>x</p></li>" } else { "<li>x</li>" });
    Some(Shape { guard, guard_html, close, starts })
}

/// Whether the items of a list have paragraphs; none if no item says so either way.
fn is_loose(source: &str) -> Option<bool> {
    let mut lists = 0;
    let mut begins = false;
    for event in Parser::new_ext(source, options()) {
        match event {
            Event::Start(Tag::List(_)) => lists += 1,
            Event::End(TagEnd::List(_)) => lists -= 1,
            Event::Start(Tag::Item) if lists == 1 => {
                begins = true;
                continue;
            }
            Event::Start(Tag::Paragraph) if begins => return Some(true),
            Event::Text(_) | Event::Code(_) | Event::TaskListMarker(_) if begins => return Some(false),
            Event::Start(Tag::Emphasis | Tag::Strong | Tag::Link { .. }) if begins => return Some(false),
            _ => {}
        }
        begins = false;
    }
    None
}

/// Where the items of a list or the rows of a table begin, at the start of their lines.
fn starts(source: &str) -> Vec<usize> {
    let mut lists = 0;
    let mut starts = Vec::new();
    for (event, range) in Parser::new_ext(source, options()).into_offset_iter() {
        match event {
            Event::Start(Tag::List(_)) => lists += 1,
            Event::End(TagEnd::List(_)) => lists -= 1,
            Event::Start(Tag::Item) if lists == 1 => starts.push(line_start(source, range.start)),
            Event::Start(Tag::TableRow) if lists == 0 => starts.push(line_start(source, range.start)),
            _ => {}
        }
    }
    starts
}

/// The last but one: the last one may still turn out to belong to it.
fn restart(starts: &[usize]) -> Option<usize> {
    starts.iter().rev().nth(1).copied().filter(|at| *at > 0)
}

fn line_start(source: &str, at: usize) -> usize {
    source[..at].rfind('\n').map_or(0, |newline| newline + 1)
}
