//! Where in a paragraph a parser can restart: at a word with nothing open before it that a later character could close,
//! in a line that stays text whatever follows.

use std::ops::{ControlFlow, Range};

/// Any character that may close something: used when it is unknown what is open.
pub(super) const ANY_MARK: &str = "`*_~[]<>)\\&";

/// One paragraph while it is read.
#[derive(Debug)]
pub(super) struct ParagraphScan {
    start: usize,
    /// Where the current line starts, and whether it has contained a letter or digit so far.
    line: Option<usize>,
    letters: bool,
    /// The number of open brackets.
    brackets: usize,
    /// Where the last event ended.
    last_end: usize,
    /// The characters that may close what is open.
    closers: String,
    /// No further restart position can be found in this paragraph.
    done: bool,
    found: Option<SafeWord>,
}

/// A word at which a parser can restart, as long as none of the `closers` follows.
#[derive(Clone, Debug)]
pub(super) struct SafeWord {
    pub(super) at: usize,
    pub(super) closers: String,
}

impl ParagraphScan {
    /// A paragraph that starts at `start`, or continues there with something open that the `closers` may close.
    pub(super) fn new(source: &str, start: usize, closers: &str) -> Self {
        // A definition whose title is not closed yet; that may happen lines later.
        let paragraph = &source[start..];
        let done = paragraph.starts_with('[') && paragraph.contains("]:");
        Self {
            start,
            line: None,
            letters: false,
            brackets: 0,
            last_end: start,
            closers: closers.to_owned(),
            done,
            found: None,
        }
    }

    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// The last safe word.
    pub(super) fn found(&self) -> Option<&SafeWord> {
        self.found.as_ref()
    }

    /// Records an event that is neither text nor opens or closes something.
    pub(super) fn other(&mut self, range: Range<usize>, is_break: bool) {
        self.begin_line(range.start);
        if is_break {
            (self.line, self.letters) = (None, false);
        }
        self.last_end = range.end;
    }

    /// Something starts here; if it is the first in its line, the line starts here.
    pub(super) fn begin_line(&mut self, at: usize) {
        self.line.get_or_insert(at);
    }

    /// Searches one text of the paragraph, nested in `depth` inline elements, for words after `from`, and returns the
    /// position of the last one.
    pub(super) fn text(
        &mut self,
        source: &str,
        text: &str,
        range: Range<usize>,
        depth: usize,
        from: usize,
    ) -> Option<usize> {
        let start = range.start;
        // A gap between two texts may be a backslash, which makes the next character plain.
        let escaped = range.start > self.last_end && source.as_bytes().get(range.start - 1) == Some(&b'\\');
        self.last_end = range.end;
        self.begin_line(range.start);
        if !self.done && self.scan(source, text, range, escaped, depth, from).is_break() {
            self.closers = ANY_MARK.to_owned();
        }
        self.found.as_ref().map(|word| word.at).filter(|at| *at >= start)
    }

    /// Stops at a character that may start something.
    fn scan(
        &mut self,
        source: &str,
        text: &str,
        range: Range<usize>,
        escaped: bool,
        depth: usize,
        from: usize,
    ) -> ControlFlow<()> {
        let bytes = source.as_bytes();
        if *text != source[range.clone()] {
            // An entity, or characters replaced by the parser, perhaps next to something that opens.
            let opens = source[range].contains(['`', '*', '_', '~', '[', ']', '<', '\\']);
            return if opens { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        }
        if !escaped && !bytes[range.clone()].iter().any(|byte| b"`*_~[]<\\".contains(byte)) {
            self.scan_plain(bytes, range, depth, from);
            return ControlFlow::Continue(());
        }
        for at in range.clone().skip(usize::from(escaped)) {
            match bytes[at] {
                b' ' | b'\t' => continue,
                // The target of a link, which may have a title and spaces.
                b']' if bytes.get(at + 1) == Some(&b'(') => self.opens(')'),
                b']' => self.brackets = self.brackets.saturating_sub(1),
                _ => {}
            }
            // The first character of a word does not matter: it will be parsed again.
            let is_word = at > from && at > range.start && bytes[at - 1] == b' ' && bytes[at] != b']';
            if is_word && depth == 0 && self.letters && self.line_begins_plain(bytes) {
                let mut closers = self.closers.clone();
                closers.extend((self.brackets > 0).then_some(']'));
                self.found = Some(SafeWord { at, closers });
            }
            self.letters |= bytes[at].is_ascii_alphanumeric() || !bytes[at].is_ascii();
            match bytes[at] {
                b'[' => self.brackets += 1,
                _ if !may_open(bytes, at) => {}
                b'<' => self.opens('>'),
                mark @ (b'`' | b'*' | b'_' | b'~') if at + 1 < bytes.len() => self.opens(char::from(mark)),
                _ => return ControlFlow::Break(()),
            }
        }
        ControlFlow::Continue(())
    }

    /// The same for a text that opens and closes nothing: only its last word matters.
    fn scan_plain(&mut self, bytes: &[u8], range: Range<usize>, depth: usize, from: usize) {
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
        let first = range.start.max(from) + 1;
        let last = (first..range.end).rev().find(|at| bytes[at - 1] == b' ' && !matches!(bytes[*at], b' ' | b'\t'));
        let after_letters = last.filter(|at| self.letters || bytes[range.start..*at].iter().any(is_letter));
        // A line that is certainly text may start with it as well as continue with it.
        let is_line = self.line == Some(range.start) && range.start > self.start.max(from);
        let is_text = bytes.get(range.start).is_some_and(|first| first.is_ascii_alphabetic() || !first.is_ascii())
            || bytes.get(range.end) == Some(&b'\n');
        if depth == 0
            && let Some(at) = after_letters.or((is_line && is_text).then_some(range.start))
            && self.line_begins_plain(bytes)
        {
            let mut closers = self.closers.clone();
            closers.extend((self.brackets > 0).then_some(']'));
            self.found = Some(SafeWord { at, closers });
        }
        self.letters = self.letters || bytes[range].iter().any(is_letter);
    }

    fn opens(&mut self, closer: char) {
        if !self.closers.contains(closer) {
            self.closers.push(closer);
        }
    }

    /// Whether the line, once it has a letter, is text whatever follows: not a table row, tag, definition, rule or
    /// underline.
    fn line_begins_plain(&self, bytes: &[u8]) -> bool {
        let first = self.line.and_then(|line| bytes.get(line));
        !matches!(first, Some(b'|' | b'<' | b'['))
    }
}

/// Whether the character may start something that ends later.
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
