//! One turn of a session: the message that begins it, permission requests in it, and how it ends.
//!
//! Comes in: the user's message, the agent's permission requests, its answer to the prompt. Goes out: lines to the
//! agent, and the turn's events. Kept out: whether the agent has the session (`attach`), a cancel (`cancel`), and what
//! is due by itself (`deadlines`).

use agent_client_protocol_schema::v1 as acp;
use protocol::{Permission, PermissionDecision, Prompt, PromptPart, SessionFacts, TurnId};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::attach_state::{AttachPurpose, AttachState};
use super::router::{OfferedOption, PermissionRequest, RequestKind};
use super::rpc_client::{CallError, RpcReply};
use super::session::{AcpSession, HeldMessage, Recorded, now};
use super::supervisor::SupervisorCommand;
use super::wire::{PARSE_ERROR, PromptResult, RpcError};
use crate::error::ProviderError;
use crate::permission::{PermissionChoice, PermissionKind, PermissionOption};

impl AcpSession {
    /// Begins a turn, or holds the message until the agent has the session.
    pub(super) fn send(&mut self, prompt: Prompt, reply: oneshot::Sender<Result<TurnId, ProviderError>>) {
        if !self.conversation.is_idle() {
            return drop(reply.send(Err(ProviderError::TurnInProgress)));
        }
        match &self.state {
            AttachState::Disconnected => drop(reply.send(Err(self.unavailable()))),
            AttachState::Hanging { .. } => drop(reply.send(Err(self.hanging()))),
            AttachState::Attached { .. } => drop(reply.send(self.prompt(&prompt))),
            AttachState::Attaching(_) | AttachState::Closing(_) => {
                self.conversation.hold(HeldMessage { prompt, reply }, Instant::now());
            }
            AttachState::Detached { .. } => {
                self.conversation.hold(HeldMessage { prompt, reply }, Instant::now());
                self.attach(AttachPurpose::none());
            }
        }
    }

    /// Sends the message to the agent. That it could be sent is the only sign that it was accepted.
    pub(super) fn prompt(&mut self, prompt: &Prompt) -> Result<TurnId, ProviderError> {
        let Some(connection) = self.state.connection() else { return Err(self.unavailable()) };
        let id = TurnId::generate();
        let request = acp::PromptRequest::new(self.agent_id.to_string(), content_blocks(prompt));
        connection
            .rpc
            .ask("session/prompt", &request, self.mailbox.link.clone(), RequestKind::Prompt(id.clone()))
            .map_err(|error| self.call_failed(&error))?;
        if self.memory.recorded == Recorded::Nothing {
            self.memory.recorded = Recorded::Message;
        }
        self.unsolicited_bytes = 0;
        self.unreadable.begin_turn();
        self.conversation.begin_turn(id.clone(), Instant::now());
        let translated = self.translator.begin_turn(id.clone(), &prompt.text(), now());
        self.publish(translated);
        Ok(id)
    }

    /// Answered at once; after a cancel, as cancelled.
    pub(super) fn on_permission_request(&mut self, id: &RawValue, request: PermissionRequest) {
        self.on_output();
        let options: Vec<PermissionOption> = request.options.into_iter().map(permission_option).collect();
        // What a prompt still asks for after its turn was settled is refused, and not shown.
        let is_over = self.state.drops_content();
        let choice = if is_over || self.conversation.is_cancelling() {
            let record = Permission { decision: PermissionDecision::Cancelled, option: None };
            PermissionChoice { selected: None, record }
        } else {
            self.context.settings.permissions.decide(&options)
        };
        let outcome = match &choice.selected {
            Some(option) => {
                acp::RequestPermissionOutcome::Selected(acp::SelectedPermissionOutcome::new(option.id.clone()))
            }
            None => acp::RequestPermissionOutcome::Cancelled,
        };
        if let Some(connection) = self.state.connection() {
            let record = serde_json::json!({"permission": choice.record});
            let meta = serde_json::Map::from_iter([("liminal".to_owned(), record)]);
            connection.rpc.answer(id, &Ok(acp::RequestPermissionResponse::new(outcome).meta(meta)));
        }
        if !is_over {
            let translated = self.translator.permission(request.tool_call, choice.record, now());
            self.publish(translated);
        }
    }

