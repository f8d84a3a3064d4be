//! What the program's lines lead to.

use agent_process::{LineError, OutputLine as RawLine};
use protocol::{
    AgentSessionId, Permission, PermissionDecision, ResponseStatus, SessionFacts, SessionId, TurnRecord,
    TurnRecordStatus,
};
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::{Pending, Session, now};
use crate::claude::translate::{PermissionRequest, Said};
use crate::claude::wire::Line;
use crate::claude::{NAME, request, texts};
use crate::json::Glimpse;
use crate::permission::{PermissionKind, PermissionOption};
use crate::provider::{ProviderError, ProviderEvent};

/// What the model reads when it asks the user something: nobody can press a button here.
const ANSWER_IN_CHAT: &str = "The question is shown to the user, who answers in the chat. If you can go on without \
                              the answer, do so with what fits best and say what you assumed; otherwise end your turn.";
const APPROVE_IN_CHAT: &str = "The plan is shown to the user, who approves it by leaving plan mode. End your turn now \
                               and wait for the user's next message.";

impl Session {
    pub(super) fn hear(&mut self, line: Result<Option<RawLine>, LineError>) {
        match line {
            Ok(Some(line)) if line.as_bytes().iter().all(u8::is_ascii_whitespace) => {}
            Ok(Some(line)) => match Line::parse(line.as_bytes()) {
                Ok(line) => self.hear_line(line),
                Err(error) => self.hear_unreadable(&line.to_str_lossy(), &error),
            },
            // The end of the process follows.
            Ok(None) => self.output = None,
            Err(LineError::TooLong(error)) => {
                tracing::warn!(session = %self.id, %error, "a line of Claude Code was too long and is left out");
                self.tell_left_out(&format!("Something Claude Code said was left out: {error}."));
            }
            Err(LineError::Io(error)) => {
                tracing::warn!(session = %self.id, %error, "Claude Code's output cannot be read");
                self.output = None;
            }
        }
    }

    /// A line that cannot be read. The end of a turn ends it all the same; any other line is reported.
    fn hear_unreadable(&mut self, line: &str, error: &serde_json::Error) {
        self.last_heard = Instant::now();
        let is_end = Glimpse::of(line).kind.as_deref() == Some("result");
        if is_end && self.translator.turn().is_some() {
            tracing::warn!(session = %self.id, %error, "Claude Code ended a turn with a line that cannot be read");
            let said = self.translator.unreadable_result(now());
            return self.tell(said);
        }
        if let Some(words) = self.unreadable.report(NAME, line) {
            tracing::warn!(session = %self.id, %error, "Claude Code wrote a line that cannot be read");
            self.tell_left_out(&words);
        }
    }

    /// A word of ours, in the turn that runs or in one of its own.
    fn tell_left_out(&mut self, words: &str) {
        let is_running = self.translator.turn().is_some();
        let said = self.translator.left_out(Uuid::new_v4().to_string(), words, now());
        self.tell(said);
        if !is_running && self.translator.turn().is_some() {
            self.close_turn(ResponseStatus::Completed);
        }
    }

    pub(super) fn hear_line(&mut self, line: Line) {
        self.last_heard = Instant::now();
        if std::mem::take(&mut self.silence_told) {
            self.tell_facts(SessionFacts { silent_ms: Some(0), ..SessionFacts::default() });
        }
        let waited = !self.translator.turn_is_accepted();
        let said = self.translator.line(line, now());
        self.tell(said);
        if self.cancelling_until.is_some() && waited && self.translator.turn_is_accepted() {
            // The interrupt came while the message still waited, and stopped nothing.
            self.ask(&json!({"subtype": "interrupt"}), Pending::Interrupt);
        }
    }

    pub(super) fn tell(&mut self, said: Vec<Said>) {
        for said in said {
            match said {
                Said::TurnBegan(turn) => {
                    self.idle_since = None;
                    self.outlet.begin(turn);
                }
                Said::Event(event) => self.outlet.push(event),
                Said::TurnEnded(record) => self.turn_ended(&record),
                Said::Facts(facts) => self.tell_facts(facts),
                Said::PermissionAsked(request) => self.decide(&request),
                // It was answered at once, so there is nothing to take back.
                Said::PermissionWithdrawn { .. } => {}
                Said::Answer { request_id, answer } => self.answered(&request_id, answer),
                Said::UnknownRequest { request_id } => self.write(request::not_supported(&request_id)),
                Said::SessionChanged(id) => {
                    if !self.renamed(id) {
                        // The rest of the line is about that other session.
                        return;
                    }
                }
            }
        }
    }

