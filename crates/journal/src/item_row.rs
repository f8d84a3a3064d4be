//! An item as the columns of its row.
//!
//! Comes in: upserts. Goes out: columns, and upserts made of columns. What a column can leave out is left out: the file
//! must stay close to the size of what was said.

use std::str::FromStr;
use std::sync::Arc;

use protocol::{
    CallId, IdError, ItemId, Origin, SessionId, Timestamp, ToolDetail, TurnId, Upsert, UpsertBody, UpsertStatus,
};
use rusqlite::Row;
use rusqlite::types::ValueRef;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::detail;
use crate::failure::{Failure, Outcome};
use crate::record::StoredItem;

/// The columns that `item` and `open_item` share, as [`decode`] expects them. `turn` must be joined.
macro_rules! columns {
    ($table:literal, $state:literal, $text:literal) => {
        concat!(
            "turn.turn_id, i.item_id, i.parent, i.position, i.first, i.last, i.kind, i.",
            $state,
            ", i.at, i.sent_after, i.name, i.call_id, i.output_failed, i.error, i.arguments, i.detail, i.",
            $text,
            ", i.turn, i.id, i.started_at, i.ended_at FROM ",
            $table,
            " i JOIN turn ON turn.id = i.turn"
        )
    };
}
pub(crate) use columns;

/// The column of the turn's number and of the row's own, behind those of the item.
pub(crate) const TURN_COLUMN: usize = 17;
pub(crate) const ID_COLUMN: usize = 18;

/// What an item's row holds besides its place and its text.
#[derive(Debug)]
pub(crate) struct Encoded<'a> {
    pub(crate) kind: &'static str,
    pub(crate) at: Option<i64>,
    pub(crate) sent_after: i64,
    pub(crate) name: Option<&'a str>,
    pub(crate) call_id: Option<&'a str>,
    pub(crate) started_at: Option<i64>,
    pub(crate) ended_at: Option<i64>,
    pub(crate) output_failed: Option<bool>,
    pub(crate) error: Option<String>,
    pub(crate) arguments: Option<String>,
    pub(crate) detail: Option<String>,
    pub(crate) text: Option<&'a str>,
}

impl Encoded<'_> {
    /// Of arguments and detail. Text is counted apart, as it comes in pieces.
    pub(crate) fn bytes(&self) -> i64 {
        let length = |column: &Option<String>| column.as_ref().map_or(0, |text| text.len() as i64);
        length(&self.arguments) + length(&self.detail)
    }
}

#[derive(Serialize, Deserialize)]
struct ItemError {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// `is_whole`: the upsert has all of its text, and that is settled.
pub(crate) fn encode(upsert: &Upsert, is_whole: bool) -> Outcome<Encoded<'_>> {
    let at = upsert.source_timestamp;
    let error = match (&upsert.error_code, &upsert.error_message) {
        (None, None) => None,
        (code, message) => Some(json(&ItemError { code: code.clone(), message: message.clone() })?),
    };
    let mut encoded = Encoded {
        kind: "tool",
        at: (!at.is_unset()).then(|| at.unix_ms()),
        sent_after: upsert.emitted_at.unix_ms() - at.unix_ms(),
        name: None,
        call_id: None,
        started_at: None,
        ended_at: None,
        output_failed: None,
        error,
        arguments: None,
        detail: None,
        text: None,
    };
    match &upsert.body {
        UpsertBody::Message { content, origin } => {
            encoded.kind = match origin {
                Origin::User => "user",
                Origin::Agent => "agent",
                Origin::System => "system",
            };
            encoded.text = Some(content);
        }
        UpsertBody::Thinking { content, provider_id } => {
            encoded.kind = "thinking";
            encoded.name = Some(provider_id);
            encoded.text = Some(content);
        }
        UpsertBody::ToolCall { tool_name, tool_arguments, call_id, tool_output, tool_output_is_error, tool } => {
            encoded.name = Some(tool_name);
            encoded.call_id = (call_id.as_str() != upsert.item_id.as_str()).then_some(call_id.as_str());
            encoded.output_failed = *tool_output_is_error;
            encoded.arguments = if tool_arguments.is_empty() { None } else { Some(json(tool_arguments)?) };
            if let Some(tool) = tool {
                encoded.started_at = tool.started_at.map(Timestamp::unix_ms);
                encoded.ended_at = tool.ended_at.map(Timestamp::unix_ms);
                // Of an open one the text is elsewhere, and it is written often: it is kept as it is.
                encoded.detail = Some(match is_whole {
                    true => detail::encode(tool, tool_arguments, tool_output.as_deref()).map_err(no_json)?,
                    false => json(tool)?,
                });
            }
            encoded.text = tool_output.as_deref();
        }
    }
    Ok(encoded)
}

fn json(value: &impl Serialize) -> Outcome<String> {
    serde_json::to_string(value).map_err(no_json)
}

