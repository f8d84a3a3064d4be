//! Reads pages of items with their turns. Each call runs in one read transaction.

use std::collections::BTreeSet;

use protocol::{ItemId, SessionId};
use rusqlite::{Connection, OptionalExtension, Params, params};

use crate::append::{cached, open_text, signed};
use crate::error::JournalError;
use crate::failure::{Failure, Outcome};
use crate::item_row::{ID_COLUMN, TURN_COLUMN, columns, decode, id};
use crate::record::{Page, Read, RowId, SessionKey, SettledItem, StoredItem, StoredTurn};
use crate::{session_row, turn_row};

const SETTLED: &str = columns!("item", "failed", "text");
const OPEN: &str = columns!("open_item", "status", "text_bytes");

/// An item and the number of its turn.
type Entry = (i64, StoredItem);

pub(crate) fn read(connection: &Connection, session: SessionKey, read: &Read) -> Result<Page, JournalError> {
    let failed = |failure: Failure| failure.on_read();
    let transaction = connection.unchecked_transaction().map_err(|error| failed(error.into()))?;
    let Some(name) = session_row::name(&transaction, session).map_err(failed)? else { return Ok(Page::default()) };
    let reader = Reader { connection: &transaction, session, name };
    match read {
        Read::Newest { limit } => reader.before(i64::MAX, *limit).map_err(failed),
        Read::Before { position, limit } => reader.before(*position, *limit).map_err(failed),
        Read::BeforeItem { item, limit } => {
            let position = reader.position(item).map_err(failed)?;
            reader.before(position.ok_or_else(|| JournalError::UnknownItem(item.clone()))?, *limit).map_err(failed)
        }
        Read::Since { seq, limit } => reader.since(*seq, *limit).map_err(failed),
        Read::Open => reader.open().map_err(failed),
    }
}

pub(crate) fn item(connection: &Connection, session: SessionKey, item: &ItemId) -> Outcome<Option<StoredItem>> {
    let transaction = connection.unchecked_transaction()?;
    let Some(name) = session_row::name(&transaction, session)? else { return Ok(None) };
    let reader = Reader { connection: &transaction, session, name };
    let wanted = params![session.0, item.as_str()];
    if let Some((_, open)) = reader.open_items("WHERE i.session = ?1 AND i.item_id = ?2", wanted)?.pop() {
        return Ok(Some(open));
    }
    let by_id = "WHERE i.session = ?1 AND substr(i.item_id, -12) = substr(?2, -12) AND i.item_id = ?2";
    Ok(reader.settled_items(by_id, wanted)?.pop().map(|(_, item)| item))
}

/// Items that were settled after a row, in the order of their rows.
pub(crate) fn settled_after(connection: &Connection, row: RowId, limit: usize) -> Outcome<Vec<SettledItem>> {
    const SQL: &str = concat!(
        "SELECT ",
        columns!("item", "failed", "text"),
        " WHERE i.id > ?1 AND i.session IN (SELECT id FROM session WHERE name IS NOT NULL) ORDER BY i.id LIMIT ?2"
    );
    let transaction = connection.unchecked_transaction()?;
    let mut statement = cached(&transaction, SQL)?;
    let mut names =
        cached(&transaction, "SELECT name FROM session WHERE id = (SELECT session FROM item WHERE id = ?1)")?;
    let mut rows = statement.query(params![row.0, bound(limit)])?;
    let mut settled = Vec::new();
    while let Some(row) = rows.next()? {
        let key: i64 = row.get(ID_COLUMN)?;
        let mut name = names.query([key])?;
        let Some(name) = name.next()? else { continue };
        let session = id::<SessionId>(name, 0)?;
        let item = decode(row, &session, row.get(16)?)?;
        settled.push(SettledItem { row: RowId(key), session, item });
    }
    Ok(settled)
}

struct Reader<'a> {
    connection: &'a Connection,
    session: SessionKey,
    name: SessionId,
}

