//! The data directory as a place for small files: bounded reads, atomic replacement, and setting aside.
//!
//! Kept out: what the files mean. Nothing here ever writes into a file that exists; a new one takes its name.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use protocol::Timestamp;

use crate::error::CatalogError;
use crate::owner;
use crate::redirect::is_redirect_file;

/// Of files that are half written. Only a crash leaves one behind, and the next start takes it away.
const TEMPORARY_SUFFIX: &str = ".liminal-tmp";
/// Only the user may read what is kept here.
const PRIVATE_FILE_MODE: u32 = 0o600;
const PRIVATE_DIRECTORY_MODE: u32 = 0o700;

#[derive(Debug)]
pub(crate) struct DataDirectory {
    path: PathBuf,
}

impl DataDirectory {
    /// Makes it, for the user alone, where it is missing. One that others own or may write to is refused: whoever can
    /// replace a file in it decides who is let in and what is started.
    pub(crate) fn open(path: &Path) -> Result<Self, CatalogError> {
        let storage = |error| CatalogError::storage(path, error);
        let path = std::path::absolute(path).map_err(storage)?;
        DirBuilder::new().recursive(true).mode(PRIVATE_DIRECTORY_MODE).create(&path).map_err(storage)?;
        let directory = Self { path };
        directory.check_owner()?;
        Ok(directory)
    }

    /// An error where others could change what is kept here. Links are followed: what counts is where they lead.
    pub(crate) fn check_owner(&self) -> Result<(), CatalogError> {
        let found = fs::metadata(&self.path).map_err(|error| CatalogError::storage(&self.path, error))?;
        owner::check(&self.path, found.uid(), found.permissions().mode(), rustix::process::geteuid().as_raw())
    }

    /// Makes nothing.
    pub(crate) fn without_creating(path: &Path) -> Result<Self, CatalogError> {
        let path = std::path::absolute(path).map_err(|error| CatalogError::storage(path, error))?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// `None` where there is no such file; an error where it is longer than `bytes_max`.
    pub(crate) fn read(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, CatalogError> {
        let path = self.file(name);
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            File::open(&path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > bytes_max {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {bytes_max} bytes")));
            }
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(CatalogError::storage(&path, error)),
        }
    }

    /// The file has its old content or, once this returns, the new one on the disk; at no moment anything between.
    ///
    /// An error means the old content, with one exception: if only the last step fails, the sync of the directory, the
    /// new content has the name already and it is open whether a power cut would take it back.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), CatalogError> {
        let replace = || -> io::Result<()> {
            let mut file = tempfile::Builder::new()
                .prefix(&format!(".{name}."))
                .suffix(TEMPORARY_SUFFIX)
                .permissions(fs::Permissions::from_mode(PRIVATE_FILE_MODE))
                .tempfile_in(&self.path)?;
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            file.persist(self.file(name))?;
            self.sync()
        };
        replace().map_err(|error| CatalogError::storage(&self.file(name), error))
    }

    /// Gives a file that cannot be used a name of its own, so that nothing overwrites it. Returns that name.
    pub(crate) fn set_aside(&self, name: &str, why: &str) -> Result<String, CatalogError> {
        let aside = self.free_name(name, why);
        fs::rename(self.file(name), self.file(&aside))
            .and_then(|()| self.sync())
            .map_err(|error| CatalogError::storage(&self.file(name), error))?;
        Ok(aside)
    }

    /// Keeps a file as it is under a second name, because the first is about to be replaced. Returns that name.
    pub(crate) fn keep_copy(&self, name: &str, why: &str) -> Result<String, CatalogError> {
        let copy = self.free_name(name, why);
        let keep = || -> io::Result<()> {
            fs::copy(self.file(name), self.file(&copy))?;
            File::open(self.file(&copy))?.sync_all()?;
            self.sync()
        };
        keep().map_err(|error| CatalogError::storage(&self.file(&copy), error))?;
        Ok(copy)
    }

    /// Takes away what a crash left half written. The caller holds the lock, so nobody is writing now. Failing to is no
    /// reason to stop: such a file is in nobody's way.
    pub(crate) fn sweep(&self) {
        let sweep = || -> io::Result<()> {
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                let name = entry.file_name();
                let is_leftover =
                    |name: &str| name.starts_with('.') && name.ends_with(TEMPORARY_SUFFIX) || is_redirect_file(name);
                if name.to_str().is_some_and(is_leftover) {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        if let Err(error) = sweep() {
            tracing::warn!(%error, "could not remove a half-written file");
        }
    }

    fn free_name(&self, name: &str, why: &str) -> String {
        let moment = Timestamp::from(SystemTime::now()).to_string();
        let seconds: String = moment.chars().take_while(|c| *c != '.').filter(|c| !matches!(c, '-' | ':')).collect();
        let plain = format!("{name}.{why}-{seconds}Z");
        let numbered = (2_u32..).map(|number| format!("{plain}-{number}"));
        std::iter::once(plain.clone())
            .chain(numbered)
            .find(|candidate| fs::symlink_metadata(self.file(candidate)).is_err())
            .unwrap_or(plain)
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}
