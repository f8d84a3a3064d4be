//! Lines for the agent's stdin.
//!
//! Comes in: whole lines from any task. Goes out: the same lines in the same order, written by a task of their own, so
//! that neither a slow agent nor a cancelled caller leaves half a line in the pipe. The queue is bounded; when it is
//! full callers wait, and an agent that does not read for too long causes an error instead of growing memory.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, mpsc};
use tokio_util::sync::CancellationToken;

use crate::error::SendError;

/// The maximum size of the queue of long lines, and of the queue of short ones. A single longer line is still accepted
/// when the queue is empty.
pub const QUEUE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The maximum number of queued short lines: each counts as at least its share of the bytes.
const QUEUE_LINES_MAX: usize = 1024;

/// Lines above this are long. They have their own queue: a large file must not delay a cancel.
const SHORT_BYTES_MAX: usize = 64 * 1024;

/// Sends lines to an agent's stdin. Clones share it; it closes with the last of them or by [`close`](Self::close).
#[derive(Clone, Debug)]
pub struct LineWriter {
    queue: mpsc::Sender<Queued>,
    gate: StdinGate,
    patience: Duration,
}

impl LineWriter {
    /// Accepts a line, without its newline, once there is space in the queue.
    ///
    /// Success means that it will be written unless the agent stops first. Cancel safe: a line is accepted completely
    /// or not at all.
    pub async fn send(&self, line: impl Into<Vec<u8>>) -> Result<(), SendError> {
        let bytes = with_newline(line.into())?;
        let (room, share) = self.gate.space_for(bytes.len());
        let room = tokio::time::timeout(self.patience, room.acquire_many_owned(share))
            .await
            .map_err(|_| SendError::Stalled { waited: self.patience })?
            .map_err(|_| SendError::Closed)?;
        self.enqueue(Queued { bytes, _room: room })
    }

    /// Accepts a line if there is space now, for callers that must not wait.
    pub fn try_send(&self, line: impl Into<Vec<u8>>) -> Result<(), SendError> {
        let bytes = with_newline(line.into())?;
        let (room, share) = self.gate.space_for(bytes.len());
        let room = room.try_acquire_many_owned(share).map_err(|error| match error {
            TryAcquireError::Closed => SendError::Closed,
            TryAcquireError::NoPermits => SendError::Full,
        })?;
        self.enqueue(Queued { bytes, _room: room })
    }

    /// Closes stdin for all clones. Lines accepted before are still written; no more are accepted.
    pub fn close(&self) {
        self.gate.close();
    }

    /// Whether lines can no longer be sent.
    pub fn is_closed(&self) -> bool {
        self.gate.short.is_closed()
    }

    /// Waits until lines can no longer be sent: stdin was closed here or by the agent.
    pub async fn closed(&self) {
        self.gate.closing.cancelled().await;
    }

    fn enqueue(&self, line: Queued) -> Result<(), SendError> {
        // The permits for bytes also limit the number of lines, so the only possible error is a closed channel.
        self.queue.try_send(line).map_err(|_| SendError::Closed)
    }
}

/// A line as it is written to the pipe.
fn with_newline(mut bytes: Vec<u8>) -> Result<Vec<u8>, SendError> {
    if memchr::memchr(b'\n', &bytes).is_some() {
        return Err(SendError::Newline);
    }
    bytes.push(b'\n');
    Ok(bytes)
}

/// Closes stdin without keeping it open.
#[derive(Clone, Debug)]
pub(crate) struct StdinGate {
    short: Arc<Semaphore>,
    long: Arc<Semaphore>,
    closing: CancellationToken,
}

impl StdinGate {
    pub(crate) fn close(&self) {
        self.short.close();
        self.long.close();
        self.closing.cancel();
    }

    /// The queue for a line of this length, and its share of that queue.
    fn space_for(&self, bytes: usize) -> (Arc<Semaphore>, u32) {
        let room = if bytes > SHORT_BYTES_MAX { &self.long } else { &self.short };
        let share = bytes.clamp(QUEUE_BYTES_MAX / QUEUE_LINES_MAX, QUEUE_BYTES_MAX);
        (Arc::clone(room), u32::try_from(share).unwrap_or(u32::MAX))
    }
}

#[derive(Debug)]
struct Queued {
    bytes: Vec<u8>,
    /// Released when the line is written.
    _room: OwnedSemaphorePermit,
}

/// The task that owns the pipe.
#[derive(Debug)]
pub(crate) struct StdinTask {
    pipe: Sender,
    queue: mpsc::Receiver<Queued>,
    gate: StdinGate,
}

