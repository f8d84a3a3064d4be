//! What goes to the terminal or to the next program: colours where they are welcome, and nothing that could steer the
//! terminal from what an agent sent.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use crate::commands::Failure;

/// How a word is to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Bold,
    Dim,
    Good,
    Bad,
    Warn,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "32",
            Self::Bad => "31",
            Self::Warn => "33",
        }
    }
}

/// One of our two outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Error,
}

impl Stream {
    pub(crate) fn is_terminal(self) -> bool {
        match self {
            Self::Out => io::stdout().is_terminal(),
            Self::Error => io::stderr().is_terminal(),
        }
    }

    /// Both end on one screen, in one file or in one pipe.
    pub(crate) fn is_same_as(self, other: Self) -> bool {
        match (self.file(), other.file()) {
            (Some(one), Some(two)) => one == two || self.is_terminal() && other.is_terminal(),
            _ => self.is_terminal() && other.is_terminal(),
        }
    }

    /// What it leads to: a device, and a file on it.
    fn file(self) -> Option<(u64, u64)> {
        let handle = match self {
            Self::Out => io::stdout().as_fd().try_clone_to_owned(),
            Self::Error => io::stderr().as_fd().try_clone_to_owned(),
        };
        let file = std::fs::File::from(handle.ok()?).metadata().ok()?;
        Some((file.dev(), file.ino()))
    }

    /// At a terminal, unless the user wants none (<https://no-color.org>).
    fn has_colours(self) -> bool {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        self.is_terminal() && !unwanted && !dumb
    }

    /// Text of ours, in a colour where this stream has any.
    pub(crate) fn paint<'a>(self, style: Style, text: &'a str) -> Cow<'a, str> {
        match self.has_colours() && !text.is_empty() {
            true => format!("\x1b[{}m{text}\x1b[0m", style.code()).into(),
            false => text.into(),
        }
    }

    /// At once, not when the line is full. Whoever read our answer and left ends the command; that nobody reads what is
    /// printed beside it is no reason to.
    pub(crate) fn write(self, text: &str) -> Result<(), Failure> {
        fn all(mut to: impl Write, text: &str) -> io::Result<()> {
            to.write_all(text.as_bytes())?;
            to.flush()
        }
        match self {
            Self::Out => all(io::stdout().lock(), text).map_err(|error| Failure::not_written(&error)),
            Self::Error => {
                let _ = all(io::stderr().lock(), text);
                Ok(())
            }
        }
    }

    pub(crate) fn line(self, text: &str) -> Result<(), Failure> {
        self.write(&format!("{text}\n"))
    }

    /// Text from elsewhere. A terminal interprets control characters, so it gets only line ends and tabs; the
    /// next program gets every byte.
    pub(crate) fn quote(self, text: &str) -> Cow<'_, str> {
        if self.is_terminal() { harmless(text) } else { text.into() }
    }
}

/// Without control characters, but for line ends and tabs.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let steers = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
    match text.contains(steers) {
        true => text.chars().filter(|letter| !steers(*letter)).collect::<String>().into(),
        false => text.into(),
    }
}

/// The beginning of a text, on one line.
pub(crate) fn one_line(text: &str, characters_max: usize) -> String {
    let folded = harmless(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match folded.char_indices().nth(characters_max) {
        Some((end, _)) => format!("{}…", folded[..end].trim_end()),
        None => folded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_sends_cannot_steer_the_terminal() {
        assert_eq!(harmless("a\x1b]0;title\x07b\u{9b}2J\r\n\tc"), "a]0;titleb2J\n\tc");
        assert_eq!(harmless("plain é\n"), "plain é\n");
    }

    #[test]
    fn a_long_text_is_cut_to_one_line() {
        assert_eq!(one_line("a\n  b\tc", 10), "a b c");
        assert_eq!(one_line("ééééé ééééé", 6), "ééééé…");
    }
}
