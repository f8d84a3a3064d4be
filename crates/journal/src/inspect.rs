//! Looks at a journal without a server. Never creates, changes or removes the journal.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::check::{self, Depth};
use crate::error::{FailureKind, JournalError};
use crate::failure::Failure;
use crate::open::{self, beside};
use crate::record::{CheckReport, Stats};
use crate::schema::{self, FORMAT, Found};
use crate::stats;

/// What is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    pub path: PathBuf,
    /// None: there is no journal yet.
    pub stats: Option<Stats>,
    /// Damaged journals that were set aside, oldest first. Their text is still in them.
    pub set_aside: Vec<PathBuf>,
}

/// What the data directory holds.
pub fn inspect(data_dir: &Path) -> Result<Inspection, JournalError> {
    let path = open::file(data_dir);
    let stats = match connect(&path)? {
        Some(connection) => Some(stats::stats(&connection, Some(&path)).map_err(|failure| failure.on_read())?),
        None => None,
    };
    Ok(Inspection { path, stats, set_aside: set_aside(data_dir) })
}

/// Reads the file and reports what is damaged. None: there is no journal yet.
pub fn check_file(data_dir: &Path, depth: Depth) -> Result<Option<CheckReport>, JournalError> {
    let Some(connection) = connect(&open::file(data_dir))? else { return Ok(None) };
    check::check(&connection, depth).map(Some).map_err(|failure| failure.on_read())
}

/// Damaged journals that were set aside, oldest first.
pub fn set_aside(data_dir: &Path) -> Vec<PathBuf> {
    let prefix = format!("{}.damaged-", open::FILE_NAME);
    let mut found: Vec<PathBuf> = fs::read_dir(data_dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with(&prefix) && !name.ends_with("-wal") && !name.ends_with("-shm")
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

fn connect(path: &Path) -> Result<Option<Connection>, JournalError> {
    if !path.exists() || (open::length(path) == 0 && open::length(&beside(path, "-wal")) == 0) {
        return Ok(None);
    }
    let failed = |error: rusqlite::Error| {
        let failure = Failure::from(error);
        JournalError::Open { kind: failure.kind(), detail: failure.detail() }
    };
    let connection = if beside(path, "-wal").exists() {
        open::reader(path).map_err(failed)?
    } else {
        // Nobody has it open: without this, SQLite would make files beside it.
        still(path).map_err(failed)?
    };
    match schema::look(&connection).map_err(failed)? {
        Found::Journal { format } if format > FORMAT => {
            Err(JournalError::NewerVersion { path: path.into(), found: format, known: FORMAT })
        }
        Found::Journal { .. } => Ok(Some(connection)),
        Found::Empty => Ok(None),
        Found::Foreign(why) => Err(JournalError::Open { kind: FailureKind::Damaged, detail: why }),
    }
}

/// Opens a file that does not change while it is open.
fn still(path: &Path) -> rusqlite::Result<Connection> {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri, flags)?;
    connection.execute_batch(open::READER_PRAGMAS)?;
    Ok(connection)
}
