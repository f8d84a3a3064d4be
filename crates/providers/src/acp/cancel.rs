//! A cancel, and an agent that does not follow it.
//!
//! A turn that the user has cancelled ends here within [`AcpSettings::cancel_grace`], whatever the agent does: what was
//! received stays, and what the agent still writes for that prompt is dropped. Updates of ACP do not name their prompt,
//! so the session accepts no new message until the old prompt cannot write any more: the agent has answered it, or has
//! closed the session and attached it again. An agent that does neither hangs in this session; that is shown, and the
//! user may restart it. Its other sessions go on.
//!
//! [`AcpSettings::cancel_grace`]: super::AcpSettings::cancel_grace

use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use protocol::{AgentStatus, TurnId};
use tokio::time::Instant;

use super::attach_state::{AttachState, Closing};
use super::connection::Connection;
use super::rpc_client::{CallError, RpcReply};
use super::session::{AcpSession, HeldMessage, now};
use super::wire::PromptResult;
use crate::conversation::CancelStep;
use crate::error::ProviderError;
use crate::provider::StatusReport;

impl AcpSession {
    pub(super) fn cancel(&mut self) {
        match self.conversation.cancel(Instant::now()) {
            CancelStep::Nothing => {}
            CancelStep::Withdraw(held) => self.withdraw(held),
            CancelStep::AskAgent(_) => {
                if let Some(connection) = self.state.connection() {
                    let request = acp::CancelNotification::new(self.agent_id.to_string());
                    connection.rpc.notify("session/cancel", &request);
                }
            }
        }
    }

    /// A held message has never reached the agent: its turn ends as it begins.
    fn withdraw(&mut self, held: HeldMessage) {
        let id = TurnId::generate();
        let begun = self.translator.begin_turn(id.clone(), &held.prompt.text(), now());
        self.publish(begun);
        let ended = self.translator.end_turn(Ok(PromptResult::cancelled()), now());
        self.publish(ended);
        drop(held.reply.send(Ok(id)));
    }

    /// Ends a running turn here, whatever becomes of it at the agent.
    pub(super) fn give_up_turn(&mut self) {
        if self.conversation.turn().is_some() {
            self.cancel();
            self.end_turn(Ok(PromptResult::cancelled()));
        }
    }

    /// The agent was asked to stop and had its time. The turn ends without it.
    pub(super) fn on_cancel_overdue(&mut self, turn: TurnId) {
        tracing::warn!(session = %self.agent_id, "the agent did not end a cancelled turn");
        self.settle_turn(Ok(PromptResult::cancelled()));
        self.translator.cut_turn();
        let AttachState::Attached { connection } = &self.state else { return };
        let connection = Arc::clone(connection);
        let grace = self.context.settings.cancel_grace;
        let is_closing = self.can_reattach() && self.close_at_agent(grace, Some(turn.clone()));
        if !is_closing {
            self.hang(connection, turn, false);
        }
    }

    /// The agent has answered `session/close`. One that refuses to close a session whose prompt it has not ended works
    /// on.
    pub(super) fn on_close_answer(&mut self, reply: &RpcReply) {
        if let (
            Err(CallError::Refused(error)),
            AttachState::Closing(Closing { connection, unanswered: Some(turn), .. }),
        ) = (reply, &self.state)
        {
            tracing::warn!(session = %self.agent_id, error = error.text(), "the agent refused to close a session");
            let (connection, turn) = (Arc::clone(connection), turn.clone());
            return self.hang(connection, turn, false);
        }
        self.closed();
    }

    /// The agent has not closed the session in time.
    pub(super) fn on_close_overdue(&mut self) {
        if let AttachState::Closing(Closing { connection, unanswered: Some(turn), .. }) = &self.state {
            let (connection, turn) = (Arc::clone(connection), turn.clone());
            return self.hang(connection, turn, true);
        }
        // An agent that does not even close the session would not attach it either: no message waits for that.
        let restarts = self.take_restarts();
        self.restart_process(restarts);
        self.refuse_held(&self.hanging());
        self.closed();
    }

    /// The agent goes on with the prompt. `is_closing`: it was asked to close the session, and may still do so.
    fn hang(&mut self, connection: Arc<Connection>, unanswered: TurnId, is_closing: bool) {
        let restarts = self.take_restarts();
        self.state = AttachState::Hanging { connection, unanswered, is_closing };
        self.mailbox.link.set_attached(false);
        self.restart_process(restarts);
        self.refuse_held(&self.hanging());
        self.report_status();
    }

    /// The answer to a prompt whose turn has ended here without it: the agent writes no more for it.
    pub(super) fn on_late_answer(&mut self, turn: &TurnId) {
        self.state = match self.take_state() {
            AttachState::Hanging { connection, unanswered, is_closing: false } if unanswered == *turn => {
                self.mailbox.link.set_attached(true);
                self.conversation.restore_options(|_, _| false);
                AttachState::Attached { connection }
            }
            // The close that was asked for may still come, so the session is attached again before its next message.
            AttachState::Hanging { connection, unanswered, is_closing: true } if unanswered == *turn => {
                AttachState::Detached { connection }
            }
            AttachState::Closing(closing) if closing.unanswered.as_ref() == Some(turn) => {
                AttachState::Closing(Closing { unanswered: None, ..closing })
            }
            state => state,
        };
        self.report_status();
    }

    /// Why a message is refused while the agent hangs, and what to do.
    pub(super) fn hanging(&self) -> ProviderError {
        let name = self.agent_name();
        let message = format!("{name} does not answer. Restart it to go on.");
        ProviderError::Protocol { name, message }
    }

    /// How the session shows it.
    pub(super) fn hanging_status(&self) -> StatusReport {
        let name = &self.context.agent.name;
        let detail = Some(format!("{name} did not stop its work when asked to, and hangs. Restart it to go on here."));
        StatusReport { status: AgentStatus::Disconnected, detail, hangs: true, ..StatusReport::default() }
    }
}
