//! The one thread that writes.
//!
//! Comes in: batches and other requests, in order. Goes out: an answer to each, the row that was settled last, and
//! whether writing works. It takes what waits, writes it in one transaction and answers. When nothing waits it writes
//! nothing.

use std::any::Any;
use std::collections::VecDeque;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use protocol::{SessionId, Timestamp};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{oneshot, watch};

use crate::append;
use crate::error::{FailureKind, JournalError};
use crate::failure::{Failure, Outcome};
use crate::open::beside;
use crate::record::{Batch, Health, Pruned, RowId, SessionHead};
use crate::session_row;

/// Commits without a sync are synced after this time, so that a power cut takes one second of text at most.
const SYNC_AFTER: Duration = Duration::from_millis(900);

/// Batches that are written in one transaction.
const ROUND_MAX: usize = 256;

pub(crate) type Answer<T> = oneshot::Sender<Result<T, JournalError>>;

/// What the writer is asked to do.
pub(crate) enum Command {
    Append(Box<Waiting>),
    TakeOver {
        session: SessionId,
        answer: Answer<SessionHead>,
    },
    Delete {
        session: SessionId,
        answer: Answer<()>,
    },
    Prune {
        before: Timestamp,
        answer: Answer<Pruned>,
    },
    /// Reads of a journal in memory, which has no other connection.
    Read(Box<dyn FnOnce(&Connection) + Send>),
    Close(oneshot::Sender<()>),
}

pub(crate) struct Waiting {
    pub(crate) batch: Batch,
    pub(crate) answer: Answer<()>,
}

/// Whether a transaction is on the disk when it is committed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    Now,
    Later,
}

pub(crate) struct Writer {
    pub(crate) connection: Connection,
    /// None for a journal in memory.
    pub(crate) path: Option<PathBuf>,
    /// Of a journal in memory: a session that grows beyond it loses its oldest items.
    pub(crate) session_bytes_max: Option<i64>,
    pub(crate) commands: Receiver<Command>,
    pub(crate) settled: watch::Sender<RowId>,
    pub(crate) health: watch::Sender<Health>,
    /// Requests that were taken from the queue and come next.
    pub(crate) next: VecDeque<Command>,
    /// Since when something is committed and not synced.
    pub(crate) unsynced_since: Option<Instant>,
}

impl Writer {
    pub(crate) fn run(mut self) {
        if let Err(error) = self.finish_deletions() {
            tracing::warn!(%error, "a deleted session was not removed from the journal");
        }
        let closing = loop {
            if self.unsynced_since.is_some_and(|since| since.elapsed() >= SYNC_AFTER) {
                self.sync();
            }
            match self.take() {
                Ok(Command::Close(closed)) => break Some(closed),
                Ok(command) => self.handle(command),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break None,
            }
        };
        self.sync();
        let Self { connection, commands, .. } = self;
        // From here on, an append finds no one who reads the queue.
        drop(commands);
        connection.close().map_err(|(_, error)| tracing::warn!(%error, "the journal was not closed")).ok();
        if let Some(closed) = closing {
            closed.send(()).ok();
        }
    }

    fn handle(&mut self, command: Command) {
        match command {
            Command::Append(waiting) => self.write_round(*waiting),
            Command::TakeOver { session, answer } => {
                let head = self.transact(Sync::Now, |connection| session_row::take_over(connection, &session));
                self.report(head.as_ref().err());
                answer.send(head.map_err(|failure| failure.on_write())).ok();
            }
            Command::Delete { session, answer } => {
                let deleted = self.delete(&session);
                answer.send(deleted).ok();
            }
            Command::Prune { before, answer } => {
                let pruned = self.prune(before);
                answer.send(pruned).ok();
            }
            Command::Read(read) => {
                let connection = &self.connection;
                catch_unwind(AssertUnwindSafe(|| read(connection))).ok();
            }
            // Ends the loop in `run`.
            Command::Close(_) => {}
        }
    }

    /// In the middle of long work: does what is short, and leaves what is long for later.
    pub(crate) fn serve_waiting(&mut self) {
        let mut later = VecDeque::new();
        while let Some(command) = self.next.pop_front().or_else(|| self.commands.try_recv().ok()) {
            match command {
                Command::Append(_) | Command::TakeOver { .. } | Command::Read(_) => self.handle(command),
                Command::Delete { .. } | Command::Prune { .. } | Command::Close(_) => later.push_back(command),
            }
        }
        self.next = later;
    }

