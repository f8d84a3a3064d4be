//! Connections that read, beside the one that writes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::error::{FailureKind, JournalError};
use crate::failure::Failure;
use crate::open;

/// Each holds about a megabyte of pages.
const CONNECTIONS_MAX: usize = 2;

#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    permits: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, permits: Arc::new(Semaphore::new(CONNECTIONS_MAX)), idle: Arc::default() }
    }

    /// Runs a short piece of work on a connection of its own.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| JournalError::Closed)?;
        let (path, idle) = (self.path.clone(), Arc::clone(&self.idle));
        let done = tokio::task::spawn_blocking(move || {
            // Held by the work itself: whoever waits for it may be gone before it ends.
            let _permit = permit;
            let kept = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = match kept {
                Some(connection) => connection,
                None => open::reader(&path).map_err(|error| Failure::from(error).on_read())?,
            };
            let answer = work(&connection);
            // After damage the pages it holds are not to be trusted.
            let is_sound = answer.as_ref().err().is_none_or(|error| error.kind() != FailureKind::Damaged);
            if is_sound && connection.is_autocommit() {
                idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            }
            answer
        });
        done.await.unwrap_or_else(|error| {
            let detail = format!("the reader stopped: {error}");
            Err(JournalError::Read { kind: FailureKind::Other, detail })
        })
    }

    /// Waits for those at work, then closes all.
    pub(crate) async fn close(&self) {
        let all = self.permits.acquire_many(CONNECTIONS_MAX as u32).await;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.permits.close();
        drop(all);
    }
}
