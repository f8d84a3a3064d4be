//! The handle by which an agent's process is watched and ended.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::command::StopLadder;
use crate::error::NoAnswer;
use crate::exit::{ExitReport, ExitStatus};
use crate::monitor::Life;
use crate::open_files::Place;
use crate::stderr::Stderr;

/// An agent that answers and leaves in one breath has its answer still in the pipe when its end is known.
const ANSWER_IN_THE_PIPE: Duration = Duration::from_millis(250);

/// Watches and ends an agent's process. Cheap to clone; when the last clone is dropped the agent is stopped, as its
/// command's `orphan_ladder` says.
#[derive(Clone, Debug)]
pub struct ProcessHandle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) pid: u32,
    pub(crate) guardian_pid: u32,
    pub(crate) stderr: Arc<Stderr>,
    pub(crate) wish: watch::Sender<Option<StopLadder>>,
    pub(crate) life: watch::Receiver<Life>,
    /// Everything that runs for this process; ends with the last handle.
    pub(crate) _tasks: JoinSet<()>,
    pub(crate) _place: Place,
}

impl ProcessHandle {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// The agent's process id, which is also that of its group.
    pub fn pid(&self) -> u32 {
        self.shared.pid
    }

    /// The process id of its guardian.
    pub fn guardian_pid(&self) -> u32 {
        self.shared.guardian_pid
    }

    /// How it ended, if it has.
    pub fn exit(&self) -> Option<ExitReport> {
        match &*self.shared.life.borrow() {
            Life::Running => None,
            Life::Exited(report) | Life::Gone(report) => Some(ExitReport::clone(report)),
        }
    }

    /// Waits for the agent's own end, however it comes. What it started may take a moment longer, see
    /// [`gone`](Self::gone). Cancel safe.
    pub async fn exited(&self) -> ExitReport {
        self.wait(|life| !matches!(life, Life::Running)).await
    }

    /// Waits until the agent and everything it started is gone. Cancel safe.
    pub async fn gone(&self) -> ExitReport {
        self.wait(|life| matches!(life, Life::Gone(_))).await
    }

    /// The end of its stderr so far.
    pub fn stderr_tail(&self) -> String {
        self.shared.stderr.tail()
    }

    /// Ends the agent and everything it started: closes its stdin, waits, sends SIGTERM to its group, waits, kills
    /// whatever is left; its output is drained all the while. Returns when nothing is left.
    ///
    /// Goes on if the caller stops waiting. Asked again, it can only become faster.
    pub async fn stop(&self, ladder: StopLadder) -> ExitReport {
        self.wish(ladder);
        self.gone().await
    }

    /// Kills the agent and everything it started, at once.
    pub async fn kill(&self) -> ExitReport {
        self.stop(StopLadder::AT_ONCE).await
    }

    /// Waits for an answer of the agent, but not beyond its end nor for ever: a bad flag reads as its stderr and not as
    /// a timeout.
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

    fn wish(&self, ladder: StopLadder) {
        self.shared.wish.send_if_modified(|wish| {
            let faster = match *wish {
                None => ladder,
                Some(before) => StopLadder {
                    grace_eof: before.grace_eof.min(ladder.grace_eof),
                    grace_term: before.grace_term.min(ladder.grace_term),
                },
            };
            wish.replace(faster) != Some(faster)
        });
    }

    async fn wait(&self, until: impl FnMut(&Life) -> bool) -> ExitReport {
        let mut life = self.shared.life.clone();
        let lost = || ExitReport { status: ExitStatus::Lost, stderr_tail: self.stderr_tail() };
        // The sender goes away early only if the runtime does.
        match life.wait_for(until).await.as_deref() {
            Ok(Life::Exited(report) | Life::Gone(report)) => ExitReport::clone(report),
            Ok(Life::Running) | Err(_) => lost(),
        }
    }
}
