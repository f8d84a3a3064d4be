//! Plain text at the end of an open block: the most frequent case, and the cheapest.
//!
//! Comes in: the added text, if the last render found that its source ends in text, in a line that no further character
//! can turn into something else. Goes out: the same HTML with the new text before the closing tags. The parser is not
//! used. Kept out: every character that may have a meaning in markdown; with one of them the block is parsed.
//!
//! In code and raw HTML no character has a meaning until the line ends: there any text is appended as it is.
//!
//! An incomplete construct (`**bol`) is text as well, so text may grow there too: only its closing marks matter.

use super::changes::Position;
use super::html::{OpenHtml, utf16};
use super::open::may_become_a_rule;
use crate::escape;
use crate::markdown::{Continuation, LINK_WORD_BYTES_MAX, OpenEnd, words_into};
use crate::sanitize::is_clean;

/// A position in an open block where plain text may be appended.
#[derive(Debug)]
pub(super) struct PlainEnd {
    /// From here on the tail's source is only plain text, and the block's HTML up to its closing tags shows it.
    source: usize,
    bytes: usize,
    utf16: usize,
    /// The length of the closing tags in the HTML.
    close: usize,
    takes: Continuation,
    /// The line is shown as it is only until it turns into a rule.
    may_become_a_rule: bool,
    /// Where the first word starts, if it started before this position: the parser has seen its start, and it must not
    /// become a link.
    continues: Option<usize>,
    /// The length of that word, as far as it is text.
    word: usize,
    scratch: String,
}

impl PlainEnd {
    /// Starts at the end of `source`, which `html` shows.
    pub(super) fn new(source: &str, html: &OpenHtml, OpenEnd { close, takes, word }: OpenEnd) -> Self {
        let bytes = html.as_str().len() - close;
        let shown = if takes == Continuation::Text { source.trim_end_matches(' ').len() } else { source.len() };
        let in_word = shown == source.len();
        let continues = in_word.then(|| source.rfind([' ', '\n', '\t']).map_or(0, |at| at + 1));
        Self {
            source: shown,
            bytes,
            utf16: html.utf16_until(bytes),
            close,
            takes,
            may_become_a_rule: takes == Continuation::Anything && may_become_a_rule(source, source.len()),
            continues,
            word,
            scratch: String::new(),
        }
    }

    /// Continues to the end of `source`, in which everything from `before` on is new. Returns where the HTML changed,
    /// if it did; `None` if the parser has to decide.
    pub(super) fn grow(&mut self, source: &str, before: usize, html: &mut OpenHtml) -> Option<Option<Position>> {
        if self.takes == Continuation::Anything {
            return self.grow_line(source, html);
        }
        if !is_plain(source, before) {
            return None;
        }
        let words = source[self.source..].trim_end_matches(' ');
        // The remainder of a word that is too long to be a link.
        let mut text = 0;
        if let Some(start) = self.continues {
            let rest = &words[..words.find(' ').unwrap_or(words.len())];
            // The end of an entity.
            if rest.contains(';') && source[start..].contains('&') {
                return None;
            }
            if self.word > LINK_WORD_BYTES_MAX {
                text = rest.len();
            } else {
                let word = &source[start..self.source + rest.len()];
                if word.len() > LINK_WORD_BYTES_MAX || may_be_a_link(word) {
                    return None;
                }
            }
        }
        let last = words.rfind(' ').unwrap_or(0).max(text);
        if words.len() - last > LINK_WORD_BYTES_MAX {
            return None;
        }
        self.scratch.clear();
        escape::text_into(&mut self.scratch, &words[..text]);
        words_into(&mut self.scratch, &words[text..last]);
        let settled = self.scratch.len();
        words_into(&mut self.scratch, &words[last..]);
        if !is_clean(&self.scratch) {
            return None;
        }
        let changed = html.replace(self.bytes, self.close, &self.scratch).map(|common| {
            let utf16 = self.utf16 + utf16(&self.scratch[..common]);
            Position { block: 0, bytes: self.bytes + common, utf16 }
        });
        if last > 0 {
            self.source += last;
            self.bytes += settled;
            self.utf16 += utf16(&self.scratch[..settled]);
            if last > text || last < words.len() {
                self.continues = None;
            }
        }
        Some(changed)
    }

    /// Continues in a line that is shown as it is, whatever it contains.
    fn grow_line(&mut self, source: &str, html: &mut OpenHtml) -> Option<Option<Position>> {
        let added = &source[self.source..];
        if self.may_become_a_rule || added.contains('\n') {
            return None;
        }
        self.scratch.clear();
        escape::text_into(&mut self.scratch, added);
        if !is_clean(&self.scratch) {
            return None;
        }
        html.replace(self.bytes, self.close, &self.scratch);
        let changed = Position { block: 0, bytes: self.bytes, utf16: self.utf16 };
        self.source = source.len();
        self.bytes += self.scratch.len();
        self.utf16 += utf16(&self.scratch);
        Some(Some(changed))
    }
}

/// Whether everything from `before` on is words and the characters between words.
fn is_plain(source: &str, before: usize) -> bool {
    let mut previous = source[..before].chars().next_back().unwrap_or('\n');
    let mut characters = source[before..].chars().peekable();
    // A space ends the preceding construct just as the end of the text does.
    if characters.peek().is_some_and(|first| *first != ' ') && !is_inert(previous) {
        return false;
    }
    while let Some(character) = characters.next() {
        let inside_word = character == '_'
            && previous.is_ascii_alphanumeric()
            && characters.peek().is_some_and(char::is_ascii_alphanumeric);
        // After a space it may be the closing sequence of a heading.
        let closing = character == '#' && previous == ' ';
        if closing || !is_inert(character) && !inside_word {
            return false;
        }
        previous = character;
    }
    true
}

/// Has no meaning in the middle of a line, and gives no meaning to its neighbours.
fn is_inert(character: char) -> bool {
    match character {
        ' ' | ',' | '.' | ';' | ':' | '?' | '!' | '/' | '=' | '+' | '-' | '%' | '(' | '\'' | '"' | '@' | '#' | '{'
        | '}' | '$' | '^' => true,
        '\u{1}'..='\u{8}' | '\u{e}'..='\u{1f}' | '\u{7f}' => true,
        _ if character.is_ascii() => character.is_ascii_alphanumeric(),
        _ => true,
    }
}

/// Whether a word may be an address or a reference to a file.
fn may_be_a_link(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.iter().enumerate().any(|(at, byte)| match byte {
        b':' | b'@' | b'#' => true,
        b'w' => bytes[at..].starts_with(b"www."),
        _ => false,
    })
}