    fn take(&mut self) -> Result<Command, RecvTimeoutError> {
        if let Some(next) = self.next.pop_front() {
            return Ok(next);
        }
        match self.unsynced_since {
            Some(since) => self.commands.recv_timeout(SYNC_AFTER.saturating_sub(since.elapsed())),
            None => self.commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn write_round(&mut self, first: Waiting) {
        let mut round = vec![first];
        while round.len() < ROUND_MAX && self.next.is_empty() {
            match self.commands.try_recv() {
                Ok(Command::Append(waiting)) => round.push(*waiting),
                Ok(other) => self.next.push_back(other),
                Err(_) => break,
            }
        }
        match self.write(&round) {
            Ok(()) => {
                self.report(None);
                for waiting in round {
                    waiting.answer.send(Ok(())).ok();
                }
            }
            Err(failure) if round.len() == 1 => {
                self.report(Some(&failure));
                for waiting in round {
                    waiting.answer.send(Err(failure.on_write())).ok();
                }
            }
            // One of them is the reason: the others must not fail with it.
            Err(_) => {
                for waiting in round {
                    let written = self.write(std::slice::from_ref(&waiting));
                    self.report(written.as_ref().err());
                    waiting.answer.send(written.map_err(|failure| failure.on_write())).ok();
                }
            }
        }
    }

    fn write(&mut self, round: &[Waiting]) -> Outcome<()> {
        let sync = if round.iter().any(|waiting| waiting.batch.confirmed) { Sync::Now } else { Sync::Later };
        let settled = self.transact(sync, |connection| {
            let mut settled = None;
            for waiting in round {
                settled = append::append(connection, &waiting.batch)?.or(settled);
            }
            Ok(settled)
        })?;
        if let Some(row) = settled {
            self.settled.send_replace(RowId(row));
        }
        if let Some(limit_bytes) = self.session_bytes_max {
            for waiting in round {
                // The batch is recorded all the same.
                if let Err(failure) = self.trim(waiting.batch.session.0, limit_bytes) {
                    tracing::warn!(detail = failure.detail(), "a session in memory was not trimmed");
                }
            }
        }
        Ok(())
    }

    /// Runs work in one transaction, all of it or nothing. A panic is a failure.
    pub(crate) fn transact<T>(&mut self, sync: Sync, work: impl FnOnce(&Connection) -> Outcome<T>) -> Outcome<T> {
        let is_file = self.path.is_some();
        let connection = &mut self.connection;
        let done = catch_unwind(AssertUnwindSafe(|| {
            if is_file {
                let level = if sync == Sync::Now { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" };
                connection.execute_batch(level)?;
            }
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        }));
        let outcome =
            done.unwrap_or_else(|panic| Err(Failure::Refused(format!("the writer panicked: {}", text(&*panic)))));
        if outcome.is_err() && !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK").ok();
        }
        if outcome.is_ok() && is_file {
            match sync {
                Sync::Now => self.unsynced_since = None,
                Sync::Later => {
                    self.unsynced_since.get_or_insert_with(Instant::now);
                }
            }
        }
        outcome
    }

    /// Makes what was committed safe from a power cut. All of it is in the write-ahead log or, after a checkpoint,
    /// synced in the file itself.
    fn sync(&mut self) {
        let (Some(path), Some(_)) = (&self.path, self.unsynced_since) else { return };
        let synced = match File::open(beside(path, "-wal")) {
            Ok(log) => log.sync_data(),
            Err(error) => Err(error),
        };
        match synced {
            Ok(()) => self.unsynced_since = None,
            Err(error) => {
                self.unsynced_since = Some(Instant::now());
                let detail = format!("the write-ahead log could not be synced: {error}");
                self.set_health(Health::Failing { kind: FailureKind::Other, detail });
            }
        }
    }

    fn report(&self, failure: Option<&Failure>) {
        match failure {
            None => self.set_health(Health::Writing),
            Some(failure) if failure.is_of_the_file() => {
                self.set_health(Health::Failing { kind: failure.kind(), detail: failure.detail() });
            }
            Some(_) => {}
        }
    }

    fn set_health(&self, health: Health) {
        self.health.send_if_modified(|now| {
            let changed = *now != health;
            if changed {
                if let Health::Failing { detail, .. } = &health {
                    tracing::warn!(detail, "the journal does not write");
                }
                *now = health;
            }
            changed
        });
    }
}

fn text(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "without a message",
    }
}
