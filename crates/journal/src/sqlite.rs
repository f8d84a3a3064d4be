//! The journal in SQLite: a file, or the same tables in memory.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;

use async_trait::async_trait;
use protocol::{ItemId, SessionId, Timestamp};
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use crate::check::{self, Depth};
use crate::error::{FailureKind, JournalError};
use crate::failure::Failure;
use crate::open::{self, Opened};
use crate::readers::Readers;
use crate::record::{
    Batch, CheckReport, Health, Page, Pruned, Read, RowId, SessionHead, SessionKey, SettledItem, Stats, StoredItem,
    TurnOutline,
};
use crate::writer::{Answer, Command, Waiting, Writer};
use crate::{Journal, outline, page, session_row, stats};

/// Requests that may wait for the writer. A session has one batch in flight at most, so this is far above what can
/// wait; beyond it a request fails at once.
const QUEUE_MAX: usize = 4096;

/// What a journal in memory keeps of one session. Beyond it the oldest items go.
const MEMORY_SESSION_BYTES_MAX: i64 = 128 << 20;

/// Clones share the writer and the readers.
#[derive(Clone)]
pub struct SqliteJournal {
    shared: Arc<Shared>,
}

struct Shared {
    id: String,
    path: Option<PathBuf>,
    commands: SyncSender<Command>,
    /// None for a journal in memory, which its writer reads.
    readers: Option<Readers>,
    settled: watch::Receiver<RowId>,
    health: watch::Receiver<Health>,
}

/// A journal that was opened, and what its user should know about it.
#[derive(Debug)]
pub struct OpenedJournal {
    pub journal: SqliteJournal,
    pub notices: Vec<String>,
}

impl SqliteJournal {
    /// Opens `journal.db` in the data directory, or makes it. A damaged file is set aside and named in the notices.
    pub fn open(data_dir: &Path) -> Result<OpenedJournal, JournalError> {
        let path = open::file(data_dir);
        let (opened, notices) = open::open(&path)?;
        Ok(OpenedJournal { journal: Self::start(opened, Some(path), None)?, notices })
    }

    /// A journal that is gone with the process.
    pub fn in_memory() -> Result<Self, JournalError> {
        Self::in_memory_up_to(MEMORY_SESSION_BYTES_MAX)
    }

    /// Like [`Self::in_memory`], with another limit for what is kept of each session.
    pub fn in_memory_up_to(session_bytes_max: i64) -> Result<Self, JournalError> {
        Self::start(open::in_memory()?, None, Some(session_bytes_max))
    }

