//! One turn of a session: the message that begins it, leave that is given in it, and how it ends.
//!
//! Comes in: the user's message or cancel, the agent's requests for leave, its answer to the prompt. Goes out: lines to the
//! agent, and the turn's events. Kept out: whether the agent has the session (`attach`), and when its patience ends (`time`).

use agent_client_protocol_schema::v1 as acp;
use protocol::{Permission, PermissionDecision, Prompt, PromptPart, SessionFacts, TurnId};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::peer::{CallError, Reply};
use super::router::{Expect, OfferedOption, PermissionRequest};
use super::session::{Attachment, Session, now};
use super::supervisor::Command;
use super::wire::{PARSE_ERROR, PromptResult, RpcError};
use crate::error::ProviderError;
use crate::permission::{Decision, PermissionKind, PermissionOption};

/// The turn that runs, for the agent if for nobody else.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) id: TurnId,
    /// When the agent last said something in it.
    pub(super) heard: Instant,
    /// When its silence was last told.
    pub(super) silent_since: Option<Instant>,
    /// Cancelled; the agent has until then to end it.
    pub(super) cancelled: Option<Instant>,
}

impl Session {
    /// Begins a turn, or keeps the message until the agent can take it.
    pub(super) fn send(&mut self, prompt: Prompt, reply: oneshot::Sender<Result<TurnId, ProviderError>>) {
        if self.turn.is_some() || self.waiting.is_some() {
            return drop(reply.send(Err(ProviderError::TurnInProgress)));
        }
        if self.connection.is_none() {
            return drop(reply.send(Err(self.unavailable())));
        }
        match self.attachment {
            Attachment::Hanging { .. } => drop(reply.send(Err(self.hanging()))),
            Attachment::Attached => drop(reply.send(self.prompt(&prompt))),
            Attachment::Attaching { .. } | Attachment::Closing { .. } => self.waiting = Some((prompt, reply)),
            Attachment::Detached => {
                self.waiting = Some((prompt, reply));
                self.attach();
            }
        }
    }

    /// Hands the message to the agent. There is no sign that it was accepted but that it could be sent.
    pub(super) fn prompt(&mut self, prompt: &Prompt) -> Result<TurnId, ProviderError> {
        let Some(connection) = &self.connection else { return Err(self.unavailable()) };
        let id = TurnId::generate();
        let request = acp::PromptRequest::new(self.id.to_string(), content_blocks(prompt));
        let expect = Expect::Prompt(id.clone());
        connection
            .peer
            .ask("session/prompt", &request, self.link.clone(), expect)
            .map_err(|error| self.failed(&error))?;
        self.prompted = true;
        self.unasked_bytes = 0;
        self.unreadable.turn_begins();
        self.turn = Some(Turn { id: id.clone(), heard: Instant::now(), silent_since: None, cancelled: None });
        let output = self.translator.begin_turn(id.clone(), &prompt.text(), now());
        self.publish(output);
        Ok(id)
    }

    pub(super) fn cancel(&mut self) {
        self.take_back();
        let (Some(turn), Some(connection)) = (&mut self.turn, &self.connection) else { return };
        if turn.cancelled.is_none() {
            turn.cancelled = Some(Instant::now() + self.context.settings.cancel_grace);
            connection.peer.notify("session/cancel", &acp::CancelNotification::new(self.id.to_string()));
        }
    }

    /// A message that waits has never reached the agent: its turn ends as it begins.
    fn take_back(&mut self) {
        let Some((prompt, reply)) = self.waiting.take() else { return };
        let id = TurnId::generate();
        let begun = self.translator.begin_turn(id.clone(), &prompt.text(), now());
        self.publish(begun);
        let ended = self.translator.end_turn(Ok(PromptResult::cancelled()), now());
        self.publish(ended);
        drop(reply.send(Ok(id)));
    }

