//! Keys that are known by their shape.

use super::run_end;

/// How a kind of key is written.
struct Shape {
    prefix: &'static str,
    /// What follows the prefix, at least.
    bytes_min: usize,
    /// There is a digit in what follows: without one it is a name, as in `sk-learn-contrib`.
    has_digit: bool,
}

const fn shape(prefix: &'static str, bytes_min: usize, has_digit: bool) -> Shape {
    Shape { prefix, bytes_min, has_digit }
}

/// The first that fits decides.
const SHAPES: &[Shape] = &[
    // Anthropic, OpenAI, OpenRouter, DeepSeek.
    shape("sk-ant-", 8, false),
    shape("sk-proj-", 8, false),
    shape("sk-svcacct-", 8, false),
    shape("sk-or-", 16, true),
    shape("sk-", 16, true),
    // Stripe.
    shape("sk_live_", 8, false),
    shape("sk_test_", 8, false),
    shape("rk_live_", 8, false),
    shape("rk_test_", 8, false),
    shape("whsec_", 16, true),
    // GitHub, GitLab.
    shape("ghp_", 16, false),
    shape("gho_", 16, false),
    shape("ghu_", 16, false),
    shape("ghs_", 16, false),
    shape("ghr_", 16, false),
    shape("github_pat_", 16, false),
    shape("glpat-", 16, false),
    shape("gldt-", 16, false),
    // Slack.
    shape("xoxa-", 10, true),
    shape("xoxb-", 10, true),
    shape("xoxe-", 10, true),
    shape("xoxo-", 10, true),
    shape("xoxp-", 10, true),
    shape("xoxr-", 10, true),
    shape("xoxs-", 10, true),
    shape("xapp-", 10, true),
    // Google, Hugging Face, Groq, xAI, npm, PyPI, DigitalOcean, SendGrid, Replicate.
    shape("AIza", 30, false),
    shape("ya29.", 20, false),
    shape("hf_", 24, true),
    shape("gsk_", 24, true),
    shape("xai-", 24, true),
    shape("npm_", 30, true),
    shape("pypi-", 40, true),
    shape("dop_v1_", 32, true),
    shape("SG.", 40, true),
    shape("r8_", 30, true),
    shape("AGE-SECRET-KEY-1", 30, false),
];

/// Long-term and temporary access keys of AWS: the prefix and 16 capitals or digits.
const AWS_PREFIXES: [&[u8]; 4] = [b"AKIA", b"ASIA", b"ABIA", b"ACCA"];
const AWS_BYTES: usize = 20;
/// Whether something is a key shows within this.
const JUDGED_BYTES_MAX: usize = 128;

