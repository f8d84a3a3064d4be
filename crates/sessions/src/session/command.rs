//! What is asked of a session, how much of it may wait, and how it is refused.

use std::sync::Arc;

use protocol::{ErrorMessage, ItemId, ServerMessage, SessionId, TurnId};
use tokio::sync::oneshot;

use crate::error::ServiceError;
use crate::hub::Requester;
use crate::item::ItemCell;

/// Requests that may wait for one session while it loads or closes: as many as there can be windows, each with one.
pub(crate) const WAITING_MAX: usize = 256;
/// Bytes of messages that may wait for it. One message is at most 1 MiB, and only one of those that wait is taken.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(crate) type Reply<T> = oneshot::Sender<Result<T, ServiceError>>;

#[derive(Debug)]
pub(crate) enum Command {
    Open {
        requester: Requester,
        since: Option<u64>,
    },
    Leave {
        window: u64,
    },
    Send {
        content: String,
        requester: Option<Requester>,
        reply: Reply<TurnId>,
    },
    Cancel {
        requester: Option<Requester>,
        reply: Reply<()>,
    },
    Page {
        requester: Requester,
        before: ItemId,
        limit: usize,
    },
    /// Gives an item out, for whoever makes something of it: that may take long and is not done here.
    Item {
        item: ItemId,
        reply: Reply<Arc<ItemCell>>,
    },
    SetOption {
        option: String,
        value: String,
        reply: Reply<()>,
    },
    Reconnect {
        reply: Reply<()>,
    },
    Seen,
    /// Waits until the session is loaded.
    Ready {
        reply: Reply<()>,
    },
    /// Ends what runs in the agent; the session stays.
    Kill {
        reply: Reply<()>,
    },
    /// The session was archived, or its project removed: what runs is ended, and the actor with it. Accepted at once; from
    /// then on nothing is answered.
    Close {
        accepted: oneshot::Sender<()>,
    },
    /// The server ends: what runs is cancelled. Answered when nothing runs any more.
    Drain {
        settled: oneshot::Sender<()>,
    },
}

/// Whether one more may wait behind these.
pub(crate) fn has_room(waiting: &[Command], command: &Command) -> bool {
    let bytes = command.weight_bytes() + waiting.iter().map(Command::weight_bytes).sum::<usize>();
    waiting.len() < WAITING_MAX && bytes <= WAITING_BYTES_MAX
}

/// The window wants nothing more of the session. If a request that makes it join waits, so does this, behind it. At most
/// one for each of those, so that it needs no room of its own.
pub(crate) fn leave_after(waiting: &mut Vec<Command>, window: u64) {
    let Some(place) = waiting.iter().rposition(|command| command.joins(window)) else { return };
    let is_known = |command: &Command| matches!(command, Command::Leave { window: other } if *other == window);
    if !waiting[place..].iter().any(is_known) {
        waiting.push(Command::Leave { window });
    }
}

impl Command {
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
            Self::Open { requester, .. } | Self::Send { requester: Some(requester), .. } => requester.window == window,
            _ => false,
        }
    }

    fn weight_bytes(&self) -> usize {
        match self {
            Self::Send { content, .. } => content.len(),
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
            Self::Send { reply, .. } => drop(reply.send(Err(failure.clone()))),
            Self::Item { reply, .. } => drop(reply.send(Err(failure.clone()))),
            Self::Cancel { reply, .. }
            | Self::SetOption { reply, .. }
            | Self::Reconnect { reply }
            | Self::Ready { reply }
            | Self::Kill { reply } => drop(reply.send(Err(failure.clone()))),
            // Its end is the answer to these.
            Self::Leave { .. } | Self::Seen | Self::Close { .. } | Self::Drain { .. } => {}
        }
    }

    /// Answers that nothing runs, where that is all that was wanted.
    pub(crate) fn nothing_runs(self) {
        match self {
            Self::Cancel { requester, reply } => {
                if let Some(requester) = requester {
                    requester.answer(ServerMessage::Ack {});
                }
                drop(reply.send(Ok(())));
            }
            Self::Kill { reply } => drop(reply.send(Ok(()))),
            other => other.refuse(&ServiceError::SessionEnded, None),
        }
    }
}
