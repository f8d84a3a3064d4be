//! How the agent's process and one session stand to each other, as phases that hold exactly their own data.

use std::sync::Arc;

use protocol::{Continuity, TurnId};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::connection::Connection;
use super::history::HistoryBuilder;
use super::router::AttachRequest;
use super::wire::Update;
use crate::error::ProviderError;
use crate::provider::{History, HistoryWanted};

/// Somebody who waits for a call to be done.
pub(super) type DoneSender = oneshot::Sender<Result<(), ProviderError>>;

pub(super) enum AttachState {
    /// No process runs.
    Disconnected,
    /// The process has nothing of the session. It is asked for it when that is needed.
    Detached {
        connection: Arc<Connection>,
    },
    Attaching(Attaching),
    Attached {
        connection: Arc<Connection>,
    },
    /// The process was asked to close the session.
    Closing(Closing),
    /// The process works on for a prompt that the user has cancelled. It gets no message before it has answered that
    /// or, where it was asked to, closed the session.
    Hanging {
        connection: Arc<Connection>,
        unanswered: TurnId,
        is_closing: bool,
    },
}

/// The process was asked for the session, and has until `due` to answer.
pub(super) struct Attaching {
    pub(super) connection: Arc<Connection>,
    pub(super) due: Instant,
    pub(super) step: AttachStep,
    pub(super) purpose: AttachPurpose,
}

pub(super) enum AttachStep {
    Creating,
    Resuming,
    /// `replayed`: something of the history has come.
    Loading {
        replayed: bool,
    },
    /// The agent has the session. The user's options are set again, one after the other; `request` is the present one.
    RestoringOptions {
        continuity: Continuity,
        request: Option<u64>,
    },
}

pub(super) enum AttachPurpose {
    /// The session is being opened.
    Open(Box<OpenRequest>),
    /// The session is open. What a load replays is known and dropped.
    Reattach { waiters: Vec<AttachWaiter> },
}

pub(super) struct OpenRequest {
    pub(super) wanted: HistoryWanted,
    /// What a load has replayed.
    pub(super) history: HistoryBuilder,
    /// The agent has replayed something, and all of it is here.
    pub(super) has_history: bool,
    /// Notices that came meanwhile. They belong after the history, not into it.
    pub(super) notices: Vec<Update>,
    pub(super) reply: oneshot::Sender<Result<OpenAnswer, ProviderError>>,
}

/// The history for whoever opened the session, and whether it was read at all.
pub(crate) struct OpenAnswer {
    pub(crate) history: History,
    pub(crate) has_history: bool,
}

/// Who waits for the session to be attached again.
pub(super) enum AttachWaiter {
    /// The supervisor, after a restart of the process.
    Supervisor(DoneSender),
    /// The user, who wants this session reattached or else the process restarted.
    Restart(DoneSender),
}

pub(super) struct Closing {
    pub(super) connection: Arc<Connection>,
    pub(super) due: Instant,
    /// The prompt whose turn was ended here and not by the agent, which may still write for it.
    pub(super) unanswered: Option<TurnId>,
    /// Who wants the session attached again as soon as it is closed.
    pub(super) restarts: Vec<DoneSender>,
}

impl AttachState {
    pub(super) fn connection(&self) -> Option<&Arc<Connection>> {
        match self {
            Self::Disconnected => None,
            Self::Detached { connection }
            | Self::Attached { connection }
            | Self::Hanging { connection, .. }
            | Self::Attaching(Attaching { connection, .. })
            | Self::Closing(Closing { connection, .. }) => Some(connection),
        }
    }

    pub(super) fn is_attached(&self) -> bool {
        matches!(self, Self::Attached { .. })
    }

    /// What is being opened, if the session is.
    pub(super) fn open_request(&mut self) -> Option<&mut OpenRequest> {
        match self {
            Self::Attaching(Attaching { purpose: AttachPurpose::Open(open), .. }) => Some(open),
            _ => None,
        }
    }

    pub(super) fn is_opening(&self) -> bool {
        self.history_wanted().is_some()
    }

    /// What is wanted of the history, if the session is being opened.
    pub(super) fn history_wanted(&self) -> Option<HistoryWanted> {
        match self {
            Self::Attaching(Attaching { purpose: AttachPurpose::Open(open), .. }) => Some(open.wanted),
            _ => None,
        }
    }

    /// What the agent writes now is a known history, or belongs to a session that was closed: neither is new.
    pub(super) fn drops_content(&self) -> bool {
        match self {
            Self::Attached { .. } => false,
            Self::Attaching(Attaching { step, purpose, .. }) => match purpose {
                AttachPurpose::Open(open) => !matches!(step, AttachStep::Loading { .. }) && !open.has_history,
                AttachPurpose::Reattach { .. } => matches!(step, AttachStep::Loading { .. }),
            },
            Self::Disconnected | Self::Detached { .. } | Self::Closing(_) | Self::Hanging { .. } => true,
        }
    }

    /// When the agent's time to answer is over.
    pub(super) fn due(&self) -> Option<Instant> {
        match self {
            Self::Attaching(Attaching { due, .. }) | Self::Closing(Closing { due, .. }) => Some(*due),
            Self::Disconnected | Self::Detached { .. } | Self::Attached { .. } | Self::Hanging { .. } => None,
        }
    }

    /// The same process without the session.
    pub(super) fn detached(connection: Option<Arc<Connection>>) -> Self {
        connection.map_or(Self::Disconnected, |connection| Self::Detached { connection })
    }
}

impl AttachStep {
    /// Whether the answer to this request is awaited.
    pub(super) fn answers(&self, request: AttachRequest) -> bool {
        match self {
            Self::Creating => request == AttachRequest::Create,
            Self::Resuming => request == AttachRequest::Resume,
            Self::Loading { .. } => request == AttachRequest::Load,
            Self::RestoringOptions { .. } => false,
        }
    }
}

impl AttachPurpose {
    pub(super) fn none() -> Self {
        Self::Reattach { waiters: Vec::new() }
    }

    /// Takes out those who want the process restarted if the session cannot be attached.
    pub(super) fn take_restarts(&mut self) -> Vec<DoneSender> {
        let Self::Reattach { waiters } = self else { return Vec::new() };
        let is_restart = |waiter: &AttachWaiter| matches!(waiter, AttachWaiter::Restart(_));
        let (restarts, others): (Vec<_>, Vec<_>) = std::mem::take(waiters).into_iter().partition(is_restart);
        *waiters = others;
        restarts.into_iter().map(AttachWaiter::into_sender).collect()
    }
}

impl AttachWaiter {
    pub(super) fn into_sender(self) -> DoneSender {
        match self {
            Self::Supervisor(done) | Self::Restart(done) => done,
        }
    }
}
