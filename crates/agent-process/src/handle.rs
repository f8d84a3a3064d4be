//! The handle to watch and stop an agent's process.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::command::StopLadder;
use crate::error::NoAnswer;
use crate::exit::{ExitReport, ExitStatus};
use crate::monitor::ProcessPhase;
use crate::open_files::ProcessSlot;
use crate::stderr::Stderr;

/// When an agent answers and exits at once, its answer may still be in the pipe when its exit is reported.
const ANSWER_IN_THE_PIPE: Duration = Duration::from_millis(250);

/// Watches and stops an agent's process. Cheap to clone. When the last clone is dropped the agent is stopped with the
/// `orphan_ladder` of its command.
#[derive(Clone, Debug)]
pub struct ProcessHandle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) pid: u32,
    pub(crate) guardian_pid: u32,
    pub(crate) stderr: Arc<Stderr>,
    pub(crate) stop_request: watch::Sender<Option<StopLadder>>,
    pub(crate) phase: watch::Receiver<ProcessPhase>,
    /// The tasks of this process; they end with the last handle.
    pub(crate) _tasks: JoinSet<()>,
    pub(crate) _slot: ProcessSlot,
}

impl ProcessHandle {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// The agent's process id, also the id of its process group.
    pub fn pid(&self) -> u32 {
        self.shared.pid
    }

    /// The process id of its guardian.
    pub fn guardian_pid(&self) -> u32 {
        self.shared.guardian_pid
    }

    /// How it ended, if it has ended.
    pub fn exit(&self) -> Option<ExitReport> {
        match &*self.shared.phase.borrow() {
            ProcessPhase::Running => None,
            ProcessPhase::Exited(report) | ProcessPhase::Gone(report) => Some(ExitReport::clone(report)),
        }
    }

    /// Waits until the agent itself has exited, for whatever reason. Its descendants may take a moment longer, see
    /// [`gone`](Self::gone). Cancel safe.
    pub async fn exited(&self) -> ExitReport {
        self.wait(|phase| !matches!(phase, ProcessPhase::Running)).await
    }

    /// Waits until the agent and all its descendants are gone. Cancel safe.
    pub async fn gone(&self) -> ExitReport {
        self.wait(|phase| matches!(phase, ProcessPhase::Gone(_))).await
    }

    /// The end of its stderr so far.
    pub fn stderr_tail(&self) -> String {
        self.shared.stderr.tail()
    }

    /// Ends the agent and all its descendants: closes its stdin, waits, sends SIGTERM to its group, waits, kills what
    /// is left. Its output is drained all the time. Returns when nothing is left.
    ///
    /// Continues if the caller stops waiting. A second call can only make it faster.
    pub async fn stop(&self, ladder: StopLadder) -> ExitReport {
        self.request_stop(ladder);
        self.gone().await
    }

    /// Kills the agent and all its descendants at once.
    pub async fn kill(&self) -> ExitReport {
        self.stop(StopLadder::AT_ONCE).await
    }

    /// Waits for an answer of the agent, until the agent exits or `within` has passed. So a bad flag is reported with
    /// its stderr and not as a timeout.
    pub async fn answer<T>(&self, within: Duration, answer: impl Future<Output = T>) -> Result<T, NoAnswer> {
        let mut answer = std::pin::pin!(answer);
        let exited = tokio::select! {
            biased;
            answer = &mut answer => return Ok(answer),
            exited = self.exited() => exited,
            () = tokio::time::sleep(within) => {
                return Err(NoAnswer::Silent { within, stderr_tail: self.stderr_tail() });
            }
        };
        tokio::time::timeout(ANSWER_IN_THE_PIPE, answer).await.map_err(|_| NoAnswer::Exited(exited))
    }

    fn request_stop(&self, ladder: StopLadder) {
        self.shared.stop_request.send_if_modified(|stop_request| {
            let faster = match *stop_request {
                None => ladder,
                Some(before) => StopLadder {
                    grace_eof: before.grace_eof.min(ladder.grace_eof),
                    grace_term: before.grace_term.min(ladder.grace_term),
                },
            };
            stop_request.replace(faster) != Some(faster)
        });
    }

    async fn wait(&self, until: impl FnMut(&ProcessPhase) -> bool) -> ExitReport {
        let mut phase = self.shared.phase.clone();
        let lost = || ExitReport { status: ExitStatus::Lost, stderr_tail: self.stderr_tail() };
        // The sender is dropped early only if the runtime shuts down.
        match phase.wait_for(until).await.as_deref() {
            Ok(ProcessPhase::Exited(report) | ProcessPhase::Gone(report)) => ExitReport::clone(report),
            Ok(ProcessPhase::Running) | Err(_) => lost(),
        }
    }
}
