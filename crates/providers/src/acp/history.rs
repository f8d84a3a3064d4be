//! The past of a session, from the replay that `session/load` brings.

use std::collections::HashMap;
use std::time::Duration;

use protocol::{
    Continuity, ItemId, SessionFacts, SessionId, Timestamp, TurnEvent, TurnId, TurnRecord, TurnRecordStatus, TurnStatus,
};
use upserts::{Emission, ItemUpdate, Moment, UpsertConfig, UpsertProcessor};

use super::router::PermissionRequest;
use super::step::Output;
use super::translate::{Quirks, Translator};
use super::wire::{self, Incoming, PromptResult, Update};
use crate::json;
use crate::permission::PermissionPolicy;
use crate::provider::History;

/// What a reader would see in the end of a session's lines: as a replay, or as the answer to one prompt. The whole
/// translation as a plain function, for tests and fuzzers.
pub fn read_lines(session: SessionId, lines: &str, as_replay: bool, now: Timestamp) -> History {
    let mut translator = Translator::new(session.clone(), Quirks::default());
    let mut history = HistoryBuilder::new(session);
    if as_replay {
        translator.begin_replay();
    } else {
        history.add(translator.begin_turn(TurnId::generate(), "prompt", now), now);
    }
    for line in lines.lines() {
        let mended = json::mended(line);
        let line = mended.as_deref().filter(|_| wire::read_update(line).is_none()).unwrap_or(line);
        if let Some(envelope) = wire::read_update(line) {
            history.add(translator.update(Update::read(envelope.update.get()), now), now);
        } else if let Ok(Incoming::Request { params, .. }) = wire::read(line)
            && let Ok(request) = serde_json::from_str::<PermissionRequest>(params)
        {
            let decision = PermissionPolicy::default().decide(&[]);
            history.add(translator.permission(request.tool_call, decision.record, now), now);
        }
    }
    let end =
        if as_replay { translator.end_replay(now) } else { translator.end_turn(Ok(PromptResult::cancelled()), now) };
    history.add(end, now);
    history.finish(Continuity::Resumed)
}

/// Takes the events of replayed turns, gives their items in their final state.
#[derive(Debug)]
pub(crate) struct HistoryBuilder {
    session: SessionId,
    turns: HashMap<TurnId, UpsertProcessor>,
    items: Vec<ItemUpdate>,
    places: HashMap<ItemId, usize>,
    records: Vec<TurnRecord>,
    facts: SessionFacts,
}

impl HistoryBuilder {
    pub(crate) fn new(session: SessionId) -> Self {
        Self {
            session,
            turns: HashMap::new(),
            items: Vec::new(),
            places: HashMap::new(),
            records: Vec::new(),
            facts: SessionFacts::default(),
        }
    }

    pub(crate) fn add(&mut self, output: Output, now: Timestamp) {
        let now = Moment { wall: now, elapsed: Duration::ZERO };
        for turn in output.begun {
            let processor = UpsertProcessor::new(UpsertConfig::history(), self.session.clone(), turn.clone());
            self.turns.insert(turn, processor);
        }
        for event in output.events {
            let turn = event.turn_id.clone();
            let Some(processor) = self.turns.get_mut(&turn) else { continue };
            processor.push(event, now);
            let emissions = processor.take(now);
            if processor.is_finished() {
                self.turns.remove(&turn);
            }
            emissions.into_iter().for_each(|emission| self.take(emission));
        }
        self.facts.merge(output.facts);
    }

    pub(crate) fn add_facts(&mut self, facts: SessionFacts) {
        self.facts.merge(facts);
    }

    /// All of it: the agent has sent it in any case, and the hub pages from what it holds.
    pub(crate) fn finish(self, continuity: Continuity) -> History {
        History { items: self.items, turns: self.records, facts: self.facts, older: None, continuity }
    }

    fn take(&mut self, emission: Emission) {
        match emission {
            Emission::Item(item) => match self.places.get(&item.item_id) {
                Some(place) => self.items[*place] = item,
                None => {
                    self.places.insert(item.item_id.clone(), self.items.len());
                    self.items.push(item);
                }
            },
            Emission::Turn(event) => self.record(event),
        }
    }

    fn record(&mut self, event: TurnEvent) {
        let end = match event {
            TurnEvent::TurnStarted { turn_id, model_id, at, .. } => {
                return self.records.push(TurnRecord {
                    turn_id,
                    status: TurnRecordStatus::Running,
                    started_at: at,
                    ended_at: None,
                    model_id: Some(model_id).filter(|model| !model.is_empty()),
                    usage: None,
                    error_code: None,
                    error_message: None,
                });
            }
            end => end,
        };
        let Some(record) = self.records.iter_mut().rev().find(|record| record.turn_id == *end.turn_id()) else {
            return;
        };
        match end {
            TurnEvent::TurnComplete { status, usage, at, .. } => {
                record.status = match status {
                    TurnStatus::Completed => TurnRecordStatus::Completed,
                    TurnStatus::Cancelled => TurnRecordStatus::Cancelled,
                };
                record.usage = usage;
                record.ended_at = end_of(record.started_at, at);
            }
            TurnEvent::TurnError { error_code, error_message, at, .. } => {
                record.status = TurnRecordStatus::Error;
                record.error_code = Some(error_code);
                record.error_message = Some(error_message);
                record.ended_at = end_of(record.started_at, at);
            }
            TurnEvent::TurnStarted { .. } => {}
        }
    }
}

/// A turn that took no time is one whose times the agent does not tell.
fn end_of(started_at: Timestamp, at: Timestamp) -> Option<Timestamp> {
    (at != started_at).then_some(at)
}
