//! Rows → HTML.

use std::ops::Range;

use super::DiffHtml;
use super::words::{self, Parts, Steps};
use crate::cut::{Cut, gap_into};
use crate::highlight::{Highlighter, coloured_into};
use crate::sanitize::sanitize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Same,
    Add,
    Del,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row<'a> {
    Line {
        side: Side,
        number: Option<usize>,
        text: &'a str,
    },
    /// So many unchanged lines are not shown.
    Fold(usize),
}

pub(super) fn html(rows: &[Row<'_>], language: &str, cut: Cut) -> DiffHtml {
    let count =
        |wanted: Side| rows.iter().filter(|row| matches!(row, Row::Line { side, .. } if *side == wanted)).count();
    let hidden = cut.hidden(rows.len());
    let changed = changed_words(rows, &hidden);
    let mut html = String::from("<div class=\"diff\">");
    // Both versions are read side by side, each with its own state; a gap is a fresh start for both.
    let (mut old, mut new) = Highlighter::pair(language);
    for (index, row) in rows.iter().enumerate() {
        if hidden.contains(&index) {
            if index == hidden.start {
                gap_into(&mut html, "cut", hidden.len());
                old.restart();
                new.restart();
            }
            continue;
        }
        match *row {
            Row::Fold(lines) => {
                gap_into(&mut html, "fold", lines);
                old.restart();
                new.restart();
            }
            Row::Line { side, number, text } => {
                let line = format!("{text}\n");
                let spans = match side {
                    Side::Del => old.spans(&line),
                    Side::Add => new.spans(&line),
                    Side::Same => {
                        old.spans(&line);
                        new.spans(&line)
                    }
                };
                line_into(&mut html, side, number, text, &spans, &changed[index]);
            }
        }
    }
    html.push_str("</div>");
    DiffHtml { html: sanitize(html), added: count(Side::Add), removed: count(Side::Del), hidden: hidden.len() }
}

/// For each row the changed parts of its text. Removed lines are compared with the added lines that follow them, in order;
/// rows that are not shown are not compared.
fn changed_words(rows: &[Row<'_>], hidden: &Range<usize>) -> Vec<Parts> {
    let mut steps = Steps::default();
    let mut changed = vec![Parts::new(); rows.len()];
    let text = |index: usize, wanted: Side| match rows.get(index) {
        Some(Row::Line { side, text, .. }) if *side == wanted => Some(*text),
        _ => None,
    };
    let mut index = 0;
    while index < rows.len() {
        let removed = (index..).take_while(|row| text(*row, Side::Del).is_some()).count();
        let added = (index + removed..).take_while(|row| text(*row, Side::Add).is_some()).count();
        for pair in 0..removed.min(added) {
            let (old_row, new_row) = (index + pair, index + removed + pair);
            if !(hidden.contains(&old_row) && hidden.contains(&new_row))
                && let (Some(old), Some(new)) = (text(old_row, Side::Del), text(new_row, Side::Add))
                && let Some((old_parts, new_parts)) = words::changed(old, new, &mut steps)
            {
                (changed[old_row], changed[new_row]) = (old_parts, new_parts);
            }
        }
        index += (removed + added).max(1);
    }
    changed
}

fn line_into(
    html: &mut String,
    side: Side,
    number: Option<usize>,
    text: &str,
    spans: &[(Option<char>, Range<usize>)],
    changed: &[Range<usize>],
) {
    let (class, sign) = match side {
        Side::Same => ("same", " "),
        Side::Add => ("add", "+"),
        Side::Del => ("del", "−"),
    };
    html.push_str("<div class=\"line ");
    html.push_str(class);
    html.push_str("\"><span class=\"num\">");
    if let Some(number) = number {
        html.push_str(&number.to_string());
    }
    html.push_str("</span><span class=\"sign\">");
    html.push_str(sign);
    html.push_str("</span><span class=\"src\">");
    let mut written = 0;
    for part in changed {
        colours_into(html, text, spans, written..part.start);
        html.push_str("<b class=\"hi\">");
        colours_into(html, text, spans, part.clone());
        html.push_str("</b>");
        written = part.end;
    }
    colours_into(html, text, spans, written..text.len());
    html.push_str("\n</span></div>");
}

fn colours_into(html: &mut String, text: &str, spans: &[(Option<char>, Range<usize>)], part: Range<usize>) {
    for (class, span) in spans {
        let (start, end) = (span.start.max(part.start), span.end.min(part.end));
        if start >= end {
            continue;
        }
        coloured_into(html, *class, &text[start..end]);
    }
}
