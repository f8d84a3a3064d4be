//! An open paragraph at the end of a text: only its last words are parsed again.
//!
//! The parser is started again in the middle, at a word before which nothing is open: no emphasis, code span, bracket or
//! tag that a later character could close. In front of that word goes [`GUARD`], so that the parser takes it for what it
//! is, a word in the middle of a paragraph's line, and not for the start of a list or a table.

use pulldown_cmark::{Event, Parser};

use super::html::OpenHtml;
use crate::markdown::{Block, Definitions, Kind, Renderer, options};

/// Two lines of a paragraph, the second one unfinished.
const GUARD: &str = "x\nx ";
/// What the guard looks like.
const GUARD_HTML: &str = "<p>x<br>x ";
const CLOSE: &str = "</p>";
/// The parser starts again somewhere in the last so many bytes; looking for such a place costs about as much as parsing.
const STEP_BYTES: usize = 48;

#[derive(Debug)]
pub(super) struct OpenParagraph {
    /// Where the paragraph begins in the tail's source.
    start: usize,
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
        let at = restart(source, block.source.start, "")?;
        let settled = Renderer::default().render(&source[..at], outside).blocks.pop()?.html;
        let settled = settled_html(&settled, "<p>", &source[..at])?;
        let prefix = format!("<p>{settled}");
        if !html.as_str().starts_with(&prefix) {
            return None;
        }
        html.settle(prefix.len());
        let start = block.source.start;
        let in_first_line = !source[start..at].contains('\n');
        Some(Self { start, at, in_first_line, next_look: source.len() + STEP_BYTES })
    }

    /// Goes on with what was added to the tail's source. `None` if it is no longer one paragraph, or may not be.
    pub(super) fn grow(&mut self, source: &str, outside: &Definitions, html: &mut OpenHtml) -> Option<()> {
        if self.may_be_a_table(source) {
            return None;
        }
        let rest = render_from(&source[self.at..], outside)?;
        html.go_on("", &rest, CLOSE);
        if source.len() >= self.next_look {
            self.next_look = source.len() + STEP_BYTES;
            self.advance(source, outside, html);
        }
        Some(())
    }

    /// Moves on to a later word, if there is one.
    fn advance(&mut self, source: &str, outside: &Definitions, html: &mut OpenHtml) -> Option<()> {
        let at = self.at + restart(&source[self.at..], 0, &source[self.start..self.at])?;
        let settled = render_from(&source[self.at..at], outside)?;
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
fn render_from(words: &str, outside: &Definitions) -> Option<String> {
    let mut rendered = Renderer::default().render(&format!("{GUARD}{words}"), outside);
    let block = rendered.blocks.pop()?;
    if block.kind != Kind::Paragraph || !rendered.blocks.is_empty() || !rendered.definitions.is_empty() {
        return None;
    }
    Some(block.html.strip_prefix(GUARD_HTML)?.strip_suffix(CLOSE)?.to_owned())
}

/// The inside of a rendered paragraph with the spaces that end its source, which a renderer leaves out at an end.
fn settled_html(html: &str, open: &str, source: &str) -> Option<String> {
    let mut inside = html.strip_prefix(open)?.strip_suffix(CLOSE)?.to_owned();
    let spaces = source.len() - source.trim_end_matches(' ').len();
    inside.extend(std::iter::repeat_n(' ', spaces));
    Some(inside)
}

/// The last word of `source` at which the parser can start again. The paragraph begins at `start`; `before` is what of
/// it comes before `source`.
fn restart(source: &str, start: usize, before: &str) -> Option<usize> {
    let guard = if before.is_empty() { "" } else { GUARD };
    let whole = format!("{guard}{source}");
    let bytes = source.as_bytes();
    let mut found = None;
    let mut depth = 0;
    let mut brackets = 0_usize;
    let mut last_end = 0;
    'events: for (event, range) in Parser::new_ext(&whole, options()).into_offset_iter() {
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            Event::Text(text) if range.start >= guard.len() => {
                let range = range.start - guard.len()..range.end - guard.len();
                let escaped = range.start > last_end && bytes.get(range.start - 1) == Some(&b'\\');
                last_end = range.end;
                if *text != source[range.clone()] {
                    // An entity, or characters the parser replaced, perhaps next to something that opens.
                    if source[range].contains(['`', '*', '_', '~', '[', ']', '<', '\\']) {
                        break;
                    }
                    continue;
                }
                for at in range.clone().skip(usize::from(escaped)) {
                    match bytes[at] {
                        b'[' => brackets += 1,
                        // The target of a link, which may have a title and spaces.
                        b']' if bytes.get(at + 1) == Some(&b'(') => break 'events,
                        b']' => brackets = brackets.saturating_sub(1),
                        b' ' | b'\t' => {}
                        _ if depth == 1 && at > range.start && bytes[at - 1] == b' ' && brackets == 0 => {
                            // A word of its own: what it begins with does not matter, it will be parsed again.
                            if is_plain_line(&source[..at], before, start) {
                                found = Some(at);
                            }
                            if may_open(bytes, at) {
                                break 'events;
                            }
                        }
                        _ if may_open(bytes, at) => break 'events,
                        _ => {}
                    }
                }
            }
            _ => last_end = range.end.saturating_sub(guard.len()),
        }
    }
    found
}

/// Whether the character may be the start of something that ends later.
fn may_open(bytes: &[u8], at: usize) -> bool {
    let previous = at.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(b' ');
    let Some(&next) = bytes.get(at + 1) else { return !bytes[at].is_ascii_alphanumeric() };
    let alone = previous.is_ascii_whitespace() && next.is_ascii_whitespace();
    let inside_word = previous.is_ascii_alphanumeric() && next.is_ascii_alphanumeric();
    match bytes[at] {
        b'`' | b'\\' => true,
        b'*' | b'~' => !alone,
        b'_' => !(alone || inside_word),
        b'<' => next.is_ascii_alphabetic() || matches!(next, b'/' | b'!' | b'?'),
        _ => false,
    }
}

/// Whether the line that ends here is text whatever comes next: no table row, tag, definition, rule or underline.
fn is_plain_line(source: &str, before: &str, start: usize) -> bool {
    let line = match source.rfind('\n') {
        Some(at) => &source[at + 1..],
        None if before.is_empty() => &source[start..],
        // The line began before an earlier word that was found to be plain.
        None => return true,
    };
    let line = line.trim_start();
    !line.starts_with(['|', '<', '[']) && line.contains(char::is_alphanumeric)
}
