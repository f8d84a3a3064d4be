//! Values of names that say they are secret: `password=…`, `"apiKey": "…"`, `--token …`, "the token is …".

use std::ops::Range;

use super::keys::looks_random;
use super::{is_word, run_end};

/// A name is secret if it ends like this, without its `_`, `-` and capitals.
const SECRET_ENDINGS: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authkey",
    "encryptionkey",
    "credentials",
    "authorization",
];
/// Names that end so and are no secrets.
const NO_SECRETS: [&str; 2] = ["pwd", "oldpwd"];
/// What stands for a value, or names its type.
const PLACEHOLDERS: [&str; 36] = [
    "any",
    "arg",
    "args",
    "bool",
    "boolean",
    "bytes",
    "const",
    "empty",
    "env",
    "false",
    "function",
    "input",
    "int",
    "integer",
    "invalid",
    "missing",
    "nil",
    "none",
    "null",
    "number",
    "object",
    "option",
    "optional",
    "required",
    "some",
    "str",
    "string",
    "text",
    "true",
    "type",
    "u32",
    "u64",
    "undefined",
    "unknown",
    "value",
    "void",
];
/// Between a name and its value in a sentence.
const BETWEEN: [&[u8]; 5] = [b"is", b"was", b"are", b"value", b"key"];
/// The longest name that is looked at.
const NAME_BYTES_MAX: usize = 64;
const VALUE_BYTES_MAX: usize = 4096;
const BARE_BYTES_MAX: usize = 256;

/// The value of the name that begins at `at`, if both are secret.
pub(super) fn value_after(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let name_end = run_end(bytes, at, |byte| is_word(byte) || byte == b'-');
    let name = Name::of(&bytes[at..name_end])?;
    let is_flag = bytes[..at].ends_with(b"--");
    // The quote that closes the name, as in JSON.
    let mut from = run_end(bytes, name_end, |byte| byte == b'\\');
    if matches!(bytes.get(from), Some(b'"' | b'\'')) {
        from += 1;
    } else {
        from = name_end;
    }
    from = skip_blanks(bytes, from);
    let separator = run_end(bytes, from, |byte| matches!(byte, b'=' | b':' | b'>'));
    let separator_bytes = &bytes[from..separator.min(from + 3)];
    let link = match separator_bytes {
        b"=" | b":=" | b"=>" | b"==" | b"===" => Link::Equals,
        b":" => Link::Colon,
        b"" if is_flag && from > name_end => Link::Flag,
        b"" if from > name_end => return in_sentence(bytes, from),
        _ => return None,
    };
    let from = skip_scheme(bytes, skip_blanks(bytes, separator), name);
    quoted(bytes, from, name, link).or_else(|| bare(bytes, from, name, link))
}

/// Whether the value of a field of this name is a secret as a whole.
pub(super) fn is_secret_field(name: &str, value: &str) -> bool {
    Name::of(name.as_bytes()).is_some_and(|name| name.allows(value.as_bytes(), Link::Equals))
}

/// How a name and its value are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Equals,
    Colon,
    Flag,
}

/// A name that says its value is secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    /// Also a word of other fields: parsers and models have tokens.
    Token,
    Authorization,
    Other,
}

impl Name {
    fn of(name: &[u8]) -> Option<Self> {
        let tail = &name[name.len().saturating_sub(NAME_BYTES_MAX)..];
        let letters: Vec<u8> =
            tail.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase).collect();
        if NO_SECRETS.iter().any(|none| letters == none.as_bytes()) {
            return None;
        }
        let ending = SECRET_ENDINGS.iter().find(|ending| letters.ends_with(ending.as_bytes()))?;
        Some(match *ending {
            "token" if letters.len() == "token".len() => Self::Token,
            "authorization" => Self::Authorization,
            _ => Self::Other,
        })
    }

    /// Whether this can be its value.
    fn allows(self, value: &[u8], link: Link) -> bool {
        let bytes_min = match (self, link) {
            (Self::Token, Link::Colon) => 8,
            (_, Link::Flag) => 4,
            _ => 1,
        };
        value.len() >= bytes_min && !is_placeholder(value)
    }
}

/// A value in quotes; what is masked is inside of them.
fn quoted(bytes: &[u8], at: usize, name: Name, link: Link) -> Option<Range<usize>> {
    let quote_at = run_end(bytes, at, |byte| byte == b'\\');
    let quote = *bytes.get(quote_at).filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))?;
    let escapes = quote_at - at;
    let from = quote_at + 1;
    let limit = bytes.len().min(from + VALUE_BYTES_MAX);
    let mut end = from;
    let mut backslashes = 0;
    while end < limit && bytes[end] != b'\n' {
        match bytes[end] {
            b'\\' => backslashes += 1,
            byte if byte == quote && backslashes <= escapes => {
                let value = from..end - backslashes;
                return name.allows(&bytes[value.clone()], link).then_some(value);
            }
            _ => backslashes = 0,
        }
        end += 1;
    }
    None
}

