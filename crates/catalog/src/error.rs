//! Why a call to the catalog failed, in terms of the catalog.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::{ErrorCode, ProjectId, SessionId};

use crate::owner::UserName;

/// A variant exists because some caller acts on it. `Clone`, because one failed write answers every change in it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("not a directory that can be read: {0}")]
    PathInvalid(String),
    #[error("{0} is a project already")]
    Duplicate(String),
    #[error("no project {0}")]
    ProjectNotFound(ProjectId),
    #[error("no session {0}")]
    SessionNotFound(SessionId),
    #[error("there is a session {0} already")]
    SessionExists(SessionId),
    /// A command line of the settings, and why it is none.
    #[error("{field}: {reason}")]
    CommandInvalid { field: &'static str, reason: String },
    #[error("{} was changed since it was read", .path.display())]
    AgentsFileChanged { path: PathBuf },
    /// It is not replaced, and why.
    #[error("{}: {reason}", .path.display())]
    AgentsFileUnusable { path: PathBuf, reason: String },
    #[error("could not read or write {}", .path.display())]
    Storage {
        path: PathBuf,
        #[source]
        source: Arc<io::Error>,
    },
    #[error(
        "{} was written by a newer Liminal Builder (file version {version}, this one knows {known}); nothing was changed, \
         please use the newer one",
        .file.display()
    )]
    NewerVersion { file: PathBuf, version: String, known: u64 },
    #[error("the data directory {} is in use by {by}", .dir.display())]
    Locked { dir: PathBuf, by: LockHolder },
    #[error("the data directory {} belongs to {owner}, and this program runs as {user}", .dir.display())]
    OtherOwner { dir: PathBuf, owner: UserName, user: UserName },
    #[error("the data directory {} can be written to by other users of this machine (mode {mode:o})", .dir.display())]
    WritableByOthers { dir: PathBuf, mode: u32 },
    #[error("the catalog has stopped")]
    Stopped,
}

impl CatalogError {
    /// Exhaustive on purpose: a new variant has to choose its wire code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::PathInvalid(_) => ErrorCode::ProjectPathInvalid,
            Self::Duplicate(_) => ErrorCode::ProjectDuplicate,
            Self::ProjectNotFound(_) => ErrorCode::ProjectNotFound,
            Self::SessionNotFound(_) => ErrorCode::SessionNotFound,
            Self::CommandInvalid { .. } => ErrorCode::InvalidMessage,
            Self::SessionExists(_) => ErrorCode::SessionCreateFailed,
            Self::AgentsFileChanged { .. } => ErrorCode::AgentsFileChanged,
            Self::AgentsFileUnusable { .. } => ErrorCode::AgentsFileUnusable,
            Self::Storage { .. }
            | Self::NewerVersion { .. }
            | Self::Locked { .. }
            | Self::OtherOwner { .. }
            | Self::WritableByOthers { .. }
            | Self::Stopped => ErrorCode::StorageFailed,
        }
    }

    /// What the user can do about it, where there is something.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::Locked { .. } => Some("Use that one, stop it, or start with another --data-dir.".into()),
            Self::Storage { .. } => {
                Some("Check the data directory's permissions and disk, or choose another with --data-dir.".into())
            }
            Self::OtherOwner { owner, .. } => {
                Some(format!("Run it as {}, or choose another directory with --data-dir.", owner.name()))
            }
            Self::WritableByOthers { dir, .. } => {
                Some(format!("Take that right away from them: chmod go-w {}", quoted(dir)))
            }
            _ => None,
        }
    }

    pub(crate) fn storage(path: &Path, source: io::Error) -> Self {
        Self::Storage { path: path.to_owned(), source: Arc::new(source) }
    }
}

/// For a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// Who holds a data directory, as far as it has reported that.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct LockHolder {
    pub pid: Option<u32>,
    pub address: Option<String>,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another Liminal Builder")?;
        match (&self.address, self.pid) {
            (Some(address), Some(pid)) => write!(f, " at {address} (process {pid})"),
            (Some(address), None) => write!(f, " at {address}"),
            (None, Some(pid)) => write!(f, " (process {pid})"),
            (None, None) => Ok(()),
        }
    }
}