impl Reader<'_> {
    fn before(&self, position: i64, limit: usize) -> Outcome<Page> {
        let wanted = params![self.session.0, position, bound(limit.saturating_add(1))];
        let newest = "WHERE i.session = ?1 AND i.position < ?2 ORDER BY i.position DESC LIMIT ?3";
        let mut items = self.settled_items(newest, wanted)?;
        items.extend(self.open_items(newest, wanted)?);
        items.sort_by_key(|(_, item)| item.position);
        let surplus = items.len().saturating_sub(limit);
        items.drain(..surplus);
        let turns = self.turns_of(&items)?;
        Ok(Page { items: items.into_iter().map(|(_, item)| item).collect(), turns, more: surplus > 0 })
    }

    fn since(&self, seq: u64, limit: usize) -> Outcome<Page> {
        let wanted = params![self.session.0, signed(seq)?, bound(limit.saturating_add(1))];
        let mut items = self.settled_items("WHERE i.session = ?1 AND i.last > ?2 ORDER BY i.last LIMIT ?3", wanted)?;
        items.extend(self.open_items("WHERE i.session = ?1 AND i.last > ?2 ORDER BY i.last LIMIT ?3", wanted)?);
        let turns = self.turns("WHERE session = ?1 AND last > ?2 ORDER BY position LIMIT ?3", wanted)?;
        if items.len() > limit || turns.len() > limit {
            return Ok(Page { more: true, ..Page::default() });
        }
        items.sort_by_key(|(_, item)| item.position);
        Ok(Page { items: items.into_iter().map(|(_, item)| item).collect(), turns, more: false })
    }

    fn open(&self) -> Outcome<Page> {
        let items = self.open_items("WHERE i.session = ?1 ORDER BY i.position", [self.session.0])?;
        let turns = self.turns("WHERE session = ?1 AND status = 'running' ORDER BY position", [self.session.0])?;
        Ok(Page { items: items.into_iter().map(|(_, item)| item).collect(), turns, more: false })
    }

    fn position(&self, item: &ItemId) -> Outcome<Option<i64>> {
        let sql = "SELECT position FROM open_item WHERE session = ?1 AND item_id = ?2
            UNION ALL SELECT position FROM item
            WHERE session = ?1 AND substr(item_id, -12) = substr(?2, -12) AND item_id = ?2 LIMIT 1";
        Ok(cached(self.connection, sql)?
            .query_row(params![self.session.0, item.as_str()], |row| row.get(0))
            .optional()?)
    }

    fn settled_items(&self, condition: &str, wanted: impl Params) -> Outcome<Vec<Entry>> {
        let mut statement = cached(self.connection, &format!("SELECT {SETTLED} {condition}"))?;
        let mut rows = statement.query(wanted)?;
        let mut items = Vec::new();
        while let Some(row) = rows.next()? {
            items.push((row.get(TURN_COLUMN)?, decode(row, &self.name, row.get(16)?)?));
        }
        Ok(items)
    }

    fn open_items(&self, condition: &str, wanted: impl Params) -> Outcome<Vec<Entry>> {
        let mut statement = cached(self.connection, &format!("SELECT {OPEN} {condition}"))?;
        let mut rows = statement.query(wanted)?;
        let mut items = Vec::new();
        while let Some(row) = rows.next()? {
            let text = match row.get::<_, Option<i64>>(16)? {
                Some(_) => Some(open_text(self.connection, row.get(ID_COLUMN)?)?),
                None => None,
            };
            items.push((row.get(TURN_COLUMN)?, decode(row, &self.name, text)?));
        }
        Ok(items)
    }

    /// The turns of these items, in display order.
    fn turns_of(&self, items: &[Entry]) -> Outcome<Vec<StoredTurn>> {
        let keys: BTreeSet<i64> = items.iter().map(|(turn, _)| *turn).collect();
        let mut turns = Vec::with_capacity(keys.len());
        for key in keys {
            turns.extend(self.turns("WHERE id = ?1", [key])?);
        }
        turns.sort_by_key(|turn| turn.position);
        Ok(turns)
    }

    fn turns(&self, condition: &str, wanted: impl Params) -> Outcome<Vec<StoredTurn>> {
        let mut statement = cached(self.connection, &format!("SELECT {} FROM turn {condition}", turn_row::COLUMNS))?;
        let mut rows = statement.query(wanted)?;
        let mut turns = Vec::new();
        while let Some(row) = rows.next()? {
            turns.extend(turn_row::decode(row)?);
        }
        Ok(turns)
    }
}

fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
