//! What the agent sends, in its order: stream events go through the fold, everything else follows what was due before it.

use std::sync::Arc;

use protocol::{ServerMessage, SessionFacts, StreamEvent, StreamPayload};
use providers::{ProviderEvent, StatusReport};
use upserts::Emission;

use super::recorder::Confirm;
use super::recording::Delivery;
use super::{EVENTS_PER_ROUND, SessionActor, now};
use crate::frame::{After, Frame};
use crate::hub::Requester;

impl SessionActor {
    /// Handles what is in the channel already, up to a bound, without going round the loop for each event. What arrived
    /// together goes out together.
    pub(super) fn receive_more(&mut self) {
        for _ in 0..EVENTS_PER_ROUND {
            match self.link.try_next_event() {
                Some(event) => self.receive(event),
                None => break,
            }
        }
        self.publish_due();
    }

    /// Handles all that is in the channel already: the agent sends nothing more.
    pub(super) fn receive_all(&mut self) {
        while let Some(event) = self.link.try_next_event() {
            self.receive(event);
        }
        self.publish_due();
    }

    pub(super) fn receive(&mut self, event: ProviderEvent) {
        let event = match event {
            ProviderEvent::TurnBegan(turn) => {
                if let Some(fold) = self.link.fold_mut() {
                    fold.begin(turn);
                }
                return;
            }
            ProviderEvent::Stream(event) => return self.receive_stream(event),
            other => other,
        };
        // Whatever the agent sent before this is published before it.
        self.publish_due();
        match event {
            ProviderEvent::Facts(facts) => {
                self.facts.merge(facts.clone());
                self.recorder.facts_changed(&facts);
                self.publish_facts(facts);
            }
            ProviderEvent::Status(report) => self.status_changed(report),
            ProviderEvent::Continuity(continuity) => {
                self.shown.watch.continuity(continuity);
                self.publish_state();
            }
            ProviderEvent::Options(options) => self.options_changed(options),
            ProviderEvent::AgentIdChanged(agent_id) => {
                self.agent_id_changed(agent_id);
                self.forget_turns();
            }
            ProviderEvent::TurnBegan(_) | ProviderEvent::Stream(_) => {}
        }
    }

    fn receive_stream(&mut self, event: StreamEvent) {
        let is_end = matches!(event.payload, StreamPayload::ResponseDone(_) | StreamPayload::ResponseError(_));
        let ended = is_end.then(|| event.turn_id.clone());
        if let Some(fold) = self.link.fold_mut() {
            fold.push(event);
        }
        if let Some(turn) = ended {
            self.agent_ended_turn(&turn);
        }
    }

    /// Publishes what the fold has due, and stops a turn that brought too much.
    pub(super) fn publish_due(&mut self) {
        let Some(fold) = self.link.fold_mut() else { return };
        let due = fold.take_due();
        self.publish(due);
        self.stop_flood();
    }

    /// Publishes what the fold still holds: the agent is gone.
    pub(super) fn publish_held(&mut self) {
        let Some(fold) = self.link.fold_mut() else { return };
        let held = fold.take_all();
        self.publish(held);
    }

    fn publish(&mut self, emissions: Vec<Emission>) {
        for emission in emissions {
            match emission {
                Emission::Item(update) => self.publish_item(update),
                Emission::Turn(event) => self.publish_turn(event),
            }
        }
    }

    fn status_changed(&mut self, report: StatusReport) {
        match report.hangs {
            true => self.shown.watch.hangs(report.detail.as_deref()),
            false => self.shown.watch.process(report.status, report.detail.as_deref()),
        }
        self.hub.broadcast(ServerMessage::AgentStatus {
            cli_type: self.id.cli_type(),
            session_id: Some(self.id.clone()),
            status: report.status,
            attempt: report.attempt,
            attempts_max: report.attempts_max,
            retry_in_ms: report.retry_in_ms,
            detail: report.detail,
        });
        self.publish_state();
    }

    /// The window receives the session's messages from now on. Twice is once.
    pub(super) fn join(&mut self, requester: &Requester) {
        if !self.members.iter().any(|(window, _)| *window == requester.window) {
            self.members.push((requester.window, Arc::clone(&requester.outbox)));
        }
    }

    pub(super) fn publish_facts(&mut self, more: SessionFacts) {
        let seq = self.transcript.seq();
        self.deliver(Delivery::Facts(Box::new(more)), seq, Confirm::No);
    }

    /// While something waits for the disk the state waits with it.
    pub(super) fn publish_state(&mut self) {
        if self.recorder.is_holding() {
            return;
        }
        let state = self.shown.watch.state(&self.shown.state, now());
        self.hub.publish_state(&self.id, &state);
        self.shown.state = state;
        self.save_unseen();
    }

    pub(super) fn send_to_members(&self, message: ServerMessage) {
        let frame = Frame::of(message, None);
        for (_, outbox) in &self.members {
            outbox.push(After::Session(self.id.clone()), frame.clone());
        }
    }
}
