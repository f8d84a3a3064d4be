//! What the program's lines lead to.

use agent_process::{LineError, OutputLine};
use protocol::{AgentSessionId, Permission, PermissionDecision, ResponseStatus, SessionFacts};
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use super::process_phase::PendingRequest;
use super::{ClaudeSession, now};
use crate::claude::translate::{PermissionRequest, TranslatorOutput};
use crate::claude::wire::ClaudeLine;
use crate::claude::{NAME, request};
use crate::json::Glimpse;
use crate::permission::{PermissionKind, PermissionOption};
use crate::provider::ProviderEvent;

/// What the model reads when it asks the user something: nobody can press a button here.
const ANSWER_IN_CHAT: &str = "The question is shown to the user, who answers in the chat. If you can go on without \
                              the answer, do so with what fits best and say what you assumed; otherwise end your turn.";
const APPROVE_IN_CHAT: &str = "The plan is shown to the user, who approves it by leaving plan mode. End your turn now \
                               and wait for the user's next message.";

impl ClaudeSession {
    pub(super) fn on_line(&mut self, line: Result<Option<OutputLine>, LineError>) {
        match line {
            Ok(Some(line)) if line.as_bytes().iter().all(u8::is_ascii_whitespace) => {}
            Ok(Some(line)) => match ClaudeLine::parse(line.as_bytes()) {
                Ok(line) => self.on_parsed_line(line),
                Err(error) => self.on_unreadable_line(&line.to_str_lossy(), &error),
            },
            // The end of the process follows.
            Ok(None) => self.close_output(),
            Err(LineError::TooLong(error)) => {
                tracing::warn!(session = %self.agent_id, %error, "a line of Claude Code was too long and is left out");
                self.emit_notice(&format!("Something Claude Code wrote was left out: {error}."));
            }
            Err(LineError::Io(error)) => {
                tracing::warn!(session = %self.agent_id, %error, "Claude Code's output cannot be read");
                self.close_output();
            }
        }
    }

    fn close_output(&mut self) {
        if let Some(process) = self.process.running_mut() {
            process.close_output();
        }
    }

    /// A line that cannot be read. The end of a turn ends it all the same; any other line is reported.
    fn on_unreadable_line(&mut self, line: &str, error: &serde_json::Error) {
        self.silence_is_over();
        let is_end = Glimpse::of(line).kind.as_deref() == Some("result");
        if is_end && self.translator.turn().is_some() {
            tracing::warn!(session = %self.agent_id, %error, "a turn of Claude Code ended with an unreadable line");
            let outputs = self.translator.unreadable_result(now());
            return self.emit_all(outputs);
        }
        if let Some(message) = self.unreadable.report(NAME, line) {
            tracing::warn!(session = %self.agent_id, %error, "Claude Code wrote a line that cannot be read");
            self.emit_notice(&message);
        }
    }

    /// Emits our own message, in the running turn or a new one.
    fn emit_notice(&mut self, message: &str) {
        let is_running = self.translator.turn().is_some();
        let outputs = self.translator.left_out(Uuid::new_v4().to_string(), message, now());
        self.emit_all(outputs);
        if !is_running && self.translator.turn().is_some() {
            self.close_turn(ResponseStatus::Completed);
        }
    }

    pub(super) fn on_parsed_line(&mut self, line: ClaudeLine) {
        self.silence_is_over();
        let was_waiting = !self.translator.turn_is_accepted();
        let outputs = self.translator.line(line, now());
        self.emit_all(outputs);
        if self.conversation.is_cancelling() && was_waiting && self.translator.turn_is_accepted() {
            // The interrupt came while the message still waited, and stopped nothing.
            self.interrupt();
        }
    }

    fn silence_is_over(&mut self) {
        if self.conversation.on_output(Instant::now()) {
            self.emit_facts(SessionFacts { silent_ms: Some(0), ..SessionFacts::default() });
        }
    }

