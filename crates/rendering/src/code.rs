//! Code blocks.
//!
//! `<figure class="code"><figcaption>Rust<span class="src">src/lib.rs</span></figcaption><pre><code>…</code></pre></figure>`.
//! The caption is always there, empty without a language: it is the place for the page's Copy button.

use crate::escape;
use crate::highlight::{self, Highlighter};

pub(crate) const CLOSE: &str = "</code></pre></figure>";

/// Everything before the first line.
pub(crate) fn open_into(html: &mut String, info: &str) {
    html.push_str("<figure class=\"code\"><figcaption>");
    escape::text_into(html, &highlight::label(info).unwrap_or_default());
    if let Some(file) = highlight::file(info) {
        html.push_str("<span class=\"src\">");
        escape::text_into(html, file);
        html.push_str("</span>");
    }
    html.push_str("</figcaption><pre><code>");
}

/// The complete lines of one block, highlighted as they come.
#[derive(Debug)]
struct CodeLines {
    highlighter: Highlighter,
    html: String,
}

impl CodeLines {
    fn new(info: &str) -> Self {
        Self { highlighter: Highlighter::new(info), html: String::new() }
    }

    fn grow(&mut self, lines: &str) {
        for line in lines.split_inclusive('\n') {
            self.highlighter.line_into(&mut self.html, line);
        }
    }
}

/// The code blocks of the last render, in order, so that the next render of the same, longer text only reads new lines.
#[derive(Debug, Default)]
pub(crate) struct CodeCache {
    blocks: Vec<CachedCode>,
    next: usize,
}

/// The complete lines of one block, and what they look like.
#[derive(Debug)]
pub(crate) struct CachedCode {
    info: String,
    code: String,
    lines: CodeLines,
}

impl CodeCache {
    pub(crate) fn restart(&mut self) {
        self.next = 0;
    }

    /// Keeps nothing but the state after the last block, which the next source continues.
    pub(crate) fn continue_last(&mut self) {
        self.blocks.truncate(self.next);
        self.blocks.drain(..self.next.saturating_sub(1));
        if let Some(block) = self.blocks.first_mut() {
            block.code.clear();
            block.lines.html.clear();
        }
    }

    /// Appends the lines of the next block of this render; the last line is plain while it has no newline. Returns where in
    /// the HTML the complete ones end.
    pub(crate) fn lines_into(&mut self, html: &mut String, info: &str, code: &str) -> usize {
        let known = self.blocks.get(self.next).is_some_and(|block| block.info == info && code.starts_with(&block.code));
        if !known {
            self.blocks.truncate(self.next);
            let lines = CodeLines::new(info);
            self.blocks.push(CachedCode { info: info.to_owned(), code: String::new(), lines });
        }
        let Some(block) = self.blocks.get_mut(self.next) else { return html.len() };
        let complete = code.rfind('\n').map_or(0, |at| at + 1);
        block.grow(&code[block.code.len()..complete]);
        html.push_str(&block.lines.html);
        let lines_end = html.len();
        escape::text_into(html, &code[complete..]);
        self.next += 1;
        lines_end
    }

    /// The first block of the last render.
    pub(crate) fn first(&self) -> Option<&CachedCode> {
        self.blocks.first()
    }

    pub(crate) fn first_mut(&mut self) -> Option<&mut CachedCode> {
        self.blocks.first_mut()
    }
}

impl CachedCode {
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    pub(crate) fn html(&self) -> &str {
        &self.lines.html
    }

    /// Adds complete lines and returns what was added to the HTML.
    pub(crate) fn grow(&mut self, lines: &str) -> &str {
        let before = self.lines.html.len();
        self.code.push_str(lines);
        self.lines.grow(lines);
        &self.lines.html[before..]
    }
}
