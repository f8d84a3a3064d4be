//! How a session ends: closed by the hub, lost by a panic of ours, or not opened at all. And how it loses its process.

use std::time::Duration;

use protocol::{AgentStatus, ErrorCode, ErrorDetail};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::attach_state::{AttachPurpose, AttachState};
use super::session::{AcpSession, Recorded};
use super::wire::PromptResult;
use crate::catch_panic::{Panic, catch_panic_now};
use crate::error::ProviderError;
use crate::provider::StatusReport;

/// For a running turn to end when its session is closed, and for the agent to close its side.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// The session ends, as soon as no turn runs or when it is due.
pub(super) struct Ending {
    pub(super) due: Instant,
    /// The agent is asked to close its side as well.
    at_agent: bool,
    reply: Option<oneshot::Sender<()>>,
}

impl Ending {
    pub(super) fn into_reply(self) -> Option<oneshot::Sender<()>> {
        self.reply
    }
}

impl AcpSession {
    pub(super) fn begin_end(&mut self, at_agent: bool, reply: oneshot::Sender<()>) {
        self.cancel();
        let has_turn = self.conversation.turn().is_some();
        let due = if has_turn { Instant::now() + CLOSE_WITHIN } else { Instant::now() };
        self.ending = Some(Ending { due, at_agent, reply: Some(reply) });
    }

    /// A session that could not be opened does not exist from this moment on.
    pub(super) fn end_unopened(&mut self) {
        self.context.router.remove(&self.agent_id);
        self.ending.get_or_insert(Ending { due: Instant::now(), at_agent: false, reply: None });
    }

    pub(super) fn has_ended(&self) -> bool {
        let has_turn = self.conversation.turn().is_some();
        self.ending.as_ref().is_some_and(|ending| !has_turn || ending.due <= Instant::now())
    }

    /// Settles what runs, closes the session at the agent, and sends the last events.
    pub(super) async fn end(&mut self) {
        if self.conversation.turn().is_some() {
            self.cancel();
            self.settle_turn(Ok(PromptResult::cancelled()));
        }
        // Whoever loads the session meanwhile waits for this guard.
        let _closing = self.context.router.begin_close(&self.agent_id);
        self.mailbox.link.set_attached(false);
        self.release_terminals();
        // The reader of the agent's lines may be waiting for room here.
        self.mailbox.inputs.close();
        while self.mailbox.inputs.try_recv().is_ok() {}
        let connection = self.state.connection().cloned();
        self.fail_waiters(&ProviderError::SessionNotFound(self.agent_id.clone()));
        let at_agent = self.ending.as_ref().is_none_or(|ending| ending.at_agent);
        if let Some(connection) = connection.filter(|_| at_agent) {
            // Where the agent was given nothing, nothing should stay in its own list.
            let delete = self.memory.recorded == Recorded::Nothing;
            connection.close_session(self.agent_id.as_str(), delete, CLOSE_WITHIN).await;
        }
        // Nobody receives any more, or everything is sent.
        let _ = tokio::time::timeout(CLOSE_WITHIN, self.emitter.drain()).await;
    }

    /// A panic of ours: the turn ends with an error, the agent's side is closed, and the session can be opened again.
    /// What panicked may be what would report it; then the end of the channel does.
    pub(super) fn abandon_after_panic(&mut self, panic: &Panic) {
        tracing::error!(session = %self.agent_id, %panic, "a session panicked");
        let message = ErrorCode::InternalError.message("");
        let settled = catch_panic_now(|| {
            self.cancel();
            if self.conversation.turn().is_some() {
                self.abort_turn(ErrorDetail::new(ErrorCode::InternalError, message.clone()));
            }
            let (status, detail) = (AgentStatus::Disconnected, Some(message.clone()));
            self.emit_status(StatusReport { status, detail, ..StatusReport::default() });
        });
        if let Err(panic) = settled {
            tracing::error!(session = %self.agent_id, %panic, "a session that panicked could not be settled");
            self.conversation.end_turn(Instant::now());
        }
        let failure = ProviderError::Internal(message);
        self.fail_waiters(&failure);
        self.fail_option_requests(&failure);
    }

    /// The process is gone. `was_requested`: the user asked for a restart.
    pub(super) fn on_lost(&mut self, detail: &str, was_requested: bool) {
        let name = self.agent_name();
        self.mailbox.link.set_attached(false);
        self.conversation.agent_is_absent();
        if self.conversation.is_cancelling() {
            // The user had cancelled it. That the agent is gone is reported by its state.
            self.settle_turn(Ok(PromptResult::cancelled()));
        } else if self.conversation.turn().is_some() {
            let message = match was_requested {
                true => format!("{name} was restarted"),
                false => ErrorCode::ProcessCrash.message(&name),
            };
            self.abort_turn(ErrorDetail::new(ErrorCode::ProcessCrash, message));
        }
        let crashed = ProviderError::Crashed { name, detail: detail.to_owned() };
        let restarts = self.take_restarts();
        self.restart_process(restarts);
        self.fail_waiters(&crashed);
        self.state = AttachState::Disconnected;
        self.fail_option_requests(&crashed);
        if !was_requested {
            self.report_loss(detail);
        }
    }

    /// Ends the turn with an error, without the agent.
    fn abort_turn(&mut self, error: ErrorDetail) {
        self.forget_turn();
        self.emitter.abort_turns(&error);
        self.translator.abandon_turn();
    }

    /// Answers everyone who waits for the session to be attached. The process stays.
    fn fail_waiters(&mut self, error: &ProviderError) {
        let connection = self.state.connection().cloned();
        let purpose = match self.take_state() {
            AttachState::Attaching(attaching) => attaching.purpose,
            AttachState::Closing(closing) => {
                closing.restarts.into_iter().for_each(|restart| drop(restart.send(Err(error.clone()))));
                AttachPurpose::none()
            }
            _ => AttachPurpose::none(),
        };
        self.state = AttachState::detached(connection);
        self.attach_ended(purpose, error);
    }
}
