//! What SQLite's errors mean for whoever asked.

use rusqlite::ErrorCode;
use rusqlite::ffi;

use crate::error::{FailureKind, JournalError};

/// Why a piece of work inside the journal failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Sqlite(rusqlite::Error),
    /// The request contradicts what is recorded. The file is well.
    Refused(String),
    /// A row says what it cannot mean.
    Unreadable(String),
}

pub(crate) type Outcome<T> = Result<T, Failure>;

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Failure {
    pub(crate) fn kind(&self) -> FailureKind {
        match self {
            Self::Sqlite(error) => kind(error),
            Self::Refused(_) => FailureKind::Other,
            Self::Unreadable(_) => FailureKind::Damaged,
        }
    }

    /// The file or its disk is the reason, so other batches will fail as well.
    pub(crate) fn is_of_the_file(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }

    pub(crate) fn detail(&self) -> String {
        match self {
            Self::Sqlite(error) => detail(error),
            Self::Refused(reason) => reason.clone(),
            Self::Unreadable(what) => {
                format!("{what}: the file is damaged; `liminal-builder journal check` tells how much of it")
            }
        }
    }

    pub(crate) fn on_write(&self) -> JournalError {
        JournalError::Write { kind: self.kind(), detail: self.detail() }
    }

    pub(crate) fn on_read(&self) -> JournalError {
        JournalError::Read { kind: self.kind(), detail: self.detail() }
    }
}

pub(crate) fn kind(error: &rusqlite::Error) -> FailureKind {
    match error {
        rusqlite::Error::SqliteFailure(error, _) => match error.code {
            ErrorCode::DiskFull => FailureKind::DiskFull,
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => FailureKind::ReadOnly,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => FailureKind::Locked,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => FailureKind::Damaged,
            ErrorCode::SystemIoFailure => match error.extended_code {
                // A write into the file cache is refused by a quota or a size limit, hardly ever by broken hardware:
                // that shows when the file is synced.
                ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE => FailureKind::DiskFull,
                ffi::SQLITE_IOERR_SHORT_READ | ffi::SQLITE_IOERR_CORRUPTFS => FailureKind::Damaged,
                _ => FailureKind::Other,
            },
            _ => FailureKind::Other,
        },
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..) => FailureKind::Damaged,
        _ => FailureKind::Other,
    }
}

pub(crate) fn detail(error: &rusqlite::Error) -> String {
    match kind(error) {
        FailureKind::DiskFull => format!("there is no room on its disk; free some ({error})"),
        FailureKind::ReadOnly => format!("the file or its directory is read-only; allow writing to it ({error})"),
        FailureKind::Locked => format!("another program holds the file; end that program ({error})"),
        FailureKind::Damaged => {
            format!("the file is damaged; `liminal-builder journal check` tells how much of it ({error})")
        }
        FailureKind::Other => error.to_string(),
    }
}
