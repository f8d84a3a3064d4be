//! References to files, as agents write them: `src/main.rs:12`, `src/main.rs:12:5`, `lib/a.ts#L3-L9`.
//!
//! They become `<a class="ref" data-path="src/main.rs" data-line="12" role="link" tabindex="0" rel="…">`, for the page to act on.

use crate::escape;
use crate::sanitize::LINK_REL;

/// A file, and perhaps a line of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reference<'a> {
    path: &'a str,
    line: Option<&'a str>,
}

/// Names that are files without a dot.
const BARE_NAMES: &[&str] =
    &["Makefile", "Dockerfile", "Justfile", "Rakefile", "Gemfile", "Procfile", "LICENSE", "README"];

/// Endings that, without a directory before them, are rather hosts (`example.com:80`).
const HOST_ENDINGS: &[&str] =
    &["com", "org", "net", "io", "dev", "local", "localhost", "app", "ai", "internal", "test"];

impl Reference<'_> {
    pub(super) fn open_into(&self, html: &mut String) {
        html.push_str("<a class=\"ref\" data-path=\"");
        escape::attribute_into(html, self.path);
        if let Some(line) = self.line {
            html.push_str("\" data-line=\"");
            html.push_str(line);
        }
        html.push_str("\" role=\"link\" tabindex=\"0\" rel=\"");
        html.push_str(LINK_REL);
        html.push_str("\">");
    }

    pub(super) fn link_into(&self, html: &mut String, shown: &str) {
        self.open_into(html);
        escape::text_into(html, shown);
        html.push_str("</a>");
    }
}

/// A reference with a line at the start of `word`, and its length.
pub(super) fn leading(word: &str) -> Option<(Reference<'_>, usize)> {
    let path_end = word.find(|c: char| !is_path_character(c)).unwrap_or(word.len());
    let (path, rest) = word.split_at(path_end);
    if !is_file(path) {
        return None;
    }
    let (marker, digits) = match rest.strip_prefix(':') {
        Some(digits) => (1, digits),
        None => (2, rest.strip_prefix("#L")?),
    };
    let line_length = digits.bytes().take_while(u8::is_ascii_digit).count();
    if line_length == 0 || line_length > 7 {
        return None;
    }
    let mut end = path_end + marker + line_length;
    // A column or the end of a range is shown, but not part of the target.
    let after = &word[end..];
    let more = after.strip_prefix("-L").or_else(|| after.strip_prefix([':', '-'])).unwrap_or_default();
    let more_length = more.bytes().take_while(u8::is_ascii_digit).count();
    if more_length > 0 {
        end += after.len() - more.len() + more_length;
    }
    // `a.rs:12foo` is something else.
    let ends_word = !word[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    ends_word.then_some((Reference { path, line: Some(&digits[..line_length]) }, end))
}

/// A code span that is a reference and nothing else.
pub(super) fn whole(text: &str) -> Option<Reference<'_>> {
    leading(text).filter(|(_, length)| *length == text.len()).map(|(reference, _)| reference)
}

/// The target of a markdown link that is no address but a path.
pub(super) fn relative(url: &str) -> Option<Reference<'_>> {
    let (path, line) = match leading(url) {
        Some((reference, length)) if length == url.len() => return Some(reference),
        _ => (url.split(['#', '?']).next().unwrap_or(url), None),
    };
    let is_path = !path.is_empty()
        && path.len() <= 1_024
        && !path.starts_with("//")
        && path.chars().all(|c| is_path_character(c) || matches!(c, ' ' | '(' | ')' | '[' | ']' | '%' | ','));
    is_path.then_some(Reference { path, line })
}

fn is_path_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~' | '@' | '+' | '\\')
}

fn is_file(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    if BARE_NAMES.contains(&name) {
        return true;
    }
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let in_directory = name.len() < path.len();
    let plausible = (1..=10).contains(&extension.len())
        && extension.starts_with(|c: char| c.is_ascii_alphabetic())
        && extension.chars().all(|c| c.is_ascii_alphanumeric());
    plausible && (in_directory || !(stem.is_empty() || HOST_ENDINGS.contains(&extension)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_files_are_found_and_hosts_are_not() {
        let found =
            |word| leading(word).map(|(reference, length)| (reference.path, reference.line.unwrap_or(""), length));
        assert_eq!(found("src/main.rs:12"), Some(("src/main.rs", "12", 14)));
        assert_eq!(found("src/main.rs:12:5,"), Some(("src/main.rs", "12", 16)));
        assert_eq!(found("a.ts#L3-L9)"), Some(("a.ts", "3", 10)));
        assert_eq!(found("Makefile:3."), Some(("Makefile", "3", 10)));
        for word in
            ["localhost:3000", "127.0.0.1:80", "example.com:443", "12:30", "std::fmt", "main.rs", "a.rs:x", "a.rs:1b"]
        {
            assert_eq!(found(word), None, "{word}");
        }
    }
}
