//! The agent's stdout as lines.
//!
//! Goes out: lines, in the task of whoever asks, with no task or queue in between. While nobody asks, the pipe fills
//! and the agent waits; but an agent that is to stop must not wait for a reader that will not come, so from then on
//! what nobody takes is read and dropped.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio_util::sync::CancellationToken;

use crate::error::LineError;
use crate::framing::{CHUNK_BYTES, Line, LineFramer};

/// How long a stopping agent's output may wait for its reader.
const READER_PATIENCE: Duration = Duration::from_millis(250);

/// Less than this in the pipe does not hold up any writer.
const HELD_UP_BYTES: u64 = 4096;

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

    /// The next line; `None` once the agent and all who share its stdout have closed it. Blank lines come too.
    ///
    /// Cancel safe: bytes of a line that is not whole yet are kept here, not in the future.
    /// After [`LineError::TooLong`] the next call gives the line after it.
    pub async fn next_line(&mut self) -> Result<Option<Line>, LineError> {
        loop {
            if let Some(line) = self.framer.next_line() {
                return Ok(Some(line?));
            }
            if self.ended {
                return Ok(self.framer.finish());
            }
            // A flood would otherwise keep a runtime thread to itself: the pipe is always ready.
            tokio::task::consume_budget().await;
            self.ended = self.stdout.read(self.framer.space()).await? == 0;
        }
    }
}

impl LineReader {
    /// What is there, as soon as it is there and whatever it is; `None` at the end. For output that is no lines: who
    /// asks for chunks does not ask for lines too.
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

/// Our end of the pipe, shared by the reader and by the one who empties it when the agent stops.
#[derive(Debug)]
pub(crate) struct Stdout {
    pipe: Receiver,
    /// Who reads holds it, for the length of one system call; true once the output is given up.
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

    /// Appends what is there; 0 at the end, and from when the output was given up.
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

    /// Once the agent is to stop, or its reader is gone: reads to the end what nobody else does.
    pub(crate) async fn drain(&self, stopping: CancellationToken) -> io::Result<()> {
        tokio::select! {
            () = stopping.cancelled() => {}
            () = self.reader_gone.cancelled() => {}
        }
        self.wait_until_held_up().await?;
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

    /// Until the pipe is filling up and its reader has not come for a while, or will never come.
    async fn wait_until_held_up(&self) -> io::Result<()> {
        loop {
            let reads = self.reads.load(Ordering::Relaxed);
            if tokio::time::timeout(READER_PATIENCE, self.reader_gone.cancelled()).await.is_ok() {
                return Ok(());
            }
            let held_up = rustix::io::ioctl_fionread(&self.pipe)? >= HELD_UP_BYTES;
            if held_up && reads == self.reads.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }
}
