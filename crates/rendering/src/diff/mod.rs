//! Edits as rows: numbers, signs, changed words, colours, folds.
//!
//! Comes in: an old and a new text, or a patch. Goes out: `<div class="diff">` of rows
//! `<div class="line add"><span class="num">13</span><span class="sign">+</span><span class="src">…</span></div>` (or
//! `del`, `same`), changed words in `<b class="hi">`, `<div class="fold" data-count="32">⋯ 32 lines</div>` for unchanged
//! runs of lines, `<div class="head">path</div>` for a file of a patch, and how many lines were added and removed.

mod compare;
mod rows;
mod words;

use crate::cut::Cut;
use crate::highlight;
use rows::Row;

/// How much of an edit is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffView {
    /// Unchanged lines around a change.
    pub context: usize,
    /// The number of the first line of both texts: an excerpt keeps its place in the file.
    pub first_line: usize,
    pub cut: Cut,
}

impl Default for DiffView {
    fn default() -> Self {
        Self { context: 3, first_line: 1, cut: Cut::WHOLE }
    }
}

/// An edit as HTML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffHtml {
    pub html: String,
    pub added: usize,
    pub removed: usize,
    /// Rows left out by the cut; folds are not counted.
    pub hidden: usize,
}

/// The edit from `old` (none for a new file) to `new`.
pub fn diff(old: Option<&str>, new: &str, path: &str, view: DiffView) -> DiffHtml {
    let mut rows = compare::rows(old.unwrap_or_default(), new, view.context);
    for row in &mut rows {
        if let Row::Line { number: Some(number), .. } = row {
            *number += view.first_line.saturating_sub(1);
        }
    }
    rows::html(&rows, highlight::of_path(path), view.cut)
}
