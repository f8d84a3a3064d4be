//! Long content, cut to a head and a tail.

use std::ops::Range;

/// How many lines of long content are shown. The lines in between are counted and available on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    pub head: usize,
    pub tail: usize,
}

impl Cut {
    /// Nothing is cut.
    pub const WHOLE: Self = Self { head: usize::MAX, tail: 0 };

    /// The hidden lines out of `count`. A single line is never hidden, because the notice would take up as much space.
    pub(crate) fn hidden(self, count: usize) -> Range<usize> {
        let shown = self.head.saturating_add(self.tail);
        if count <= shown.saturating_add(1) { count..count } else { self.head..count - self.tail }
    }
}

/// Some lines as HTML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    pub html: String,
    /// The number of lines, including the hidden ones.
    pub lines: usize,
    pub hidden: usize,
}

/// `<div class="cut" data-count="1200">⋯ 1,200 lines</div>`, and the same with class `fold`.
pub(crate) fn gap_into(html: &mut String, class: &str, count: usize) {
    html.push_str("<div class=\"");
    html.push_str(class);
    html.push_str("\" data-count=\"");
    html.push_str(&count.to_string());
    html.push_str("\">⋯ ");
    html.push_str(&grouped(count));
    html.push_str(if count == 1 { " line</div>" } else { " lines</div>" });
}

/// `1234567` as `1,234,567`.
fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_hidden_and_counted() {
        let cut = Cut { head: 2, tail: 3 };
        assert_eq!(cut.hidden(5), 5..5);
        assert_eq!(cut.hidden(6), 6..6, "one line is not worth a gap");
        assert_eq!(cut.hidden(10), 2..7);
        assert!(Cut::WHOLE.hidden(1_000_000).is_empty());
        let mut html = String::new();
        gap_into(&mut html, "cut", 1_234_567);
        assert_eq!(html, "<div class=\"cut\" data-count=\"1234567\">⋯ 1,234,567 lines</div>");
    }
}
