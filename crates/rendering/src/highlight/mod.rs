//! Source code as HTML with one-letter classes, line by line.
//!
//! Comes in: complete lines of code in some language. Goes out: escaped text in `<i class="k">` and the like,
//! punctuation in `<i>`; see [`classes`] for the letters. Kept out: colours (the theme has them), blocks, files.
//! The state between two lines is small and kept, so a growing block costs only its new lines.
//! What it may cost is bounded ([`limits`]): what is over the bound is plain.
//! The grammars are unpacked on first use; [`warm_up`] does it ahead of time, on a thread of the caller's choice.

mod classes;
mod languages;
mod limits;
mod state;

use std::ops::Range;
use std::sync::LazyLock;

use syntect::parsing::{ScopeStack, SyntaxReference, SyntaxSet};

use crate::escape;
use state::GrammarState;

use classes::PUNCTUATION;

pub(crate) use classes::CLASSES;
pub(crate) use languages::{file, label, of_path};

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(|| {
    limits::limit_retries();
    two_face::syntax::extra_newlines()
});

/// The state of one code block between two lines.
#[derive(Debug)]
pub(crate) struct Highlighter {
    /// `None` for an unknown language, after a grammar failed and when the work is spent: the rest is plain.
    syntax: Option<&'static SyntaxReference>,
    /// `None` before the first line and without a grammar.
    state: Option<(GrammarState, ScopeStack)>,
    /// What it may still cost.
    work_left: usize,
}

impl Highlighter {
    /// For a fence's language or a file's extension; unknown ones are plain.
    pub(crate) fn new(language: &str) -> Self {
        Self { syntax: syntax(language), state: None, work_left: limits::WORK_MAX }
    }

    /// One for each of the two sides of an edit. Together they may cost what one block may.
    pub(crate) fn pair(language: &str) -> (Self, Self) {
        let half = || Self { syntax: syntax(language), state: None, work_left: limits::WORK_MAX / 2 };
        (half(), half())
    }

    /// The next line does not follow the last one: it is read as a first line. What was spent stays spent.
    pub(crate) fn restart(&mut self) {
        self.state = None;
    }

    /// Appends one line. It ends with its newline, except perhaps the last line of a text that is complete.
    pub(crate) fn line_into(&mut self, out: &mut String, line: &str) {
        for (class, span) in self.spans(line) {
            coloured_into(out, class, &line[span]);
        }
    }

    /// Reads one line and returns which parts of it have which class, from its start to its end. Neighbours differ, white
    /// space goes with what is before it, and no class reaches over the line's end, so that lines can be cut.
    pub(crate) fn spans(&mut self, line: &str) -> Vec<(Option<char>, Range<usize>)> {
        let plain = || vec![(None, 0..line.len())];
        let Some(syntax) = self.syntax else { return plain() };
        if line.len() > limits::LINE_BYTES_MAX {
            return plain();
        }
        let Some(left) = self.work_left.checked_sub(limits::cost(line)) else {
            return self.give_up(line);
        };
        self.work_left = left;
        let (state, scopes) = self.state.get_or_insert_with(|| (GrammarState::new(syntax), ScopeStack::new()));
        let Some(Ok(operations)) = limits::guarded(|| state.get_mut().parse_line(line, &SYNTAXES)) else {
            return self.give_up(line);
        };
        let text_end = line.trim_end_matches('\n').len();
        let mut spans = Spans { line, spans: Vec::new() };
        let mut start = 0;
        for (at, operation) in operations {
            spans.push(classes::of(scopes), start..at.min(text_end));
            start = at.min(text_end);
            if scopes.apply(&operation).is_err() {
                break;
            }
        }
        spans.push(classes::of(scopes), start..text_end);
        spans.spans.push((None, text_end..line.len()));
        spans.spans
    }

    /// This line and all that follow are plain.
    fn give_up(&mut self, line: &str) -> Vec<(Option<char>, Range<usize>)> {
        (self.syntax, self.state) = (None, None);
        vec![(None, 0..line.len())]
    }
}

/// Appends text in its colour.
pub(crate) fn coloured_into(out: &mut String, class: Option<char>, text: &str) {
    match class {
        None => return escape::text_into(out, text),
        Some(PUNCTUATION) => out.push_str("<i>"),
        Some(letter) => {
            out.push_str("<i class=\"");
            out.push(letter);
            out.push_str("\">");
        }
    }
    escape::text_into(out, text);
    out.push_str("</i>");
}

fn syntax(language: &str) -> Option<&'static SyntaxReference> {
    let token = languages::token(language)?;
    SYNTAXES.find_syntax_by_token(&token).filter(|syntax| syntax.name != "Plain Text")
}

struct Spans<'a> {
    line: &'a str,
    spans: Vec<(Option<char>, Range<usize>)>,
}

impl Spans<'_> {
    fn push(&mut self, class: Option<char>, span: Range<usize>) {
        if span.is_empty() {
            return;
        }
        let blank = self.line.as_bytes()[span.clone()].iter().all(u8::is_ascii_whitespace);
        match self.spans.last_mut() {
            Some((last, range)) if blank || *last == class => range.end = span.end,
            _ => self.spans.push((if blank { None } else { class }, span)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn highlighted(language: &str, line: &str) -> String {
        let mut out = String::new();
        Highlighter::new(language).line_into(&mut out, line);
        out
    }

    #[test]
    fn an_unknown_language_is_plain_and_escaped() {
        assert_eq!(highlighted("klingon", "a < b\n"), "a &lt; b\n");
    }

    #[test]
    fn spans_end_before_the_newline() {
        let html = highlighted("rust", "// note\n");
        assert_eq!(html, "<i class=\"c\">// note</i>\n");
    }

    #[test]
    fn every_promised_language_has_a_grammar() {
        let promised = [
            "rust",
            "typescript",
            "ts",
            "javascript",
            "js",
            "jsx",
            "tsx",
            "python",
            "py",
            "go",
            "java",
            "c",
            "cpp",
            "c++",
            "csharp",
            "c#",
            "cs",
            "ruby",
            "rb",
            "php",
            "swift",
            "kotlin",
            "kt",
            "shell",
            "sh",
            "bash",
            "zsh",
            "console",
            "powershell",
            "ps1",
            "sql",
            "html",
            "css",
            "json",
            "jsonc",
            "yaml",
            "yml",
            "toml",
            "xml",
            "markdown",
            "md",
            "dockerfile",
            "docker",
            "makefile",
            "make",
            "diff",
            "patch",
            "graphql",
            "protobuf",
            "proto",
            "lua",
            "zig",
            "elixir",
            "ex",
            "haskell",
            "hs",
        ];
        let missing: Vec<_> = promised.iter().filter(|language| syntax(language).is_none()).collect();
        assert!(missing.is_empty(), "no grammar for {missing:?}");
    }

    #[test]
    fn keywords_strings_numbers_and_functions_have_their_letters() {
        let html = highlighted("rust", "fn main() { let x = 1; println(\"a\"); }\n");
        for expected in
            ["<i class=\"k\">fn </i>", "<i class=\"f\">main</i>", "<i class=\"n\">1</i>", "<i class=\"s\">\"a\"</i>"]
        {
            assert!(html.contains(expected), "{expected} in {html}");
        }
    }
}
