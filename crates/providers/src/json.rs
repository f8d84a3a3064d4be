//! JSON that an agent wrote wrong: repaired where that is possible, and looked at where it is not.
//!
//! Comes in: one line of an agent, or one entry of its file, that a first parse has refused. Goes out: the same text
//! with what JSON forbids replaced, so that a second parse can read it; or the few fields that show what an unreadable
//! line was. Agents written in JavaScript cut texts between the two halves of an emoji, and write each half as an
//! escape of its own (`\ud83d`), which stands for no character. Kept out: what any line means. A line that parses at
//! once costs nothing here.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

/// The escape for U+FFFD, which stands for what could not be read. As long as the escape it replaces.
const REPLACEMENT_ESCAPE: &str = "\\ufffd";
/// `\uXXXX`
const ESCAPE_BYTES: usize = 6;

/// Parses; where that fails, repairs the text and parses again. The error is that of the first parse.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(bytes).or_else(|error| match repaired_bytes(bytes) {
        Some(text) => serde_json::from_str(&text).map_err(|_| error),
        None => Err(error),
    })
}

/// The same text with every lone surrogate replaced by U+FFFD, and every raw control character inside a string escaped.
/// None if there is nothing of the kind.
pub fn repaired(text: &str) -> Option<String> {
    let mut repaired: Option<String> = None;
    // Up to where the text is copied, once there is a copy.
    let mut copied = 0;
    let mut replace = |from: usize, to: usize, with: &str| {
        let repaired = repaired.get_or_insert_with(|| String::with_capacity(text.len() + 64));
        repaired.push_str(&text[copied..from]);
        repaired.push_str(with);
        copied = to;
    };
    let bytes = text.as_bytes();
    let mut in_string = false;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                in_string = !in_string;
                at += 1;
            }
            b'\\' if in_string => match Surrogate::at(bytes, at) {
                Some(Surrogate::High) if Surrogate::at(bytes, at + ESCAPE_BYTES) == Some(Surrogate::Low) => {
                    at += 2 * ESCAPE_BYTES;
                }
                Some(_) => {
                    replace(at, at + ESCAPE_BYTES, REPLACEMENT_ESCAPE);
                    at += ESCAPE_BYTES;
                }
                // The escaped character may be a quote or a backslash.
                None => at += 2,
            },
            0x00..=0x1F if in_string => {
                replace(at, at + 1, &format!("\\u{byte:04x}"));
                at += 1;
            }
            _ => at += 1,
        }
    }
    let copied = copied;
    repaired.map(|mut repaired| {
        repaired.push_str(&text[copied..]);
        repaired
    })
}

/// The same for bytes: what is not UTF-8 becomes U+FFFD too.
fn repaired_bytes(bytes: &[u8]) -> Option<String> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => repaired(text),
        Cow::Owned(text) => Some(repaired(&text).unwrap_or(text)),
    }
}

/// Half of a character outside the first plane, as UTF-16 writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surrogate {
    High,
    Low,
}

impl Surrogate {
    /// The escape that begins here, if it is that of a surrogate.
    fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let digits = bytes.get(at..)?.strip_prefix(b"\\u")?.get(..4)?;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        match u16::from_str_radix(digits, 16).ok()? {
            0xD800..=0xDBFF => Some(Self::High),
            0xDC00..=0xDFFF => Some(Self::Low),
            _ => None,
        }
    }
}

/// What can be seen of a line that cannot be parsed: fields of the outermost object, as far as the line can be
/// followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Glimpse {
    /// `type`, where it is a plain text.
    pub(crate) kind: Option<String>,
    /// `id`, as a number or as the text of one.
    pub(crate) id: Option<u64>,
    /// There is a `method`.
    pub(crate) is_call: bool,
    /// There is a `result` or an `error`.
    pub(crate) is_answer: bool,
    /// A `sessionId` or `session_id`, at any depth.
    pub(crate) session: Option<String>,
}

impl Glimpse {
    /// Walks the brackets and strings; of several fields with one name the first counts.
    pub(crate) fn of(line: &str) -> Self {
        let mut seen = Self::default();
        let bytes = line.as_bytes();
        let (mut depth, mut at) = (0_usize, 0);
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'"' => {
                    let end = end_of_string(bytes, at);
                    let key = &line[at..end];
                    at = (end + 1).min(bytes.len());
                    let rest = line[at..].trim_start();
                    if let Some(value) = rest.strip_prefix(':') {
                        seen.field(key, value.trim_start(), depth);
                    }
                }
                _ => {}
            }
        }
        seen
    }

    fn field(&mut self, key: &str, value: &str, depth: usize) {
        let text = || {
            let value = value.strip_prefix('"')?;
            value.get(..end_of_string(value.as_bytes(), 0)).map(str::to_owned)
        };
        match (key, depth) {
            ("type", 1) if self.kind.is_none() => self.kind = text(),
            ("id", 1) if self.id.is_none() => {
                let digits = value.trim_start_matches('"');
                let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
                self.id = digits[..end].parse().ok();
            }
            ("method", 1) => self.is_call = true,
            ("result" | "error", 1) => self.is_answer = true,
            ("sessionId" | "session_id", _) if self.session.is_none() => self.session = text(),
            _ => {}
        }
    }

    /// It answers a request of ours. An agent's own requests have numbers too, which may be the same.
    pub(crate) fn answered(&self) -> Option<u64> {
        self.id.filter(|_| self.is_answer && !self.is_call)
    }
}

/// Where the string ends whose first byte is at `from`: at its quote, or with the line.
fn end_of_string(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
