//! The replay of `session/load`: where its turns begin and end, and when they were.

use protocol::stream::ResponseError;
use protocol::{ErrorCode, ErrorDetail, ResponseStatus, StreamPayload, Timestamp, TurnId};

use super::{Translated, EventBuilder, Translator, Update};

impl Translator {
    /// Reads what follows as the replay of `session/load`, until [`Self::end_replay`].
    pub(crate) fn begin_replay(&mut self) {
        self.replaying = true;
        self.is_fresh = true;
        self.replayed_at = None;
    }

    pub(crate) fn end_replay(&mut self, now: Timestamp) -> Translated {
        let mut step = EventBuilder::new(now);
        self.finish_replayed(ResponseStatus::Completed, &mut step);
        self.replaying = false;
        step.into_output(&self.session)
    }

    /// When it was said, by what the agent tells; else unset. The time of the replay would be a false one.
    pub(super) fn time_of_replayed(&mut self, update: &Update) -> Timestamp {
        self.replayed_at = update.sent_at().or(self.replayed_at);
        self.replayed_at.unwrap_or_default()
    }

    pub(super) fn open_replayed_turn(&mut self, step: &mut EventBuilder) {
        let id = TurnId::from_foreign(&format!("{}.{}", self.session.agent_session_id(), self.turns_begun + 1));
        self.open_turn(id, "", step);
    }

    pub(super) fn finish_replayed(&mut self, status: ResponseStatus, step: &mut EventBuilder) {
        self.close_replayed(step, |step| step.done(status, None, None));
    }

    /// The protocol has no word for a failed turn in a replay. An agent that knows us may say it in `_meta`.
    pub(super) fn fail_replayed(&mut self, message: &str, step: &mut EventBuilder) {
        let error = ErrorDetail::new(ErrorCode::AgentProtocolError, message);
        self.close_replayed(step, |step| step.push(StreamPayload::ResponseError(ResponseError { error })));
    }

    fn close_replayed(&mut self, step: &mut EventBuilder, tell: impl FnOnce(&mut EventBuilder)) {
        self.settle_ending(step);
        if let Some(turn) = self.turns.back_mut().filter(|turn| turn.open) {
            turn.open = false;
            turn.growing = None;
            step.turn = Some(turn.id.clone());
            // It ended with its last word, not when the next message came.
            let now = std::mem::replace(&mut step.now, turn.said_at);
            tell(step);
            step.now = now;
        }
    }
}
