//! Masks keys, tokens and e-mail addresses.
//!
//! Comes in: texts, items and turns. Goes out: the same with `[redacted key]` and `[redacted e-mail]` in place of what
//! looks like one. Everything else stays, to the byte: paths, ids, commit hashes, pictures. One pass over the text with
//! hand-written scanners, whose time grows with its length and nothing else.
//!
//! It finds known shapes, and values of names such as `password`. It cannot know a secret that looks like any other word.

mod addresses;
mod assignments;
mod keys;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use protocol::{ToolContent, ToolDetail, TurnRecord, Upsert, UpsertBody};
use serde_json::{Map, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretKind {
    Key,
    Email,
}

impl SecretKind {
    pub fn mask(self) -> &'static str {
        match self {
            Self::Key => "[redacted key]",
            Self::Email => "[redacted e-mail]",
        }
    }
}

/// A part of a text that is masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub range: Range<usize>,
    pub kind: SecretKind,
}

/// The parts of a text that are secrets, in order, without overlaps.
pub fn spans(text: &str) -> Vec<Span> {
    let mut found: Vec<Span> = Vec::new();
    let bytes = text.as_bytes();
    let mut blocks = keys::PrivateKeys::new(text);
    let mut at = 0;
    while at < bytes.len() {
        let next = match bytes[at] {
            b'-' => blocks.at(at).map(|end| (at..end, SecretKind::Key)),
            b':' => addresses::password_in_url(bytes, at).map(|range| (range, SecretKind::Key)),
            b'@' | b'%' => addresses::email(text, at).map(|range| (range, SecretKind::Email)),
            byte if is_word(byte) && begins_word(bytes, at) => {
                let secret = keys::known_shape(bytes, at).map(|end| at..end);
                let secret = secret.or_else(|| assignments::value_after(bytes, at));
                secret.map(|range| (range, SecretKind::Key))
            }
            _ => None,
        };
        match next {
            Some((range, kind)) => {
                // The name in front of a value is not masked; an address may begin in front of its sign.
                at = range.end.max(at + 1);
                // `user:password@host` is no address once its password is masked.
                if found.last().is_none_or(|last| last.range.end <= range.start) {
                    found.push(Span { range, kind });
                }
            }
            None => at += 1,
        }
    }
    found
}

/// The text with every secret masked.
pub fn text(text: &str) -> Cow<'_, str> {
    let spans = spans(text);
    if spans.is_empty() {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut written = 0;
    for span in spans {
        out.push_str(&text[written..span.range.start]);
        out.push_str(span.kind.mask());
        written = span.range.end;
    }
    out.push_str(&text[written..]);
    out.into()
}

pub(crate) fn turn(turn: &TurnRecord) -> TurnRecord {
    TurnRecord { error_message: turn.error_message.as_deref().map(owned), ..turn.clone() }
}

/// Every text of the item, masked. Paths and pictures stay.
pub(crate) fn item(item: &Upsert) -> Upsert {
    let body = match &item.body {
        UpsertBody::Message { content, origin } => UpsertBody::Message { content: owned(content), origin: *origin },
        UpsertBody::Thinking { content, provider_id } => {
            UpsertBody::Thinking { content: owned(content), provider_id: provider_id.clone() }
        }
        UpsertBody::ToolCall { tool_name, tool_arguments, call_id, tool_output, tool_output_is_error, tool } => {
            UpsertBody::ToolCall {
                tool_name: owned(tool_name),
                tool_arguments: Arc::new(object(tool_arguments)),
                call_id: call_id.clone(),
                tool_output: tool_output.as_deref().map(owned),
                tool_output_is_error: *tool_output_is_error,
                tool: tool.as_deref().map(|tool| Arc::new(detail(tool))),
            }
        }
    };
    Upsert { body, error_message: item.error_message.as_deref().map(owned), ..without_body(item) }
}

/// A copy of the small fields.
fn without_body(item: &Upsert) -> Upsert {
    Upsert {
        turn_id: item.turn_id.clone(),
        session_id: item.session_id.clone(),
        item_id: item.item_id.clone(),
        source_timestamp: item.source_timestamp,
        emitted_at: item.emitted_at,
        status: item.status,
        error_code: item.error_code.clone(),
        error_message: None,
        parent_item_id: item.parent_item_id.clone(),
        body: UpsertBody::Thinking { content: String::new(), provider_id: String::new() },
        view: protocol::UpsertView::default(),
    }
}

fn detail(tool: &ToolDetail) -> ToolDetail {
    let content = |content: &ToolContent| match content {
        ToolContent::Diff { path, old_text, new_text, start_line } => ToolContent::Diff {
            path: path.clone(),
            old_text: old_text.as_deref().map(owned),
            new_text: owned(new_text),
            start_line: *start_line,
        },
        ToolContent::File { path, start_line, text } => {
            ToolContent::File { path: path.clone(), start_line: *start_line, text: owned(text) }
        }
        ToolContent::Image { .. } => content.clone(),
        ToolContent::Text { text } => ToolContent::Text { text: owned(text) },
    };
    ToolDetail {
        title: tool.title.as_deref().map(owned),
        command: tool.command.as_deref().map(owned),
        content: tool.content.iter().map(content).collect(),
        permission: tool.permission.clone().map(|mut permission| {
            permission.option = permission.option.as_deref().map(owned);
            permission
        }),
        kind: tool.kind,
        locations: tool.locations.clone(),
        exit_code: tool.exit_code,
        interrupted: tool.interrupted,
        started_at: tool.started_at,
        ended_at: tool.ended_at,
    }
}

fn object(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter().map(|(name, inner)| (owned(name), value(name, inner))).collect()
}

/// The name of a field says more about its value than the value does.
fn value(name: &str, inner: &Value) -> Value {
    match inner {
        Value::String(text) if assignments::is_secret_field(name, text) => SecretKind::Key.mask().into(),
        Value::String(text) => owned(text).into(),
        Value::Array(list) => list.iter().map(|inner| value(name, inner)).collect(),
        Value::Object(map) => object(map).into(),
        other => other.clone(),
    }
}

fn owned(text_with_secrets: &str) -> String {
    text(text_with_secrets).into_owned()
}

/// Part of a name, or of most keys.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Nothing in front of it belongs to the same word. A colour of a terminal and the sign of a diff do not.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    match at.checked_sub(1).map(|before| bytes[before]) {
        // One start per run of word bytes and hyphens keeps the whole linear.
        Some(b'-') => match &bytes[..at - 1] {
            [] | [.., b'\n'] | [b'-'] => true,
            [.., before, b'-'] => !is_word(*before) && *before != b'-',
            _ => false,
        },
        Some(b'm') => ends_colour(&bytes[..at]),
        // An escaped line end, as inside of JSON: `\nsk-…`.
        Some(b'n' | b't' | b'r') if bytes[at] != b'_' => at >= 2 && bytes[at - 2] == b'\\',
        Some(before) => !is_word(before),
        None => true,
    }
}

fn ends_colour(before: &[u8]) -> bool {
    const PARAMETERS_MAX: usize = 20;
    let parameters = before.iter().rev().skip(1).take(PARAMETERS_MAX);
    let count = parameters.take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
    before.len() >= count + 3 && before[..before.len() - 1 - count].ends_with(b"\x1b[")
}

/// How far a run of such bytes goes.
fn run_end(bytes: &[u8], from: usize, is_part: impl Fn(u8) -> bool) -> usize {
    bytes[from..].iter().position(|byte| !is_part(*byte)).map_or(bytes.len(), |length| from + length)
}
