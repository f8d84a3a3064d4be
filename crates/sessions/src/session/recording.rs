//! How what a session publishes reaches the journal and, where it confirms something, windows only after that.

use std::sync::Arc;
use std::time::Duration;

use journal::JournalError;
use protocol::{ServerMessage, SessionFacts, TurnEvent, TurnId};
use upserts::{ItemBody, ItemUpdate};

use super::command::{CallReply, SentMessage};
use super::recorder::{Confirm, Due, Released};
use super::{CallResult, SessionActor};
use crate::frame::{After, Frame};
use crate::hub::Requester;
use crate::item::ItemCell;

/// For a session whose task ends to record what is left: it waits for a disk that is full or locked for a moment.
const LAST_BATCH_TIME_MAX: Duration = Duration::from_secs(20);
const RETRY_AT_END: Duration = Duration::from_millis(500);

/// What goes out to windows and callers, in order.
pub(super) enum Delivery {
    Item {
        seq: u64,
        cell: Arc<ItemCell>,
    },
    Turn {
        seq: u64,
        event: TurnEvent,
        /// Windows that get it as their answer.
        requesters: Vec<Requester>,
    },
    Facts(Box<SessionFacts>),
    /// Turns of the agent's history are in the journal.
    Imported,
    /// Every window is shown the session as it is now.
    Refresh,
    /// Whether the agent remembers some turns has changed, after one number and up to another.
    TurnsMarked {
        since: u64,
        seq: u64,
    },
    /// The answer to a caller whose message was given to the agent.
    Sent {
        caller: CallReply<SentMessage>,
        turn_id: TurnId,
    },
}

impl SessionActor {
    pub(super) fn publish_item(&mut self, update: ItemUpdate) {
        let is_message = matches!(update.body, ItemBody::Message { origin: protocol::Origin::User, .. });
        let confirm = if is_message && update.status.is_final() { Confirm::Now } else { Confirm::No };
        let (seq, cell) = self.transcript.upsert(update);
        self.recorder.item_changed(&cell, seq);
        self.deliver(Delivery::Item { seq, cell }, seq, confirm);
    }

    /// Sends it out, or has it wait until what it confirms is on the disk.
    pub(super) fn deliver(&mut self, delivery: Delivery, seq: u64, confirm: Confirm) {
        if let Some(delivery) = self.recorder.deliver(delivery, seq, confirm) {
            self.send_out(delivery, true);
        }
    }

    fn send_out(&mut self, delivery: Delivery, recorded: bool) {
        match delivery {
            Delivery::Item { seq, cell } => {
                for (_, outbox) in &self.members {
                    outbox.push_item(&self.id, seq, &cell);
                }
            }
            Delivery::Turn { seq, event, requesters } => self.send_turn(seq, event, requesters, recorded),
            Delivery::Imported => {}
            Delivery::Refresh => self.refresh_members(),
            Delivery::TurnsMarked { since, seq } => self.show_turns(since, seq),
            Delivery::Facts(more) => self.send_facts(*more),
            Delivery::Sent { caller, turn_id } => {
                self.persist.reply_when_saved(caller, SentMessage { turn_id, recorded });
            }
        }
    }

    fn send_facts(&self, more: SessionFacts) {
        let frame = |facts| Frame::of(ServerMessage::SessionFacts { session_id: self.id.clone(), facts }, None);
        let (more, all) = (frame(more), std::cell::OnceCell::new());
        for (_, outbox) in &self.members {
            outbox.push_facts(&self.id, more.clone(), || all.get_or_init(|| frame(self.facts.clone())).clone());
        }
    }

    fn send_turn(&mut self, seq: u64, payload: TurnEvent, requesters: Vec<Requester>, recorded: bool) {
        self.members.retain(|(_, outbox)| !outbox.gone().is_cancelled());
        let is_end = payload.is_end();
        let message = ServerMessage::SessionTurn { session_id: self.id.clone(), seq, payload, recorded };
        // A window that asked gets it as its answer. It gets it once, so its second request is only confirmed.
        let mut answered = Vec::new();
        for requester in requesters {
            let is_answered = answered.contains(&requester.window);
            requester.answer(if is_answered { ServerMessage::Ack {} } else { message.clone() });
            answered.push(requester.window);
        }
        let frame = Frame::of(message, None);
        for (window, outbox) in &self.members {
            if !answered.contains(window) {
                outbox.push(After::Session(self.id.clone()), frame.clone());
            }
        }
        // Without members, the branch is read at the next open.
        if is_end && !self.members.is_empty() {
            self.read_branch();
        }
    }

    /// Sends what is due to the journal.
    pub(super) fn write_due(&mut self) {
        match self.recorder.write_due(&self.transcript, &self.facts) {
            Due::Nothing => {}
            Due::Released(released) => self.release(released),
            Due::TakeOver(released) => {
                self.release(released);
                let (hub, id) = (Arc::clone(&self.hub), self.id.clone());
                self.calls.spawn(async move { CallResult::TakenOver(hub.take_over(&id).await) });
            }
        }
    }

    /// A batch was recorded, or could not be.
    pub(super) fn batch_ended(&mut self, result: &Result<(), JournalError>) {
        if let Err(error) = result {
            tracing::warn!(session = %self.id, %error, "not recorded");
        }
        let released = self.recorder.finished(result);
        self.release(released);
        self.continue_import();
        self.compare_if_recorded();
        if self.recorder.is_settled() {
            // Who waits until all is recorded.
            self.resume_waiting();
        }
        if !self.reads.are_running() {
            let recorder = &self.recorder;
            self.transcript.evict(|item| recorder.is_item_recorded(item), |turn| recorder.is_turn_recorded(turn));
        }
    }

    fn release(&mut self, released: Released<Delivery>) {
        let Released { deliveries, recorded } = released;
        let is_any = !deliveries.is_empty();
        for delivery in deliveries {
            self.send_out(delivery, recorded);
        }
        if is_any && !self.recorder.is_holding() {
            self.publish_state();
            self.resume_waiting();
        }
    }

    /// For the end of the session's task: records what is left, and sends out what waits for it.
    pub(super) async fn finish_recording(&mut self) {
        let deadline = tokio::time::Instant::now() + LAST_BATCH_TIME_MAX;
        while !self.recorder.is_clean() && tokio::time::Instant::now() < deadline {
            if !self.recorder.is_taken() {
                let taken = self.hub.take_over(&self.id).await;
                self.recorder.taken_over(taken);
            }
            if self.recorder.is_taken() {
                self.recorder.write_now(&self.transcript, &self.facts);
                let Ok(result) = tokio::time::timeout_at(deadline, self.recorder.answered()).await else { break };
                let released = self.recorder.finished(&result);
                for delivery in released.deliveries {
                    self.send_out(delivery, released.recorded);
                }
            }
            if !self.recorder.is_clean() {
                tokio::time::sleep(RETRY_AT_END).await;
            }
        }
        let recorded = self.recorder.is_clean();
        if !recorded {
            tracing::error!(session = %self.id, "the end of the session could not be recorded");
        }
        for delivery in self.recorder.take_held() {
            self.send_out(delivery, recorded);
        }
        self.publish_state();
    }
}
