//! Why a call to the catalog failed, in the words of the catalog.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::{ErrorCode, ProjectId, SessionId};

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
            Self::SessionExists(_) => ErrorCode::SessionCreateFailed,
            Self::Storage { .. } | Self::NewerVersion { .. } | Self::Locked { .. } | Self::Stopped => {
                ErrorCode::StorageFailed
            }
        }
    }

    pub(crate) fn storage(path: &Path, source: io::Error) -> Self {
        Self::Storage { path: path.to_owned(), source: Arc::new(source) }
    }
}

/// Who holds a data directory, as far as it has said so.
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
