//! What is requested of a session, how much of it may wait, and how it is answered or refused.

use std::sync::Arc;

use protocol::{ErrorMessage, ItemId, Prompt, PromptPart, ServerMessage, SessionId, TurnId};
use tokio::sync::oneshot;

use crate::error::ServiceError;
use crate::hub::Requester;
use crate::item::ItemCell;

/// Requests that may wait for one session while it loads or closes: as many as there can be windows, each with one.
pub(crate) const WAITING_MAX: usize = 256;
/// Bytes of messages that may wait for it. One message is at most 1 MiB, and only one of those that wait is accepted.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The way back to a caller inside the server.
pub(crate) type CallReply<T> = oneshot::Sender<Result<T, ServiceError>>;
pub(crate) type DoneReply = CallReply<()>;

/// The one way back to whoever sent a message: a window, which is answered by `turn_started`, or a caller, which is answered
/// when the agent has accepted it.
#[derive(Debug)]
pub(crate) enum SendReply {
    Window(Requester),
    Caller(CallReply<SentMessage>),
}

/// The one way back to whoever cancelled: a window, which is answered by the turn's end, or a caller, which is answered
/// when the agent was asked.
#[derive(Debug)]
pub(crate) enum CancelReply {
    Window(Requester),
    Caller(DoneReply),
    /// The server stops. Whether that worked is seen by the turn's end.
    Nobody,
}

impl SendReply {
    pub(crate) fn fail(self, failure: &ServiceError) {
        match self {
            Self::Window(requester) => requester.fail(failure),
            Self::Caller(reply) => drop(reply.send(Err(failure.clone()))),
        }
    }
}

impl CancelReply {
    /// Nothing runs (any more), which is all that was wanted.
    pub(crate) fn nothing_runs(self) {
        match self {
            Self::Window(requester) => requester.answer(ServerMessage::Ack {}),
            Self::Caller(reply) => drop(reply.send(Ok(()))),
            Self::Nobody => {}
        }
    }

    pub(crate) fn fail(self, failure: &ServiceError) {
        match self {
            Self::Window(requester) => requester.fail(failure),
            Self::Caller(reply) => drop(reply.send(Err(failure.clone()))),
            Self::Nobody => {}
        }
    }
}

/// What a window that comes back has seen.
#[derive(Clone, Debug)]
pub(crate) struct OpenCursor {
    pub(crate) journal_id: Option<String>,
    /// None: the present one.
    pub(crate) epoch: Option<u64>,
    pub(crate) seq: u64,
}

/// A message that was given to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMessage {
    pub turn_id: TurnId,
    /// False if the journal could not record it.
    pub recorded: bool,
}

#[derive(Debug)]
pub(crate) enum SessionCommand {
    Open {
        requester: Requester,
        since: Option<OpenCursor>,
    },
    Leave {
        window: u64,
    },
    Send {
        prompt: Prompt,
        reply: SendReply,
    },
    Cancel {
        reply: CancelReply,
    },
    Page {
        requester: Requester,
        before: ItemId,
        limit: usize,
    },
    /// Gives an item out, for whoever renders it: that may take long and is not done here.
    Item {
        item: ItemId,
        reply: CallReply<Arc<ItemCell>>,
    },
    SetOption {
        option: String,
        value: String,
        reply: DoneReply,
    },
    Reconnect {
        reply: DoneReply,
    },
    Seen,
    /// Waits until the session is loaded.
    Ready {
        reply: DoneReply,
    },
    /// Ends what runs in the agent; the session stays.
    Kill {
        reply: DoneReply,
    },
    /// The session was archived, or its project removed: what runs is ended, and the actor with it. Accepted at once; from
    /// then on nothing is answered.
    Close {
        accepted: oneshot::Sender<()>,
    },
    /// The server stops: what runs is cancelled. Answered when nothing runs any more.
    Drain {
        settled: oneshot::Sender<()>,
    },
}

/// Whether one more may wait behind these.
pub(crate) fn has_room(waiting: &[SessionCommand], command: &SessionCommand) -> bool {
    let bytes = command.weight_bytes() + waiting.iter().map(SessionCommand::weight_bytes).sum::<usize>();
    waiting.len() < WAITING_MAX && bytes <= WAITING_BYTES_MAX
}

/// The window wants nothing more of the session. If a request that makes it join waits, so does this, behind it. At most
/// one for each of those, so that it needs no room of its own.
pub(crate) fn leave_after(waiting: &mut Vec<SessionCommand>, window: u64) {
    let Some(position) = waiting.iter().rposition(|command| command.joins(window)) else { return };
    let is_known =
        |command: &SessionCommand| matches!(command, SessionCommand::Leave { window: other } if *other == window);
    if !waiting[position..].iter().any(is_known) {
        waiting.push(SessionCommand::Leave { window });
    }
}

impl SessionCommand {
    /// Whether it can be done only by an actor; for the others there is nothing to do when none runs.
    pub(crate) fn needs_actor(&self) -> bool {
        match self {
            Self::Open { .. }
            | Self::Send { .. }
            | Self::Page { .. }
            | Self::Item { .. }
            | Self::SetOption { .. }
            | Self::Reconnect { .. }
            | Self::Ready { .. } => true,
            Self::Leave { .. }
            | Self::Cancel { .. }
            | Self::Seen
            | Self::Kill { .. }
            | Self::Close { .. }
            | Self::Drain { .. } => false,
        }
    }

    /// Whether its agent has to be there for it.
    pub(super) fn asks_agent(&self) -> bool {
        self.changes_agent() || matches!(self, Self::Ready { .. })
    }

    /// Whether its agent would do something because of it.
    pub(crate) fn changes_agent(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::SetOption { .. } | Self::Reconnect { .. })
    }

    /// Whether it makes this window join the session.
    fn joins(&self, window: u64) -> bool {
        match self {
            Self::Open { requester, .. } | Self::Send { reply: SendReply::Window(requester), .. } => {
                requester.window == window
            }
            _ => false,
        }
    }

    fn weight_bytes(&self) -> usize {
        match self {
            Self::Send { prompt, .. } => prompt.parts.iter().map(|PromptPart::Text { text }| text.len()).sum(),
            Self::SetOption { option, value, .. } => option.len() + value.len(),
            _ => 0,
        }
    }

    /// Answers with why it cannot be done.
    pub(crate) fn refuse(self, failure: &ServiceError, session: Option<&SessionId>) {
        match self {
            Self::Open { requester, .. } | Self::Page { requester, .. } => {
                let mut message: ErrorMessage = failure.to_message();
                message.session_id = session.cloned();
                requester.refuse(message);
            }
            Self::Send { reply, .. } => reply.fail(failure),
            Self::Cancel { reply } => reply.fail(failure),
            Self::Item { reply, .. } => drop(reply.send(Err(failure.clone()))),
            Self::SetOption { reply, .. }
            | Self::Reconnect { reply }
            | Self::Ready { reply }
            | Self::Kill { reply } => drop(reply.send(Err(failure.clone()))),
            // The actor's end is the answer to these.
            Self::Leave { .. } | Self::Seen | Self::Close { .. } | Self::Drain { .. } => {}
        }
    }

    /// Answers that nothing runs, where that is all that was wanted.
    pub(crate) fn nothing_runs(self) {
        match self {
            Self::Cancel { reply } => reply.nothing_runs(),
            Self::Kill { reply } => drop(reply.send(Ok(()))),
            other => other.refuse(&ServiceError::SessionEnded, None),
        }
    }
}
