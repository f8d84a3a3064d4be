//! One agent's life, as its guardian tells it.
//!
//! Comes in: events over the lifeline and wishes to stop. Goes out: how the agent ended, and that all is gone.
//! The ladder itself is the guardian's; here is only what remains to do if a guardian was killed or does not answer.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::command::StopLadder;
use crate::exit::{ExitReport, ExitStatus};
use crate::lifeline::{self, EVENT_BYTES, Event};
use crate::procfs;
use crate::stderr::Stderr;
use crate::writer::StdinGate;

/// From the end of the ladder until a guardian counts as stuck; a busy machine takes its time over many processes.
const GUARDIAN_PATIENCE: Duration = Duration::from_secs(10);

/// Between two looks at who is still there to be killed, and how often to look.
const SWEEP_AGAIN: Duration = Duration::from_millis(20);
const SWEEPS_MAX: u32 = 250;

/// How far an agent has come.
#[derive(Clone, Debug)]
pub(crate) enum Life {
    Running,
    /// The agent has ended; what it started is being ended.
    Exited(Arc<ExitReport>),
    /// Nothing of it is left.
    Gone(Arc<ExitReport>),
}

/// Events from a guardian; survives a `select!` that takes another arm.
#[derive(Debug)]
pub(crate) struct Lifeline {
    socket: UnixStream,
    received: Vec<u8>,
}

impl Lifeline {
    pub(crate) fn new(socket: UnixStream) -> Self {
        Self { socket, received: Vec::with_capacity(EVENT_BYTES) }
    }

    /// The next event; `None` when the guardian is gone.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some((message, rest)) = self.received.split_first_chunk() {
                let event = Event::decode(*message);
                self.received = rest.to_vec();
                return event;
            }
            match self.socket.read_buf(&mut self.received).await {
                Ok(1..) => {}
                _ => return None,
            }
        }
    }

    async fn stop(&mut self, ladder: StopLadder) {
        // If nobody listens any more, the end of the stream says the rest.
        let _ = self.socket.write_all(&lifeline::encode_stop(ladder)).await;
    }
}

/// The task behind a [`ProcessHandle`](crate::ProcessHandle). Dropped before its time it closes the lifeline, and the
/// guardian ends the agent.
#[derive(Debug)]
pub(crate) struct Monitor {
    pub(crate) lifeline: Lifeline,
    pub(crate) guardian: Child,
    /// Also the id of its group.
    pub(crate) agent: Pid,
    pub(crate) mark: String,
    pub(crate) stdin: StdinGate,
    pub(crate) stderr: Arc<Stderr>,
    pub(crate) wish: watch::Receiver<Option<StopLadder>>,
    pub(crate) stopping: CancellationToken,
    pub(crate) life: watch::Sender<Life>,
}

impl Monitor {
    pub(crate) async fn run(mut self) {
        let mut patience_ends: Option<Instant> = None;
        loop {
            tokio::select! {
                biased;
                event = self.lifeline.event() => match event {
                    Some(Event::Exited(status)) => self.agent_exited(status),
                    Some(event) => tracing::warn!(?event, "a guardian repeats itself"),
                    None => break,
                },
                Ok(()) = self.wish.changed() => {
                    let wish = *self.wish.borrow_and_update();
                    if let Some(ladder) = wish {
                        patience_ends = Some(Instant::now() + self.begin_stop(ladder).await);
                    }
                }
                () = tokio::time::sleep_until(patience_ends.unwrap_or_else(Instant::now)), if patience_ends.is_some() => {
                    tracing::warn!(agent = self.agent.as_raw_pid(), "the guardian does not end its agent; killing both");
                    let _ = self.guardian.start_kill();
                    break;
                }
            }
        }
        self.all_gone().await;
    }

    /// Returns how long it may take at most.
    async fn begin_stop(&mut self, ladder: StopLadder) -> Duration {
        self.stdin.close();
        self.stopping.cancel();
        self.lifeline.stop(ladder).await;
        // The second grace is for those who outlive the agent.
        ladder.grace_eof + 2 * ladder.grace_term + GUARDIAN_PATIENCE
    }

    fn agent_exited(&mut self, status: ExitStatus) {
        self.stdin.close();
        let report = Arc::new(ExitReport { status, stderr_tail: self.stderr.tail() });
        self.life.send_replace(Life::Exited(report));
    }

    async fn all_gone(mut self) {
        let finished = self.guardian.wait().await.is_ok_and(|status| status.success());
        if !finished {
            self.sweep().await;
        }
        if matches!(*self.life.borrow(), Life::Running) {
            self.agent_exited(ExitStatus::Lost);
        }
        self.life.send_modify(|life| {
            if let Life::Exited(report) = life {
                *life = Life::Gone(Arc::clone(report));
            }
        });
    }

    /// Ends what a killed guardian could not: the group, and by their mark those who left it.
    async fn sweep(&self) {
        for _ in 0..SWEEPS_MAX {
            let (agent, mark) = (self.agent, self.mark.clone());
            let left = tokio::task::spawn_blocking(move || {
                let _ = rustix::process::kill_process_group(agent, Signal::KILL);
                let left = procfs::marked(&mark);
                for pid in &left {
                    let _ = rustix::process::kill_process(*pid, Signal::KILL);
                }
                left.len()
            });
            match left.await {
                Ok(1..) => tokio::time::sleep(SWEEP_AGAIN).await,
                _ => return,
            }
        }
        tracing::warn!(agent = self.agent.as_raw_pid(), "some processes of the agent cannot be killed");
    }
}
