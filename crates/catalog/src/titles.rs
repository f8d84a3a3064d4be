//! A session's title, made from the first message. Pure.

use unicode_segmentation::UnicodeSegmentation;

use crate::record::NEW_SESSION_TITLE;

/// About as much as a sidebar row shows, in characters as a person counts them.
const TITLE_CHARACTERS_MAX: usize = 50;
/// A cut at a word may not throw away more than half; a long first word is cut inside instead.
const TITLE_CHARACTERS_MIN: usize = TITLE_CHARACTERS_MAX / 2;
/// One character may carry any number of combining marks, so bytes are bounded as well.
const TITLE_BYTES_MAX: usize = 1024;

/// Whitespace folded, cut at a word to about 50 characters with an ellipsis. Blank text gives "New Session".
pub fn title_from(text: &str) -> String {
    let folded = fold(text);
    if folded.is_empty() {
        return NEW_SESSION_TITLE.into();
    }
    let Some((end, _)) = folded
        .grapheme_indices(true)
        .enumerate()
        .find(|(count, (start, character))| *count == TITLE_CHARACTERS_MAX || start + character.len() > TITLE_BYTES_MAX)
        .map(|(_, cut)| cut)
    else {
        return folded;
    };
    if end == 0 {
        // One character of more than a thousand bytes is not one that a person typed.
        return folded.chars().take(TITLE_CHARACTERS_MAX).collect();
    }
    let kept = folded.get(..end).unwrap_or_default();
    let at_word = if folded.get(end..).is_some_and(|rest| rest.starts_with(' ')) {
        kept
    } else {
        match kept.rsplit_once(' ') {
            Some((words, _)) if words.graphemes(true).count() >= TITLE_CHARACTERS_MIN => words,
            _ => kept,
        }
    };
    let words = at_word.trim_end_matches([' ', ',', ';', ':', '-', '–', '—']);
    format!("{words}…")
}

/// Words with one space between, of visible characters, and no more of them than a title can need.
fn fold(text: &str) -> String {
    let mut folded = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        let start = folded.len();
        // A megabyte without a space is one word too.
        folded.extend(word.chars().filter(|c| !is_invisible(*c)).take(TITLE_BYTES_MAX + 1));
        if start > 0 && folded.len() > start {
            folded.insert(start, ' ');
        }
        if folded.len() > TITLE_BYTES_MAX {
            break;
        }
    }
    folded
}

/// Marks that show nothing, or turn the direction of what follows them in the list. Joiners stay: emoji need them.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_message_is_its_own_title_with_whitespace_folded() {
        assert_eq!(title_from("  Fix\tthe \n\n auth   bug "), "Fix the auth bug");
        assert_eq!(title_from("a\u{0}b\u{1b}[31mc"), "a b [31mc");
    }

    #[test]
    fn a_blank_message_leaves_the_default_title() {
        assert_eq!(title_from(" \n\t\u{3000}"), "New Session");
        assert_eq!(title_from("\u{200b} \u{feff}"), "New Session");
    }

    #[test]
    fn a_title_cannot_turn_the_rest_of_the_list_around() {
        assert_eq!(title_from("see \u{202e}gnp.exe"), "see gnp.exe");
    }

    #[test]
    fn exactly_fifty_characters_are_kept_whole() {
        let fifty = "x".repeat(50);
        assert_eq!(title_from(&fifty), fifty);
        assert_eq!(title_from(&format!("{fifty}y")), format!("{fifty}…"));
    }

    #[test]
    fn a_long_message_is_cut_at_a_word() {
        assert_eq!(
            title_from("Please refactor the session manager so that it never loses a message"),
            "Please refactor the session manager so that it…"
        );
        assert_eq!(
            title_from("one two three four five six seven eight nine ten, and eleven"),
            "one two three four five six seven eight nine ten…"
        );
    }

    #[test]
    fn a_word_that_ends_at_the_limit_is_kept() {
        let text = format!("{} {} next", "a".repeat(24), "b".repeat(25));
        assert_eq!(title_from(&text), format!("{} {}…", "a".repeat(24), "b".repeat(25)));
    }

    #[test]
    fn text_without_spaces_is_cut_between_whole_characters() {
        assert_eq!(title_from(&"界".repeat(80)), format!("{}…", "界".repeat(50)));
        let family = "👨‍👩‍👧‍👦";
        assert_eq!(title_from(&family.repeat(30)), family.repeat(30));
        assert!(title_from(&family.repeat(60)).trim_end_matches('…').ends_with(family));
    }

    proptest! {
        #[test]
        fn a_title_is_never_blank_never_long_and_never_broken_over_lines(text in any::<String>(), times in 1_usize..40) {
            let title = title_from(&text.repeat(times));
            prop_assert!(!title.trim().is_empty());
            prop_assert!(title.graphemes(true).count() <= TITLE_CHARACTERS_MAX + 1);
            prop_assert!(title.len() <= TITLE_BYTES_MAX + '…'.len_utf8());
            prop_assert!(!title.chars().any(char::is_control));
        }
    }

    #[test]
    fn one_character_with_endless_marks_still_gives_a_bounded_title() {
        let text = format!("a{}", "\u{301}".repeat(100_000));
        assert!(title_from(&text).len() <= TITLE_BYTES_MAX + '…'.len_utf8());
    }
}