    fn start(opened: Opened, path: Option<PathBuf>, session_bytes_max: Option<i64>) -> Result<Self, JournalError> {
        let Opened { connection, journal_id, last_row } = opened;
        let (commands, queue) = sync_channel(QUEUE_MAX);
        let (settled, settled_news) = watch::channel(last_row);
        let (health, health_news) = watch::channel(Health::Writing);
        let writer = Writer {
            connection,
            path: path.clone(),
            session_bytes_max,
            commands: queue,
            settled,
            health,
            next: VecDeque::new(),
            unsynced_since: None,
        };
        thread::Builder::new().name("journal".into()).spawn(move || writer.run()).map_err(|error| {
            JournalError::Open { kind: FailureKind::Other, detail: format!("its thread did not start: {error}") }
        })?;
        let shared = Shared {
            id: journal_id,
            readers: path.clone().map(Readers::new),
            path,
            commands,
            settled: settled_news,
            health: health_news,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Hands a request to the writer and waits for the answer.
    async fn ask<T>(&self, command: impl FnOnce(Answer<T>) -> Command) -> Result<T, JournalError> {
        let (answer, answered) = oneshot::channel();
        self.shared.commands.try_send(command(answer)).map_err(|error| not_taken(&error))?;
        answered.await.unwrap_or(Err(JournalError::Closed))
    }

    async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        match &self.shared.readers {
            Some(readers) => readers.run(work).await,
            None => {
                self.ask(|answer| {
                    Command::Read(Box::new(move |connection| {
                        answer.send(work(connection)).ok();
                    }))
                })
                .await
            }
        }
    }
}

fn not_taken(error: &TrySendError<Command>) -> JournalError {
    match error {
        TrySendError::Disconnected(_) => JournalError::Closed,
        TrySendError::Full(_) => {
            JournalError::Write { kind: FailureKind::Other, detail: "too many requests wait for the disk".into() }
        }
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    fn id(&self) -> &str {
        &self.shared.id
    }

    fn is_durable(&self) -> bool {
        self.shared.path.is_some()
    }

    async fn take_over(&self, session: &SessionId) -> Result<SessionHead, JournalError> {
        let session = session.clone();
        self.ask(|answer| Command::TakeOver { session, answer }).await
    }

    async fn find(&self, session: &SessionId) -> Result<Option<SessionHead>, JournalError> {
        let session = session.clone();
        self.look(move |connection| {
            let found = connection.unchecked_transaction().map_err(Failure::from);
            found.and_then(|transaction| session_row::find(&transaction, &session)).map_err(|failure| failure.on_read())
        })
        .await
    }

    fn append(&self, batch: Batch) -> oneshot::Receiver<Result<(), JournalError>> {
        let (answer, answered) = oneshot::channel();
        if let Err(error) = self.shared.commands.try_send(Command::Append(Box::new(Waiting { batch, answer }))) {
            let refused = not_taken(&error);
            let (TrySendError::Full(command) | TrySendError::Disconnected(command)) = error;
            if let Command::Append(waiting) = command {
                waiting.answer.send(Err(refused)).ok();
            }
        }
        answered
    }

    async fn read(&self, session: SessionKey, read: Read) -> Result<Page, JournalError> {
        self.look(move |connection| page::read(connection, session, &read)).await
    }

    async fn item(&self, session: SessionKey, item: &ItemId) -> Result<Option<StoredItem>, JournalError> {
        let item = item.clone();
        self.look(move |connection| page::item(connection, session, &item).map_err(|failure| failure.on_read())).await
    }

    async fn outline(&self, session: SessionKey) -> Result<Vec<TurnOutline>, JournalError> {
        self.look(move |connection| outline::outline(connection, session).map_err(|failure| failure.on_read())).await
    }

    fn follow(&self) -> watch::Receiver<RowId> {
        self.shared.settled.clone()
    }

    async fn settled_after(&self, row: RowId, limit: usize) -> Result<Vec<SettledItem>, JournalError> {
        self.look(move |connection| page::settled_after(connection, row, limit).map_err(|failure| failure.on_read()))
            .await
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.shared.health.clone()
    }

    async fn delete(&self, session: &SessionId) -> Result<(), JournalError> {
        let session = session.clone();
        self.ask(|answer| Command::Delete { session, answer }).await
    }

    async fn prune(&self, before: Timestamp) -> Result<Pruned, JournalError> {
        self.ask(|answer| Command::Prune { before, answer }).await
    }

    async fn stats(&self) -> Result<Stats, JournalError> {
        let path = self.shared.path.clone();
        self.look(move |connection| stats::stats(connection, path.as_deref()).map_err(|failure| failure.on_read()))
            .await
    }

    async fn check(&self) -> Result<CheckReport, JournalError> {
        self.look(move |connection| check::check(connection, Depth::Whole).map_err(|failure| failure.on_read())).await
    }

    async fn close(&self) {
        if let Some(readers) = &self.shared.readers {
            readers.close().await;
        }
        let (closed, is_closed) = oneshot::channel();
        if let Err(TrySendError::Full(close)) = self.shared.commands.try_send(Command::Close(closed)) {
            let commands = self.shared.commands.clone();
            tokio::task::spawn_blocking(move || commands.send(close)).await.ok();
        }
        // Closed before: the answer is dropped with the request.
        is_closed.await.ok();
    }
}

impl fmt::Debug for SqliteJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteJournal").field("id", &self.shared.id).field("path", &self.shared.path).finish()
    }
}