    /// Answered at once; after a cancel, with that.
    pub(super) fn permission(&mut self, id: &RawValue, request: PermissionRequest) {
        self.heard();
        let options: Vec<PermissionOption> = request.options.into_iter().map(offered).collect();
        // What a prompt still asks after its turn was settled is asked in vain.
        let is_over = self.is_repeated();
        let is_cancelled = is_over || self.turn.as_ref().is_some_and(|turn| turn.cancelled.is_some());
        let decision = if is_cancelled {
            Decision { chosen: None, record: Permission { decision: PermissionDecision::Cancelled, option: None } }
        } else {
            self.context.settings.permissions.decide(&options)
        };
        let outcome = match &decision.chosen {
            Some(option) => {
                acp::RequestPermissionOutcome::Selected(acp::SelectedPermissionOutcome::new(option.id.clone()))
            }
            None => acp::RequestPermissionOutcome::Cancelled,
        };
        if let Some(connection) = &self.connection {
            let record = serde_json::json!({"permission": decision.record});
            let meta = serde_json::Map::from_iter([("liminal".to_owned(), record)]);
            connection.peer.answer(id, &Ok(acp::RequestPermissionResponse::new(outcome).meta(meta)));
        }
        if !is_over {
            let output = self.translator.permission(request.tool_call, decision.record, now());
            self.publish(output);
        }
    }

    pub(super) fn prompt_answered(&mut self, turn: &TurnId, reply: Reply) {
        let result = match reply {
            Ok(text) => serde_json::from_str::<PromptResult>(&text)
                .map_err(|error| RpcError::new(PARSE_ERROR, error.to_string())),
            Err(CallError::Refused(error)) => Err(error),
            Err(error @ CallError::Unreadable { .. }) => {
                tracing::warn!(session = %self.id, %error, "the end of a turn");
                let words = format!("{} ended the turn with a line that could not be read.", self.context.agent.name);
                Err(RpcError::new(PARSE_ERROR, words))
            }
            // The process is gone: that is told when it is known how.
            Err(CallError::Gone(_) | CallError::Stalled | CallError::TimedOut(_)) => return,
        };
        let Some(running) = self.turn.as_ref().filter(|running| running.id == *turn) else {
            return self.answered_late(turn);
        };
        let was_cancelled = running.cancelled.is_some();
        // One that was cancelled at its first word may never have been written down.
        self.is_known |= result.as_ref().is_ok_and(|result| result.stop_reason != "cancelled");
        // The user has stopped it: that is how it ended, in whatever words the agent says so.
        let result = if was_cancelled {
            Ok(PromptResult { usage: result.ok().and_then(|result| result.usage), ..PromptResult::cancelled() })
        } else {
            result
        };
        // Nobody waits for the supervisor.
        let _ = self.context.supervisor.try_send(Command::Proved);
        self.end_turn(result);
    }

    /// The turn is over as far as anyone sees. Some agents leave a command running after a cancel: closing the session
    /// ends it, and it is taken up again with the next message.
    pub(super) fn end_turn(&mut self, result: Result<PromptResult, RpcError>) {
        let was_cancelled = result.as_ref().is_ok_and(|result| result.stop_reason == "cancelled");
        let left_running = was_cancelled && self.translator.may_leave_command();
        self.settle_turn(result);
        if left_running && self.attachment == Attachment::Attached && self.can_come_back() {
            self.close();
        }
    }

    /// Ends the turn for everyone who watches it.
    pub(super) fn settle_turn(&mut self, result: Result<PromptResult, RpcError>) {
        self.turn_over();
        let output = self.translator.end_turn(result, now());
        self.publish(output);
    }

    /// Forgets the turn. Its end is the caller's to tell.
    pub(super) fn turn_over(&mut self) {
        self.used = Instant::now();
        if let Some(turn) = self.turn.take()
            && turn.silent_since.is_some()
        {
            self.tell(SessionFacts { silent_ms: Some(0), ..SessionFacts::default() });
        }
        self.terminal_output.clear();
        self.release_terminals();
    }

    /// No command that the agent runs through us outlives the turn or the session it is for.
    pub(super) fn release_terminals(&self) {
        if let Some(connection) = &self.connection {
            connection.terminals.release_session(self.id.as_str());
        }
    }
}

/// The message as the wire has it.
fn content_blocks(prompt: &Prompt) -> Vec<acp::ContentBlock> {
    prompt.parts.iter().map(|PromptPart::Text { text }| acp::ContentBlock::from(text.clone())).collect()
}

fn offered(option: OfferedOption) -> PermissionOption {
    let kind = match option.kind.as_str() {
        "allow_once" => PermissionKind::AllowOnce,
        "allow_always" => PermissionKind::AllowAlways,
        "reject_once" => PermissionKind::RejectOnce,
        "reject_always" => PermissionKind::RejectAlways,
        _ => PermissionKind::Unknown,
    };
    PermissionOption { id: option.option_id, name: option.name, kind }
}
