//! An open paragraph at the end of a text: only its last words are parsed again.
//!
//! The parser is started again in the middle, at a word before which nothing is open: no emphasis, code span, bracket or
//! tag that a later character could close. In front of that word goes [`GUARD`], so that the parser takes it for what it
//! is, a word in the middle of a paragraph's line, and not for the start of a list or a table.

use super::html::OpenHtml;
use super::words;
use crate::markdown::{Block, Definitions, Kind, Renderer};

/// Two lines of a paragraph, the second one unfinished.
const GUARD: &str = "x\nx ";
/// What the guard looks like.
const GUARD_HTML: &str = "<p>x<br>x ";
const CLOSE: &str = "</p>";
/// The parser starts again somewhere in the last so many bytes; looking for such a place costs about as much as parsing.
const STEP_BYTES: usize = 48;

#[derive(Debug)]
pub(super) struct OpenParagraph {
    /// Where the parser starts again; everything before is settled.
    at: usize,
    /// Whether that is still in the paragraph's first line.
    in_first_line: bool,
    /// When it is worth looking for a better place.
    next_look: usize,
}

impl OpenParagraph {
    /// Takes over a paragraph that is the whole tail, once it is long enough to be worth it.
    pub(super) fn take_over(source: &str, block: &Block, outside: &Definitions, html: &mut OpenHtml) -> Option<Self> {
        // Definitions in front of it would have to be carried along.
        let first = source[..block.source.start].trim_ascii().is_empty();
        if block.kind != Kind::Paragraph || !first || source.len() - block.source.start < STEP_BYTES {
            return None;
        }
        // A definition whose title is not closed yet, perhaps lines later.
        let paragraph = &source[block.source.start..];
        if paragraph.starts_with('[') && paragraph.contains("]:") {
            return None;
        }
        let at = words::last_safe(source, block.source.start, "")?;
        let settled = Renderer::default().render(&source[..at], outside).blocks.pop()?.html;
        let settled = settled_html(&settled, "<p>", &source[..at])?;
        let prefix = format!("<p>{settled}");
        if !html.as_str().starts_with(&prefix) {
            return None;
        }
        html.settle(prefix.len());
        let start = block.source.start;
        let in_first_line = !source[start..at].contains('\n');
        Some(Self { at, in_first_line, next_look: source.len() + STEP_BYTES })
    }

    /// Goes on with what was added to the tail's source. Returns what closes the HTML if words may follow. `None` if it is
    /// no longer one paragraph, or may not be.
    pub(super) fn grow(&mut self, source: &str, outside: &Definitions, html: &mut OpenHtml) -> Option<Option<usize>> {
        if self.may_be_a_table(source) {
            return None;
        }
        let (rest, close) = render_from(&source[self.at..], outside)?;
        html.go_on("", &rest, CLOSE);
        if source.len() >= self.next_look {
            self.next_look = source.len() + STEP_BYTES;
            self.advance(source, outside, html);
        }
        Some(close)
    }

    /// Moves on to a later word, if there is one.
    fn advance(&mut self, source: &str, outside: &Definitions, html: &mut OpenHtml) -> Option<()> {
        let at = self.at + words::last_safe(&source[self.at..], 0, GUARD)?;
        let (settled, _) = render_from(&source[self.at..at], outside)?;
        let settled = settled_html(&format!("{GUARD_HTML}{settled}{CLOSE}"), GUARD_HTML, &source[..at])?;
        // The words must look alone as they do in front of the others.
        if html.as_str()[html.settled().len()..].starts_with(&settled) {
            html.settle(html.settled().len() + settled.len());
            self.in_first_line &= !source[self.at..at].contains('\n');
            self.at = at;
        }
        Some(())
    }

    /// Whether the second line may make a table of the first, which the guard would hide.
    fn may_be_a_table(&self, source: &str) -> bool {
        if !self.in_first_line {
            return false;
        }
        let Some((_, below)) = source[self.at..].split_once('\n') else { return false };
        let line = below.split('\n').next().unwrap_or_default();
        line.contains(['-', ':', '|']) && line.bytes().all(|byte| matches!(byte, b'-' | b':' | b'|' | b' ' | b'\t'))
    }
}

/// The inside of the paragraph that `words` continue, if they do.
fn render_from(words: &str, outside: &Definitions) -> Option<(String, Option<usize>)> {
    let mut rendered = Renderer::default().render(&format!("{GUARD}{words}"), outside);
    let block = rendered.blocks.pop()?;
    if block.kind != Kind::Paragraph || !rendered.blocks.is_empty() || !rendered.definitions.is_empty() {
        return None;
    }
    Some((block.html.strip_prefix(GUARD_HTML)?.strip_suffix(CLOSE)?.to_owned(), block.close))
}

/// The inside of a rendered paragraph with the spaces that end its source, which a renderer leaves out at an end.
fn settled_html(html: &str, open: &str, source: &str) -> Option<String> {
    let mut inside = html.strip_prefix(open)?.strip_suffix(CLOSE)?.to_owned();
    let spaces = source.len() - source.trim_end_matches(' ').len();
    inside.extend(std::iter::repeat_n(' ', spaces));
    Some(inside)
}