    pub(super) fn on_prompt_answer(&mut self, turn: &TurnId, reply: RpcReply) {
        let result = match reply {
            Ok(text) => serde_json::from_str::<PromptResult>(&text)
                .map_err(|error| RpcError::new(PARSE_ERROR, error.to_string())),
            Err(CallError::Refused(error)) => Err(error),
            Err(error @ CallError::Unreadable { .. }) => {
                tracing::warn!(session = %self.agent_id, %error, "the end of a turn");
                let message = format!("{} ended the turn with a line that could not be read.", self.context.agent.name);
                Err(RpcError::new(PARSE_ERROR, message))
            }
            // The process is gone: that is reported when it is known how.
            Err(CallError::Gone(_) | CallError::Stalled | CallError::TimedOut(_)) => return,
        };
        if self.conversation.turn() != Some(turn) {
            return self.on_late_answer(turn);
        }
        // One that was cancelled at its beginning may never have been written down.
        if result.as_ref().is_ok_and(|result| result.stop_reason != "cancelled") {
            self.memory.recorded = Recorded::Confirmed;
        }
        // The user has cancelled it: that is how it ended, however the agent puts it.
        let result = match self.conversation.is_cancelling() {
            true => {
                Ok(PromptResult { usage: result.ok().and_then(|result| result.usage), ..PromptResult::cancelled() })
            }
            false => result,
        };
        // Nobody waits for the supervisor.
        let _ = self.context.supervisor.try_send(SupervisorCommand::ResetRestarts);
        self.end_turn(result);
    }

    /// The turn is over as far as anyone sees. Some agents leave a command running after a cancel: closing the session
    /// ends it, and the session is attached again with the next message.
    pub(super) fn end_turn(&mut self, result: Result<PromptResult, RpcError>) {
        let was_cancelled = result.as_ref().is_ok_and(|result| result.stop_reason == "cancelled");
        let may_run_on = was_cancelled && self.translator.may_leave_command();
        self.settle_turn(result);
        if may_run_on && self.state.is_attached() && self.can_reattach() {
            self.close_at_agent(self.context.settings.session_timeout, None);
        }
    }

    /// Ends the turn for everyone who watches it.
    pub(super) fn settle_turn(&mut self, result: Result<PromptResult, RpcError>) {
        self.forget_turn();
        let translated = self.translator.end_turn(result, now());
        self.publish(translated);
    }

    /// Forgets the turn. The caller reports its end.
    pub(super) fn forget_turn(&mut self) {
        if self.conversation.end_turn(Instant::now()) {
            self.emit_facts(SessionFacts { silent_ms: Some(0), ..SessionFacts::default() });
        }
        self.unclaimed_output.clear();
        self.release_terminals();
    }

    /// No command that the agent runs through us outlives the turn or the session it is for.
    pub(super) fn release_terminals(&self) {
        if let Some(connection) = self.state.connection() {
            connection.terminals.release_session(self.agent_id.as_str());
        }
    }
}

/// The message as the wire has it.
fn content_blocks(prompt: &Prompt) -> Vec<acp::ContentBlock> {
    prompt.parts.iter().map(|PromptPart::Text { text }| acp::ContentBlock::from(text.clone())).collect()
}

fn permission_option(option: OfferedOption) -> PermissionOption {
    let kind = match option.kind.as_str() {
        "allow_once" => PermissionKind::AllowOnce,
        "allow_always" => PermissionKind::AllowAlways,
        "reject_once" => PermissionKind::RejectOnce,
        "reject_always" => PermissionKind::RejectAlways,
        _ => PermissionKind::Unknown,
    };
    PermissionOption { id: option.option_id, name: option.name, kind }
}
