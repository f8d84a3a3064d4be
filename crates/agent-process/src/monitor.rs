//! Watches one agent through its guardian.
//!
//! Comes in: events over the lifeline and stop requests. Goes out: how the agent ended, and that no process is left.
//! The guardian runs the ladder; this module only handles a guardian that was killed or does not respond.

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
use crate::lifeline::{self, EVENT_BYTES, GuardianEvent};
use crate::procfs;
use crate::stderr::Stderr;
use crate::writer::StdinGate;

/// From the end of the ladder until a guardian counts as stuck; a busy machine needs time for many processes.
const GUARDIAN_TIMEOUT: Duration = Duration::from_secs(10);

/// The delay between two kills of what is left, and their number.
const SWEEP_AGAIN: Duration = Duration::from_millis(20);
const SWEEPS_MAX: u32 = 250;

/// The state of an agent's process.
#[derive(Clone, Debug)]
pub(crate) enum ProcessPhase {
    Running,
    /// The agent has exited; its descendants are being ended.
    Exited(Arc<ExitReport>),
    /// No process of it is left.
    Gone(Arc<ExitReport>),
}

/// Events from a guardian. Cancel safe in a `select!`.
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
    pub(crate) async fn event(&mut self) -> Option<GuardianEvent> {
        loop {
            if let Some((message, rest)) = self.received.split_first_chunk() {
                let event = GuardianEvent::decode(*message);
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
        // If the guardian no longer reads, the end of the stream is reported anyway.
        let _ = self.socket.write_all(&lifeline::encode_stop(ladder)).await;
    }
}

/// The task behind a [`ProcessHandle`](crate::ProcessHandle). If it is dropped early, the lifeline closes and the
/// guardian ends the agent.
#[derive(Debug)]
pub(crate) struct Monitor {
    pub(crate) lifeline: Lifeline,
    pub(crate) guardian: Child,
    /// Also the id of its process group.
    pub(crate) agent: Pid,
    pub(crate) mark: String,
    pub(crate) stdin: StdinGate,
    pub(crate) stderr: Arc<Stderr>,
    pub(crate) stop_request: watch::Receiver<Option<StopLadder>>,
    pub(crate) stopping: CancellationToken,
    pub(crate) phase: watch::Sender<ProcessPhase>,
}

impl Monitor {
    pub(crate) async fn run(mut self) {
        let mut patience_ends: Option<Instant> = None;
        loop {
            tokio::select! {
                biased;
                event = self.lifeline.event() => match event {
                    Some(GuardianEvent::Exited(status)) => self.agent_exited(status),
                    Some(event) => tracing::warn!(?event, "unexpected event from a guardian"),
                    None => break,
                },
                Ok(()) = self.stop_request.changed() => {
                    let stop_request = *self.stop_request.borrow_and_update();
                    if let Some(ladder) = stop_request {
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

    /// Returns how long the stop may take at most.
    async fn begin_stop(&mut self, ladder: StopLadder) -> Duration {
        self.stdin.close();
        self.stopping.cancel();
        self.lifeline.stop(ladder).await;
        // The second grace time is for descendants that outlive the agent.
        ladder.grace_eof + 2 * ladder.grace_term + GUARDIAN_TIMEOUT
    }

    fn agent_exited(&mut self, status: ExitStatus) {
        self.stdin.close();
        let report = Arc::new(ExitReport { status, stderr_tail: self.stderr.tail() });
        self.phase.send_replace(ProcessPhase::Exited(report));
    }

    async fn all_gone(mut self) {
        let finished = self.guardian.wait().await.is_ok_and(|status| status.success());
        if !finished {
            self.sweep().await;
        }
        if matches!(*self.phase.borrow(), ProcessPhase::Running) {
            self.agent_exited(ExitStatus::Lost);
        }
        self.phase.send_modify(|phase| {
            if let ProcessPhase::Exited(report) = phase {
                *phase = ProcessPhase::Gone(Arc::clone(report));
            }
        });
    }

    /// Ends what a killed guardian could not: the process group, and processes that left it, found by their mark.
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
