//! Opens the file, makes a new one, or sets a damaged one aside.
//!
//! A file that cannot be used is never overwritten and never deleted: it is refused, or renamed and reported.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use protocol::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags};

use crate::error::{FailureKind, JournalError};
use crate::failure::{detail, kind};
use crate::record::RowId;
use crate::schema::{self, FORMAT, Found};

pub(crate) const FILE_NAME: &str = "journal.db";

/// How long to wait for a lock that a short look of another program holds.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_millis(500);

/// Enough for all statements of a connection.
const STATEMENTS_MAX: usize = 64;

/// Checkpoints come with four megabytes of log: larger ones stall the writer longer.
const WRITER_PRAGMAS: &str = "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 500;
    PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -2048; PRAGMA mmap_size = 0;
    PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
    PRAGMA secure_delete = ON; PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF;";

pub(crate) const READER_PRAGMAS: &str = "PRAGMA query_only = ON; PRAGMA cache_size = -1024; PRAGMA mmap_size = 0;
    PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF;";

/// A connection that may write, with the id of its journal.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    pub(crate) journal_id: String,
    pub(crate) last_row: RowId,
}

/// Why a file cannot be used.
enum Unusable {
    /// Set it aside.
    Damaged(String),
    /// Leave it as it is.
    Refused(JournalError),
}

impl From<rusqlite::Error> for Unusable {
    fn from(error: rusqlite::Error) -> Self {
        match kind(&error) {
            FailureKind::Damaged => Self::Damaged(error.to_string()),
            kind => Self::Refused(JournalError::Open { kind, detail: detail(&error) }),
        }
    }
}

pub(crate) fn file(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE_NAME)
}

/// SQLite's own name for a file beside the database: `-wal` or `-shm`.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

pub(crate) fn open(path: &Path) -> Result<(Opened, Vec<String>), JournalError> {
    let why = match try_open(path) {
        Ok(opened) => return Ok((opened, Vec::new())),
        Err(Unusable::Refused(error)) => return Err(error),
        Err(Unusable::Damaged(why)) => why,
    };
    let aside = set_aside(path)?;
    tracing::warn!(file = %aside.display(), why, "the journal is damaged and was set aside");
    let notice = format!(
        "The journal was damaged ({why}). It was set aside as {}, and a new one was begun. Histories are read from the \
         agents again where they keep them.",
        aside.display()
    );
    match try_open(path) {
        Ok(opened) => Ok((opened, vec![notice])),
        Err(Unusable::Refused(error)) => Err(error),
        Err(Unusable::Damaged(why)) => Err(JournalError::Open { kind: FailureKind::Damaged, detail: why }),
    }
}

