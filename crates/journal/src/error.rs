//! Why the journal could not be opened, read or written.

use std::path::PathBuf;

use protocol::ItemId;

/// What kind of failure stops the journal from writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    DiskFull,
    ReadOnly,
    /// Another process holds the file.
    Locked,
    Damaged,
    Other,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    #[error(
        "the journal at {path} was written by a newer version of Liminal Builder (format {found}, this one reads up to {known})"
    )]
    NewerVersion { path: PathBuf, found: i64, known: i64 },
    #[error("the journal could not be opened: {detail}")]
    Open { kind: FailureKind, detail: String },
    #[error("the journal could not be written: {detail}")]
    Write { kind: FailureKind, detail: String },
    #[error("the journal could not be read: {detail}")]
    Read { kind: FailureKind, detail: String },
    #[error("the journal has no item {0}")]
    UnknownItem(ItemId),
    #[error("the journal is closed")]
    Closed,
}

impl JournalError {
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Open { kind, .. } | Self::Write { kind, .. } | Self::Read { kind, .. } => *kind,
            Self::NewerVersion { .. } | Self::UnknownItem(_) | Self::Closed => FailureKind::Other,
        }
    }
}
