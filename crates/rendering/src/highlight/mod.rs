//! Source code as HTML with one-letter classes, line by line.
//!
//! Comes in: complete lines of code in some language. Goes out: escaped text in `<i class="k">` and the like; see
//! [`classes`] for the letters. Kept out: colours (the theme has them), blocks, files.
//! The state between two lines is small and kept, so a growing block costs only its new lines.
//! The grammars are unpacked on first use; [`warm_up`] does it ahead of time, on a thread of the caller's choice.

mod classes;
mod languages;

use std::sync::LazyLock;

use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};

use crate::escape;

pub(crate) use classes::CLASSES;
pub(crate) use languages::{name, of_path};

/// Longer lines are written plain: grammars are regular expressions and take their time on minified code.
const LINE_BYTES_MAX: usize = 4_000;

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// Loads the grammars and compiles those agents write most, so that no first code block has to wait for it.
pub fn warm_up() {
    for language in ["rust", "ts", "tsx", "js", "python", "bash", "json", "go"] {
        let mut out = String::new();
        Highlighter::new(language).line_into(&mut out, "let x = \"a\"; // b\n");
    }
}

/// The state of one code block between two lines.
#[derive(Clone, Debug)]
pub(crate) struct Highlighter {
    /// `None` for a language nobody has told us about, and after a grammar failed: the rest is plain.
    state: Option<(ParseState, ScopeStack)>,
}

impl Highlighter {
    /// For a fence's language or a file's extension; unknown ones are plain.
    pub(crate) fn new(language: &str) -> Self {
        Self { state: syntax(language).map(|syntax| (ParseState::new(syntax), ScopeStack::new())) }
    }

    /// Appends one line. It ends with its newline, except perhaps the last line of a text that is complete.
    pub(crate) fn line_into(&mut self, out: &mut String, line: &str) {
        let Some((state, scopes)) = &mut self.state else { return escape::text_into(out, line) };
        if line.len() > LINE_BYTES_MAX {
            return escape::text_into(out, line);
        }
        let Ok(operations) = state.parse_line(line, &SYNTAXES) else {
            self.state = None;
            return escape::text_into(out, line);
        };
        let mut spans = Spans::new(out);
        let mut written = 0;
        for (at, operation) in operations {
            if at > written {
                spans.push(classes::of(scopes), &line[written..at]);
                written = at;
            }
            if scopes.apply(&operation).is_err() {
                break;
            }
        }
        spans.push(classes::of(scopes), &line[written..]);
        spans.close();
    }
}

fn syntax(language: &str) -> Option<&'static SyntaxReference> {
    let token = languages::token(language)?;
    SYNTAXES.find_syntax_by_token(&token).filter(|syntax| syntax.name != "Plain Text")
}

/// Merges neighbours of one class into one element; white space takes no class of its own.
struct Spans<'a> {
    out: &'a mut String,
    open: Option<char>,
}

impl<'a> Spans<'a> {
    fn new(out: &'a mut String) -> Self {
        Self { out, open: None }
    }

    fn push(&mut self, class: Option<char>, text: &str) {
        let blank = text.bytes().all(|byte| byte.is_ascii_whitespace());
        let at_line_end = text.ends_with('\n');
        if blank && at_line_end {
            self.close();
        } else if !blank && class != self.open {
            self.close();
            if let Some(letter) = class {
                self.out.push_str("<i class=\"");
                self.out.push(letter);
                self.out.push_str("\">");
                self.open = class;
            }
        }
        let (line, newline) = if at_line_end { text.split_at(text.len() - 1) } else { (text, "") };
        escape::text_into(self.out, line);
        if at_line_end {
            // An element never reaches over a line's end, so that lines can be cut and numbered.
            self.close();
            self.out.push_str(newline);
        }
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            self.out.push_str("</i>");
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
