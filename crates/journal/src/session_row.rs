//! Where a session continues: its row, its epochs, its facts.

use std::time::SystemTime;

use protocol::{SessionFacts, SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use crate::append::cached;
use crate::failure::{Failure, Outcome};
use crate::item_row::{id, number};
use crate::record::{SessionHead, SessionKey};

/// Raises the epoch. Creates the session if it is not known.
pub(crate) fn take_over(connection: &Connection, session: &SessionId) -> Outcome<SessionHead> {
    cached(
        connection,
        "INSERT INTO session (name, epoch, seq, position, items, bytes, pruned_seq, is_complete)
         VALUES (?1, 1, 0, 0, 0, 0, 0, 0) ON CONFLICT (name) DO UPDATE SET epoch = epoch + 1",
    )?
    .execute([session.as_str()])?;
    let now = Timestamp::from(SystemTime::now()).unix_ms();
    cached(
        connection,
        "INSERT INTO epoch (session, epoch, first_seq, started_at)
         SELECT id, epoch, seq + 1, ?2 FROM session WHERE name = ?1",
    )?
    .execute(params![session.as_str(), now])?;
    find(connection, session)?.ok_or_else(|| Failure::Unreadable("a session that was written is not there".into()))
}

pub(crate) fn find(connection: &Connection, session: &SessionId) -> Outcome<Option<SessionHead>> {
    let mut statement =
        cached(connection, "SELECT id, epoch, seq, position, items, is_complete FROM session WHERE name = ?1")?;
    let mut rows = statement.query([session.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let key = SessionKey(row.get(0)?);
    Ok(Some(SessionHead {
        key,
        epoch: number(row, 1)?,
        seq: number(row, 2)?,
        position: row.get(3)?,
        items: number(row, 4)?,
        is_complete: row.get(5)?,
        epoch_ends: epoch_ends(connection, key)?,
        facts: facts(connection, key)?,
    }))
}

/// The name of a session. None: it was deleted.
pub(crate) fn name(connection: &Connection, session: SessionKey) -> Outcome<Option<SessionId>> {
    let mut statement = cached(connection, "SELECT name FROM session WHERE id = ?1 AND name IS NOT NULL")?;
    let mut rows = statement.query([session.0])?;
    rows.next()?.map(|row| id::<SessionId>(row, 0)).transpose()
}

/// An epoch ends in front of the first number of the next one.
fn epoch_ends(connection: &Connection, session: SessionKey) -> Outcome<Vec<(u64, u64)>> {
    let mut statement = cached(connection, "SELECT epoch, first_seq FROM epoch WHERE session = ?1 ORDER BY epoch")?;
    let mut rows = statement.query([session.0])?;
    let mut begun: Vec<(u64, u64)> = Vec::new();
    while let Some(row) = rows.next()? {
        begun.push((number(row, 0)?, number(row, 1)?));
    }
    Ok(begun.windows(2).map(|pair| (pair[0].0, pair[1].1.saturating_sub(1))).collect())
}

/// Facts as they were recorded, or none.
pub(crate) fn facts(connection: &Connection, session: SessionKey) -> Outcome<SessionFacts> {
    let facts: Option<String> = cached(connection, "SELECT facts FROM facts WHERE session = ?1")?
        .query_row([session.0], |row| row.get(0))
        .optional()?;
    match facts {
        Some(facts) => serde_json::from_str(&facts)
            .map_err(|error| Failure::Unreadable(format!("the facts of a session cannot be read ({error})"))),
        None => Ok(SessionFacts::default()),
    }
}
