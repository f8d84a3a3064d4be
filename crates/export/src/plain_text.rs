//! Texts without what only a terminal understands, moments for people, and the inside of Markdown and HTML.

use std::borrow::Cow;

use protocol::Timestamp;

/// `2026-11-18 11:05 UTC`; empty where it is not known.
pub(crate) fn moment(at: Timestamp) -> String {
    if at.is_unset() {
        return String::new();
    }
    let text = at.to_string();
    match (text.get(..10), text.get(11..16)) {
        (Some(day), Some(time)) => format!("{day} {time} UTC"),
        _ => text,
    }
}

/// What a terminal would show: no escape sequences, no control characters, and of a line that was written over with
/// carriage returns only what was written last.
pub(crate) fn printed(text: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\t');
    if text.chars().all(is_plain) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut line_start = 0;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => skip_sequence(&mut letters),
            '\u{9b}' => skip_control(&mut letters),
            '\r' => {
                // The end of a line of two characters is no overwriting, and neither is one at the very end.
                let next = letters.clone().find(|next| *next != '\r');
                if !matches!(next, Some('\n') | None) {
                    out.truncate(line_start);
                }
            }
            '\n' => {
                out.push('\n');
                line_start = out.len();
            }
            letter if is_plain(letter) => out.push(letter),
            _ => {}
        }
    }
    out.into()
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_sequence(letters: &mut Letters<'_>) {
    match letters.peek() {
        Some('[') => {
            letters.next();
            skip_control(letters);
        }
        // A command to the terminal, such as a title or a link, up to its end mark.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let mut before = ' ';
            while let Some(letter) = letters.next_if(|letter| *letter != '\n') {
                if letter == '\u{7}' || letter == '\u{9c}' || before == '\u{1b}' && letter == '\\' {
                    break;
                }
                before = letter;
            }
        }
        Some(' '..='/') => {
            letters.next();
            letters.next_if(|letter| !letter.is_control());
        }
        Some('0'..='~') => {
            letters.next();
        }
        _ => {}
    }
}

/// Parameters and the letter that ends them.
fn skip_control(letters: &mut Letters<'_>) {
    while letters.next_if(|letter| matches!(letter, ' '..='?')).is_some() {}
    letters.next_if(|letter| matches!(letter, '@'..='~'));
}

/// The text of an element or of a quoted attribute.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\r' => out.push('\n'),
            letter if letter.is_control() && !matches!(letter, '\n' | '\t') => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

/// The longest run of backticks in a text.
pub(crate) fn longest_backticks(text: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_printed_as_a_terminal_shows_it() {
        assert_eq!(printed("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(printed("\u{1b}[1;32mok\u{1b}[0m \u{9b}31mno"), "ok no");
        assert_eq!(printed("10%\r50%\r100%\r\ndone\r"), "100%\ndone");
        assert_eq!(printed("\u{1b}]8;;http://a.b\u{1b}\\link\u{1b}]0;title\u{7}!"), "link!");
        assert_eq!(printed("a\u{1b}"), "a");
    }

    #[test]
    fn a_moment_is_written_to_the_minute() {
        assert_eq!(moment(Timestamp::from_unix_ms(1_794_777_356_000)), "2026-11-15 21:15 UTC");
        assert_eq!(moment(Timestamp::default()), "");
    }
}
