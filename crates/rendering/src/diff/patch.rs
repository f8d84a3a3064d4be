//! A patch's text → rows.

use super::rows::{Row, Side};

/// Reads a patch leniently: what is not understood is shown as an unchanged line rather than dropped.
pub(super) fn rows(text: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    let mut numbers: Option<(usize, usize)> = None;
    // Lines that the current hunk still promises; `None` without a promise (`*** Begin Patch` has none).
    let mut left: Option<(usize, usize)> = None;
    let mut in_hunk = false;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let promised = in_hunk && left.is_none_or(|(old, new)| old > 0 || new > 0);
        if line.starts_with("@@") {
            let header = hunk(line);
            if let Some((old, new)) = header {
                let skipped = numbers.map_or(old.0.saturating_sub(1), |(before, _)| old.0.saturating_sub(before));
                if skipped > 0 {
                    rows.push(Row::Fold(skipped));
                }
                numbers = Some((old.0, new.0));
                left = Some((old.1, new.1));
            } else {
                (numbers, left) = (None, None);
                let section = line.trim_matches(['@', ' ']);
                if !section.is_empty() {
                    rows.push(Row::Head(section));
                }
            }
            in_hunk = true;
        } else if let Some(path) = file(line, lines.peek().copied()).filter(|_| !promised || left.is_none()) {
            rows.push(Row::Head(path));
            if line.starts_with("--- ") {
                lines.next();
            }
            (numbers, left) = (None, None);
            // `*** Add File` goes on without a hunk's header.
            in_hunk = line.starts_with("***");
        } else if promised {
            row(&mut rows, line, &mut numbers, &mut left);
        }
    }
    rows
}

fn row<'a>(
    rows: &mut Vec<Row<'a>>,
    line: &'a str,
    numbers: &mut Option<(usize, usize)>,
    left: &mut Option<(usize, usize)>,
) {
    if line.starts_with('\\') || line == "*** End of File" || line == "*** End Patch" {
        return;
    }
    let (side, text) = match line.as_bytes().first() {
        Some(b'+') => (Side::Add, &line[1..]),
        Some(b'-') => (Side::Del, &line[1..]),
        Some(b' ') => (Side::Same, &line[1..]),
        _ => (Side::Same, line),
    };
    let (takes_old, takes_new) = (side != Side::Add, side != Side::Del);
    let number = numbers.map(|(old, new)| if takes_new { new } else { old });
    *numbers = numbers.map(|(old, new)| (old + usize::from(takes_old), new + usize::from(takes_new)));
    *left =
        left.map(|(old, new)| (old.saturating_sub(usize::from(takes_old)), new.saturating_sub(usize::from(takes_new))));
    rows.push(Row::Line { side, number, text });
}

/// `@@ -12,5 +13,6 @@` as ((12, 5), (13, 6)).
fn hunk(line: &str) -> Option<((usize, usize), (usize, usize))> {
    let mut parts = line.strip_prefix("@@ ")?.split(' ');
    let range = |part: &str, sign: char| {
        let part = part.strip_prefix(sign)?;
        let (start, count) = part.split_once(',').unwrap_or((part, "1"));
        Some((start.parse::<usize>().ok()?, count.parse::<usize>().ok()?))
    };
    Some((range(parts.next()?, '-')?, range(parts.next()?, '+')?))
}

/// The path of a file that begins here.
fn file<'a>(line: &'a str, next: Option<&'a str>) -> Option<&'a str> {
    for mark in ["*** Update File: ", "*** Add File: ", "*** Delete File: "] {
        if let Some(path) = line.strip_prefix(mark) {
            return Some(path);
        }
    }
    let old = line.strip_prefix("--- ")?;
    let new = next?.strip_prefix("+++ ")?;
    let path = if new.starts_with("/dev/null") { old } else { new };
    let path = path.split('\t').next().unwrap_or(path);
    Some(path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path))
}
