//! What a session does by itself: it reports silence, ends what the agent does not end, and evicts itself when idle.

use std::time::Duration;

use protocol::{Continuity, SessionFacts};
use tokio::time::Instant;

use super::attach_state::AttachState;
use super::rpc_client::CallError;
use super::session::{AcpSession, Recorded};
use crate::conversation::{Conditions, Due};
use crate::provider::ProviderEvent;

/// Longer than any deadline of ours: nothing to wake up for.
pub(super) const NO_DEADLINE: Duration = Duration::from_secs(365 * 24 * 3600);

impl AcpSession {
    /// The next moment at which something has to be done.
    pub(super) fn deadline(&self) -> Instant {
        let ending = self.ending.as_ref().map(|ending| ending.due);
        let due = [self.conversation.deadline(self.conditions()), self.state.due(), ending].into_iter().flatten().min();
        due.unwrap_or_else(|| Instant::now() + NO_DEADLINE * 2)
    }

    fn conditions(&self) -> Conditions {
        Conditions {
            expects_output: self.conversation.turn().is_some() && !self.translator.has_open_tool(),
            can_evict: self.state.is_attached() && self.memory.recorded == Recorded::Confirmed && self.can_reattach(),
        }
    }

    pub(super) fn on_time(&mut self) {
        let now = Instant::now();
        while let Some(due) = self.conversation.on_time(now, self.conditions()) {
            match due {
                Due::CancelOverdue(turn) => self.on_cancel_overdue(turn),
                Due::Silence(silence) => {
                    let silent_ms = u64::try_from(silence.as_millis()).unwrap_or(u64::MAX);
                    self.emit_facts(SessionFacts { silent_ms: Some(silent_ms), ..SessionFacts::default() });
                }
                Due::EvictIdle => self.evict_idle(),
            }
        }
        if self.state.due().is_some_and(|due| due <= now) {
            match self.state {
                AttachState::Closing(_) => self.on_close_overdue(),
                _ => self.attach_failed(&CallError::TimedOut(self.context.settings.session_timeout)),
            }
        }
    }

    fn evict_idle(&mut self) {
        tracing::info!(session = %self.agent_id, "an idle session is closed at its agent");
        if self.close_at_agent(self.context.settings.session_timeout, None) {
            self.emitter.emit(ProviderEvent::Continuity(self.memory.limit(Continuity::Dormant)));
        }
    }

    /// The agent wrote something.
    pub(super) fn on_output(&mut self) {
        let now = Instant::now();
        self.conversation.on_use(now);
        if self.conversation.on_output(now) {
            self.emit_facts(SessionFacts { silent_ms: Some(0), ..SessionFacts::default() });
        }
    }
}
