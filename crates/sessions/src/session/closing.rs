//! How what runs in a session's agent is ended: by a kill, after which the session stays, or because the session closes.
//!
//! Requests that come meanwhile are not lost: they wait until the agent has ended. Then a session that stays opens again,
//! and one that closes hands them to the next actor.

use std::sync::Arc;

use protocol::{AgentStatus, Continuity, ErrorCode, ErrorDetail};
use providers::{AgentSession, ProviderError};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::command::DoneReply;
use super::phases::{Kill, Lifetime, Link, TurnPhase};
use super::reads::Import;
use super::{CallResult, SessionActor, SessionCommand};
use crate::error::ServiceError;

impl SessionActor {
    /// Someone wants what runs to end. The session stays, and later requests open the agent again.
    pub(super) fn kill(&mut self, reply: DoneReply) {
        let is_loading = self.link.is_under_way();
        let came_before = |command: &mut SessionCommand| is_loading || command.changes_agent();
        let before: Vec<_> = self.inbox.waiting.extract_if(.., came_before).collect();
        let is_new = match &mut self.lifetime {
            Lifetime::Killing(kill) | Lifetime::Closing(kill) => {
                kill.replies.push(reply);
                kill.before.extend(before);
                false
            }
            lifetime => {
                *lifetime = Lifetime::Killing(Kill { replies: vec![reply], before });
                true
            }
        };
        if is_new {
            self.end_agent();
        }
    }

    /// The session is archived or its project removed. Nothing is answered from here on.
    pub(super) fn close(&mut self, accepted: oneshot::Sender<()>) {
        // No agent gets a message that was sent before its session was closed.
        for command in self.inbox.waiting.extract_if(.., |command| command.changes_agent()) {
            command.refuse(&ServiceError::Closed, Some(&self.id));
        }
        accepted.send(()).ok();
        match std::mem::take(&mut self.lifetime) {
            Lifetime::Killing(kill) | Lifetime::Closing(kill) => self.lifetime = Lifetime::Closing(kill),
            Lifetime::Open => {
                self.lifetime = Lifetime::Closing(Kill::default());
                self.end_agent();
            }
            over @ (Lifetime::Closed | Lifetime::Over) => self.lifetime = over,
        }
    }

    /// One call for all who want it. Without an agent there is nothing to end but a load.
    fn end_agent(&mut self) {
        match self.link.agent().cloned() {
            Some(agent) => {
                self.calls.spawn(async move {
                    agent.cancel().await.ok();
                    CallResult::Killed(agent.close().await)
                });
            }
            None => self.killed(Ok(())),
        }
    }

    pub(super) fn killed(&mut self, killed: Result<(), ProviderError>) {
        // What the agent sent last is in the channel. It is published before anything else is requested.
        self.receive_all();
        let killed = match killed {
            // It was ended before.
            Err(ProviderError::SessionNotFound(_)) => Ok(()),
            other => other,
        };
        let is_loading = self.link.is_under_way();
        if killed.is_ok() {
            if matches!(self.link, Link::Loading) {
                self.link = Link::LoadingUnwanted;
            } else if !is_loading {
                self.lose_agent();
            }
        }
        let Kill { replies, before } = self.lifetime.take_kill();
        if killed.is_ok() {
            let failure = ProviderError::LoadFailed { detail: "the session was ended".into() }.into();
            for command in before {
                command.refuse(&failure, Some(&self.id));
            }
        } else {
            self.inbox.waiting.splice(0..0, before);
        }
        for reply in replies {
            drop(reply.send(killed.clone().map_err(Into::into)));
        }
        if !is_loading {
            self.resume_waiting();
        }
    }

    /// The provider closed the channel: the session was killed, the server stops, or the provider failed.
    pub(super) fn lose_agent(&mut self) {
        let is_wanted = self.lifetime.is_ending_agent() || self.hub.is_stopping();
        let message = ErrorCode::ProcessCrash.message(self.provider.name());
        self.detach((!is_wanted).then(|| ErrorDetail::new(ErrorCode::ProcessCrash, message)));
        // One whose message is still on its way is answered when that call ends.
        if !matches!(self.turn, TurnPhase::Sending { .. }) {
            self.no_turn_comes();
        }
        self.shown.watch.process(AgentStatus::Idle, None);
        self.shown.watch.continuity(Continuity::Dormant);
        self.publish_state();
    }

    /// A turn that the agent did not end is ended here, with an error or as cancelled: nothing shows as running for ever.
    pub(super) fn detach(&mut self, error: Option<ErrorDetail>) {
        self.publish_held();
        if matches!(self.link, Link::Attached(_)) {
            self.reads.import = Import::None;
            self.link = Link::Detached;
            self.hub.set_agent(&self.id, None);
        }
        self.cut_turn(error);
    }

    /// The actor is over: who waits for an event of a turn is answered.
    pub(super) fn answer_all(&mut self) {
        // Calls that are dropped answer by dropping their reply. A window whose message is under way is answered below.
        self.calls = JoinSet::new();
        self.no_turn_comes();
    }

    /// What was loaded is not wanted. Until its agent has ended nothing else is requested of it.
    pub(super) fn discard(&mut self, agent: Arc<dyn AgentSession>) {
        self.link = Link::Discarding;
        self.calls.spawn(async move {
            agent.close().await.ok();
            CallResult::Discarded
        });
    }

    pub(super) fn discarded(&mut self) {
        self.shown.watch.loading(false);
        self.link = self.without_agent();
        self.publish_state();
        self.end_if_useless();
        self.resume_waiting();
    }

    /// Its link without an agent: with nothing to show, the next request has it loaded.
    pub(super) fn without_agent(&self) -> Link {
        if self.transcript.is_ready() { Link::Detached } else { Link::Unloaded }
    }

    /// With nothing to show and nobody who watches the actor ends. Requests go to the next one, which tries again.
    pub(super) fn end_if_useless(&mut self) {
        let is_empty = matches!(self.link, Link::Unloaded) && self.members.is_empty() && self.inbox.waiting.is_empty();
        if is_empty && matches!(self.lifetime, Lifetime::Open) {
            self.lifetime = Lifetime::Over;
        }
    }
}
