//! Where in a paragraph a parser can start again: at a word before which nothing is open that a later character could
//! close, in a line that is text whatever comes next.

use std::ops::{ControlFlow, Range};

use pulldown_cmark::{Event, Parser};

use crate::markdown::options;

/// The last such word of `source`, a paragraph that begins at `start`. With a `guard`, `source` is not the paragraph's
/// start but goes on in the line the guard ends with, at a word that was found here before.
pub(super) fn last_safe(source: &str, start: usize, guard: &str) -> Option<usize> {
    let whole = format!("{guard}{source}");
    let mut search = Search { source, start: guard.is_empty().then_some(start), depth: 0, brackets: 0, found: None };
    let mut last_end = 0;
    for (event, range) in Parser::new_ext(&whole, options()).into_offset_iter() {
        let (Some(from), Some(to)) = (range.start.checked_sub(guard.len()), range.end.checked_sub(guard.len())) else {
            search.depth += usize::from(matches!(event, Event::Start(_)));
            continue;
        };
        match event {
            Event::Start(_) => search.depth += 1,
            Event::End(_) => search.depth -= 1,
            Event::Text(text) => {
                // Between two texts without anything else there is room for a backslash, which makes the next one plain.
                let escaped = from > last_end && source.as_bytes().get(from - 1) == Some(&b'\\');
                last_end = to;
                if search.text(&text, from..to, escaped).is_break() {
                    break;
                }
            }
            _ => last_end = to,
        }
    }
    search.found
}

struct Search<'a> {
    source: &'a str,
    /// Where the paragraph begins, if it does in this source.
    start: Option<usize>,
    depth: usize,
    /// Brackets that are open.
    brackets: usize,
    found: Option<usize>,
}

impl Search<'_> {
    /// Looks through one text of the paragraph. Breaks at a character that may be the start of something.
    fn text(&mut self, text: &str, range: Range<usize>, escaped: bool) -> ControlFlow<()> {
        let bytes = self.source.as_bytes();
        if *text != self.source[range.clone()] {
            // An entity, or characters the parser replaced, perhaps next to something that opens.
            let opens = self.source[range].contains(['`', '*', '_', '~', '[', ']', '<', '\\']);
            return if opens { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        }
        for at in range.clone().skip(usize::from(escaped)) {
            match bytes[at] {
                b' ' | b'\t' => continue,
                b'[' => self.brackets += 1,
                // The target of a link, which may have a title and spaces.
                b']' if bytes.get(at + 1) == Some(&b'(') => return ControlFlow::Break(()),
                b']' => self.brackets = self.brackets.saturating_sub(1),
                // What a word begins with does not matter for it: it will be parsed again.
                _ if at > range.start && bytes[at - 1] == b' ' && self.is_safe(at) => self.found = Some(at),
                _ => {}
            }
            if may_open(bytes, at) {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether nothing is open at this word and its line is text.
    fn is_safe(&self, at: usize) -> bool {
        self.depth == 1 && self.brackets == 0 && self.is_plain_line(at)
    }

    /// Whether the line up to here is text whatever comes next: no table row, tag, definition, rule or underline.
    fn is_plain_line(&self, at: usize) -> bool {
        let line = match (self.source[..at].rfind('\n'), self.start) {
            (Some(newline), _) => &self.source[newline + 1..at],
            (None, Some(start)) => &self.source[start..at],
            // It began before an earlier word, which was found in a plain line.
            (None, None) => return true,
        };
        let line = line.trim_start();
        !line.starts_with(['|', '<', '[']) && line.contains(char::is_alphanumeric)
    }
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
