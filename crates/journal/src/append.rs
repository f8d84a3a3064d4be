//! Records a batch: rows of turns, of open items, and of items that are settled.
//!
//! Runs inside a transaction of the writer. A batch that contradicts what is recorded is refused as a whole: wrong text
//! is never written.

use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use protocol::{ItemId, UpsertStatus};

use crate::failure::{Failure, Outcome};
use crate::item_row::{self, Encoded};
use crate::record::{Batch, ItemChange, SessionKey};
use crate::turn_row;

/// What a batch adds to its session's row.
#[derive(Debug, Default)]
struct Sums {
    items: i64,
    bytes: i64,
    seq: i64,
    position: i64,
}

/// What is recorded of an item before a change of it.
enum Known {
    Nothing,
    Open {
        id: i64,
        place: Place,
        /// None: it has no text.
        text_bytes: Option<i64>,
    },
    Settled {
        id: i64,
        place: Place,
    },
}

#[derive(Clone, Copy)]
struct Place {
    position: i64,
    first: i64,
    last: i64,
    /// Of the row: text, arguments and detail.
    bytes: i64,
}

/// Gives the last row that was settled, if any was.
pub(crate) fn append(connection: &Connection, batch: &Batch) -> Outcome<Option<i64>> {
    let mut sums = Sums::default();
    let mut settled = None;
    for turn in &batch.turns {
        turn_row::record(connection, batch.session, turn)?;
        sums.seq = sums.seq.max(signed(turn.last)?);
        sums.position = sums.position.max(turn.position);
    }
    for mark in &batch.marks {
        turn_row::mark(connection, batch.session, mark)?;
        sums.seq = sums.seq.max(signed(mark.seq)?);
    }
    for item in &batch.items {
        settled = record(connection, batch.session, item, &mut sums)?.or(settled);
    }
    if let Some(facts) = &batch.facts {
        let facts = serde_json::to_string(facts)
            .map_err(|error| Failure::Refused(format!("the facts cannot be written as JSON: {error}")))?;
        cached(connection, "INSERT OR REPLACE INTO facts (session, facts) VALUES (?1, ?2)")?
            .execute(params![batch.session.0, facts])?;
    }
    let found = cached(
        connection,
        "UPDATE session SET seq = max(seq, ?2), position = max(position, ?3), items = items + ?4, bytes = bytes + ?5,
         is_complete = max(is_complete, ?6) WHERE id = ?1 AND name IS NOT NULL",
    )?
    .execute(params![batch.session.0, sums.seq, sums.position, sums.items, sums.bytes, batch.completes])?;
    if found == 0 {
        return Err(Failure::Refused("the session was deleted".into()));
    }
    Ok(settled)
}

fn record(connection: &Connection, session: SessionKey, change: &ItemChange, sums: &mut Sums) -> Outcome<Option<i64>> {
    let upsert = &change.upsert;
    let encoded = item_row::encode(upsert, upsert.status.is_final() && change.text_from == 0)?;
    let turn = turn_row::key(connection, session, &upsert.turn_id)?;
    let mut known = find(connection, session, &upsert.item_id)?;
    if !upsert.status.is_final()
        && let Known::Settled { id, place } = known
    {
        known = reopen(connection, id, place)?;
    }
    let text = Text { from: signed(change.text_from as u64)?, added: encoded.text };
    let place = Place {
        position: known.place().map_or(change.position, |place| place.position),
        first: known.place().map_or(i64::MAX, |place| place.first).min(signed(change.first)?),
        last: known.place().map_or(0, |place| place.last).max(signed(change.last)?),
        bytes: 0,
    };
    let row = Row { session, turn, item_id: &upsert.item_id, parent: upsert.parent_item_id.as_ref(), place, encoded };
    sums.seq = sums.seq.max(place.last);
    sums.position = sums.position.max(place.position);
    sums.items += i64::from(matches!(known, Known::Nothing));
    sums.bytes -= known.place().map_or(0, |place| place.bytes);
    if upsert.status.is_final() {
        let (bytes, id) = settle(connection, &row, known, &text, upsert.status == UpsertStatus::Error)?;
        sums.bytes += bytes;
        Ok(Some(id))
    } else {
        sums.bytes += grow(connection, &row, known, &text, upsert.status)?;
        Ok(None)
    }
}

/// The text of a change: bytes that are recorded and what follows them.
struct Text<'a> {
    from: i64,
    added: Option<&'a str>,
}

