//! Messages to the agent and their turns: sending, cancelling, and stopping a turn with too much output.

use std::sync::Arc;

use protocol::{Prompt, TurnEvent, TurnId};
use providers::ProviderError;
use tokio::task::Id as CallId;

use super::command::{CallReply, CancelReply, SendReply, SentMessage};
use super::persist::Write;
use super::phases::{HeldMessage, Link, PendingCancel, TurnPhase};
use super::recorder::Confirm;
use super::recording::Delivery;
use super::{CallResult, SessionActor, now};
use crate::error::ServiceError;
use crate::hub::Requester;

impl SessionActor {
    pub(super) fn send(&mut self, prompt: Prompt, reply: SendReply) {
        if !self.turn.takes_message() {
            return reply.fail(&ServiceError::TurnInProgress);
        }
        if let SendReply::Window(requester) = &reply {
            // Before anything is published of it: the window gets its own message and all that follows.
            self.join(requester);
        }
        let text = prompt.text();
        self.hub.catalog().turn_begins(&self.id, now(), &text);
        // The title is saved separately: the message does not wait for it.
        if let Some(title) = self.hub.first_title(&self.id, &text) {
            self.save(Write::Title(title));
        }
        match &mut self.turn {
            TurnPhase::FloodStop { held, .. } => *held = Some(HeldMessage { prompt, reply }),
            _ => self.give_to_agent(prompt, reply),
        }
    }

    fn give_to_agent(&mut self, prompt: Prompt, reply: SendReply) {
        let Some(agent) = self.link.agent().cloned() else {
            self.hub.catalog().turn_ended(&self.id, now());
            return reply.fail(&ServiceError::SessionEnded);
        };
        let (hub, id, agent_id) = (Arc::clone(&self.hub), self.id.clone(), self.persist.agent_id().clone());
        let (window, caller) = match reply {
            SendReply::Window(requester) => (Some(requester), None),
            SendReply::Caller(caller) => (None, Some(caller)),
        };
        let call = self.spawn_in_order(async move {
            // A message under an id that is not on the disk could not be found again after a restart.
            let sent = match hub.save_agent_id(&id, &agent_id).await {
                Ok(()) => agent.send(prompt).await,
                Err(error) => Err(error),
            };
            CallResult::Sent(sent, caller)
        });
        self.turn = TurnPhase::Sending { call: call.id(), window, cancels: Vec::new() };
    }

    pub(super) fn sent(
        &mut self,
        call: CallId,
        sent: Result<TurnId, ProviderError>,
        caller: Option<CallReply<SentMessage>>,
    ) {
        // The start of its turn is in the channel by now and handled first, so that no other message gets its answer.
        self.receive_more();
        let sent = sent.map_err(|error| {
            // The agent of a closing session fails with a less specific error.
            if self.lifetime.is_closing() { ServiceError::Closed } else { error.into() }
        });
        // Its turn may have begun, ended and been followed by another one before this is handled.
        if matches!(&self.turn, TurnPhase::Sending { call: current, .. } if *current == call)
            && let TurnPhase::Sending { window, cancels, .. } = std::mem::take(&mut self.turn)
        {
            match &sent {
                Ok(_) => {
                    self.was_prompted();
                    self.turn = TurnPhase::Accepted { window, cancels };
                }
                Err(error) => {
                    self.hub.catalog().turn_ended(&self.id, now());
                    if let Some(window) = window {
                        window.fail(error);
                    }
                    // Its turn will never begin, so no turn end will answer them.
                    cancels.into_iter().for_each(|cancel| cancel.reply.nothing_runs());
                }
            }
        }
        if sent.is_ok() && !matches!(self.link, Link::Attached(_)) {
            self.no_turn_comes();
        }
        match (caller, sent) {
            (Some(caller), Ok(turn_id)) => {
                let seq = self.transcript.seq();
                self.deliver(Delivery::Sent { caller, turn_id }, seq, Confirm::Now);
            }
            (Some(caller), Err(error)) => drop(caller.send(Err(error))),
            (None, _) => {}
        }
    }

    pub(super) fn cancel(&mut self, reply: CancelReply) {
        if let TurnPhase::FloodStop { held: Some(_), .. } = &self.turn {
            // The agent is ending its turn already; what waits for that is not sent.
            self.refuse_held(&ServiceError::TurnInProgress);
            return reply.nothing_runs();
        }
        let agent = self.link.agent().cloned().filter(|_| self.turn.is_working());
        let Some(agent) = agent else { return reply.nothing_runs() };
        let call = self.spawn_in_order(async move { CallResult::Cancelled(agent.cancel().await) }).id();
        match self.turn.cancels_mut() {
            // Each of several who cancel is answered.
            Some(cancels) => cancels.push(PendingCancel { call, reply }),
            None => reply.nothing_runs(),
        }
    }

    pub(super) fn cancelled(&mut self, call: CallId, cancelled: Result<(), ProviderError>) {
        let Some(cancels) = self.turn.cancels_mut() else { return };
        let Some(position) = cancels.iter().position(|cancel| cancel.call == call) else { return };
        match cancelled {
            Err(error) => cancels.remove(position).reply.fail(&error.into()),
            // A window is answered by the turn's end.
            Ok(()) if matches!(cancels[position].reply, CancelReply::Window(_)) => {}
            Ok(()) => cancels.remove(position).reply.nothing_runs(),
        }
    }

