//! A command line as a person writes it, cut into words.
//!
//! Quotes and backslashes work as in a POSIX shell. There is no shell: nothing is expanded, piped or run.

use crate::error::ParseError;

/// The words of a command line; at least one.
pub(crate) fn split(text: &str) -> Result<Vec<String>, ParseError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            letter if letter.is_ascii_whitespace() => words.extend(word.take()),
            '\'' => single_quoted(&mut letters, word.get_or_insert_default())?,
            '"' => double_quoted(&mut letters, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(letters.next().ok_or(ParseError::TrailingBackslash)?),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    if words.is_empty() { Err(ParseError::Empty) } else { Ok(words) }
}

fn single_quoted(letters: &mut impl Iterator<Item = char>, word: &mut String) -> Result<(), ParseError> {
    loop {
        match letters.next().ok_or(ParseError::OpenQuote)? {
            '\'' => return Ok(()),
            letter => word.push(letter),
        }
    }
}

fn double_quoted(letters: &mut impl Iterator<Item = char>, word: &mut String) -> Result<(), ParseError> {
    loop {
        match letters.next().ok_or(ParseError::OpenQuote)? {
            '"' => return Ok(()),
            '\\' => match letters.next().ok_or(ParseError::OpenQuote)? {
                letter @ ('"' | '\\' | '$' | '`') => word.push(letter),
                letter => word.extend(['\\', letter]),
            },
            letter => word.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(split(text).as_deref(), Ok(&expected.iter().map(|word| word.to_string()).collect::<Vec<_>>()[..]));
    }

    #[test]
    fn words_are_cut_at_white_space_outside_quotes() {
        check("  codex-acp\t--model  gpt ", &["codex-acp", "--model", "gpt"]);
        check(r#""/opt/My Agents/claude" --name='it is' a\ b"#, &["/opt/My Agents/claude", "--name=it is", "a b"]);
    }

    #[test]
    fn quotes_join_their_neighbours_and_may_be_empty() {
        check(r#"a"b"'c' '' "#, &["abc", ""]);
    }

    #[test]
    fn backslashes_in_double_quotes_escape_only_what_a_shell_escapes() {
        check(r#""\"\\\$\n" '\"'"#, &[r#""\$\n"#, r#"\""#]);
    }

    #[test]
    fn nothing_is_expanded() {
        check("$HOME/*.sh | ~", &["$HOME/*.sh", "|", "~"]);
    }

    #[test]
    fn what_is_cut_short_is_an_error() {
        assert_eq!(split(" \n"), Err(ParseError::Empty));
        assert_eq!(split("a 'b"), Err(ParseError::OpenQuote));
        assert_eq!(split("a \"b\\\""), Err(ParseError::OpenQuote));
        assert_eq!(split("a \\"), Err(ParseError::TrailingBackslash));
    }

    proptest! {
        #[test]
        fn quoted_words_come_back_as_they_were(words in prop::collection::vec("[ -~]*", 1..6)) {
            let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
            prop_assert_eq!(split(&quoted.join(" ")), Ok(words));
        }
    }
}
