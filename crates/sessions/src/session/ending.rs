//! How what runs in a session's agent is ended: by a kill, after which the session stays, or because the session closes.
//!
//! What is asked while that happens is not lost: it waits until the agent has ended. Then a session that stays opens
//! again, and one that closes hands it to the next actor.

use std::sync::Arc;

use protocol::{AgentSessionId, AgentStatus, Continuity, ErrorCode, ErrorDetail};
use providers::ProviderError;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::{Command, Done, Link, Reply, Session, now};
use crate::error::ServiceError;

/// A kill that is under way.
#[derive(Debug, Default)]
pub(super) struct Ending {
    replies: Vec<Reply<()>>,
    /// What waited for the agent when the kill came: it is refused when that succeeds.
    before: Vec<Command>,
}

impl Ending {
    /// What waited, without those who asked for the end: they have it.
    pub(super) fn into_waiting(self) -> Vec<Command> {
        self.before
    }
}

impl Session {
    /// Someone wants what runs to end. The session stays, and what is asked from now on takes the agent up again.
    pub(super) fn kill(&mut self, reply: Reply<()>) {
        let is_loading = self.link.is_under_way();
        let came_before = |command: &mut Command| is_loading || command.changes_agent();
        let before: Vec<_> = self.waiting.extract_if(.., came_before).collect();
        let ending = self.end_agent();
        ending.replies.push(reply);
        ending.before.extend(before);
    }

    /// The session is archived or its project removed. Nothing is answered from here on.
    pub(super) fn close(&mut self, accepted: oneshot::Sender<()>) {
        self.closing = true;
        // No agent gets a message that was sent before its session was closed.
        for command in self.waiting.extract_if(.., |command| command.changes_agent()) {
            command.refuse(&ServiceError::Closed, Some(&self.id));
        }
        accepted.send(()).ok();
        // What is ended is ended under the id it has.
        if !self.renaming {
            self.end_agent();
        }
    }

    /// One call for all who want it.
    pub(super) fn end_agent(&mut self) -> &mut Ending {
        if self.ending.is_none() {
            let (provider, id) = (Arc::clone(&self.provider), self.id.agent_session_id());
            self.calls.spawn(async move {
                provider.cancel_turn(&id).await.ok();
                Done::Killed(provider.kill_session(&id).await)
            });
        }
        self.ending.get_or_insert_default()
    }

    pub(super) fn killed(&mut self, killed: Result<(), ProviderError>) {
        // What it said last is in the channel. It is published before anything else is asked of it.
        self.hear_rest();
        let killed = match killed {
            // It was ended before.
            Err(ProviderError::SessionNotFound(_)) => Ok(()),
            other => other,
        };
        let is_loading = match &mut self.link {
            Link::Loading { unwanted } => {
                *unwanted |= killed.is_ok();
                true
            }
            Link::Discarding => true,
            _ => false,
        };
        if killed.is_ok() && !is_loading {
            self.lose_provider();
        }
        let Ending { replies, before } = self.ending.take().unwrap_or_default();
        if killed.is_ok() {
            let failure = ProviderError::LoadFailed { detail: "the session was ended".into() }.into();
            for command in before {
                command.refuse(&failure, Some(&self.id));
            }
        } else {
            self.waiting.splice(0..0, before);
        }
        for reply in replies {
            drop(reply.send(killed.clone().map_err(Into::into)));
        }
        if !is_loading {
            self.ended |= self.closing;
            self.resume_waiting();
        }
    }

    /// The provider closed the channel: the session was killed, everything ends, or the provider broke. A turn that it did
    /// not end is ended here: nothing shows as running for ever.
    pub(super) fn lose_provider(&mut self) {
        if matches!(self.link, Link::Attached(_)) {
            self.link = Link::Detached;
        }
        let is_asked = self.ending.is_some() || self.hub.is_stopping();
        let message = ErrorCode::ProcessCrash.message(self.provider.name());
        self.cut_turn((!is_asked).then(|| ErrorDetail::new(ErrorCode::ProcessCrash, message)));
        if self.sending.is_none() {
            self.no_turn_comes();
        }
        self.watch.process(AgentStatus::Idle, None);
        self.watch.continuity(Continuity::Dormant);
        self.publish_state();
        // One that is being ended is over when that has come to its end, not when its agent falls silent.
        self.ended |= self.closing && self.ending.is_none();
    }

    /// The agent took a message and will not say that its turn began, or that one ended.
    pub(super) fn no_turn_comes(&mut self) {
        if let Some(sender) = self.sender.take() {
            sender.fail(if self.closing { &ServiceError::Closed } else { &ServiceError::SessionEnded });
        }
        self.answer_cancellers();
    }

    /// The actor is over: who waits for an event of a turn is answered.
    pub(super) fn answer_the_rest(&mut self) {
        // Calls that are given up answer by dropping the question. A window whose message is under way is answered below.
        self.calls = JoinSet::new();
        if self.sending.take().is_some() {
            self.hub.catalog().turn_ended(&self.id, now());
        }
        self.no_turn_comes();
    }

    /// What was loaded is not wanted. Until its agent has ended nothing else is asked of it.
    pub(super) fn discard(&mut self, agent_id: AgentSessionId) {
        self.link = Link::Discarding;
        let provider = Arc::clone(&self.provider);
        self.calls.spawn(async move {
            provider.kill_session(&agent_id).await.ok();
            Done::Discarded
        });
    }

    pub(super) fn discarded(&mut self) {
        self.watch.loading(false);
        self.link = self.without_agent();
        self.publish_state();
        self.end_if_useless();
        self.resume_waiting();
    }

    /// What it is without an agent: with nothing to show, the next request has it loaded.
    pub(super) fn without_agent(&self) -> Link {
        if self.transcript.is_new() { Link::Unloaded } else { Link::Detached }
    }

    /// With nothing to show and nobody who watches the actor ends. Who waits goes to the next one, which tries again.
    pub(super) fn end_if_useless(&mut self) {
        let is_empty = matches!(self.link, Link::Unloaded) && self.members.is_empty() && self.waiting.is_empty();
        self.ended |= self.ending.is_none() && (is_empty || self.closing);
    }
}
