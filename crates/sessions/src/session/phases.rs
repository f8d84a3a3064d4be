//! The phases of a session: its link to the agent, the turn that runs, and whether it is being ended. Each variant holds
//! what exists in that phase and nothing else.

use std::sync::Arc;

use protocol::{Prompt, TurnId};
use providers::{AgentSession, ProviderEvent};
use tokio::sync::mpsc;
use tokio::task::Id as CallId;
use tokio::time::Instant;

use super::command::{CancelReply, DoneReply, SendReply, SessionCommand};
use super::fold::Fold;
use crate::hub::Requester;

/// What connects a session with its agent.
#[derive(Debug)]
pub(super) enum Link {
    /// Its history is not here, because it was not loaded yet or could not be. The next request loads it.
    Unloaded,
    /// Its history is being read from the journal.
    Reading,
    Loading,
    /// The session was ended while it loads: what comes of loading it is closed.
    LoadingUnwanted,
    /// What was loaded is not wanted; its agent is being closed.
    Discarding,
    Attached(AttachedAgent),
    /// The provider has closed the session; the transcript is here.
    Detached,
}

/// An open conversation with an agent.
#[derive(Debug)]
pub(super) struct AttachedAgent {
    pub(super) session: Arc<dyn AgentSession>,
    pub(super) events: mpsc::Receiver<ProviderEvent>,
    pub(super) fold: Fold,
}

impl Link {
    /// Whether it is not known yet what can be answered.
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self, Self::Reading | Self::Loading | Self::LoadingUnwanted | Self::Discarding)
    }

    pub(super) fn agent(&self) -> Option<&Arc<dyn AgentSession>> {
        match self {
            Self::Attached(agent) => Some(&agent.session),
            _ => None,
        }
    }

    pub(super) fn fold_mut(&mut self) -> Option<&mut Fold> {
        match self {
            Self::Attached(agent) => Some(&mut agent.fold),
            _ => None,
        }
    }

    /// The provider will send no more than what is in the channel.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Self::Attached(agent) if agent.events.is_closed())
    }

    pub(super) async fn next_event(&mut self) -> Option<ProviderEvent> {
        match self {
            Self::Attached(agent) => agent.events.recv().await,
            _ => std::future::pending().await,
        }
    }

    pub(super) fn try_next_event(&mut self) -> Option<ProviderEvent> {
        match self {
            Self::Attached(agent) => agent.events.try_recv().ok(),
            _ => None,
        }
    }

    /// When the fold has something due though no event comes.
    pub(super) fn fold_deadline(&self) -> Option<Instant> {
        match self {
            Self::Attached(agent) => agent.fold.deadline(),
            _ => None,
        }
    }
}

/// Where the session's turn is. Everyone who waits for an event of it is in here.
#[derive(Debug, Default)]
pub(super) enum TurnPhase {
    #[default]
    Idle,
    /// A message is on its way to the agent, by this call.
    Sending {
        call: CallId,
        window: Option<Requester>,
        cancels: Vec<PendingCancel>,
    },
    /// The agent has accepted a message, and its turn has not begun here. Somebody waits for that.
    Accepted {
        window: Option<Requester>,
        cancels: Vec<PendingCancel>,
    },
    Running {
        cancels: Vec<PendingCancel>,
    },
    /// The turn brought more than a turn may and has ended here. The agent was asked to end it too.
    FloodStop {
        turn: TurnId,
        held: Option<HeldMessage>,
    },
}

/// A cancel that the agent was asked for.
#[derive(Debug)]
pub(super) struct PendingCancel {
    pub(super) call: CallId,
    pub(super) reply: CancelReply,
}

/// A message that waits until the agent has ended a turn that was stopped.
#[derive(Debug)]
pub(super) struct HeldMessage {
    pub(super) prompt: Prompt,
    pub(super) reply: SendReply,
}

impl TurnPhase {
    /// A message is on its way to the agent, or its turn runs.
    pub(super) fn is_working(&self) -> bool {
        match self {
            Self::Sending { .. } | Self::Accepted { .. } | Self::Running { .. } => true,
            Self::FloodStop { held, .. } => held.is_some(),
            Self::Idle => false,
        }
    }

    /// Whether a message can be accepted now. One whose turn has not begun yet is answered before another is taken.
    pub(super) fn takes_message(&self) -> bool {
        matches!(self, Self::Idle | Self::FloodStop { held: None, .. })
    }

    pub(super) fn cancels_mut(&mut self) -> Option<&mut Vec<PendingCancel>> {
        match self {
            Self::Sending { cancels, .. } | Self::Accepted { cancels, .. } | Self::Running { cancels } => Some(cancels),
            Self::Idle | Self::FloodStop { .. } => None,
        }
    }
}

/// Whether the session goes on.
#[derive(Debug, Default)]
pub(super) enum Lifetime {
    #[default]
    Open,
    /// Somebody wants what runs to end. The session stays.
    Killing(Kill),
    /// It was archived, or its project removed: nothing is answered any more, and what runs is being ended.
    Closing(Kill),
    /// Closed, and nothing runs for it. It is over once no load is under way.
    Closed,
    /// Nobody needs the actor.
    Over,
}

/// What runs in the agent is being ended.
#[derive(Debug, Default)]
pub(super) struct Kill {
    pub(super) replies: Vec<DoneReply>,
    /// Requests that waited for the agent when the kill came: they are refused when it succeeds.
    pub(super) before: Vec<SessionCommand>,
}

impl Lifetime {
    pub(super) fn is_closing(&self) -> bool {
        matches!(self, Self::Closing(_) | Self::Closed)
    }

    pub(super) fn is_ending_agent(&self) -> bool {
        matches!(self, Self::Killing(_) | Self::Closing(_))
    }

    /// The kill that is under way, and what the session is once that has ended.
    pub(super) fn take_kill(&mut self) -> Kill {
        match std::mem::take(self) {
            Self::Killing(kill) => kill,
            Self::Closing(kill) => {
                *self = Self::Closed;
                kill
            }
            other => {
                *self = other;
                Kill::default()
            }
        }
    }
}