    pub(super) fn emit_all(&mut self, outputs: Vec<TranslatorOutput>) {
        for output in outputs {
            match output {
                TranslatorOutput::TurnBegan(turn) => {
                    self.conversation.begin_turn(turn.clone(), Instant::now());
                    self.emitter.begin_turn(turn);
                }
                TranslatorOutput::Event(event) => self.emitter.stream(event),
                TranslatorOutput::TurnEnded(record) => self.turn_ended(&record),
                TranslatorOutput::Facts(facts) => self.emit_facts(facts),
                TranslatorOutput::PermissionRequested(request) => self.decide(&request),
                // It was answered at once, so there is nothing to withdraw.
                TranslatorOutput::PermissionWithdrawn { .. } => {}
                TranslatorOutput::Answer { request_id, answer } => self.on_answer(&request_id, answer),
                TranslatorOutput::UnknownRequest { request_id } => self.write(request::not_supported(&request_id)),
                TranslatorOutput::AgentIdChanged(id) => {
                    if !self.change_agent_id(id) {
                        // The rest of the line is about that other session.
                        return;
                    }
                }
            }
        }
    }

    /// A tool wants to run. Viewer mode permits it once; questions to the user stay the user's.
    fn decide(&mut self, requested: &PermissionRequest) {
        let deferred = match requested.tool_name.as_str() {
            "AskUserQuestion" => Some((ANSWER_IN_CHAT, "Answer in the chat")),
            "ExitPlanMode" if self.shown_options.user_wants_plan => {
                Some((APPROVE_IN_CHAT, "Approve by leaving plan mode"))
            }
            _ => None,
        };
        let record = if let Some((message, option)) = deferred {
            self.write(request::deny(&requested.request_id, message));
            Permission { decision: PermissionDecision::Cancelled, option: Some(option.into()) }
        } else {
            let option = |id: &str, kind| PermissionOption { id: id.into(), name: id.into(), kind };
            let options = [option("Allow", PermissionKind::AllowOnce), option("Deny", PermissionKind::RejectOnce)];
            let choice = self.shared.config.permissions.decide(&options);
            let is_allowed = choice.selected.is_some_and(|option| option.kind == PermissionKind::AllowOnce);
            self.write(match is_allowed {
                true => request::allow(&requested.request_id, &requested.input),
                false => request::deny(&requested.request_id, "The user refused this."),
            });
            choice.record
        };
        if let Some(call) = &requested.tool_use_id
            && let Some(event) = self.translator.permission_decided(call, record, now())
        {
            self.emitter.stream(event);
        }
    }

    /// An answer to one of our requests. With `--replay-user-messages` our own answers come back too: they answer
    /// nothing.
    fn on_answer(&mut self, id: &str, answer: Result<Value, String>) {
        let request = self.process.running_mut().and_then(|process| process.requests.take(id));
        match request {
            Some(PendingRequest::SetOption { option, value, reply }) => {
                self.option_answered(&option, &value, answer, reply);
            }
            Some(PendingRequest::RestoreOption { option, value }) => self.restore_answered(&option, &value, answer),
            Some(PendingRequest::DropMessage(turn)) => {
                let is_dropped = answer.is_ok_and(|answer| answer["cancelled"].as_bool() == Some(true));
                if is_dropped && self.translator.turn() == Some(&turn) {
                    self.close_turn(ResponseStatus::Cancelled);
                }
            }
            Some(PendingRequest::Interrupt) => {
                if let Err(error) = answer {
                    tracing::warn!(session = %self.agent_id, error, "Claude Code refused to be interrupted");
                }
            }
            None => {}
        }
    }

    /// The process goes on with another conversation: after `/clear`, or because it has lost this one. False if another
    /// open session has that one.
    pub(super) fn change_agent_id(&mut self, id: AgentSessionId) -> bool {
        if !self.shared.claim_agent_id(&self.control, &id) {
            tracing::error!(session = %self.agent_id, other = %id, "Claude Code writes for another open session");
            self.abandon_process("Claude Code went over to a session that is open already.");
            return false;
        }
        self.memory.has_history = false;
        self.agent_id = id.clone();
        self.emitter.emit(ProviderEvent::AgentIdChanged(id));
        true
    }
}