    pub(super) fn publish_turn(&mut self, event: TurnEvent) {
        let seq = self.transcript.turn(&event);
        self.recorder.turn_changed(event.turn_id(), seq);
        self.shown.watch.turn(&event);
        let is_ours = matches!(self.turn, TurnPhase::Sending { .. } | TurnPhase::Accepted { .. });
        let (requesters, confirm) = match event.is_end() {
            true => (self.turn_ended(&event), Confirm::Now),
            // The message that began it follows.
            false => (self.turn_started(), if is_ours { Confirm::Soon } else { Confirm::No }),
        };
        self.deliver(Delivery::Turn { seq, event, requesters }, seq, confirm);
        self.publish_state();
    }

    /// Gives the window whose message began the turn.
    fn turn_started(&mut self) -> Vec<Requester> {
        // An agent that begins another turn has ended the one that was stopped.
        self.refuse_held(&ServiceError::TurnInProgress);
        // If the agent changed its id, any turn counts: the message that began it may have been confirmed before that.
        let is_ours = matches!(self.turn, TurnPhase::Sending { .. } | TurnPhase::Accepted { .. });
        let is_prompted = is_ours || *self.persist.agent_id() != self.id.agent_session_id();
        let (window, cancels) = match std::mem::take(&mut self.turn) {
            TurnPhase::Sending { window, cancels, .. } | TurnPhase::Accepted { window, cancels } => (window, cancels),
            TurnPhase::Running { cancels } => (None, cancels),
            TurnPhase::Idle | TurnPhase::FloodStop { .. } => (None, Vec::new()),
        };
        self.turn = TurnPhase::Running { cancels };
        if is_prompted {
            self.was_prompted();
        }
        window.into_iter().collect()
    }

    /// Gives the windows that cancelled it.
    fn turn_ended(&mut self, event: &TurnEvent) -> Vec<Requester> {
        self.save_turn_end(event);
        let cancels = self.turn.cancels_mut().map(std::mem::take).unwrap_or_default();
        if matches!(self.turn, TurnPhase::Running { .. }) {
            self.turn = TurnPhase::Idle;
        }
        let mut windows = Vec::new();
        for PendingCancel { reply, .. } in cancels {
            match reply {
                CancelReply::Window(requester) => windows.push(requester),
                other => other.nothing_runs(),
            }
        }
        windows
    }

    /// A turn with too much output was ended here. The agent is asked to end it too; until it has, messages wait.
    pub(super) fn stop_flood(&mut self) {
        let Link::Attached(attached) = &self.link else { return };
        let (TurnPhase::Idle, Some(turn)) = (&self.turn, attached.fold.flooded_turn()) else { return };
        tracing::warn!(session = %self.id, "a turn brought too much and is stopped");
        let (turn, agent) = (turn.clone(), Arc::clone(&attached.session));
        self.spawn_in_order(async move { CallResult::FloodCancelled(agent.cancel().await) });
        self.turn = TurnPhase::FloodStop { turn, held: None };
    }

    /// The agent ended a turn. If that turn was stopped here, the held message is sent now.
    pub(super) fn agent_ended_turn(&mut self, ended: &TurnId) {
        if !matches!(&self.turn, TurnPhase::FloodStop { turn, .. } if turn == ended) {
            return;
        }
        if let TurnPhase::FloodStop { held: Some(HeldMessage { prompt, reply }), .. } = std::mem::take(&mut self.turn) {
            self.give_to_agent(prompt, reply);
        }
    }

    fn refuse_held(&mut self, failure: &ServiceError) {
        if let TurnPhase::FloodStop { held, .. } = &mut self.turn
            && let Some(HeldMessage { reply, .. }) = held.take()
        {
            self.hub.catalog().turn_ended(&self.id, now());
            reply.fail(failure);
        }
    }

    /// The agent will report neither that a turn began nor that one ended.
    pub(super) fn no_turn_comes(&mut self) {
        let failure = if self.lifetime.is_closing() { ServiceError::Closed } else { ServiceError::SessionEnded };
        self.abandon_turn(&failure);
    }

    /// Whoever waits for an event of a turn is answered.
    pub(super) fn abandon_turn(&mut self, failure: &ServiceError) {
        self.refuse_held(failure);
        let phase = std::mem::take(&mut self.turn);
        if matches!(phase, TurnPhase::Sending { .. }) {
            self.hub.catalog().turn_ended(&self.id, now());
        }
        match phase {
            TurnPhase::Sending { window, cancels, .. } | TurnPhase::Accepted { window, cancels } => {
                if let Some(window) = window {
                    window.fail(failure);
                }
                cancels.into_iter().for_each(|cancel| cancel.reply.nothing_runs());
            }
            TurnPhase::Running { cancels } => cancels.into_iter().for_each(|cancel| cancel.reply.nothing_runs()),
            TurnPhase::Idle | TurnPhase::FloodStop { .. } => {}
        }
    }
}
