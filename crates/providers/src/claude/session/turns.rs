//! Turns of a session: how a message begins one, how it is cancelled, and how it ends.

use protocol::{AgentStatus, ErrorDetail, Prompt, ResponseStatus, SessionFacts, TurnId, TurnRecord, TurnRecordStatus};
use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;

use super::process_phase::PendingRequest;
use super::{ClaudeSession, now};
use crate::claude::{NAME, request, texts};
use crate::conversation::CancelStep;
use crate::error::ProviderError;

/// A message whose turn has begun and that the program was not given yet.
#[derive(Debug)]
pub(super) struct HeldMessage {
    turn: TurnId,
    prompt: Prompt,
}

impl ClaudeSession {
    /// Begins a turn. The message goes out now, or as soon as the process is ready for it.
    pub(super) fn send(&mut self, prompt: Prompt) -> Result<TurnId, ProviderError> {
        if !self.conversation.is_idle() {
            return Err(ProviderError::TurnInProgress);
        }
        let status = self.control.status();
        match status.status {
            AgentStatus::Disconnected => {
                return Err(ProviderError::Crashed { name: NAME.into(), detail: status.detail.unwrap_or_default() });
            }
            AgentStatus::Reconnecting => return Err(ProviderError::Unavailable { name: NAME.into() }),
            AgentStatus::Idle | AgentStatus::Starting | AgentStatus::Connected => {}
        }
        let uuid = Uuid::new_v4().to_string();
        let turn = TurnId::parse(&uuid).map_err(|error| ProviderError::Internal(error.to_string()))?;
        let text = prompt.text();
        if self.conversation.is_unrestored() {
            self.restore_options();
        }
        match self.process.running() {
            Some(process) if self.conversation.is_ready() && !process.requests.is_setting_option() => {
                process
                    .write(request::user(self.agent_id.as_str(), &uuid, &text))
                    .map_err(|detail| ProviderError::Crashed { name: NAME.into(), detail })?;
                self.conversation.begin_turn(turn.clone(), Instant::now());
            }
            process => {
                let is_down = process.is_none();
                self.conversation.hold(HeldMessage { turn: turn.clone(), prompt }, Instant::now());
                if is_down {
                    self.want_process();
                }
            }
        }
        self.emitter.begin_turn(turn.clone());
        self.unreadable.begin_turn();
        let outputs = self.translator.begin(turn.clone(), text, now());
        self.emit_all(outputs);
        Ok(turn)
    }

    /// The held message, once the process has the user's options.
    pub(super) fn deliver_held(&mut self) {
        let Some(process) = self.process.running().filter(|process| !process.requests.is_setting_option()) else {
            return;
        };
        let Some(HeldMessage { turn, prompt }) = self.conversation.take_deliverable(Instant::now()) else { return };
        let line = request::user(self.agent_id.as_str(), turn.as_str(), &prompt.text());
        if let Err(error) = process.write(line) {
            // The end of the process follows, and ends the turn.
            tracing::warn!(session = %self.agent_id, error, "a message could not be sent to Claude Code");
        }
        self.conversation.begin_turn(turn, Instant::now());
    }

    /// Stops the running turn.
    pub(super) fn cancel(&mut self) {
        match self.conversation.cancel(Instant::now()) {
            CancelStep::Nothing => {}
            CancelStep::Withdraw(_) => {
                if self.conversation.is_restoring()
                    && let Some(process) = self.process.running_mut()
                {
                    // Whether the process has the user's options is not known: they are set again before the next
                    // message.
                    process.requests.forget_restoring(|_| true);
                    self.conversation.options_not_restored();
                }
                self.close_turn(ResponseStatus::Cancelled);
            }
            CancelStep::AskAgent(turn) => {
                self.translator.turn_is_cancelled();
                // A message that the program has not begun with is withdrawn first, or it would begin after the
                // interrupt.
                if !self.translator.turn_is_accepted() {
                    let body = json!({"subtype": "cancel_async_message", "message_uuid": turn.as_str()});
                    self.request(&body, PendingRequest::DropMessage(turn));
                }
                self.interrupt();
            }
        }
    }

    pub(super) fn interrupt(&mut self) {
        self.request(&json!({"subtype": "interrupt"}), PendingRequest::Interrupt);
    }

    pub(super) fn turn_ended(&mut self, record: &TurnRecord) {
        tracing::debug!(session = %self.agent_id, turn = %record.turn_id, status = ?record.status, "turn ended");
        if self.conversation.end_turn(Instant::now()) {
            self.emit_facts(SessionFacts { silent_ms: Some(0), ..SessionFacts::default() });
        }
        // What was cancelled before the model wrote anything is nothing that it ought to remember.
        self.memory.has_history |= record.status != TurnRecordStatus::Cancelled || record.model_id.is_some();
        self.lifecycle.reset_restarts();
        match (record.status, record.error_message.as_deref()) {
            (TurnRecordStatus::Error, Some(error)) if texts::is_about_login(error) => self.shared.login_failed(true),
            (TurnRecordStatus::Completed, _) if record.model_id.is_some() => self.shared.login_failed(false),
            _ => {}
        }
    }

    /// Ends a turn that never reached the program, or that ends with it.
    pub(super) fn close_turn(&mut self, status: ResponseStatus) {
        let mut outputs = Vec::new();
        self.translator.close_turn(status, None, None, None, now(), &mut outputs);
        self.emit_all(outputs);
    }

    /// Everything that was open ends with this error; what was received stays.
    pub(super) fn end_turn_with_error(&mut self, error: &ErrorDetail) {
        if self.translator.turn().is_none() {
            return;
        }
        if self.conversation.is_cancelling() {
            // The user had stopped it. What happened to the program is shown by its state.
            self.close_turn(ResponseStatus::Cancelled);
        }
        self.memory.has_history = true;
        self.translator.abandon_turn();
        self.emitter.abort_turns(error);
        let silent_ms = self.conversation.end_turn(Instant::now()).then_some(0);
        let facts = SessionFacts { silent_ms, activity: self.translator.clear_activity(), ..SessionFacts::default() };
        if !facts.is_empty() {
            self.emit_facts(facts);
        }
    }
}