/// The end of a key that begins here.
pub(super) fn known_shape(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    if AWS_PREFIXES.iter().any(|prefix| rest.starts_with(prefix)) {
        let end = run_end(bytes, at, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        let is_over = bytes.get(end).is_none_or(|byte| !super::is_word(*byte));
        return (end - at == AWS_BYTES && is_over).then_some(end);
    }
    if rest.starts_with(b"eyJ") {
        return web_token(bytes, at);
    }
    if rest.len() >= 6 && rest[..6].eq_ignore_ascii_case(b"bearer") {
        return bearer(bytes, at);
    }
    let shape = SHAPES.iter().find(|shape| rest.starts_with(shape.prefix.as_bytes()))?;
    let from = at + shape.prefix.len();
    let has_dots = shape.prefix.ends_with('.');
    let is_part = |byte: u8| is_key_byte(byte) || has_dots && byte == b'.';
    let limit = bytes.len().min(from + JUDGED_BYTES_MAX);
    let body = &bytes[from..run_end(&bytes[..limit], from, is_part)];
    let fits = body.len() >= shape.bytes_min && (!shape.has_digit || body.iter().any(u8::is_ascii_digit));
    fits.then(|| run_end(bytes, from, is_part))
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// A JSON web token: at least a head and a body, each base64 of a JSON object.
fn web_token(bytes: &[u8], at: usize) -> Option<usize> {
    const PART_BYTES_MIN: usize = 8;
    let head = run_end(bytes, at, is_key_byte);
    if head - at < PART_BYTES_MIN || bytes.get(head) != Some(&b'.') {
        return None;
    }
    let body = run_end(bytes, head + 1, is_key_byte);
    if body - head <= PART_BYTES_MIN {
        return None;
    }
    let mut end = body;
    // The signature, or the three further parts of an encrypted one.
    while bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(|byte| is_key_byte(*byte)) {
        end = run_end(bytes, end + 1, is_key_byte);
    }
    Some(end)
}

/// `Bearer` and a token, to the end of the token.
fn bearer(bytes: &[u8], at: usize) -> Option<usize> {
    const TOKEN_BYTES_MIN: usize = 8;
    let word = at + b"bearer".len();
    let from = run_end(bytes, word, |byte| matches!(byte, b' ' | b'\t'));
    let end = run_end(bytes, from, |byte| is_key_byte(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'='));
    let token = bytes[from..end].trim_ascii_end();
    let is_token = from > word && token.len() >= TOKEN_BYTES_MIN && looks_random(token);
    is_token.then_some(end)
}

/// No word of a language: it has digits among letters, or capitals inside.
pub(super) fn looks_random(value: &[u8]) -> bool {
    let has = |test: fn(&u8) -> bool| value.iter().any(test);
    let inner_capital = value.iter().skip(1).any(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) || inner_capital
}

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const PRIVATE: &str = "PRIVATE KEY";
/// More than the longest private key.
const BLOCK_BYTES_MAX: usize = 64 * 1024;
/// The longest first line of a block.
const LABEL_BYTES_MAX: usize = 60;

/// Blocks of private keys. Remembers where the next end mark is, so that many beginnings cost one search.
#[derive(Debug)]
pub(super) struct PrivateKeys<'a> {
    text: &'a str,
    next_end: Option<usize>,
    searched_from: Option<usize>,
}

impl<'a> PrivateKeys<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, next_end: None, searched_from: None }
    }

    /// The end of a block that begins here, or of what is there of it.
    pub(super) fn at(&mut self, at: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        if !bytes[at..].starts_with(BEGIN.as_bytes()) {
            return None;
        }
        let label = &bytes[at..bytes.len().min(at + BEGIN.len() + LABEL_BYTES_MAX)];
        let place = label.windows(PRIVATE.len()).position(|window| window == PRIVATE.as_bytes())?;
        let head = run_end(bytes, at + place + PRIVATE.len(), |byte| matches!(byte, b' ' | b'A'..=b'Z' | b'-'));
        let end = self.end_after(head).filter(|end| end - head <= BLOCK_BYTES_MAX);
        match end {
            Some(end) => {
                let label = run_end(bytes, end + END.len(), |byte| byte.is_ascii_alphanumeric() || byte == b' ');
                Some(run_end(bytes, label, |byte| byte == b'-'))
            }
            None => unfinished(bytes, head),
        }
    }

    fn end_after(&mut self, from: usize) -> Option<usize> {
        let is_known =
            self.searched_from.is_some_and(|searched| searched <= from) && self.next_end.is_none_or(|end| end >= from);
        if !is_known {
            self.next_end = self.text.get(from..).and_then(|rest| rest.find(END)).map(|end| from + end);
            self.searched_from = Some(from);
        }
        self.next_end
    }
}

/// Lines of base64 that follow the first line of a block whose end is missing.
fn unfinished(bytes: &[u8], head: usize) -> Option<usize> {
    const LINE_BYTES_MIN: usize = 24;
    let mut end = None;
    let mut at = head;
    loop {
        let from = run_end(bytes, at, |byte| byte.is_ascii_whitespace() || matches!(byte, b'\\' | b'+' | b'-' | b'"'));
        // An escaped line end, as inside of JSON.
        let from = if bytes[at..from].ends_with(b"\\") { from + 1 } else { from };
        if from >= bytes.len() {
            return end;
        }
        let line = run_end(bytes, from, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
        if line - from < LINE_BYTES_MIN {
            return end;
        }
        end = Some(line);
        at = line;
    }
}