fn try_open(path: &Path) -> Result<Opened, Unusable> {
    create(path).map_err(|error| Unusable::Refused(not_opened(path, &error)))?;
    // SQLite deletes the log of an empty file; the log may be all that is left of the journal.
    if length(path) == 0 && length(&beside(path, "-wal")) > 0 {
        return Err(Unusable::Damaged("the file is empty, but its write-ahead log is not".into()));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)
        .map_err(|error| Unusable::Refused(JournalError::Open { kind: kind(&error), detail: detail(&error) }))?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Until we know that the file is ours, closing it must not change it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let found = schema::look(&connection).map_err(|error| unreadable(path, error))?;
    let format = match found {
        Found::Foreign(why) => return Err(Unusable::Damaged(why)),
        Found::Journal { format } if format > FORMAT => {
            let error = JournalError::NewerVersion { path: path.into(), found: format, known: FORMAT };
            return Err(Unusable::Refused(error));
        }
        Found::Journal { format } => format,
        Found::Empty => 0,
    };
    if connection.is_readonly(MAIN_DB)? {
        let detail = format!("{} is read-only; allow writing to it", path.display());
        return Err(Unusable::Refused(JournalError::Open { kind: FailureKind::ReadOnly, detail }));
    }
    if format == 0 {
        // Two items of some kilobytes leave much of a page of 4096 bytes empty.
        connection.execute_batch("PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL;")?;
    }
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(|error| unreadable(path, error))?;
    if !mode.eq_ignore_ascii_case("wal") {
        let detail = format!("the disk of {} does not allow a write-ahead log; use a local disk", path.display());
        return Err(Unusable::Refused(JournalError::Open { kind: FailureKind::Other, detail }));
    }
    connection.execute_batch(WRITER_PRAGMAS)?;
    if format < FORMAT {
        // A migration must be whole on the disk before anything relies on it.
        connection.pragma_update(None, "synchronous", "FULL")?;
        schema::migrate(&mut connection, format)?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        if let Some(directory) = path.parent() {
            fs::File::open(directory).and_then(|directory| directory.sync_all()).ok();
        }
    }
    let journal_id = schema::journal_id(&connection)?.ok_or_else(|| Unusable::Damaged("it has no id".into()))?;
    let last_row = schema::last_row(&connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(Opened { connection, journal_id, last_row })
}

/// A journal that is gone with the process.
pub(crate) fn in_memory() -> Result<Opened, JournalError> {
    let failed = |error: rusqlite::Error| JournalError::Open { kind: kind(&error), detail: error.to_string() };
    let mut connection = Connection::open_in_memory().map_err(failed)?;
    connection.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA temp_store = MEMORY;").map_err(failed)?;
    schema::migrate(&mut connection, 0).map_err(failed)?;
    let journal_id = schema::journal_id(&connection).map_err(failed)?.unwrap_or_default();
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(Opened { connection, journal_id, last_row: RowId(0) })
}

/// A connection that cannot write.
pub(crate) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.execute_batch(READER_PRAGMAS)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

/// Makes an empty file that only its owner may read. SQLite gives the files beside it the same mode.
fn create(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let own = fs::metadata(path)?.permissions().mode() & 0o700;
            // Files beside it that were made while it was read-only are read-only, too.
            for file in [path.to_owned(), beside(path, "-wal"), beside(path, "-shm")] {
                let Ok(found) = fs::metadata(&file) else { continue };
                if found.is_file() && found.permissions().mode() & 0o777 != own {
                    fs::set_permissions(&file, fs::Permissions::from_mode(own)).ok();
                }
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn not_opened(path: &Path, error: &io::Error) -> JournalError {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => FailureKind::ReadOnly,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FailureKind::DiskFull,
        _ => FailureKind::Other,
    };
    JournalError::Open { kind, detail: format!("{}: {error}", path.display()) }
}

/// A file that SQLite cannot begin to read. Where the directory is read-only, that is the reason.
fn unreadable(path: &Path, error: rusqlite::Error) -> Unusable {
    let writable = path.parent().is_some_and(|directory| {
        rustix::fs::access(directory, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
    });
    match kind(&error) {
        FailureKind::Other if !writable => {
            let detail = format!("the directory of {} is read-only; allow writing to it ({error})", path.display());
            Unusable::Refused(JournalError::Open { kind: FailureKind::ReadOnly, detail })
        }
        // To read the tables' names is no mistake of ours: its header says what no file of ours says.
        _ if error.sqlite_error_code() == Some(ErrorCode::Unknown) => Unusable::Damaged(error.to_string()),
        _ => error.into(),
    }
}

pub(crate) fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

/// Renames the file and those beside it, together, to a name that nothing has.
fn set_aside(path: &Path) -> Result<PathBuf, JournalError> {
    let now = Timestamp::from(SystemTime::now()).to_string();
    let stamp: String = now.chars().filter(char::is_ascii_alphanumeric).collect();
    let mut aside = beside(path, &format!(".damaged-{stamp}"));
    let mut count = 1;
    while ["", "-wal", "-shm"].iter().any(|suffix| beside(&aside, suffix).symlink_metadata().is_ok()) {
        count += 1;
        aside = beside(path, &format!(".damaged-{stamp}-{count}"));
    }
    for suffix in ["-wal", "-shm", ""] {
        let from = beside(path, suffix);
        match fs::rename(&from, beside(&aside, suffix)) {
            Err(error) if suffix.is_empty() || error.kind() != io::ErrorKind::NotFound => {
                return Err(not_opened(&from, &error));
            }
            _ => {}
        }
    }
    Ok(aside)
}
