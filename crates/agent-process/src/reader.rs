//! The agent's stdout as lines.
//!
//! Goes out: lines, in the task of the caller, without a task or queue in between. While nothing reads, the pipe fills
//! and the agent waits. A stopping agent must not wait for a reader that never comes, so from then on unread output is
//! read and dropped.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio_util::sync::CancellationToken;

use crate::error::LineError;
use crate::framing::{CHUNK_BYTES, LineFramer, OutputLine};

/// How long the output of a stopping agent may wait for its reader.
const READER_TIMEOUT: Duration = Duration::from_millis(250);

/// Fewer bytes than this in the pipe do not block a writer.
const BLOCKED_BYTES_MIN: u64 = 4096;

/// Reads an agent's stdout line by line.
#[derive(Debug)]
pub struct LineReader {
    stdout: Arc<Stdout>,
    framer: LineFramer,
    ended: bool,
}

impl LineReader {
    pub(crate) fn new(stdout: Arc<Stdout>, line_bytes_max: usize) -> Self {
        Self { stdout, framer: LineFramer::new(line_bytes_max), ended: false }
    }

    /// The next line; `None` once the agent and all processes that share its stdout have closed it. Includes blank
    /// lines.
    ///
    /// Cancel safe: the bytes of a partial line are kept here, not in the future. After [`LineError::TooLong`] the next
    /// call returns the line after it.
    pub async fn next_line(&mut self) -> Result<Option<OutputLine>, LineError> {
        loop {
            if let Some(line) = self.framer.next_line() {
                return Ok(Some(line?));
            }
            if self.ended {
                return Ok(self.framer.finish());
            }
            // A flood would otherwise block a runtime thread, because the pipe is always ready.
            tokio::task::consume_budget().await;
            self.ended = self.stdout.read(self.framer.space()).await? == 0;
        }
    }
}

impl LineReader {
    /// The available bytes, as soon as there are any; `None` at the end. For output that is not lines. Do not mix it
    /// with [`next_line`](Self::next_line).
    ///
    /// Cancel safe.
    pub async fn next_chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        tokio::task::consume_budget().await;
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        let read = self.stdout.read(&mut chunk).await?;
        Ok((read > 0).then_some(chunk))
    }
}

impl Drop for LineReader {
    fn drop(&mut self) {
        self.stdout.reader_gone.cancel();
    }
}

/// Our end of the pipe, shared by the reader and the task that drains it when the agent stops.
#[derive(Debug)]
pub(crate) struct Stdout {
    pipe: Receiver,
    /// Held by the reader for one system call; true once the output has been abandoned.
    given_up: Mutex<bool>,
    reads: AtomicU64,
    reader_gone: CancellationToken,
}

impl Stdout {
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            pipe: Receiver::from_owned_fd(fd)?,
            given_up: Mutex::new(false),
            reads: AtomicU64::new(0),
            reader_gone: CancellationToken::new(),
        })
    }

    /// Appends the available bytes. Returns 0 at the end, and once the output has been abandoned.
    async fn read(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        loop {
            self.pipe.readable().await?;
            let given_up = self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
            if *given_up {
                return Ok(0);
            }
            self.reads.fetch_add(1, Ordering::Relaxed);
            match self.pipe.try_read_buf(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }

    /// Once the agent is stopping, or its reader is gone: reads to the end what the reader does not read.
    pub(crate) async fn drain(&self, stopping: CancellationToken) -> io::Result<()> {
        tokio::select! {
            () = stopping.cancelled() => {}
            () = self.reader_gone.cancelled() => {}
        }
        self.wait_until_blocked().await?;
        *self.given_up.lock().unwrap_or_else(PoisonError::into_inner) = true;
        let mut dropped = vec![0; 64 * 1024];
        loop {
            tokio::task::consume_budget().await;
            self.pipe.readable().await?;
            match self.pipe.try_read(&mut dropped) {
                Ok(0) => return Ok(()),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
    }

    /// Waits until the pipe fills up and the reader has not read for a while or is gone.
    async fn wait_until_blocked(&self) -> io::Result<()> {
        loop {
            let reads = self.reads.load(Ordering::Relaxed);
            if tokio::time::timeout(READER_TIMEOUT, self.reader_gone.cancelled()).await.is_ok() {
                return Ok(());
            }
            let held_up = rustix::io::ioctl_fionread(&self.pipe)? >= BLOCKED_BYTES_MIN;
            if held_up && reads == self.reads.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }
}
