//! What a session does without being asked: it tells silence, runs out of patience, and rests.

use std::time::Duration;

use protocol::{Continuity, SessionFacts};
use tokio::time::Instant;

use super::peer::CallError;
use super::session::{Attachment, Session};
use crate::provider::ProviderEvent;

/// Further away than any deadline of ours: nothing to wake up for.
pub(super) const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

impl Session {
    /// The next moment at which something has to be done without anyone asking.
    pub(super) fn deadline(&self) -> Instant {
        let silence = self
            .turn
            .as_ref()
            .filter(|_| !self.translator.has_open_tool())
            .map(|turn| turn.silent_since.unwrap_or(turn.heard) + self.context.settings.silence_after);
        let attachment = match self.attachment {
            Attachment::Attaching { due, .. } | Attachment::Closing { due } => Some(due),
            Attachment::Attached | Attachment::Detached | Attachment::Hanging { .. } => None,
        };
        let leaving = self.leaving.as_ref().map(|leaving| leaving.due);
        [silence, attachment, self.stop_due(), leaving, self.idle_due()]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or_else(|| Instant::now() + FAR * 2)
    }

    /// When it will have been idle for too long, if the agent can let go of it and take it up again.
    fn idle_due(&self) -> Option<Instant> {
        let is_idle = self.attachment == Attachment::Attached && self.turn.is_none() && self.is_known;
        self.context.settings.idle.filter(|_| is_idle && self.can_come_back()).map(|idle| self.used + idle)
    }

    pub(super) fn tick(&mut self) {
        let now = Instant::now();
        if self.idle_due().is_some_and(|due| due <= now) {
            tracing::info!(session = %self.id, "an idle session is closed at its agent");
            self.used = now;
            if self.close() {
                self.emitter.emit(ProviderEvent::Continuity(Continuity::Dormant));
            }
        }
        match self.attachment {
            Attachment::Attaching { due, .. } if due <= now => {
                self.attach_failed(&CallError::TimedOut(self.context.settings.session_timeout));
            }
            Attachment::Closing { due } if due <= now && self.unended.is_some() => self.hang(true),
            Attachment::Closing { due } if due <= now => {
                self.restart_instead();
                self.refuse_waiting();
                self.closed();
            }
            _ => {}
        }
        if self.stop_due().is_some_and(|due| due <= now) {
            self.stop_overdue();
        }
        let silence_after = self.context.settings.silence_after;
        let has_open_tool = self.translator.has_open_tool();
        if let Some(turn) = self.turn.as_mut().filter(|_| !has_open_tool)
            && turn.silent_since.unwrap_or(turn.heard) + silence_after <= now
        {
            turn.silent_since = Some(now);
            let silent_ms = u64::try_from((now - turn.heard).as_millis()).unwrap_or(u64::MAX);
            self.tell(SessionFacts { silent_ms: Some(silent_ms), ..SessionFacts::default() });
        }
    }

    pub(super) fn heard(&mut self) {
        self.used = Instant::now();
        let Some(turn) = &mut self.turn else { return };
        turn.heard = Instant::now();
        if turn.silent_since.take().is_some() {
            self.tell(SessionFacts { silent_ms: Some(0), ..SessionFacts::default() });
        }
    }
}
