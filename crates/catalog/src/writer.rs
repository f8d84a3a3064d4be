//! The one writer: a thread that turns waiting changes into files.
//!
//! Comes in: changes, each with somebody waiting for the answer, and sessions that were touched. Goes out: the two files,
//! the answers, and the records that everybody reads. All changes that wait while a write is under way share the next one.
//!
//! A change becomes visible, and is confirmed, only once it is on the disk. If the write fails, the records stay as
//! they were and every change in that write gets the error. A touch is visible at once, is saved soon, and stays to be
//! saved if that fails.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use protocol::SessionId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::directory::DataDirectory;
use crate::error::CatalogError;
use crate::files::{self, FileKind};
use crate::lock::DirectoryLock;
use crate::records::{Change, Records, Touch};

/// Changes that may wait for the disk. Later callers wait for a place and hold up nobody else.
const WAITING_MAX: usize = 1024;
/// A touch is on the disk half a second later; this leaves a fifth of that for the write itself.
const TOUCH_LAG: Duration = Duration::from_millis(400);
/// Retry delay after a failed write of touches. If the disk is full, retrying twice a second does not help.
const RETRY_LAG: Duration = Duration::from_secs(5);

/// What callers and the writer share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) directory: DataDirectory,
    pub(crate) lock: DirectoryLock,
    state: Mutex<WriterState>,
    wake: Condvar,
    room: Arc<Semaphore>,
}

/// Held for moments only, and never during a write.
#[derive(Debug)]
pub(crate) struct WriterState {
    pub(crate) records: Records,
    waiting: Vec<PendingWrite>,
    touched: HashSet<SessionId>,
    /// Set while `touched` is not empty.
    touches_due: Option<Instant>,
    stopping: bool,
    /// Nobody will ever look at `waiting` again.
    stopped: bool,
}

#[derive(Debug)]
struct PendingWrite {
    request: WriteRequest,
    /// Given back when the writer takes the request, not when its caller stops waiting.
    _place: OwnedSemaphorePermit,
    answer: oneshot::Sender<Result<(), CatalogError>>,
}

#[derive(Debug)]
enum WriteRequest {
    Change(Box<Change>),
    Flush,
}

