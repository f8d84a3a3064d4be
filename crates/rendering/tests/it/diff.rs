//! Edits as rows.

use rendering::{Cut, DiffView, diff};

/// The rows as text: number, sign, text; changed words in braces.
fn rows(html: &str) -> Vec<String> {
    let mut rows = Vec::new();
    for row in html
        .trim_start_matches("<div class=\"diff\">")
        .trim_end_matches("</div>")
        .split("</div>")
        .filter(|row| !row.is_empty())
    {
        let row = row.replace("<b class=\"hi\">", "{").replace("</b>", "}");
        let mut text = String::new();
        let mut in_tag = false;
        for c in row.chars() {
            match c {
                '<' => in_tag = true,
                '>' => {
                    in_tag = false;
                    continue;
                }
                _ => {}
            }
            if !in_tag {
                text.push(c);
            }
        }
        rows.push(text.trim_end().to_owned());
    }
    rows
}

#[test]
fn an_edit_has_numbers_signs_changed_words_and_folds() {
    let old: String = (1..=40).map(|line| format!("line {line}\n")).collect();
    let new = old.replace("line 20\n", "line twenty\nand more\n");
    let edit = diff(Some(&old), &new, "notes.txt", DiffView::default());
    assert_eq!((edit.added, edit.removed, edit.hidden), (2, 1, 0));
    assert_eq!(
        rows(&edit.html),
        [
            "⋯ 16 lines",
            "17 line 17",
            "18 line 18",
            "19 line 19",
            "20−line {20}",
            "20+line {twenty}",
            "21+and more",
            "22 line 21",
            "23 line 22",
            "24 line 23",
            "⋯ 17 lines",
        ]
    );
}

#[test]
fn a_new_file_is_all_added_and_has_colours() {
    let edit = diff(None, "fn main() {}\n", "src/main.rs", DiffView::default());
    assert_eq!((edit.added, edit.removed), (1, 0));
    assert!(edit.html.contains("<i class=\"k\">fn </i><i class=\"f\">main</i>"), "{}", edit.html);
}

#[test]
fn an_edit_without_changes_is_one_fold() {
    let edit = diff(Some("a\nb\nc\n"), "a\nb\nc\n", "x", DiffView::default());
    assert_eq!((edit.added, edit.removed), (0, 0));
    assert_eq!(rows(&edit.html), ["⋯ 3 lines"]);
}

#[test]
fn a_huge_edit_is_cut_and_compared_in_reasonable_time() {
    let old: String = (0..20_000).map(|line| format!("old {line}\n")).collect();
    let new: String = (0..20_000).map(|line| format!("new {line}\n")).collect();
    let edit = diff(Some(&old), &new, "x.txt", DiffView { cut: Cut { head: 20, tail: 20 }, ..DiffView::default() });
    assert_eq!((edit.added, edit.removed, edit.hidden), (20_000, 20_000, 39_960));
}

#[test]
fn what_is_in_the_lines_is_escaped() {
    let edit = diff(Some("<b>"), "<script>alert(1)</script>", "x.html", DiffView::default());
    assert!(!edit.html.contains("<script"), "{}", edit.html);
}

/// What the rows say was removed, and what was added.
fn sides(html: &str) -> (usize, usize) {
    (html.matches("class=\"line del\"").count(), html.matches("class=\"line add\"").count())
}

#[test]
fn a_shuffled_text_is_compared_in_bounded_steps_and_stays_correct() {
    // 46 KB: every line moves, so the exact answer takes millions of steps.
    let line = |number: usize| format!("line {:04}\n", number);
    let old: String = (0..4_600).map(line).collect();
    let new: String = (0..4_600).map(|number| line(number * 1_237 % 4_600)).collect();
    let edit = diff(Some(&old), &new, "notes.txt", DiffView::default());
    assert_eq!((edit.removed, edit.added), sides(&edit.html));
    assert_eq!(edit.removed, edit.added, "both have as many lines");
    assert!(edit.removed < 4_600, "some lines stay where they are");
}

#[test]
fn a_small_edit_of_a_long_file_is_exact() {
    let old: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
    let new = old.replace("line 3\n", "line three\n").replace("line 9000\n", "").replace("line 19990\n", "a\nb\n");
    let edit = diff(Some(&old), &new, "notes.txt", DiffView::default());
    assert_eq!((edit.removed, edit.added), (3, 3));
}

#[test]
fn one_line_that_becomes_a_hundred_thousand_is_compared_at_once() {
    // The exact comparison takes the square of it.
    let new: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    let edit = diff(
        Some("something else\n"),
        &new,
        "notes.txt",
        DiffView { cut: Cut { head: 3, tail: 3 }, ..DiffView::default() },
    );
    assert_eq!((edit.removed, edit.added), (1, 100_000));
}
