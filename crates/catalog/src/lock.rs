//! One server per data directory.
//!
//! The lock is the kernel's, on an open file, so it is gone the moment its holder is, however that came about. The file's
//! text is for the one who comes second: it names the first.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::directory::DataDirectory;
use crate::error::{CatalogError, LockHolder};

const LOCK_FILE: &str = "lock";
/// Far more than a process id and an address need.
const LOCK_BYTES_MAX: u64 = 4096;

#[derive(Debug)]
pub(crate) struct DirectoryLock {
    file: File,
}

impl DirectoryLock {
    pub(crate) fn take(directory: &DataDirectory) -> Result<Self, CatalogError> {
        let path = directory.file(LOCK_FILE);
        let storage = |error| CatalogError::storage(&path, error);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(storage)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                let lock = Self { file };
                lock.say(None);
                Ok(lock)
            }
            Err(Errno::WOULDBLOCK) => {
                let by = holder(&file);
                Err(CatalogError::Locked { dir: directory.path().to_owned(), by })
            }
            Err(error) => Err(storage(error.into())),
        }
    }

    /// Names us to whoever comes second. Failing to is no reason to stop: the lock holds without it.
    pub(crate) fn say(&self, address: Option<&str>) {
        let holder = LockHolder { pid: Some(std::process::id()), address: address.map(Into::into) };
        let written = serde_json::to_vec(&holder).map_err(io::Error::from).and_then(|mut text| {
            text.push(b'\n');
            // In this order a reader never finds it empty.
            self.file.write_all_at(&text, 0)?;
            self.file.set_len(text.len() as u64)
        });
        if let Err(error) = written {
            tracing::warn!(%error, "could not write our address into the lock file");
        }
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Closing alone is not enough: a child that is being started this moment holds a copy of the file until it runs
        // its own program.
        if let Err(error) = flock(&self.file, FlockOperation::Unlock) {
            tracing::debug!(%error, "could not unlock the data directory");
        }
    }
}

fn holder(file: &File) -> LockHolder {
    let mut text = Vec::new();
    match file.take(LOCK_BYTES_MAX).read_to_end(&mut text) {
        // Whatever follows the first line is the rest of an older, longer text that is just being replaced.
        Ok(_) => {
            serde_json::Deserializer::from_slice(&text).into_iter().next().and_then(Result::ok).unwrap_or_default()
        }
        Err(_) => LockHolder::default(),
    }
}