impl Shared {
    pub(crate) fn new(directory: DataDirectory, lock: DirectoryLock, records: Records) -> Self {
        let state = WriterState {
            records,
            waiting: Vec::new(),
            touched: HashSet::new(),
            touches_due: None,
            stopping: false,
            stopped: false,
        };
        Self {
            directory,
            lock,
            state: Mutex::new(state),
            wake: Condvar::new(),
            room: Arc::new(Semaphore::new(WAITING_MAX)),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, WriterState> {
        // The records are changed by whole changes only, so they are sound even if somebody panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn change(&self, change: Change) -> Result<(), CatalogError> {
        self.request(WriteRequest::Change(Box::new(change))).await
    }

    pub(crate) async fn flush(&self) -> Result<(), CatalogError> {
        self.request(WriteRequest::Flush).await
    }

    pub(crate) fn touch(&self, id: &SessionId, change: impl FnOnce(&mut Touch)) {
        let mut state = self.state();
        let Some(mut touch) = state.records.session(id).map(Touch::of) else { return };
        change(&mut touch);
        if state.records.touch(id, &touch) {
            state.touched.insert(id.clone());
            if state.touches_due.is_none() {
                state.touches_due = Some(Instant::now() + TOUCH_LAG);
                self.wake.notify_one();
            }
        }
    }

    pub(crate) fn stop(&self) {
        self.state().stopping = true;
        self.wake.notify_one();
    }

    /// Once queued, a change happens even if the caller stops waiting for the answer.
    async fn request(&self, request: WriteRequest) -> Result<(), CatalogError> {
        let place = Arc::clone(&self.room).acquire_owned().await.map_err(|_| CatalogError::Stopped)?;
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.state();
            if state.stopped {
                return Err(CatalogError::Stopped);
            }
            state.waiting.push(PendingWrite { request, _place: place, answer });
        }
        self.wake.notify_one();
        answered.await.unwrap_or(Err(CatalogError::Stopped))
    }

    /// Blocks until there is something to write; `None` when all is written and the catalog stops.
    fn next_batch(&self) -> Option<WriteBatch> {
        let mut state = self.state();
        loop {
            let due = state.touches_due.map(|due| due.saturating_duration_since(Instant::now()));
            if !state.waiting.is_empty() || due == Some(Duration::ZERO) || (state.stopping && due.is_some()) {
                return Some(state.take_batch());
            }
            if state.stopping {
                return None;
            }
            state = match due {
                Some(wait) => {
                    self.wake.wait_timeout(state, wait).map_or_else(|dead| dead.into_inner().0, |(state, _)| state)
                }
                None => self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

/// All that one round of writing takes on.
struct WriteBatch {
    waiting: Vec<PendingWrite>,
    touched: Vec<(SessionId, Touch)>,
    stopping: bool,
}

impl WriterState {
    fn take_batch(&mut self) -> WriteBatch {
        self.touches_due = None;
        let touched = std::mem::take(&mut self.touched)
            .into_iter()
            .filter_map(|id| self.records.session(&id).map(Touch::of).map(|touch| (id, touch)))
            .collect();
        WriteBatch { waiting: std::mem::take(&mut self.waiting), touched, stopping: self.stopping }
    }

    /// What is on the disk now becomes what everybody sees.
    fn publish(&mut self, changes: &[Change]) {
        for change in changes {
            if let Err(error) = self.records.apply(change) {
                tracing::error!(%error, ?change, "a change that was written cannot be shown");
            }
        }
    }
}

/// The thread's own state.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    /// The records as they will be after the write under way; otherwise the same as the ones everybody reads.
    draft: Records,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let draft = shared.state().records.clone();
        Self { shared, draft }
    }

    pub(crate) fn run(mut self) {
        while let Some(batch) = self.shared.next_batch() {
            let stopping = batch.stopping;
            self.commit(batch);
            if stopping && self.shared.state().waiting.is_empty() {
                break;
            }
        }
    }

    fn commit(&mut self, batch: WriteBatch) {
        let (mut projects, mut sessions, mut flushes) = (Vec::new(), Vec::new(), Vec::new());
        for PendingWrite { request, answer, .. } in batch.waiting {
            match request {
                WriteRequest::Flush => flushes.push(answer),
                WriteRequest::Change(change) => match change.file() {
                    FileKind::Projects => projects.push((*change, answer)),
                    FileKind::Sessions => sessions.push((*change, answer)),
                },
            }
        }
        let touches_saved = self.commit_file(FileKind::Sessions, sessions, batch.touched);
        let _ = self.commit_file(FileKind::Projects, projects, Vec::new());
        for answer in flushes {
            // Whoever no longer waits does not want to know.
            let _ = answer.send(touches_saved.clone());
        }
    }

    /// One file, one write, one fate for everything that is in it.
    fn commit_file(
        &mut self,
        kind: FileKind,
        asked: Vec<(Change, oneshot::Sender<Result<(), CatalogError>>)>,
        touched: Vec<(SessionId, Touch)>,
    ) -> Result<(), CatalogError> {
        // After a failed write the draft knows the touch already; the file still does not.
        let mut differs = !touched.is_empty();
        for (id, touch) in &touched {
            self.draft.touch(id, touch);
        }
        let (mut changes, mut answers) = (Vec::new(), Vec::new());
        for (change, answer) in asked {
            let verdict = self.draft.apply(&change);
            differs |= *verdict.as_ref().unwrap_or(&false);
            if verdict.is_ok() {
                changes.push(change);
            }
            answers.push((answer, verdict.map(|_| ())));
        }
        let written = if differs { self.write(kind) } else { Ok(()) };
        match &written {
            Ok(()) => self.shared.state().publish(&changes),
            Err(error) => {
                tracing::error!(error = error as &dyn std::error::Error, "could not save {}", kind.name());
                self.take_back(touched);
            }
        }
        for (answer, verdict) in answers {
            // A refusal stands only if the changes before it do.
            let _ = answer.send(written.clone().and(verdict));
        }
        written
    }

    fn write(&self, kind: FileKind) -> Result<(), CatalogError> {
        let directory = &self.shared.directory;
        let bytes = files::render(kind, &self.draft)
            .map_err(|error| CatalogError::storage(&directory.file(kind.name()), error))?;
        directory.replace(kind.name(), &bytes)
    }

    fn take_back(&mut self, touched: Vec<(SessionId, Touch)>) {
        let mut state = self.shared.state();
        self.draft = state.records.clone();
        if !touched.is_empty() {
            state.touched.extend(touched.into_iter().map(|(id, _)| id));
            state.touches_due = Some(Instant::now() + RETRY_LAG);
        }
    }
}

impl Drop for Writer {
    /// Also when a panic ends the thread: nobody may wait for an answer that cannot come.
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.stopped = true;
        state.waiting.clear();
        drop(state);
        self.shared.room.close();
    }
}