struct Row<'a> {
    session: SessionKey,
    turn: i64,
    item_id: &'a ItemId,
    parent: Option<&'a ItemId>,
    place: Place,
    encoded: Encoded<'a>,
}

impl Known {
    fn place(&self) -> Option<&Place> {
        match self {
            Self::Nothing => None,
            Self::Open { place, .. } | Self::Settled { place, .. } => Some(place),
        }
    }
}

fn find(connection: &Connection, session: SessionKey, item: &ItemId) -> Outcome<Known> {
    let open = cached(
        connection,
        "SELECT id, position, first, last, ifnull(text_bytes, 0) + ifnull(octet_length(arguments), 0)
         + ifnull(octet_length(detail), 0), text_bytes FROM open_item WHERE session = ?1 AND item_id = ?2",
    )?
    .query_row(params![session.0, item.as_str()], |row| {
        Ok(Known::Open { id: row.get(0)?, place: place(row)?, text_bytes: row.get(5)? })
    })
    .optional()?;
    if let Some(open) = open {
        return Ok(open);
    }
    let settled = cached(
        connection,
        "SELECT id, position, first, last, ifnull(octet_length(text), 0) + ifnull(octet_length(arguments), 0)
         + ifnull(octet_length(detail), 0) FROM item WHERE session = ?1
         AND substr(item_id, -12) = substr(?2, -12) AND item_id = ?2",
    )?
    .query_row(params![session.0, item.as_str()], |row| Ok(Known::Settled { id: row.get(0)?, place: place(row)? }))
    .optional()?;
    Ok(settled.unwrap_or(Known::Nothing))
}

fn place(row: &rusqlite::Row<'_>) -> rusqlite::Result<Place> {
    Ok(Place { position: row.get(1)?, first: row.get(2)?, last: row.get(3)?, bytes: row.get(4)? })
}

/// A settled item that runs again becomes an open one with the text it has.
fn reopen(connection: &Connection, settled: i64, place: Place) -> Outcome<Known> {
    cached(
        connection,
        "INSERT INTO open_item (session, turn, item_id, parent, position, first, last, kind, status, at, sent_after,
         name, call_id, started_at, ended_at, output_failed, error, arguments, detail, text_bytes)
         SELECT session, turn, item_id, parent, position, first, last, kind, 'update', at, sent_after,
         name, call_id, started_at, ended_at, output_failed, error, arguments, detail, octet_length(text)
         FROM item WHERE id = ?1",
    )?
    .execute([settled])?;
    let id = connection.last_insert_rowid();
    cached(
        connection,
        "INSERT INTO open_text (item, from_byte, text) SELECT ?1, 0, text FROM item WHERE id = ?2 AND text <> ''",
    )?
    .execute([id, settled])?;
    cached(connection, "DELETE FROM item WHERE id = ?1")?.execute([settled])?;
    let text_bytes =
        cached(connection, "SELECT text_bytes FROM open_item WHERE id = ?1")?.query_row([id], |row| row.get(0))?;
    Ok(Known::Open { id, place, text_bytes })
}

/// Gives the bytes of the row and its id.
fn settle(connection: &Connection, row: &Row<'_>, known: Known, text: &Text<'_>, failed: bool) -> Outcome<(i64, i64)> {
    let whole = match (&known, text.from) {
        (_, 0) => None,
        (Known::Open { id, text_bytes, .. }, from) => {
            expect_recorded(row.item_id, text_bytes.unwrap_or(0), from)?;
            Some(open_text(connection, *id)? + text.added.unwrap_or_default())
        }
        (Known::Nothing | Known::Settled { .. }, from) => {
            return expect_recorded(row.item_id, 0, from).map(|()| (0, 0));
        }
    };
    match known {
        Known::Nothing => {}
        Known::Open { id, .. } => {
            cached(connection, "DELETE FROM open_text WHERE item = ?1")?.execute([id])?;
            cached(connection, "DELETE FROM open_item WHERE id = ?1")?.execute([id])?;
        }
        Known::Settled { id, .. } => {
            cached(connection, "DELETE FROM item WHERE id = ?1")?.execute([id])?;
        }
    }
    let text = whole.as_deref().or(text.added);
    let (place, encoded) = (&row.place, &row.encoded);
    cached(
        connection,
        "INSERT INTO item (session, turn, item_id, parent, position, first, last, kind, failed, at, sent_after, name,
         call_id, started_at, ended_at, output_failed, error, arguments, detail, text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
         ?19, ?20)",
    )?
    .execute(params![
        row.session.0,
        row.turn,
        row.item_id.as_str(),
        row.parent.map(ItemId::as_str),
        place.position,
        place.first,
        place.last,
        encoded.kind,
        failed,
        encoded.at,
        encoded.sent_after,
        encoded.name,
        encoded.call_id,
        encoded.started_at,
        encoded.ended_at,
        encoded.output_failed,
        encoded.error,
        encoded.arguments,
        encoded.detail,
        text,
    ])?;
    Ok((text.map_or(0, |text| text.len() as i64) + encoded.bytes(), connection.last_insert_rowid()))
}

