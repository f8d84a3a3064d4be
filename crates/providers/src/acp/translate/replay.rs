//! The replay of `session/load`: where its turns begin and end, and when they were.

use protocol::stream::ResponseError;
use protocol::{ErrorCode, ErrorDetail, ResponseStatus, StreamPayload, Timestamp, TurnId};

use super::{EventBuilder, Translated, Translator, Update};

impl Translator {
    /// Reads what follows as the replay of `session/load`, until [`Self::end_replay`].
    pub(crate) fn begin_replay(&mut self) {
        self.replaying = true;
        self.is_fresh = true;
        self.replayed_at = None;
    }

    pub(crate) fn end_replay(&mut self, now: Timestamp) -> Translated {
        let mut builder = EventBuilder::new(now);
        self.finish_replayed(ResponseStatus::Completed, &mut builder);
        self.replaying = false;
        builder.finish(&self.session)
    }

    /// When it was sent, where the agent reports that; else unset. The time of the replay would be a false one.
    pub(super) fn time_of_replayed(&mut self, update: &Update) -> Timestamp {
        self.replayed_at = update.sent_at().or(self.replayed_at);
        self.replayed_at.unwrap_or_default()
    }

    pub(super) fn open_replayed_turn(&mut self, builder: &mut EventBuilder) {
        let id = TurnId::from_foreign(&format!("{}.{}", self.session.agent_session_id(), self.turns_begun + 1));
        self.open_turn(id, "", builder);
    }

    pub(super) fn finish_replayed(&mut self, status: ResponseStatus, builder: &mut EventBuilder) {
        self.close_replayed(builder, |builder| builder.done(status, None, None));
    }

    /// The protocol has no update for a failed turn in a replay. An agent that knows us may report it in `_meta`.
    pub(super) fn fail_replayed(&mut self, message: &str, builder: &mut EventBuilder) {
        let error = ErrorDetail::new(ErrorCode::AgentProtocolError, message);
        self.close_replayed(builder, |builder| builder.push(StreamPayload::ResponseError(ResponseError { error })));
    }

    fn close_replayed(&mut self, builder: &mut EventBuilder, end: impl FnOnce(&mut EventBuilder)) {
        self.settle_ending(builder);
        if let Some(turn) = self.turns.back_mut().filter(|turn| turn.open) {
            turn.open = false;
            turn.open_text = None;
            builder.turn = Some(turn.id.clone());
            // It ended with its last update, not when the next message came.
            let now = std::mem::replace(&mut builder.now, turn.updated_at);
            end(builder);
            builder.now = now;
        }
    }
}
