//! The process of a session as its actor sees it: none, ended, starting or running, each with exactly what it has then.

use std::collections::HashMap;
use std::time::Duration;

use agent_process::{ExitReport, LineError, LineReader, LineWriter, OutputLine, ProcessHandle};
use protocol::TurnId;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::handle::ReplySender;
use crate::claude::process::Started;
use crate::claude::request;
use crate::error::ProviderError;

/// For what a process wrote before it exited, and for its exit after it closed its output. Its children may keep the
/// pipe open.
pub(super) const EXIT_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) enum ProcessPhase {
    /// There was none yet.
    None,
    /// It exited or was given up. It and its tools may still be exiting: no other is started until they are gone.
    Ended(ProcessHandle),
    /// One task, which ends with the process or with why there is none.
    Starting(JoinSet<Result<Started, ProviderError>>),
    Running(RunningProcess),
}

/// What happens in a phase by itself.
#[derive(Debug)]
pub(super) enum ProcessEvent {
    Started(Result<Box<Started>, ProviderError>),
    /// A line, or the end of its output.
    Line(Result<Option<OutputLine>, LineError>),
    Exited(ExitReport),
}

/// A process that has answered our handshake.
#[derive(Debug)]
pub(super) struct RunningProcess {
    stdin: LineWriter,
    handle: ProcessHandle,
    /// None once it has closed its output.
    output: Option<LineReader>,
    /// When it came up, if the user had requested it.
    pub(super) restarted_at: Option<Instant>,
    pub(super) requests: PendingRequests,
}

/// Requests that the program has not answered yet, by their ids.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    pending: HashMap<String, PendingRequest>,
    count: u64,
}

#[derive(Debug)]
pub(super) enum PendingRequest {
    /// The user sets an option.
    SetOption {
        option: String,
        value: String,
        reply: ReplySender<()>,
    },
    /// An option that the user set earlier is set again.
    RestoreOption {
        option: String,
        value: String,
    },
    /// Whether the message of this turn was withdrawn before it began.
    DropMessage(TurnId),
    Interrupt,
}

impl ProcessPhase {
    pub(super) fn running(&self) -> Option<&RunningProcess> {
        match self {
            Self::Running(process) => Some(process),
            Self::None | Self::Ended(_) | Self::Starting(_) => None,
        }
    }

    pub(super) fn running_mut(&mut self) -> Option<&mut RunningProcess> {
        match self {
            Self::Running(process) => Some(process),
            Self::None | Self::Ended(_) | Self::Starting(_) => None,
        }
    }

    /// The process before the next one, for whoever ends it.
    pub(super) fn take_ended(&mut self) -> Option<ProcessHandle> {
        match std::mem::replace(self, Self::None) {
            Self::Ended(handle) => Some(handle),
            other => {
                *self = other;
                None
            }
        }
    }

    /// The running process counts as ended; what it has not answered is given back.
    pub(super) fn end_running(&mut self) -> Option<PendingRequests> {
        match std::mem::replace(self, Self::None) {
            Self::Running(process) => {
                *self = Self::Ended(process.handle);
                Some(process.requests)
            }
            other => {
                *self = other;
                None
            }
        }
    }

    /// Cancel safe. Without `may_read` the program's output waits.
    pub(super) async fn next_event(&mut self, may_read: bool) -> ProcessEvent {
        match self {
            Self::None | Self::Ended(_) => std::future::pending().await,
            Self::Starting(task) => match task.join_next().await {
                Some(Ok(started)) => ProcessEvent::Started(started.map(Box::new)),
                Some(Err(error)) => ProcessEvent::Started(Err(ProviderError::Internal(error.to_string()))),
                None => std::future::pending().await,
            },
            Self::Running(process) => process.next_event(may_read).await,
        }
    }
}

impl RunningProcess {
    pub(super) fn new(
        output: LineReader,
        stdin: LineWriter,
        handle: ProcessHandle,
        restarted_at: Option<Instant>,
    ) -> Self {
        Self { stdin, handle, output: Some(output), restarted_at, requests: PendingRequests::default() }
    }

    /// Fails when the program has exited or does not read.
    pub(super) fn write(&self, line: String) -> Result<(), String> {
        self.stdin.try_send(line).map_err(|error| error.to_string())
    }

    /// Sends a request to the program. If it has exited, its end will be the answer.
    pub(super) fn request(&mut self, body: &Value, pending: PendingRequest) -> Result<(), String> {
        self.requests.count += 1;
        let id = format!("liminal-{}", self.requests.count);
        let written = self.write(request::control(&id, body));
        self.requests.pending.insert(id, pending);
        written
    }

    pub(super) fn has_output(&self) -> bool {
        self.output.is_some()
    }

    pub(super) fn close_output(&mut self) {
        self.output = None;
    }

    /// Cancel safe; never resolves once the output is closed.
    pub(super) async fn next_line(&mut self) -> Result<Option<OutputLine>, LineError> {
        match &mut self.output {
            Some(output) => output.next_line().await,
            None => std::future::pending().await,
        }
    }

    async fn next_event(&mut self, may_read: bool) -> ProcessEvent {
        let Self { output, handle, .. } = self;
        match output {
            Some(output) => tokio::select! {
                biased; // What it wrote comes before its exit.
                line = output.next_line(), if may_read => ProcessEvent::Line(line),
                report = handle.exited() => ProcessEvent::Exited(report),
            },
            // A process that has closed its output is of no more use; if it does not exit by itself it is ended.
            None => match tokio::time::timeout(EXIT_DRAIN_TIMEOUT, handle.exited()).await {
                Ok(report) => ProcessEvent::Exited(report),
                Err(_) => ProcessEvent::Exited(handle.kill().await),
            },
        }
    }
}

impl PendingRequests {
    pub(super) fn take(&mut self, id: &str) -> Option<PendingRequest> {
        self.pending.remove(id)
    }

    /// The user sets an option, and the program has not answered.
    pub(super) fn is_setting_option(&self) -> bool {
        self.pending.values().any(|pending| matches!(pending, PendingRequest::SetOption { .. }))
    }

    /// Answers about restoring these options are not awaited any more.
    pub(super) fn forget_restoring(&mut self, which: impl Fn(&str) -> bool) {
        self.pending
            .retain(|_, pending| !matches!(pending, PendingRequest::RestoreOption { option, .. } if which(option)));
    }

    /// Nobody will answer them.
    pub(super) fn fail(self, error: &ProviderError) {
        for pending in self.pending.into_values() {
            if let PendingRequest::SetOption { reply, .. } = pending {
                let _ = reply.send(Err(error.clone()));
            }
        }
    }
}