/// A writer for the pipe, the task that writes, and the gate that closes it.
pub(crate) fn open(fd: OwnedFd, patience: Duration) -> io::Result<(LineWriter, StdinTask, StdinGate)> {
    let (sender, receiver) = mpsc::channel(QUEUE_LINES_MAX + QUEUE_BYTES_MAX / SHORT_BYTES_MAX);
    let room = || Arc::new(Semaphore::new(QUEUE_BYTES_MAX));
    let gate = StdinGate { short: room(), long: room(), closing: CancellationToken::new() };
    let task = StdinTask { pipe: Sender::from_owned_fd(fd)?, queue: receiver, gate: gate.clone() };
    Ok((LineWriter { queue: sender, gate: gate.clone(), patience }, task, gate))
}

impl StdinTask {
    pub(crate) async fn run(mut self) {
        while let Some(line) = self.next().await {
            if let Err(error) = self.pipe.write_all(&line.bytes).await {
                tracing::debug!(%error, "the agent closed its stdin");
                break;
            }
        }
    }

    async fn next(&mut self) -> Option<Queued> {
        tokio::select! {
            biased;
            () = self.gate.closing.cancelled() => {
                self.queue.close();
                self.queue.recv().await
            }
            line = self.queue.recv() => line,
        }
    }
}

/// However the task ends, callers no longer wait for space.
impl Drop for StdinTask {
    fn drop(&mut self) {
        self.gate.close();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, PipeReader, pipe};

    use super::*;

    fn stdin(patience: Duration) -> (LineWriter, StdinTask, PipeReader) {
        let (reader, writer) = pipe().unwrap();
        let (writer, task, _) = open(writer.into(), patience).unwrap();
        (writer, task, reader)
    }

    #[tokio::test]
    async fn lines_accepted_before_the_close_are_written_and_later_ones_refused() {
        let (writer, task, agent) = stdin(Duration::from_secs(60));
        writer.send("one").await.unwrap();
        writer.try_send("two").unwrap();
        let other = writer.clone();
        other.close();
        assert_eq!(writer.send("three").await, Err(SendError::Closed));
        assert_eq!(writer.try_send("three"), Err(SendError::Closed));
        task.run().await;
        assert_eq!(BufReader::new(agent).lines().collect::<Result<Vec<_>, _>>().unwrap(), ["one", "two"]);
    }

    #[tokio::test]
    async fn a_line_with_a_newline_is_refused() {
        let (writer, _task, _agent) = stdin(Duration::from_secs(60));
        assert_eq!(writer.send("one\ntwo").await, Err(SendError::Newline));
    }

    #[tokio::test]
    async fn the_queue_for_an_agent_that_does_not_read_is_bounded() {
        let (writer, _task, _agent) = stdin(Duration::ZERO);
        let mut accepted = 0;
        let refused = loop {
            match writer.send(vec![b'x'; 1024 * 1024 - 1]).await {
                Ok(()) => accepted += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(accepted, QUEUE_BYTES_MAX / (1024 * 1024));
        assert_eq!(refused, SendError::Stalled { waited: Duration::ZERO });
    }

    #[tokio::test]
    async fn the_number_of_short_lines_is_bounded_too() {
        let (writer, _task, _agent) = stdin(Duration::ZERO);
        for _ in 0..QUEUE_LINES_MAX {
            writer.send("x").await.unwrap();
        }
        assert!(matches!(writer.send("x").await, Err(SendError::Stalled { .. })));
        assert_eq!(writer.try_send("x"), Err(SendError::Full));
    }

    #[tokio::test]
    async fn a_sender_that_waits_for_space_fails_when_stdin_closes() {
        let (writer, task, _agent) = stdin(Duration::from_secs(60));
        writer.send(vec![b'x'; QUEUE_BYTES_MAX + 1]).await.unwrap();
        let (sent, ()) = tokio::join!(writer.send(vec![b'y'; QUEUE_BYTES_MAX]), async { drop(task) });
        assert_eq!(sent, Err(SendError::Closed));
    }

    #[tokio::test]
    async fn a_short_line_passes_while_long_lines_wait() {
        let (writer, _task, _agent) = stdin(Duration::from_secs(60));
        writer.send(vec![b'x'; QUEUE_BYTES_MAX + 1]).await.unwrap();
        tokio::select! {
            biased;
            sent = writer.send(vec![b'y'; QUEUE_BYTES_MAX]) => panic!("there is no room for it: {sent:?}"),
            sent = async { writer.try_send("cancel") } => sent.unwrap(),
        }
    }
}
