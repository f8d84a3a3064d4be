//! The format of the file: its tables, its version, and the steps from an older version.

use protocol::Timestamp;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::record::RowId;

/// One step per format, oldest first. A released step is never changed.
const MIGRATIONS: [&str; 1] = [include_str!("format_1.sql")];

/// The format that this version writes, kept in `user_version`.
pub(crate) const FORMAT: i64 = MIGRATIONS.len() as i64;

/// Marks a file as ours ("LBjl"), kept in `application_id`.
const APPLICATION_ID: i64 = 0x4c42_6a6c;

const TABLES: [&str; 8] = ["meta", "session", "facts", "epoch", "turn", "item", "open_item", "open_text"];

/// What a file is, as far as its first pages say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing was written yet.
    Empty,
    Journal {
        format: i64,
    },
    /// A database, but none of ours, or one that lacks a table.
    Foreign(String),
}

pub(crate) fn look(connection: &Connection) -> rusqlite::Result<Found> {
    let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    let names = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    if format > FORMAT {
        return Ok(Found::Journal { format });
    }
    if format <= 0 {
        return Ok(if names.is_empty() { Found::Empty } else { Found::Foreign("it is another database".into()) });
    }
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if application != APPLICATION_ID {
        return Ok(Found::Foreign("it is another database".into()));
    }
    match TABLES.iter().find(|table| !names.iter().any(|name| name == *table)) {
        Some(missing) => Ok(Found::Foreign(format!("the table {missing} is missing"))),
        None => Ok(Found::Journal { format }),
    }
}

/// Brings the file to [`FORMAT`], each step in a transaction of its own.
pub(crate) fn migrate(connection: &mut Connection, from: i64) -> rusqlite::Result<()> {
    let done = usize::try_from(from).unwrap_or(0);
    for (index, step) in MIGRATIONS.iter().enumerate().skip(done) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        if index == 0 {
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            let now = Timestamp::from(std::time::SystemTime::now()).unix_ms().to_string();
            let id = uuid::Uuid::new_v4().to_string();
            let mut insert = transaction.prepare("INSERT INTO meta (key, value) VALUES (?1, ?2)")?;
            insert.execute(["journal_id", &id])?;
            insert.execute(["created_at", &now])?;
        }
        transaction.pragma_update(None, "user_version", (index + 1) as i64)?;
        transaction.commit()?;
    }
    Ok(())
}

/// None: the file has no id, which no journal of ours lacks.
pub(crate) fn journal_id(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT value FROM meta WHERE key = 'journal_id'", [], |row| row.get(0)).optional()
}

/// The row that was settled last, also if it is gone.
pub(crate) fn last_row(connection: &Connection) -> rusqlite::Result<RowId> {
    let sql = "SELECT max(ifnull((SELECT max(seq) FROM sqlite_sequence WHERE name = 'item'), 0),
        ifnull((SELECT max(id) FROM item), 0))";
    connection.query_row(sql, [], |row| row.get(0)).map(RowId)
}
