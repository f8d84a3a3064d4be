//! How a session goes on after a panic of ours, and how an idle one is evicted.
//!
//! A panic concerns one session: its transcript is settled and shown with the error, its agent does not work on unseen,
//! and the next message opens it again.

use std::time::Duration;

use protocol::{ErrorCode, ErrorDetail, ErrorMessage, ServerMessage, TurnEvent, TurnStatus, UpsertStatus};
use providers::ProviderError;
use providers::catch_panic::{Panic, catch_panic, catch_panic_now};
use tokio::task::JoinSet;

use super::branch::BranchRead;
use super::phases::Lifetime;
use super::{SessionActor, now};
use crate::error::ServiceError;
use upserts::ItemUpdate;

/// For the agent of a session that panicked to be closed. Those who open the session meanwhile wait for it.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(5);

impl SessionActor {
    pub(super) async fn recover(&mut self, panic: &Panic) {
        tracing::error!(session = %self.id, %panic, "a session panicked");
        let agent = self.link.agent().cloned();
        // The channel is dropped: nobody reads it any more, so no provider may wait for us to.
        self.link = self.without_agent();
        self.hub.set_agent(&self.id, None);
        self.shown.watch.loading(false);
        self.calls = JoinSet::new();
        // Who waits for a read is refused with those who wait for the agent.
        let reads = std::mem::take(&mut self.reads);
        self.inbox.waiting.extend(reads.into_commands());
        if self.lifetime.is_ending_agent() {
            let kill = self.lifetime.take_kill();
            self.inbox.waiting.splice(0..0, kill.before);
        }
        if let Err(panic) = catch_panic_now(|| self.settle()) {
            tracing::error!(session = %self.id, %panic, "a session that panicked could not be settled");
        }
        if let Some(settled) = self.inbox.drain.take() {
            settled.send(()).ok();
        }
        // The write that was under way may have been dropped with its call: it is repeated, and those behind it follow.
        self.write_first();
        if let Some(agent) = agent {
            let closed = tokio::time::timeout(CLOSE_TIME_MAX, catch_panic(agent.close())).await;
            tracing::debug!(session = %self.id, ?closed, "the agent of a session that panicked");
        }
    }

    /// Nothing shows as running, every window is notified, and who waits is answered.
    fn settle(&mut self) {
        let text = ErrorCode::InternalError.message("");
        self.shown.watch.panicked(text.clone());
        self.cut_turn(Some(ErrorDetail::new(ErrorCode::InternalError, text.clone())));
        self.abandon_turn(&ServiceError::Panic);
        self.publish_state();
        // One that closes hands on what waits.
        if !self.lifetime.is_closing() {
            let failure = ProviderError::Internal("the session failed; open it again".into()).into();
            for command in std::mem::take(&mut self.inbox.waiting) {
                command.refuse(&failure, Some(&self.id));
            }
        }
        let mut message = ErrorMessage::new(ErrorCode::InternalError, text);
        message.session_id = Some(self.id.clone());
        self.send_to_members(ServerMessage::Error(message));
    }

    /// Ends a turn that the agent did not end, with an error or as cancelled. Its items stay, and none of them shows as
    /// running.
    pub(super) fn cut_turn(&mut self, error: Option<ErrorDetail>) {
        let (turn, open) = self.transcript.unfinished();
        for cell in open {
            let mut update = cell.update();
            update.status = if error.is_some() { UpsertStatus::Error } else { UpsertStatus::Complete };
            update.error.clone_from(&error);
            self.publish_item(update);
        }
        let Some(turn_id) = turn else { return };
        let (session_id, at) = (self.id.clone(), now());
        self.publish_turn(match error {
            Some(ErrorDetail { code: error_code, message: error_message }) => {
                TurnEvent::TurnError { turn_id, session_id, error_code, error_message, at }
            }
            None => TurnEvent::TurnComplete { turn_id, session_id, status: TurnStatus::Cancelled, usage: None, at },
        });
    }

    /// What the journal still has as running ended with the server that recorded it. Nobody is notified: that was seen when
    /// this server started.
    pub(super) fn cut_recorded_turns(&mut self, error: &ErrorDetail) {
        let (mut turn, open) = self.transcript.unfinished();
        for cell in open {
            let update = ItemUpdate { status: UpsertStatus::Error, error: Some(error.clone()), ..cell.update() };
            let (seq, cell) = self.transcript.upsert(update);
            self.recorder.item_changed(&cell, seq);
        }
        while let Some(turn_id) = turn {
            let event = TurnEvent::TurnError {
                turn_id: turn_id.clone(),
                session_id: self.id.clone(),
                error_code: error.code.clone(),
                error_message: error.message.clone(),
                at: now(),
            };
            let seq = self.transcript.turn(&event);
            self.recorder.turn_changed(&turn_id, seq);
            turn = self.transcript.unfinished().0;
        }
    }

    /// There were no events and no requests for a while. What can be loaded again is released, if nobody watches.
    pub(super) fn evict_idle(&mut self) {
        self.members.retain(|(_, outbox)| !outbox.gone().is_cancelled());
        let has_calls = self.calls.len() > usize::from(self.reads.branch != BranchRead::Idle);
        let is_busy = self.link.is_under_way() || self.turn.is_working() || has_calls;
        if is_busy || !self.members.is_empty() {
            return;
        }
        self.transcript.forget_renderings();
        // A session whose agent lives stays, and so does what the journal does not have yet.
        let is_alive = self.link.agent().is_some_and(|agent| agent.is_alive());
        if self.recorder.is_clean() && !is_alive {
            tracing::debug!(session = %self.id, "an idle session is evicted");
            self.lifetime = Lifetime::Over;
        }
    }
}
