//! Stop, and an agent that does not stop.
//!
//! A turn that the user has stopped ends here within [`AcpSettings::cancel_grace`], whatever the agent does: what was said
//! stays, and what the agent still says for that prompt is dropped. Updates of ACP do not name their prompt, so the session
//! takes no new message until the old prompt cannot speak any more: the agent has answered it, or has closed the session and
//! taken it up again. An agent that does neither hangs in this session; that is shown, and the user may restart it. Its other
//! sessions go on.
//!
//! [`AcpSettings::cancel_grace`]: super::AcpSettings::cancel_grace

use protocol::{AgentStatus, TurnId};
use tokio::time::Instant;

use super::peer::{CallError, Reply};
use super::session::{Attachment, Session};
use super::wire::PromptResult;
use crate::error::ProviderError;
use crate::provider::StatusReport;

impl Session {
    /// When a stopped turn is ended here, if one runs.
    pub(super) fn stop_due(&self) -> Option<Instant> {
        self.turn.as_ref().and_then(|turn| turn.cancelled)
    }

    /// The agent was asked to stop and had its time. The turn ends without it.
    pub(super) fn stop_overdue(&mut self) {
        tracing::warn!(session = %self.id, "the agent did not end a cancelled turn");
        self.unended = self.turn.as_ref().map(|turn| turn.id.clone());
        self.settle_turn(Ok(PromptResult::cancelled()));
        self.translator.cut_turn();
        if self.attachment != Attachment::Attached {
            return;
        }
        let is_closing = self.can_come_back() && self.close_within(self.context.settings.cancel_grace);
        if !is_closing {
            self.hang(false);
        }
    }

    /// The agent has answered `session/close`. One that refuses to close a session whose prompt it has not ended works on.
    pub(super) fn close_answered(&mut self, reply: &Reply) {
        match reply {
            Err(CallError::Refused(error)) if self.unended.is_some() => {
                tracing::warn!(session = %self.id, error = error.words(), "the agent refused to close a session");
                self.hang(false);
            }
            _ => self.closed(),
        }
    }

    /// The agent does not let go of the prompt. `is_closing`: it was asked to close the session, and may still do so.
    pub(super) fn hang(&mut self, is_closing: bool) {
        self.attachment = Attachment::Hanging { is_closing };
        self.link.set_attached(false);
        self.restart_instead();
        if let Some((_, reply)) = self.waiting.take() {
            drop(reply.send(Err(self.hanging())));
        }
        self.tell_status();
    }

    /// The answer to a prompt whose turn has ended here without it: the agent says no more about it.
    pub(super) fn answered_late(&mut self, turn: &TurnId) {
        if self.unended.as_ref() != Some(turn) {
            return;
        }
        self.unended = None;
        match self.attachment {
            Attachment::Hanging { is_closing: false } => {
                self.attachment = Attachment::Attached;
                self.link.set_attached(true);
                self.tell_status();
            }
            Attachment::Hanging { is_closing: true } => {
                self.attachment = Attachment::Detached;
                self.tell_status();
            }
            Attachment::Attached | Attachment::Detached | Attachment::Attaching { .. } | Attachment::Closing { .. } => {
            }
        }
    }

    /// Why a message is not taken while the agent hangs, and what to do.
    pub(super) fn hanging(&self) -> ProviderError {
        let name = self.context.agent.name.clone();
        let message = format!("{name} does not answer. Restart it to go on.");
        ProviderError::Protocol { name, message }
    }

    /// How the session shows it.
    pub(super) fn hanging_status(&self) -> StatusReport {
        let name = &self.context.agent.name;
        let detail = Some(format!("{name} did not stop its work when asked to, and hangs. Restart it to go on here."));
        StatusReport { status: AgentStatus::Disconnected, detail, ..StatusReport::default() }
    }
}