/// Gives the bytes of the item as it is now.
fn grow(connection: &Connection, row: &Row<'_>, known: Known, text: &Text<'_>, status: UpsertStatus) -> Outcome<i64> {
    let (known_id, recorded) = match known {
        Known::Open { id, text_bytes, .. } => (Some(id), text_bytes),
        // A settled one was reopened before.
        Known::Nothing | Known::Settled { .. } => (None, None),
    };
    if text.from != 0 {
        expect_recorded(row.item_id, recorded.unwrap_or(0), text.from)?;
    }
    let text_bytes = match text.added {
        Some(added) => Some(text.from + added.len() as i64),
        None if text.from > 0 => recorded,
        None => None,
    };
    let (place, encoded) = (&row.place, &row.encoded);
    cached(
        connection,
        "INSERT INTO open_item (session, turn, item_id, parent, position, first, last, kind, status, at, sent_after,
         name, call_id, started_at, ended_at, output_failed, error, arguments, detail, text_bytes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
         ?19, ?20)
         ON CONFLICT (session, item_id) DO UPDATE SET turn = excluded.turn, parent = excluded.parent,
         first = excluded.first, last = excluded.last, kind = excluded.kind, status = excluded.status,
         at = excluded.at, sent_after = excluded.sent_after, name = excluded.name, call_id = excluded.call_id,
         started_at = excluded.started_at, ended_at = excluded.ended_at, output_failed = excluded.output_failed,
         error = excluded.error, arguments = excluded.arguments,
         detail = excluded.detail, text_bytes = excluded.text_bytes",
    )?
    .execute(params![
        row.session.0,
        row.turn,
        row.item_id.as_str(),
        row.parent.map(ItemId::as_str),
        place.position,
        place.first,
        place.last,
        encoded.kind,
        if status == UpsertStatus::Create { "create" } else { "update" },
        encoded.at,
        encoded.sent_after,
        encoded.name,
        encoded.call_id,
        encoded.started_at,
        encoded.ended_at,
        encoded.output_failed,
        encoded.error,
        encoded.arguments,
        encoded.detail,
        text_bytes,
    ])?;
    let id = known_id.unwrap_or_else(|| connection.last_insert_rowid());
    if text.from == 0 && recorded.is_some_and(|bytes| bytes > 0) {
        cached(connection, "DELETE FROM open_text WHERE item = ?1")?.execute([id])?;
    }
    if let Some(added) = text.added.filter(|added| !added.is_empty()) {
        cached(connection, "INSERT INTO open_text (item, from_byte, text) VALUES (?1, ?2, ?3)")?
            .execute(params![id, text.from, added])?;
    }
    Ok(text_bytes.unwrap_or(0) + encoded.bytes())
}

fn expect_recorded(item: &ItemId, recorded: i64, from: i64) -> Outcome<()> {
    if recorded == from {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "item {item} continues at byte {from} of its text, but {recorded} bytes are recorded"
    )))
}

/// The whole text of an open item.
pub(crate) fn open_text(connection: &Connection, item: i64) -> Outcome<String> {
    let mut statement = cached(connection, "SELECT text FROM open_text WHERE item = ?1 ORDER BY from_byte")?;
    let mut rows = statement.query([item])?;
    let mut whole = String::new();
    while let Some(row) = rows.next()? {
        whole.push_str(row.get_ref(0)?.as_str().map_err(|_| Failure::Unreadable("a piece of text is no text".into()))?);
    }
    Ok(whole)
}

pub(crate) fn cached<'a>(connection: &'a Connection, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
    connection.prepare_cached(sql)
}

pub(crate) fn signed(number: u64) -> Outcome<i64> {
    i64::try_from(number).map_err(|_| Failure::Refused(format!("the number {number} is too large")))
}
