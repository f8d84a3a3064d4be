//! Deletes sessions and old turns, and gives their space back.
//!
//! Works in small transactions, so that sessions go on writing in between. A session that is being deleted has no name
//! any more; if the server stops on the way, the next one finishes it.

use std::collections::{HashMap, HashSet};

use protocol::{SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use crate::append::cached;
use crate::error::JournalError;
use crate::failure::{Failure, Outcome};
use crate::open::{beside, length};
use crate::record::Pruned;
use crate::writer::{Sync, Writer};

/// Rows that go in one transaction.
const CHUNK_ROWS: usize = 500;

/// Pages that are given back in one transaction.
const CHUNK_PAGES: i64 = 1000;

/// One step of a deletion each, until it changes nothing. `?1` is the session, `?2` a number of rows.
const ERASE_STEPS: [&str; 6] = [
    "DELETE FROM open_text WHERE ?2 > 0 AND item IN (SELECT id FROM open_item WHERE session = ?1)",
    "DELETE FROM open_item WHERE id IN (SELECT id FROM open_item WHERE session = ?1 LIMIT ?2)",
    "DELETE FROM item WHERE id IN (SELECT id FROM item WHERE session = ?1 LIMIT ?2)",
    "DELETE FROM turn WHERE id IN (SELECT id FROM turn WHERE session = ?1 LIMIT ?2)",
    "DELETE FROM epoch WHERE session = ?1 AND epoch IN (SELECT epoch FROM epoch WHERE session = ?1 LIMIT ?2)",
    "DELETE FROM facts WHERE session = ?1 AND ?2 > 0",
];

impl Writer {
    pub(crate) fn delete(&mut self, session: &SessionId) -> Result<(), JournalError> {
        self.transact(Sync::Now, |connection| {
            let sql = "UPDATE session SET name = NULL WHERE name = ?1";
            Ok(cached(connection, sql)?.execute([session.as_str()])?)
        })
        .map_err(|failure| failure.on_write())?;
        self.finish_deletions()
    }

    /// Also what a server that was ended had begun, and what a reader kept from being finished.
    pub(crate) fn finish_deletions(&mut self) -> Result<(), JournalError> {
        let unfinished = "SELECT id FROM session WHERE name IS NULL LIMIT 1";
        loop {
            let key: Option<i64> = self
                .connection
                .query_row(unfinished, [], |row| row.get(0))
                .optional()
                .map_err(|error| Failure::from(error).on_write())?;
            let Some(key) = key else { return Ok(()) };
            self.erase(key).map_err(|failure| failure.on_write())?;
            self.clear_traces()?;
            // Last, so that it is not forgotten as long as text is left.
            self.transact(Sync::Later, |connection| {
                Ok(cached(connection, "DELETE FROM session WHERE id = ?1")?.execute([key])?)
            })
            .map_err(|failure| failure.on_write())?;
        }
    }

    fn erase(&mut self, session: i64) -> Outcome<()> {
        for step in ERASE_STEPS {
            while self.transact(Sync::Later, |connection| {
                Ok(cached(connection, step)?.execute(params![session, CHUNK_ROWS as i64])?)
            })? >= CHUNK_ROWS
            {
                self.serve_waiting();
            }
        }
        Ok(())
    }

    pub(crate) fn prune(&mut self, before: Timestamp) -> Result<Pruned, JournalError> {
        let bytes_before = self.file_bytes();
        let mut pruned = Pruned::default();
        let sessions = self.sessions().map_err(|failure| failure.on_read())?;
        for session in sessions {
            let doomed = Doomed::find(&self.connection, session, before).map_err(|failure| failure.on_read())?;
            for items in doomed.items.chunks(CHUNK_ROWS) {
                pruned.freed_bytes += self
                    .transact(Sync::Later, |connection| delete_items(connection, session, items))
                    .map_err(|failure| failure.on_write())?;
                pruned.items += items.len() as u64;
                self.serve_waiting();
            }
            for turns in doomed.turns.chunks(CHUNK_ROWS) {
                self.transact(Sync::Later, |connection| delete_turns(connection, session, turns))
                    .map_err(|failure| failure.on_write())?;
                pruned.turns += turns.len() as u64;
                self.serve_waiting();
            }
        }
        if self.path.is_some() {
            self.give_back().map_err(|failure| failure.on_write())?;
            self.clear_traces()?;
            pruned.freed_bytes = bytes_before.saturating_sub(self.file_bytes());
        }
        Ok(pruned)
    }

    fn sessions(&self) -> Outcome<Vec<i64>> {
        let mut statement = cached(&self.connection, "SELECT id FROM session WHERE name IS NOT NULL")?;
        Ok(statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
    }

    /// Moves the free pages to the end of the file and cuts them off.
    fn give_back(&mut self) -> Outcome<()> {
        loop {
            let free: i64 = self.connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
            if free == 0 {
                return Ok(());
            }
            self.connection.execute_batch(&format!("PRAGMA incremental_vacuum({CHUNK_PAGES})"))?;
            let left: i64 = self.connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
            if left >= free {
                return Ok(());
            }
            self.serve_waiting();
        }
    }

    fn file_bytes(&self) -> u64 {
        self.path.as_ref().map_or(0, |path| length(path) + length(&beside(path, "-wal")))
    }

    /// Deletes the oldest settled items of a session until it has some room below the limit.
    pub(crate) fn trim(&mut self, session: i64, limit_bytes: i64) -> Outcome<()> {
        let sql = "SELECT bytes FROM session WHERE id = ?1";
        let bytes: i64 = cached(&self.connection, sql)?.query_row([session], |row| row.get(0)).optional()?.unwrap_or(0);
        if bytes <= limit_bytes {
            return Ok(());
        }
        self.transact(Sync::Later, |connection| {
            let mut surplus = bytes - limit_bytes / 10 * 9;
            let mut oldest = cached(connection, "SELECT id FROM item WHERE session = ?1 ORDER BY position LIMIT 1")?;
            while surplus > 0 {
                let Some(id) = oldest.query_row([session], |row| row.get(0)).optional()? else { break };
                surplus -= i64::try_from(delete_items(connection, session, &[id])?).unwrap_or(i64::MAX);
            }
            Ok(())
        })
    }
}

/// What is old enough to go.
struct Doomed {
    items: Vec<i64>,
    turns: Vec<i64>,
}

impl Doomed {
    /// A turn without a time of its own is as old as its newest item. One with an open item stays.
    fn find(connection: &Connection, session: i64, before: Timestamp) -> Outcome<Self> {
        let transaction = connection.unchecked_transaction()?;
        let mut times: HashMap<i64, Option<i64>> = HashMap::new();
        let mut statement = cached(
            &transaction,
            "SELECT id, coalesce(ended_at, started_at) FROM turn
             WHERE session = ?1 AND status <> 'running' AND id NOT IN (SELECT turn FROM open_item WHERE session = ?1)",
        )?;
        let mut rows = statement.query([session])?;
        while let Some(row) = rows.next()? {
            times.insert(row.get(0)?, row.get(1)?);
        }
        let timeless: HashSet<i64> = times.iter().filter(|(_, time)| time.is_none()).map(|(turn, _)| *turn).collect();
        let mut items: Vec<(i64, i64)> = Vec::new();
        let mut statement =
            cached(&transaction, "SELECT id, turn, ifnull(at, 0) + sent_after FROM item WHERE session = ?1")?;
        let mut rows = statement.query([session])?;
        while let Some(row) = rows.next()? {
            let turn = row.get(1)?;
            items.push((row.get(0)?, turn));
            if timeless.contains(&turn) {
                let newest = times.entry(turn).or_default();
                *newest = (*newest).max(Some(row.get::<_, i64>(2)?).filter(|at| *at > 0));
            }
        }
        times.retain(|_, time| time.is_some_and(|time| time < before.unix_ms()));
        items.retain(|(_, turn)| times.contains_key(turn));
        Ok(Self { items: items.into_iter().map(|(item, _)| item).collect(), turns: times.into_keys().collect() })
    }
}

/// Gives the bytes of text, arguments and detail that went.
fn delete_items(connection: &Connection, session: i64, items: &[i64]) -> Outcome<u64> {
    let mut delete = cached(
        connection,
        "DELETE FROM item WHERE id = ?1 RETURNING last, ifnull(octet_length(text), 0)
         + ifnull(octet_length(arguments), 0) + ifnull(octet_length(detail), 0)",
    )?;
    let (mut last, mut bytes, mut count) = (0, 0, 0);
    for item in items {
        let row = delete.query_row([item], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).optional()?;
        let Some((row_last, row_bytes)) = row else { continue };
        last = last.max(row_last);
        bytes += row_bytes;
        count += 1;
    }
    cached(
        connection,
        "UPDATE session SET items = items - ?2, bytes = bytes - ?3, pruned_seq = max(pruned_seq, ?4) WHERE id = ?1",
    )?
    .execute([session, count, bytes, last])?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

fn delete_turns(connection: &Connection, session: i64, turns: &[i64]) -> Outcome<()> {
    let mut delete = cached(connection, "DELETE FROM turn WHERE id = ?1 RETURNING last")?;
    let mut last = 0;
    for turn in turns {
        last = delete.query_row([turn], |row| row.get(0)).optional()?.unwrap_or(0).max(last);
    }
    cached(connection, "UPDATE session SET pruned_seq = max(pruned_seq, ?2) WHERE id = ?1")?
        .execute([session, last])?;
    Ok(())
}
