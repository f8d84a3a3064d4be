//! How much the journal holds. The sessions' own rows keep count, so that this does not read the whole file.

use std::path::Path;

use protocol::{SessionId, Timestamp};
use rusqlite::Connection;

use crate::append::cached;
use crate::failure::Outcome;
use crate::item_row::{id, number};
use crate::open::{beside, length};
use crate::record::{SessionStats, Stats};

pub(crate) fn stats(connection: &Connection, path: Option<&Path>) -> Outcome<Stats> {
    let transaction = connection.unchecked_transaction()?;
    let pragma = |name: &str| -> Outcome<u64> {
        Ok(transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0))?.try_into().unwrap_or(0))
    };
    let page_bytes = pragma("page_size")?;
    let sessions = sessions(&transaction)?;
    Ok(Stats {
        path: path.map(Into::into),
        file_bytes: match path {
            Some(path) => length(path) + length(&beside(path, "-wal")),
            None => pragma("page_count")? * page_bytes,
        },
        free_bytes: pragma("freelist_count")? * page_bytes,
        disk_free_bytes: path.and_then(Path::parent).and_then(disk_free_bytes),
        format: transaction.pragma_query_value(None, "user_version", |row| row.get(0))?,
        items: sessions.iter().map(|session| session.items).sum(),
        turns: sessions.iter().map(|session| session.turns).sum(),
        sessions,
    })
}

fn sessions(connection: &Connection) -> Outcome<Vec<SessionStats>> {
    let mut statement = cached(
        connection,
        "SELECT session.name, session.items, count(turn.status), session.bytes, min(turn.started_at),
         max(coalesce(turn.ended_at, turn.started_at))
         FROM session LEFT JOIN turn ON turn.session = session.id WHERE session.name IS NOT NULL
         GROUP BY session.id ORDER BY session.bytes DESC, session.id",
    )?;
    let mut rows = statement.query([])?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next()? {
        sessions.push(SessionStats {
            session: id::<SessionId>(row, 0)?,
            items: number(row, 1)?,
            turns: number(row, 2)?,
            said_bytes: number(row, 3)?,
            first_at: row.get::<_, Option<i64>>(4)?.map(Timestamp::from_unix_ms),
            last_at: row.get::<_, Option<i64>>(5)?.map(Timestamp::from_unix_ms),
        });
    }
    Ok(sessions)
}

fn disk_free_bytes(directory: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(directory).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}
