//! How a session ends by a fault of ours, and how it rests.
//!
//! A fault concerns one session: what was said is settled and shown with the error, its agent does not work on unseen, and
//! the next message takes it up anew.

use std::sync::Arc;
use std::time::Duration;

use protocol::{ErrorCode, ErrorDetail, ErrorMessage, ServerMessage, TurnEvent, TurnStatus, UpsertStatus};
use providers::ProviderError;
use tokio::task::JoinSet;

use super::branch::BranchRead;
use super::{Session, now};
use crate::error::ServiceError;
use providers::fault::{Fault, contained, contained_now};

/// For the agent of a broken session to be ended. Those who open the session meanwhile wait for it.
const END_TIME_MAX: Duration = Duration::from_secs(5);

impl Session {
    pub(super) async fn fall(&mut self, fault: &Fault) {
        tracing::error!(session = %self.id, %fault, "a session broke");
        // Nobody reads it any more, so nobody may wait for us to.
        self.link = self.without_agent();
        self.watch.loading(false);
        self.calls = JoinSet::new();
        self.branch_read = BranchRead::default();
        self.renaming = false;
        if self.sending.is_some() {
            // Its turn will never be.
            self.hub.catalog().turn_ended(&self.id, now());
        }
        self.fetching_older = false;
        if let Some(ending) = self.ending.take() {
            self.waiting.splice(0..0, ending.into_waiting());
        }
        self.sending = None;
        if let Some(sender) = self.sender.take() {
            sender.fail(&ServiceError::Fault);
        }
        if let Err(fault) = contained_now(|| self.settle()) {
            tracing::error!(session = %self.id, %fault, "a broken session could not be settled");
        }
        if let Some(settled) = self.drain.take() {
            settled.send(()).ok();
        }
        let (provider, id) = (Arc::clone(&self.provider), self.id.agent_session_id());
        let ended = tokio::time::timeout(END_TIME_MAX, contained(provider.kill_session(&id))).await;
        tracing::debug!(session = %self.id, ?ended, "the agent of a broken session");
    }

    /// Nothing shows as running, every window is told, and who waits is answered.
    fn settle(&mut self) {
        let words = ErrorCode::InternalError.message("");
        self.watch.fault(words.clone());
        self.cut_turn(Some(ErrorDetail::new(ErrorCode::InternalError, words.clone())));
        self.publish_state();
        self.answer_cancellers();
        // One that closes hands on what waits.
        if !self.closing {
            let failure = ProviderError::Internal("the session broke; open it again".into()).into();
            for command in std::mem::take(&mut self.waiting) {
                command.refuse(&failure, Some(&self.id));
            }
        }
        let mut message = ErrorMessage::new(ErrorCode::InternalError, words);
        message.session_id = Some(self.id.clone());
        self.tell_members(ServerMessage::Error(message));
    }

    /// Ends a turn that its provider did not end, with an error or as cancelled. What was said stays, and nothing of it
    /// shows as running.
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
        self.hear_turn(match error {
            Some(ErrorDetail { code: error_code, message: error_message }) => {
                TurnEvent::TurnError { turn_id, session_id, error_code, error_message, at }
            }
            None => TurnEvent::TurnComplete { turn_id, session_id, status: TurnStatus::Cancelled, usage: None, at },
        });
    }

    /// Nothing was heard or asked for a while. What can be had again is put away, if nobody looks.
    pub(super) fn rest(&mut self) {
        self.members.retain(|(_, outbox)| !outbox.gone().is_cancelled());
        let has_calls = self.calls.len() > usize::from(self.branch_read != BranchRead::Idle);
        let is_busy = self.link.is_under_way() || self.is_working() || has_calls;
        if is_busy || !self.members.is_empty() {
            return;
        }
        self.transcript.forget_renderings();
        // A session whose agent lives stays, and so does one whose words we alone have.
        if self.provider.keeps_history() && !self.provider.is_alive(&self.id.agent_session_id()) {
            tracing::debug!(session = %self.id, "a session nobody looks at is put away");
            self.ended = true;
        }
    }
}
