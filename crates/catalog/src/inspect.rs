//! A look at a data directory from outside: by the command line, which talks to the server that holds it, and by
//! `doctor`. Nothing here changes or keeps anything.

use std::collections::HashMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use protocol::SessionId;
use rustix::fs::{Access, access, statvfs};

use crate::directory::DataDirectory;
use crate::error::{CatalogError, LockHolder};
use crate::files::{self, Contents, FileKind, Unreadable};
use crate::opening::FILE_BYTES_MAX;
use crate::{agents, lock, token};

/// A data directory that may not be there.
#[derive(Debug)]
pub struct Inspection {
    directory: DataDirectory,
}

/// What the directory itself is like.
#[derive(Clone, Debug)]
pub enum DirectoryState {
    Missing,
    NotADirectory,
    /// Others may look into it.
    OpenToOthers {
        mode: u32,
    },
    NotWritable,
    /// The server refuses it; the error says why.
    Refused(CatalogError),
    Good,
}

/// Whether there is room for what will be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskState {
    Good { free_bytes: u64 },
    Low { free_bytes: u64 },
    Refuses { reason: String },
}

/// Below this a disk is as good as full: agents write much more than we do.
const FREE_BYTES_LOW: u64 = 100 * 1024 * 1024;
/// As much as a list of some hundred sessions.
const PROBE_BYTES: usize = 64 * 1024;

/// How a saved list reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListState {
    Missing,
    Good { records: usize },
    PartlyUnreadable { records: usize, unreadable: usize },
    Newer { version: String },
    Damaged { reason: String },
}

/// How the secret reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenState {
    Missing,
    Good,
    OpenToOthers { mode: u32 },
    Damaged,
}

impl Inspection {
    pub fn new(dir: &Path) -> Result<Self, CatalogError> {
        Ok(Self { directory: DataDirectory::without_creating(dir)? })
    }

    pub fn dir(&self) -> &Path {
        self.directory.path()
    }

    /// Who holds the directory now. A file that a dead server left behind names nobody: the kernel's lock decides.
    pub fn server(&self) -> Result<Option<LockHolder>, CatalogError> {
        lock::holder_of(&self.directory)
    }

    /// The secret, if there is one. None is made.
    pub fn token(&self) -> Result<Option<String>, CatalogError> {
        token::known(&self.directory)
    }

    pub fn token_state(&self) -> Result<TokenState, CatalogError> {
        let path = self.directory.file(token::TOKEN_FILE);
        let mode = match fs::metadata(&path) {
            Ok(found) => found.permissions().mode() & 0o777,
            Err(error) if is_absent(&error) => return Ok(TokenState::Missing),
            Err(error) => return Err(CatalogError::storage(&path, error)),
        };
        Ok(match self.token()? {
            None => TokenState::Damaged,
            Some(_) if mode & 0o077 != 0 => TokenState::OpenToOthers { mode },
            Some(_) => TokenState::Good,
        })
    }

    pub fn directory_state(&self) -> Result<DirectoryState, CatalogError> {
        let path = self.dir();
        let found = match fs::metadata(path) {
            Ok(found) => found,
            Err(error) if is_absent(&error) => return Ok(DirectoryState::Missing),
            Err(error) => return Err(CatalogError::storage(path, error)),
        };
        let mode = found.permissions().mode() & 0o777;
        Ok(if !found.is_dir() {
            DirectoryState::NotADirectory
        } else if let Err(refused) = self.directory.check_owner() {
            DirectoryState::Refused(refused)
        } else if access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_err() {
            DirectoryState::NotWritable
        } else if mode & 0o077 != 0 {
            DirectoryState::OpenToOthers { mode }
        } else {
            DirectoryState::Good
        })
    }

    /// Asks the file system, and where the directory is there, writes to a file without a name, which is gone at once.
    pub fn disk_state(&self) -> Result<DiskState, CatalogError> {
        let there = self.dir().ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/"));
        let disk = statvfs(there).map_err(|error| CatalogError::storage(there, error.into()))?;
        let free_bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
        if there == self.dir() {
            let written = tempfile::tempfile_in(there)
                .and_then(|mut file| file.write_all(&[0; PROBE_BYTES]).and_then(|()| file.sync_data()));
            if let Err(error) = written {
                return Ok(DiskState::Refuses { reason: error.to_string() });
            }
        }
        Ok(match free_bytes < FREE_BYTES_LOW {
            true => DiskState::Low { free_bytes },
            false => DiskState::Good { free_bytes },
        })
    }

    pub fn projects(&self) -> Result<ListState, CatalogError> {
        self.list(FileKind::Projects, files::parse_projects)
    }

    pub fn sessions(&self) -> Result<ListState, CatalogError> {
        self.list(FileKind::Sessions, files::parse_sessions)
    }

    /// The titles of all sessions that can be read.
    pub fn titles(&self) -> HashMap<SessionId, String> {
        let bytes = self.directory.read(FileKind::Sessions.name(), FILE_BYTES_MAX).ok().flatten().unwrap_or_default();
        let sessions = files::parse_sessions(&bytes).map(|contents| contents.records).unwrap_or_default();
        sessions.into_iter().map(|record| (record.id, record.title)).collect()
    }

    /// As [`crate::Catalog::agents_file`].
    pub fn agents_file(&self) -> Result<Option<String>, CatalogError> {
        agents::read(&self.directory)
    }

    /// Where a file of this directory is.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.file(name)
    }

    fn list<R>(
        &self,
        kind: FileKind,
        parse: fn(&[u8]) -> Result<Contents<R>, Unreadable>,
    ) -> Result<ListState, CatalogError> {
        let Some(bytes) = self.directory.read(kind.name(), FILE_BYTES_MAX)? else { return Ok(ListState::Missing) };
        Ok(match parse(&bytes) {
            Ok(contents) if contents.unreadable.is_empty() => ListState::Good { records: contents.records.len() },
            Ok(contents) => {
                ListState::PartlyUnreadable { records: contents.records.len(), unreadable: contents.unreadable.len() }
            }
            Err(Unreadable::Newer(version)) => ListState::Newer { version },
            Err(Unreadable::Damaged(reason)) => ListState::Damaged { reason },
        })
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
