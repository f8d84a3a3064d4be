//! One server per data directory.
//!
//! The lock is the kernel's, on an open file, so it is gone the moment its holder is, however that came about. The file's
//! text is for the one who comes second: it names the first.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::directory::DataDirectory;
use crate::error::{CatalogError, LockHolder};

const LOCK_FILE: &str = "lock";
/// Far more than a process id and an address need.
const LOCK_BYTES_MAX: u64 = 4096;

/// A visit takes microseconds. So many in a row are no visits.
const VISITS_MAX: u32 = 5;
const VISIT_TIME: Duration = Duration::from_millis(10);

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
        match take_exclusive(&file) {
            Ok(()) => {
                let lock = Self { file };
                lock.write_address(None);
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
    pub(crate) fn write_address(&self, address: Option<&str>) {
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

/// A visitor holds the lock for the moment in which it looks (see [`holder_of`]); it is not in the way.
fn take_exclusive(file: &File) -> Result<(), Errno> {
    for _ in 0..VISITS_MAX {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {}
            answer => return answer,
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "the kernel notifies nobody when a lock is released, short of waiting for it without end"
        )]
        std::thread::sleep(VISIT_TIME);
    }
    flock(file, FlockOperation::NonBlockingLockExclusive)
}

/// Who holds the directory. Nobody does if the lock can be had, whatever the file still says.
pub(crate) fn holder_of(directory: &DataDirectory) -> Result<Option<LockHolder>, CatalogError> {
    let path = directory.file(LOCK_FILE);
    let storage = |error| CatalogError::storage(&path, error);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(storage(error)),
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            // Closing the file would do it too; this is sooner.
            flock(&file, FlockOperation::Unlock).map_err(|error| storage(error.into()))?;
            Ok(None)
        }
        Err(Errno::WOULDBLOCK) => Ok(Some(holder(&file))),
        Err(error) => Err(storage(error.into())),
    }
}

fn holder(file: &File) -> LockHolder {
    let mut text = Vec::new();
    match file.take(LOCK_BYTES_MAX).read_to_end(&mut text) {
        // Whatever follows the first line is the remainder of an older, longer text that is just being replaced.
        Ok(_) => {
            serde_json::Deserializer::from_slice(&text).into_iter().next().and_then(Result::ok).unwrap_or_default()
        }
        Err(_) => LockHolder::default(),
    }
}