    fn turn_ended(&mut self, record: &TurnRecord) {
        tracing::debug!(session = %self.id, turn = %record.turn_id, status = ?record.status, "turn ended");
        self.cancelling_until = None;
        // What was cancelled before the model spoke is nothing that it ought to remember.
        self.has_past |= record.status != TurnRecordStatus::Cancelled || record.model_id.is_some();
        self.lifecycle.proved();
        self.idle_since = Some(Instant::now());
        match (record.status, record.error_message.as_deref()) {
            (TurnRecordStatus::Error, Some(error)) if texts::is_about_login(error) => self.shared.login_failed(true),
            (TurnRecordStatus::Completed, _) if record.model_id.is_some() => self.shared.login_failed(false),
            _ => {}
        }
    }

    /// Ends a turn that never reached the program, or that ends with it.
    pub(super) fn close_turn(&mut self, status: ResponseStatus) {
        let mut said = Vec::new();
        self.translator.close_turn(status, None, None, None, now(), &mut said);
        self.tell(said);
    }

    /// A tool wants to run. Viewer mode gives leave for once; questions to the user stay the user's.
    fn decide(&mut self, asked: &PermissionRequest) {
        let deferred = match asked.tool_name.as_str() {
            "AskUserQuestion" => Some((ANSWER_IN_CHAT, "Answer in the chat")),
            "ExitPlanMode" if self.plans_for_user => Some((APPROVE_IN_CHAT, "Approve by leaving plan mode")),
            _ => None,
        };
        let record = if let Some((message, option)) = deferred {
            self.write(request::deny(&asked.request_id, message));
            Permission { decision: PermissionDecision::Cancelled, option: Some(option.into()) }
        } else {
            let option = |id: &str, kind| PermissionOption { id: id.into(), name: id.into(), kind };
            let options = [option("Allow", PermissionKind::AllowOnce), option("Deny", PermissionKind::RejectOnce)];
            let decision = self.shared.config.permissions.decide(&options);
            let allowed = decision.chosen.is_some_and(|chosen| chosen.kind == PermissionKind::AllowOnce);
            self.write(match allowed {
                true => request::allow(&asked.request_id, &asked.input),
                false => request::deny(&asked.request_id, "The user refused this."),
            });
            decision.record
        };
        if let Some(call) = &asked.tool_use_id
            && let Some(event) = self.translator.permission_given(call, record, now())
        {
            self.outlet.push(event);
        }
    }

    /// An answer to one of our questions. With `--replay-user-messages` our own answers come back too: not ours to take.
    fn answered(&mut self, id: &str, answer: Result<Value, String>) {
        match self.pending.remove(id) {
            Some(Pending::Option { option, value, reply: Some(reply) }) => {
                let refused = |message| ProviderError::Protocol { name: NAME.into(), message };
                // It may have been picked before what was chosen earlier was set again.
                self.is_restored &= answer.is_ok();
                let _ = reply.send(answer.map(|_| self.option_is(&option, &value)).map_err(refused));
                self.send_unsent();
            }
            Some(Pending::Option { option, value, reply: None }) => {
                match answer {
                    Ok(_) => self.option_is(&option, &value),
                    Err(reason) => self.not_restored(&option, &value, &reason),
                }
                self.send_unsent();
            }
            Some(Pending::DropMessage(turn)) => {
                let dropped = answer.is_ok_and(|answer| answer["cancelled"].as_bool() == Some(true));
                if dropped && self.translator.turn() == Some(&turn) {
                    self.close_turn(ResponseStatus::Cancelled);
                }
            }
            Some(Pending::Interrupt) => {
                if let Err(error) = answer {
                    tracing::warn!(session = %self.id, error, "Claude Code refused to be interrupted");
                }
            }
            None => {}
        }
    }

    /// `/clear`: the same process goes on with another conversation. False if that is not its to have.
    fn renamed(&mut self, id: AgentSessionId) -> bool {
        if !self.shared.renamed(&self.id, &id) {
            tracing::error!(session = %self.id, other = %id, "Claude Code speaks for a session that is not its own");
            self.forsake("Claude Code went over to a session that is open already.");
            return false;
        }
        self.has_past = false;
        self.id = id.clone();
        self.outlet.rename(SessionId::new(&self.shared.cli_type, &id));
        self.outlet.say(ProviderEvent::IdChanged(id));
        true
    }
}
