//! The history of a session, from the replay that `session/load` brings.

use protocol::{
    Continuity, ResponseStatus, SessionFacts, SessionId, StreamEvent, StreamPayload, Timestamp, TurnId, TurnRecord,
    TurnRecordStatus,
};

use super::event_builder::Translated;
use super::router::PermissionRequest;
use super::translate::{Quirks, Translator};
use super::wire::{self, PromptResult, RpcMessage, Update};
use crate::json;
use crate::permission::PermissionPolicy;
use crate::provider::History;

/// What a reader would see in the end of a session's lines: as a replay, or as the answer to one prompt. The whole
/// translation as a plain function, for tests and fuzzers.
pub fn read_lines(session: SessionId, lines: &str, as_replay: bool, now: Timestamp) -> History {
    let mut translator = Translator::new(session, Quirks::default());
    let mut history = HistoryBuilder::default();
    if as_replay {
        translator.begin_replay();
    } else {
        history.add(translator.begin_turn(TurnId::generate(), "prompt", now));
    }
    for line in lines.lines() {
        let repaired = json::repaired(line);
        let line = repaired.as_deref().filter(|_| wire::read_update(line).is_none()).unwrap_or(line);
        if let Some(envelope) = wire::read_update(line) {
            history.add(translator.update(Update::read(envelope.update.get()), now));
        } else if let Ok(RpcMessage::Request { params, .. }) = wire::read(line)
            && let Ok(request) = serde_json::from_str::<PermissionRequest>(params)
        {
            let decision = PermissionPolicy::default().decide(&[]);
            history.add(translator.permission(request.tool_call, decision.record, now));
        }
    }
    let end =
        if as_replay { translator.end_replay(now) } else { translator.end_turn(Ok(PromptResult::cancelled()), now) };
    history.add(end);
    history.finish(Continuity::Resumed)
}

/// Collects the events of replayed turns, and what became of each turn.
#[derive(Debug, Default)]
pub(crate) struct HistoryBuilder {
    events: Vec<StreamEvent>,
    turns: Vec<TurnRecord>,
    facts: SessionFacts,
}

impl HistoryBuilder {
    pub(crate) fn add(&mut self, output: Translated) {
        for event in output.events {
            self.record(&event);
            self.events.push(event);
        }
        self.facts.merge(output.facts);
    }

    pub(crate) fn add_facts(&mut self, facts: SessionFacts) {
        self.facts.merge(facts);
    }

    /// All of it: the agent has sent it in any case, and the hub pages from what it holds.
    pub(crate) fn finish(self, continuity: Continuity) -> History {
        History { events: self.events, turns: self.turns, facts: self.facts, older: None, continuity }
    }

    fn record(&mut self, event: &StreamEvent) {
        let at = event.timestamp;
        let (status, usage, error) = match &event.payload {
            StreamPayload::ResponseStart(start) => {
                return self.turns.push(TurnRecord {
                    turn_id: event.turn_id.clone(),
                    status: TurnRecordStatus::Running,
                    started_at: at,
                    ended_at: None,
                    model_id: Some(start.model_id.clone()).filter(|model| !model.is_empty()),
                    usage: None,
                    error_code: None,
                    error_message: None,
                    forgotten: false,
                });
            }
            StreamPayload::ResponseDone(done) => match done.status {
                ResponseStatus::Completed => (TurnRecordStatus::Completed, done.usage, None),
                ResponseStatus::Cancelled => (TurnRecordStatus::Cancelled, done.usage, None),
                ResponseStatus::Error => (TurnRecordStatus::Error, None, done.error.as_ref()),
            },
            StreamPayload::ResponseError(failed) => (TurnRecordStatus::Error, None, Some(&failed.error)),
            _ => return,
        };
        let running = self.turns.iter_mut().rev().find(|turn| turn.turn_id == event.turn_id);
        if let Some(turn) = running.filter(|turn| turn.status == TurnRecordStatus::Running) {
            turn.status = status;
            turn.usage = usage;
            turn.error_code = error.map(|error| error.code.clone());
            turn.error_message = error.map(|error| error.message.clone());
            // A turn that took no time is one whose times the agent does not report.
            turn.ended_at = (at != turn.started_at).then_some(at);
        }
    }
}