fn no_json(error: serde_json::Error) -> Failure {
    Failure::Refused(format!("an item cannot be written as JSON: {error}"))
}

/// Reads a row that was selected with [`columns!`]. `text` is what the row's own column does not hold.
pub(crate) fn decode(row: &Row<'_>, session: &SessionId, text: Option<String>) -> Outcome<StoredItem> {
    let item_id = id::<ItemId>(row, 1)?;
    let kind = row.get_ref(6)?.as_str().map_err(|_| unreadable(&item_id, "kind"))?;
    let at = row.get::<_, Option<i64>>(8)?.map(Timestamp::from_unix_ms).unwrap_or_default();
    let emitted_at = Timestamp::from_unix_ms(at.unix_ms().saturating_add(row.get(9)?));
    let body = match kind {
        "thinking" => UpsertBody::Thinking {
            content: text.unwrap_or_default(),
            provider_id: row.get::<_, Option<String>>(10)?.unwrap_or_default(),
        },
        "tool" => tool_call(row, &item_id, text)?,
        message => UpsertBody::Message {
            content: text.unwrap_or_default(),
            origin: match message {
                "user" => Origin::User,
                "agent" => Origin::Agent,
                "system" => Origin::System,
                _ => return Err(unreadable(&item_id, "kind")),
            },
        },
    };
    let error: Option<ItemError> = parsed(row, 13, &item_id, "error")?;
    let (error_code, error_message) = error.map(|error| (error.code, error.message)).unwrap_or_default();
    let upsert = Upsert {
        turn_id: id::<TurnId>(row, 0)?,
        session_id: Some(session.clone()),
        status: status(row, &item_id)?,
        source_timestamp: at,
        emitted_at,
        error_code,
        error_message,
        parent_item_id: match row.get_ref(2)? {
            ValueRef::Null => None,
            _ => Some(id::<ItemId>(row, 2)?),
        },
        body,
        view: Default::default(),
        item_id,
    };
    Ok(StoredItem { upsert, position: row.get(3)?, first: number(row, 4)?, last: number(row, 5)? })
}

fn tool_call(row: &Row<'_>, item_id: &ItemId, text: Option<String>) -> Outcome<UpsertBody> {
    let arguments: Map<String, Value> = parsed(row, 14, item_id, "arguments")?.unwrap_or_default();
    let detail = match row.get_ref(15)? {
        ValueRef::Null => None,
        ValueRef::Text(json) => {
            let detail = detail::decode(json, &arguments, text.as_deref());
            Some(ToolDetail {
                started_at: row.get::<_, Option<i64>>(19)?.map(Timestamp::from_unix_ms),
                ended_at: row.get::<_, Option<i64>>(20)?.map(Timestamp::from_unix_ms),
                ..detail.ok_or_else(|| unreadable(item_id, "detail"))?
            })
        }
        _ => return Err(unreadable(item_id, "detail")),
    };
    Ok(UpsertBody::ToolCall {
        tool_name: row.get::<_, Option<String>>(10)?.unwrap_or_default(),
        tool_arguments: Arc::new(arguments),
        call_id: match row.get_ref(11)? {
            ValueRef::Null => CallId::parse(item_id.as_str()).map_err(|_| unreadable(item_id, "call_id"))?,
            _ => id::<CallId>(row, 11)?,
        },
        tool_output: text,
        tool_output_is_error: row.get(12)?,
        tool: detail.map(Arc::new),
    })
}

fn status(row: &Row<'_>, item_id: &ItemId) -> Outcome<UpsertStatus> {
    match row.get_ref(7)? {
        ValueRef::Integer(0) => Ok(UpsertStatus::Complete),
        ValueRef::Integer(_) => Ok(UpsertStatus::Error),
        ValueRef::Text(b"create") => Ok(UpsertStatus::Create),
        ValueRef::Text(b"update") => Ok(UpsertStatus::Update),
        _ => Err(unreadable(item_id, "status")),
    }
}

pub(crate) fn number(row: &Row<'_>, column: usize) -> Outcome<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| Failure::Unreadable(format!("a row has the number {value}")))
}

pub(crate) fn id<T: FromStr<Err = IdError>>(row: &Row<'_>, column: usize) -> Outcome<T> {
    let text =
        row.get_ref(column)?.as_str().map_err(|_| Failure::Unreadable("a row has an id that is no text".into()))?;
    text.parse().map_err(|error| Failure::Unreadable(format!("a row has an id that {error}")))
}

fn parsed<T: serde::de::DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
    item: &ItemId,
    what: &str,
) -> Outcome<Option<T>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        ValueRef::Text(text) => Ok(Some(serde_json::from_slice(text).map_err(|_| unreadable(item, what))?)),
        _ => Err(unreadable(item, what)),
    }
}

fn unreadable(item: &ItemId, what: &str) -> Failure {
    Failure::Unreadable(format!("the column {what} of item {item} cannot be read"))
}
