//! The lines a cursor can still reach.

use std::collections::VecDeque;

use super::escapes::Action;
use super::style::Style;
use crate::escape;

/// How many rows up the cursor can go. Progress displays use a few dozen lines.
const ROWS_MAX: usize = 64;
/// The most characters of a line; what is beyond is shown as `…`.
const COLUMNS_MAX: usize = 4_000;
const TAB_COLUMNS: usize = 8;

#[derive(Debug)]
pub(super) struct Screen {
    /// Never empty.
    rows: VecDeque<Row>,
    row: usize,
    column: usize,
    style: Style,
    /// Rows before this index were not written since the last call of `untouched`.
    touched: usize,
}

#[derive(Debug, Default)]
pub(super) struct Row {
    cells: Vec<(char, Style)>,
    /// Something was printed beyond the last column.
    cut: bool,
}

impl Default for Screen {
    fn default() -> Self {
        Self { rows: VecDeque::from([Row::default()]), row: 0, column: 0, style: Style::default(), touched: 0 }
    }
}

impl Screen {
    pub(super) fn act(&mut self, action: Action) {
        self.touched = self.touched.min(self.row);
        match action {
            Action::Print(c) => self.print(c),
            Action::LineFeed => {
                self.row += 1;
                self.column = 0;
                if self.row == self.rows.len() {
                    self.rows.push_back(Row::default());
                }
            }
            Action::Return => self.column = 0,
            Action::Backspace => self.column = self.column.saturating_sub(1),
            Action::Tab => {
                let stop = (self.column / TAB_COLUMNS + 1) * TAB_COLUMNS;
                while self.column < stop.min(COLUMNS_MAX) {
                    if self.rows[self.row].cells.len() <= self.column {
                        self.print(' ');
                    } else {
                        self.column += 1;
                    }
                }
            }
            Action::Up(count) => self.row = self.row.saturating_sub(count),
            Action::Down(count) => self.row = (self.row + count).min(self.rows.len() - 1),
            Action::Right(count) => self.column = (self.column + count).min(COLUMNS_MAX),
            Action::Left(count) => self.column = self.column.saturating_sub(count),
            Action::Column(column) => self.column = column.min(COLUMNS_MAX),
            Action::EraseLine(part) => self.erase_line(part),
            Action::EraseScreen(0) => {
                self.erase_line(0);
                self.rows.truncate(self.row + 1);
            }
            Action::EraseScreen(2 | 3) => {
                // A cleared screen continues below; the earlier output stays readable.
                self.row = self.rows.len() - 1;
                self.column = 0;
            }
            Action::EraseScreen(_) => {}
            Action::Style(numbers) => self.style.apply(&numbers),
        }
        self.touched = self.touched.min(self.row);
    }

    fn print(&mut self, c: char) {
        let row = &mut self.rows[self.row];
        if self.column >= COLUMNS_MAX {
            row.cut = true;
            return;
        }
        while row.cells.len() < self.column {
            row.cells.push((' ', Style::default()));
        }
        match row.cells.get_mut(self.column) {
            Some(cell) => *cell = (c, self.style),
            None => row.cells.push((c, self.style)),
        }
        self.column += 1;
    }

    fn erase_line(&mut self, part: usize) {
        let row = &mut self.rows[self.row];
        match part {
            0 => row.cells.truncate(self.column),
            1 => row.cells.iter_mut().take(self.column + 1).for_each(|cell| *cell = (' ', Style::default())),
            _ => row.cells.clear(),
        }
    }

    /// Removes the topmost line once the cursor cannot return to it.
    pub(super) fn scroll_off(&mut self) -> Option<Row> {
        if self.rows.len() <= ROWS_MAX {
            return None;
        }
        self.row = self.row.saturating_sub(1);
        self.touched = self.touched.saturating_sub(1);
        self.rows.pop_front()
    }

    /// How many of the first lines were not written since the last call.
    pub(super) fn untouched(&mut self) -> usize {
        std::mem::replace(&mut self.touched, self.row)
    }

    /// The lines. The empty one after a final newline does not count yet.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        let last_is_empty = self.rows.back().is_some_and(|row| row.cells.is_empty());
        self.rows.iter().take(self.rows.len() - usize::from(last_is_empty))
    }
}

impl Row {
    pub(super) fn html(&self) -> String {
        let mut html = String::from("<div class=\"line\">");
        let mut text = String::new();
        let end = self.cells.iter().rposition(|(c, style)| *c != ' ' || !style.is_plain()).map_or(0, |last| last + 1);
        for run in self.cells[..end].chunk_by(|(_, a), (_, b)| a == b) {
            let Some((_, style)) = run.first() else { continue };
            text.clear();
            text.extend(run.iter().map(|(c, _)| c));
            if style.is_plain() {
                escape::text_into(&mut html, &text);
            } else {
                html.push_str("<span class=\"");
                style.classes_into(&mut html);
                html.push_str("\">");
                escape::text_into(&mut html, &text);
                html.push_str("</span>");
            }
        }
        if self.cut {
            html.push('…');
        }
        html.push_str("\n</div>");
        html
    }
}
