//! A turn as the columns of its row.

use protocol::{Timestamp, TurnId, TurnRecord, TurnRecordStatus, Usage};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::append::{cached, signed};
use crate::failure::{Failure, Outcome};
use crate::item_row::{id, number};
use crate::record::{SessionKey, StoredTurn, TurnChange, TurnMark, TurnOrigin};

/// As [`decode`] expects them.
pub(crate) const COLUMNS: &str = "turn_id, position, last, origin, status, started_at, ended_at, model, usage, \
    error_code, error_message, is_forgotten";

pub(crate) fn find(connection: &Connection, session: SessionKey, turn: &TurnId) -> Outcome<Option<i64>> {
    Ok(cached(connection, "SELECT id FROM turn WHERE session = ?1 AND turn_id = ?2")?
        .query_row(params![session.0, turn.as_str()], |row| row.get(0))
        .optional()?)
}

/// The turn's number in this file. One of which only items were recorded gets a row without a status.
pub(crate) fn key(connection: &Connection, session: SessionKey, turn: &TurnId) -> Outcome<i64> {
    if let Some(known) = find(connection, session, turn)? {
        return Ok(known);
    }
    cached(connection, "INSERT INTO turn (session, turn_id) VALUES (?1, ?2)")?
        .execute(params![session.0, turn.as_str()])?;
    Ok(connection.last_insert_rowid())
}

pub(crate) fn mark(connection: &Connection, session: SessionKey, mark: &TurnMark) -> Outcome<()> {
    let turn = key(connection, session, &mark.turn_id)?;
    cached(
        connection,
        "UPDATE turn SET is_forgotten = ?2, first = min(ifnull(first, ?3), ?3), last = max(ifnull(last, ?3), ?3)
         WHERE id = ?1",
    )?
    .execute(params![turn, mark.forgotten, signed(mark.seq)?])?;
    Ok(())
}

pub(crate) fn record(connection: &Connection, session: SessionKey, change: &TurnChange) -> Outcome<()> {
    let TurnRecord { turn_id, status, started_at, ended_at, model_id, usage, error_code, error_message, forgotten } =
        &change.record;
    let usage = usage
        .as_ref()
        .map(serde_json::to_string)
        .transpose()
        .map_err(|error| Failure::Refused(format!("the usage cannot be written as JSON: {error}")))?;
    cached(
        connection,
        "INSERT INTO turn (session, turn_id, position, first, last, origin, status, started_at, ended_at, model, usage,
         error_code, error_message, is_forgotten)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
         ON CONFLICT (session, turn_id) DO UPDATE SET position = excluded.position,
         first = min(ifnull(first, excluded.first), excluded.first),
         last = max(ifnull(last, excluded.last), excluded.last), origin = excluded.origin, status = excluded.status,
         started_at = excluded.started_at, ended_at = excluded.ended_at, model = excluded.model,
         usage = excluded.usage, error_code = excluded.error_code, error_message = excluded.error_message,
         is_forgotten = excluded.is_forgotten",
    )?
    .execute(params![
        session.0,
        turn_id.as_str(),
        change.position,
        signed(change.first)?,
        signed(change.last)?,
        match change.origin {
            TurnOrigin::Live => "live",
            TurnOrigin::Agent => "agent",
        },
        match status {
            TurnRecordStatus::Running => "running",
            TurnRecordStatus::Completed => "completed",
            TurnRecordStatus::Cancelled => "cancelled",
            TurnRecordStatus::Error => "error",
        },
        (!started_at.is_unset()).then(|| started_at.unix_ms()),
        ended_at.map(Timestamp::unix_ms),
        model_id,
        usage,
        error_code,
        error_message,
        forgotten,
    ])?;
    Ok(())
}

/// None for a turn of which only items were recorded.
pub(crate) fn decode(row: &Row<'_>) -> Outcome<Option<StoredTurn>> {
    let turn_id = id::<TurnId>(row, 0)?;
    let unreadable = |what: &str| Failure::Unreadable(format!("the {what} of turn {turn_id} cannot be read"));
    let status = match row.get_ref(4)? {
        ValueRef::Null => return Ok(None),
        ValueRef::Text(b"running") => TurnRecordStatus::Running,
        ValueRef::Text(b"completed") => TurnRecordStatus::Completed,
        ValueRef::Text(b"cancelled") => TurnRecordStatus::Cancelled,
        ValueRef::Text(b"error") => TurnRecordStatus::Error,
        _ => return Err(unreadable("status")),
    };
    let usage: Option<Usage> = match row.get_ref(8)? {
        ValueRef::Null => None,
        ValueRef::Text(json) => Some(serde_json::from_slice(json).map_err(|_| unreadable("usage"))?),
        _ => return Err(unreadable("usage")),
    };
    let origin = origin(row, 3)?;
    let record = TurnRecord {
        status,
        started_at: row.get::<_, Option<i64>>(5)?.map(Timestamp::from_unix_ms).unwrap_or_default(),
        ended_at: row.get::<_, Option<i64>>(6)?.map(Timestamp::from_unix_ms),
        model_id: row.get(7)?,
        usage,
        error_code: row.get(9)?,
        error_message: row.get(10)?,
        forgotten: row.get(11)?,
        turn_id,
    };
    Ok(Some(StoredTurn { record, origin, position: row.get(1)?, last: number(row, 2)? }))
}

pub(crate) fn origin(row: &Row<'_>, column: usize) -> Outcome<TurnOrigin> {
    match row.get_ref(column)? {
        ValueRef::Text(b"live") => Ok(TurnOrigin::Live),
        ValueRef::Text(b"agent") => Ok(TurnOrigin::Agent),
        _ => Err(Failure::Unreadable("the origin of a turn cannot be read".into())),
    }
}