/// A value without quotes, up to the next blank or mark.
fn bare(bytes: &[u8], at: usize, name: Name, link: Link) -> Option<Range<usize>> {
    let is_part = |byte: u8| {
        !byte.is_ascii_whitespace()
            && !byte.is_ascii_control()
            && !matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'(' | b')' | b'[' | b']' | b'{' | b'}')
            && !matches!(byte, b'&' | b';' | b',' | b'|' | b'\\')
    };
    // A longer value is judged by its beginning.
    let limit = bytes.len().min(at + BARE_BYTES_MAX);
    let end = run_end(&bytes[..limit], at, is_part);
    let value = &bytes[at..end];
    // A call, a type, an index, a template.
    if matches!(bytes.get(end), Some(b'(' | b'<' | b'[' | b'{')) || !name.allows(value, link) {
        return None;
    }
    let is_last_of_line = matches!(bytes.get(end), None | Some(b'\n' | b'\r'));
    let is_secret = match link {
        // With blanks around the sign it is code: `token = next` names another variable.
        Link::Equals if bytes[at - 1] == b' ' => looks_random(value) && value.len() >= 8 && !is_code(value),
        Link::Equals => !is_code(value),
        Link::Colon if name == Name::Authorization => true,
        Link::Colon => value.len() >= 6 && (has_digit(value) || is_last_of_line) && !is_code(value),
        Link::Flag => (looks_random(value) || value.len() >= 8) && value[0] != b'-' && !is_shouted(value),
    };
    is_secret.then(|| at..run_end(bytes, at, is_part))
}

/// "The token is 9f86…": words, and then something long and random.
fn in_sentence(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    const WORDS_MAX: usize = 2;
    const SECRET_BYTES_MIN: usize = 20;
    let mut from = at;
    for _ in 0..=WORDS_MAX {
        from = run_end(bytes, from, |byte| matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b'`' | b':' | b'=' | b'('));
        let end = run_end(bytes, from, |byte| is_word(byte) || matches!(byte, b'-' | b'+' | b'/' | b'='));
        let word = &bytes[from..end];
        if word.len() >= SECRET_BYTES_MIN {
            let is_secret = has_digit(word) && looks_random(word) && !word.starts_with(b"/");
            return is_secret.then_some(from..end);
        }
        if !BETWEEN.contains(&word) {
            return None;
        }
        from = end;
    }
    None
}

/// Behind `Bearer` or `Basic`, where the value of `Authorization` has it.
fn skip_scheme(bytes: &[u8], at: usize, name: Name) -> usize {
    if name != Name::Authorization {
        return at;
    }
    let quote = run_end(bytes, at, |byte| matches!(byte, b'\\' | b'"' | b'\''));
    let end = run_end(bytes, quote, |byte| byte.is_ascii_alphabetic());
    let after = skip_blanks(bytes, end);
    let is_scheme = ["bearer", "basic", "token", "digest"]
        .iter()
        .any(|scheme| bytes[quote..end].eq_ignore_ascii_case(scheme.as_bytes()));
    if is_scheme && after > end { after } else { at }
}

fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    run_end(bytes, at, |byte| matches!(byte, b' ' | b'\t'))
}

/// Something that is filled in elsewhere.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    let stands_for = |byte: &u8| matches!(byte, b'*' | b'.' | b'x' | b'-' | b'_' | b'?' | b'#');
    matches!(value.first(), Some(b'$' | b'<' | b'%'))
        || value.starts_with(b"{{")
        || value.starts_with(b"[redacted")
        || "\u{2022}\u{2026}".chars().any(|mark| value.starts_with(mark.to_string().as_bytes()))
        || lower.iter().all(stands_for)
        || PLACEHOLDERS.iter().any(|placeholder| lower == placeholder.as_bytes())
        // `password=password`, `token=args.token`.
        || value.iter().all(|byte| is_word(*byte) || *byte == b'.' || *byte == b'-') && Name::of(value).is_some()
}

/// A path, or the field of a value.
fn is_code(value: &[u8]) -> bool {
    value.starts_with(b"/")
        || value.starts_with(b"./")
        || value.starts_with(b"~/")
        || value.starts_with(b"&")
        || value.windows(2).any(|pair| pair == b"::")
        || !has_digit(value) && value.contains(&b'.') && value.iter().all(|byte| is_word(*byte) || *byte == b'.')
}

/// As in `--token TOKEN`.
fn is_shouted(value: &[u8]) -> bool {
    value.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_')
}

fn has_digit(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit)
}
