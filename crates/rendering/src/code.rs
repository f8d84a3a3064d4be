//! Code blocks.
//!
//! `<figure class="code"><figcaption>rust</figcaption><pre><code>…</code></pre></figure>`. The caption is always there,
//! empty without a language: it is the place for the page's Copy button.

use crate::escape;
use crate::highlight::{self, Highlighter};
use crate::sanitize::sanitize;

pub(crate) const CLOSE: &str = "</code></pre></figure>";

/// One code block as HTML. `language` is what stands behind the fence, or empty.
pub fn code(text: &str, language: &str) -> String {
    let mut block = CodeLines::new(language);
    block.grow(text);
    let mut html = String::new();
    open_into(&mut html, language);
    html.push_str(block.html());
    // Nothing will be added to this text, so its last line needs no newline to be a line.
    block.highlighter.line_into(&mut html, &text[block.bytes..]);
    html.push_str(CLOSE);
    sanitize(html)
}

/// Everything before the first line.
pub(crate) fn open_into(html: &mut String, info: &str) {
    html.push_str("<figure class=\"code\"><figcaption>");
    escape::text_into(html, highlight::name(info).unwrap_or_default());
    html.push_str("</figcaption><pre><code>");
}

/// The complete lines of one block, highlighted as they come.
#[derive(Clone, Debug)]
pub(crate) struct CodeLines {
    info: String,
    highlighter: Highlighter,
    html: String,
    /// How much of the code is in `html`; always the end of a line.
    bytes: usize,
}

impl CodeLines {
    pub(crate) fn new(info: &str) -> Self {
        Self { info: info.to_owned(), highlighter: Highlighter::new(info), html: String::new(), bytes: 0 }
    }

    /// Highlights the lines of `code` that are complete and were not there before. What was there must still be.
    pub(crate) fn grow(&mut self, code: &str) {
        for line in code[self.bytes..].split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            self.highlighter.line_into(&mut self.html, line);
            self.bytes += line.len();
        }
    }

    pub(crate) fn html(&self) -> &str {
        &self.html
    }
}

/// The code blocks of the last render, in order, so that the next render of the same, longer text only reads new lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodeCache {
    blocks: Vec<(CodeLines, String)>,
    next: usize,
}

impl CodeCache {
    pub(crate) fn restart(&mut self) {
        self.next = 0;
    }

    /// Appends the lines of the next block of this render; the last line is plain while it has no newline.
    pub(crate) fn lines_into(&mut self, html: &mut String, info: &str, code: &str) {
        let known = self
            .blocks
            .get(self.next)
            .is_some_and(|(lines, text)| lines.info == info && code.starts_with(text.as_str()));
        if !known {
            self.blocks.truncate(self.next);
            self.blocks.push((CodeLines::new(info), String::new()));
        }
        let (lines, text) = &mut self.blocks[self.next];
        lines.grow(code);
        text.push_str(&code[text.len()..lines.bytes]);
        html.push_str(&lines.html);
        escape::text_into(html, &code[lines.bytes..]);
        self.next += 1;
    }
}
