//! The agent's stderr: the tail is kept, the lines are logged.
//!
//! Comes in: any amount of bytes. StderrTail: the last [`STDERR_TAIL_BYTES`]. Logged at debug level, line by line, up to a
//! rate. Reading never waits, so an agent never blocks on its stderr.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::unix::pipe::Receiver;

use crate::framing::LineFramer;

/// How many bytes of the end of stderr are kept.
pub const STDERR_TAIL_BYTES: usize = 64 * 1024;

/// The longest line that is logged.
const LOG_LINE_BYTES_MAX: usize = 4 * 1024;

/// Lines logged per second and agent; further lines are only counted.
const LOG_LINES_MAX: u32 = 100;

const CHUNK_BYTES: usize = 16 * 1024;

/// The most chunks a pipe can hold by default, and so the most that can have been written before a call.
const PIPE_CHUNKS_MAX: usize = 1024 * 1024 / CHUNK_BYTES;

#[derive(Debug)]
pub(crate) struct Stderr {
    pipe: Receiver,
    /// Held while reading, so that the order of the bytes is kept.
    kept: Mutex<StderrTail>,
}

#[derive(Debug)]
struct StderrTail {
    tail: VecDeque<u8>,
    log: Log,
}

impl Stderr {
    pub(crate) fn new(fd: OwnedFd, program: String) -> io::Result<Self> {
        let kept = StderrTail { tail: VecDeque::new(), log: Log::new(program) };
        Ok(Self { pipe: Receiver::from_owned_fd(fd)?, kept: Mutex::new(kept) })
    }

    /// Reads until the agent and all processes that share its stderr have closed it.
    pub(crate) async fn run(&self) -> io::Result<()> {
        loop {
            tokio::task::consume_budget().await;
            self.pipe.readable().await?;
            let mut kept = self.kept();
            let mut chunk = [0; CHUNK_BYTES];
            match self.pipe.try_read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(read) => kept.push(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The tail, including everything written before this call: the last output of an exited agent is in it.
    pub(crate) fn tail(&self) -> String {
        let mut kept = self.kept();
        let mut chunk = [0; CHUNK_BYTES];
        for _ in 0..PIPE_CHUNKS_MAX {
            // Reads without the runtime, which may not have noticed yet that there is something to read.
            match rustix::io::read(&self.pipe, &mut chunk) {
                Ok(read @ 1..) => kept.push(&chunk[..read]),
                _ => break,
            }
        }
        kept.text()
    }

    fn kept(&self) -> MutexGuard<'_, StderrTail> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StderrTail {
    fn push(&mut self, bytes: &[u8]) {
        self.tail.extend(bytes);
        let excess = self.tail.len().saturating_sub(STDERR_TAIL_BYTES);
        self.tail.drain(..excess);
        self.log.push(bytes);
    }

    fn text(&mut self) -> String {
        let bytes = self.tail.make_contiguous();
        // A cut inside a character leaves its remaining bytes at the front.
        let cut = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
        String::from_utf8_lossy(&bytes[cut..]).into_owned()
    }
}

#[derive(Debug)]
struct Log {
    program: String,
    framer: LineFramer,
    window: Instant,
    logged: u32,
    omitted: u32,
}

impl Log {
    fn new(program: String) -> Self {
        Self { program, framer: LineFramer::new(LOG_LINE_BYTES_MAX), window: Instant::now(), logged: 0, omitted: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        self.framer.push(bytes);
        while let Some(line) = self.framer.next_line() {
            if !self.may_log() {
                continue;
            }
            match line {
                Ok(line) => tracing::debug!(program = self.program, "stderr: {}", line.to_str_lossy()),
                Err(error) => tracing::debug!(program = self.program, %error, "stderr: a line is not logged"),
            }
        }
    }

    fn may_log(&mut self) -> bool {
        if self.window.elapsed() >= Duration::from_secs(1) {
            if self.omitted > 0 {
                tracing::debug!(program = self.program, lines = self.omitted, "stderr: too much to log");
            }
            (self.window, self.logged, self.omitted) = (Instant::now(), 0, 0);
        }
        let may = self.logged < LOG_LINES_MAX;
        if may {
            self.logged += 1;
        } else {
            self.omitted = self.omitted.saturating_add(1);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> StderrTail {
        StderrTail { tail: VecDeque::new(), log: Log::new("agent".into()) }
    }

    #[test]
    fn only_the_tail_is_kept() {
        let mut kept = kept();
        for number in 0..100_000 {
            kept.push(format!("line {number}\n").as_bytes());
        }
        assert!(kept.text().len() <= STDERR_TAIL_BYTES);
        assert!(kept.text().ends_with("line 99999\n"));
    }

    #[test]
    fn a_character_cut_in_two_is_left_out() {
        let mut kept = kept();
        kept.push("é".as_bytes());
        kept.push(&vec![b'x'; STDERR_TAIL_BYTES - 1]);
        assert!(kept.text().starts_with('x'));
    }

    #[test]
    fn lines_above_the_rate_are_not_logged() {
        let mut log = Log::new("agent".into());
        let logged = (0..1000).filter(|_| log.may_log()).count();
        assert!(logged < 1000 && logged >= LOG_LINES_MAX as usize, "{logged}");
    }
}
