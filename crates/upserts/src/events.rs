//! How each stream event changes the items of a turn.

use std::sync::Arc;

use protocol::stream::{ItemDelta, ItemDone, ItemStart, ResponseDone};
use protocol::{
    ErrorCode, ErrorDetail, FinalItem, ItemId, ItemType, Origin, ResponseStatus, SessionId, StreamEvent, StreamPayload,
    Timestamp, ToolDetail, TurnEvent, TurnId, TurnStatus,
};

use crate::batch::Change;
use crate::item::{Content, State, conclude};
use crate::processor::{Phase, Role, UpsertProcessor};
use crate::text::Text;
use crate::update::Moment;

/// Where an event comes from: what an item inherits from the event that starts it.
pub(crate) struct EventSource {
    pub(crate) turn_id: TurnId,
    pub(crate) session_id: SessionId,
    pub(crate) timestamp: Timestamp,
}

impl UpsertProcessor {
    pub(crate) fn apply(&mut self, event: StreamEvent, now: Moment) {
        let StreamEvent { timestamp, turn_id, session_id, payload, .. } = event;
        let source = EventSource { turn_id, session_id, timestamp };
        match payload {
            StreamPayload::ResponseStart(start) => {
                self.provider_id = start.provider_id.as_str().into();
                if self.phase == Phase::Silent {
                    self.phase = Phase::Started;
                    self.queue_turn_event(TurnEvent::TurnStarted {
                        turn_id: self.turn_id.clone(),
                        session_id: self.session_id.clone(),
                        model_id: start.model_id,
                        provider_id: start.provider_id,
                        at: timestamp,
                    });
                }
            }
            StreamPayload::ItemDone(done) if self.is_over(&done) => {}
            StreamPayload::ItemError(failed) if self.is_released(&failed.item_id) => {}
            StreamPayload::ItemStart(start) => self.item_start(start, &source, now),
            StreamPayload::ItemDelta(delta) => self.item_delta(delta, &source, now),
            StreamPayload::ItemDone(done) => self.item_done(done, &source, now),
            StreamPayload::ItemError(failed) => self.item_error(&failed.item_id, failed.error, &source, now),
            StreamPayload::ItemCancelled(cancelled) => self.item_cancelled(&cancelled.item_id, timestamp, now),
            StreamPayload::ResponseDone(done) => self.response_done(done, timestamp, now),
            StreamPayload::ResponseError(failed) => self.fail_turn(failed.error, timestamp, now),
        }
    }

    /// It is about an item or a call that is no longer held.
    fn is_over(&self, done: &ItemDone) -> bool {
        let is_call_over = match &done.final_item {
            FinalItem::FunctionCallOutput { call_id, .. } | FinalItem::FunctionCall { call_id, .. } => {
                !self.calls.contains_key(call_id) && self.released.contains_call(call_id)
            }
            FinalItem::Message { .. } | FinalItem::Reasoning { .. } => false,
        };
        is_call_over || self.is_released(&done.item_id)
    }

    fn item_start(&mut self, start: ItemStart, source: &EventSource, now: Moment) {
        let ItemStart { item_id, item_type, initial_content, name, call_id, origin, parent_item_id, tool } = start;
        let initial_content = initial_content.unwrap_or_default();
        match item_type {
            ItemType::Message | ItemType::Reasoning => {
                let known = self.open_text(&item_id);
                let slot = known.unwrap_or_else(|| {
                    let content = if item_type == ItemType::Message {
                        Content::Message { text: Text::default(), origin: origin.unwrap_or(Origin::Agent) }
                    } else {
                        Content::Thinking { text: Text::default(), provider_id: self.provider_id.clone() }
                    };
                    self.begin(&item_id, content, parent_item_id, source, now)
                });
                // A repeated start may repeat its initial content.
                let repeated =
                    self.items[slot].growing().is_some_and(|t| t.with_str(|t| t.starts_with(&initial_content)));
                if !repeated {
                    self.add_text(slot, &initial_content, source, now);
                }
            }
            ItemType::FunctionCall => {
                let slot = self.invocation(&item_id, call_id.as_ref(), parent_item_id, source, now);
                let Some(call) = self.items[slot].tool_mut() else { return };
                let mut changed = name.is_some_and(|name| call.set_name(&name));
                changed |= call.set_initial_arguments(initial_content);
                let progress = tool.is_some_and(|detail| call.set_detail(detail));
                self.call_changed(slot, changed, progress, source, now);
            }
            ItemType::FunctionCallOutput => {
                let slot = self.result_owner(&item_id, call_id, parent_item_id, source, now);
                self.add_output(slot, &initial_content, tool, source, now);
            }
        }
    }

    fn item_delta(&mut self, delta: ItemDelta, source: &EventSource, now: Moment) {
        let ItemDelta { item_id, delta_content, tool } = delta;
        match self.roles.get(&item_id).copied() {
            Some(Role::OutputOf(slot)) => self.add_output(slot, &delta_content, tool, source, now),
            Some(Role::Item(slot)) if self.items[slot].state == State::Cancelled => {}
            Some(Role::Item(slot)) => {
                let item = &mut self.items[slot];
                if let Some(call) = item.tool_mut() {
                    call.add_arguments(&delta_content);
                    let progress = tool.is_some_and(|detail| call.set_detail(detail));
                    self.call_changed(slot, false, progress, source, now);
                } else if item.is_open() {
                    self.add_text(slot, &delta_content, source, now);
                } else if !delta_content.is_empty() {
                    let slot = self.continuation(&item_id, slot, source, now);
                    self.add_text(slot, &delta_content, source, now);
                }
            }
            None if self.released.contains(&item_id) => {
                if !delta_content.is_empty()
                    && let Some(slot) = self.continue_released(&item_id, source, now)
                {
                    self.add_text(slot, &delta_content, source, now);
                }
            }
            None if tool.is_some() => {
                let slot = self.invocation(&item_id, None, None, source, now);
                if let Some(call) = self.items[slot].tool_mut() {
                    call.add_arguments(&delta_content);
                    tool.map(|detail| call.set_detail(detail));
                }
                self.call_changed(slot, false, true, source, now);
            }
            None => {
                let content = Content::Message { text: Text::default(), origin: Origin::Agent };
                let slot = self.begin(&item_id, content, None, source, now);
                self.add_text(slot, &delta_content, source, now);
            }
        }
    }

    fn item_done(&mut self, done: ItemDone, source: &EventSource, now: Moment) {
        let ItemDone { item_id, final_item } = done;
        if self.is_cancelled(&item_id) {
            return;
        }
        match final_item {
            FinalItem::Message { content, origin } => {
                let slot = self.known_text(&item_id).unwrap_or_else(|| {
                    let content = Content::Message { text: Text::default(), origin };
                    self.begin(&item_id, content, None, source, now)
                });
                let mut corrected = false;
                if let Content::Message { origin: known, .. } = &mut self.items[slot].content {
                    corrected = *known != origin;
                    *known = origin;
                }
                self.conclude_text(slot, &content, corrected, source, now);
            }
            FinalItem::Reasoning { content, provider_id } => {
                let slot = self.known_text(&item_id).unwrap_or_else(|| {
                    let content = Content::Thinking { text: Text::default(), provider_id: provider_id.as_str().into() };
                    self.begin(&item_id, content, None, source, now)
                });
                let mut corrected = false;
                if let Content::Thinking { provider_id: known, .. } = &mut self.items[slot].content
                    && !provider_id.is_empty()
                    && **known != *provider_id
                {
                    corrected = true;
                    *known = provider_id.into();
                }
                self.conclude_text(slot, &content, corrected, source, now);
            }
            FinalItem::FunctionCall { name, call_id, arguments, tool } => {
                let slot = self.invocation(&item_id, Some(&call_id), None, source, now);
                let Some(call) = self.items[slot].tool_mut() else { return };
                let mut changed = call.set_name(&name);
                changed |= call.set_arguments(arguments);
                let progress = tool.is_some_and(|detail| call.set_detail(detail));
                self.call_changed(slot, changed, progress, source, now);
            }
            FinalItem::FunctionCallOutput { call_id, output, is_error, tool } => {
                let slot = self.result_owner(&item_id, Some(call_id), None, source, now);
                let item = &mut self.items[slot];
                if item.state == State::Cancelled {
                    return;
                }
                let settled = item.state == State::Complete;
                let Some(call) = item.tool_mut() else { return };
                let mut changed = call.set_result(&output, is_error, source.timestamp);
                changed |= tool.is_some_and(|detail| call.set_detail(detail));
                changed |= call.finish(false, source.timestamp);
                if changed || !settled {
                    item.source_timestamp = source.timestamp;
                    self.settle(slot, State::Complete, now);
                }
            }
        }
    }

    fn item_error(&mut self, item_id: &ItemId, error: ErrorDetail, source: &EventSource, now: Moment) {
        if self.is_cancelled(item_id) {
            return;
        }
        let slot = match self.roles.get(item_id) {
            Some(Role::Item(slot) | Role::OutputOf(slot)) => *slot,
            None => {
                let content = Content::Message { text: Text::default(), origin: Origin::Agent };
                self.begin(item_id, content, None, source, now)
            }
        };
        let item = &mut self.items[slot];
        item.source_timestamp = source.timestamp;
        if let Some(call) = item.tool_mut() {
            call.finish(false, source.timestamp);
        }
        self.settle(slot, State::Error(error), now);
    }

    /// The source withdraws the item. An item that was never emitted is dropped; one that was emitted keeps the text
    /// that was shown, and is closed.
    fn item_cancelled(&mut self, item_id: &ItemId, timestamp: Timestamp, now: Moment) {
        let Some(Role::Item(slot) | Role::OutputOf(slot)) = self.roles.get(item_id).copied() else { return };
        let item = &mut self.items[slot];
        if !item.is_open() {
            return;
        }
        let shown_bytes = item.batch.sent_bytes;
        if let Some(text) = item.text_mut() {
            text.cut(shown_bytes);
        } else if let Some(call) = item.tool_mut() {
            call.finish(true, timestamp);
        }
        self.settle(slot, State::Cancelled, now);
    }

    fn response_done(&mut self, done: ResponseDone, timestamp: Timestamp, now: Moment) {
        let status = match done.status {
            ResponseStatus::Completed => TurnStatus::Completed,
            ResponseStatus::Cancelled => TurnStatus::Cancelled,
            ResponseStatus::Error => {
                let error = done.error.unwrap_or_else(|| {
                    let message = match done.finish_reason.as_deref() {
                        Some(reason) if !reason.is_empty() => format!("The agent stopped: {reason}"),
                        _ => "The agent ended the turn with an error and gave no reason.".to_owned(),
                    };
                    ErrorDetail::new(ErrorCode::AgentProtocolError, message)
                });
                return self.fail_turn(error, timestamp, now);
            }
        };
        self.settle_all(&State::Complete, timestamp, now);
        if self.phase == Phase::Ended {
            return;
        }
        self.phase = Phase::Ended;
        self.queue_turn_event(TurnEvent::TurnComplete {
            turn_id: self.turn_id.clone(),
            session_id: self.session_id.clone(),
            status,
            usage: done.usage,
            at: timestamp,
        });
    }

    pub(crate) fn fail_turn(&mut self, error: ErrorDetail, at: Timestamp, now: Moment) {
        self.settle_all(&State::Error(error.clone()), at, now);
        if matches!(self.phase, Phase::Ended | Phase::Full) {
            return;
        }
        self.phase = Phase::Ended;
        self.queue_turn_event(TurnEvent::TurnError {
            turn_id: self.turn_id.clone(),
            session_id: self.session_id.clone(),
            error_code: error.code,
            error_message: error.message,
            at,
        });
    }

    fn settle_all(&mut self, state: &State, timestamp: Timestamp, now: Moment) {
        for slot in self.items.slots() {
            let item = &mut self.items[slot];
            let open = item.is_open();
            let mut late_arguments = false;
            if let Some(call) = item.tool_mut() {
                if open {
                    call.finish(true, timestamp);
                } else {
                    late_arguments = call.read_arguments();
                }
            }
            if open {
                self.settle(slot, state.clone(), now);
            } else if late_arguments {
                self.changed(slot, Change::Arguments, now);
            }
        }
    }

    fn add_text(&mut self, slot: usize, piece: &str, source: &EventSource, now: Moment) {
        let item = &mut self.items[slot];
        let Some(text) = item.text_mut() else { return };
        if piece.is_empty() {
            return;
        }
        text.append(piece);
        item.source_timestamp = source.timestamp;
        self.changed(slot, Change::Text, now);
    }

    fn add_output(
        &mut self,
        slot: usize,
        piece: &str,
        detail: Option<Arc<ToolDetail>>,
        source: &EventSource,
        now: Moment,
    ) {
        let item = &mut self.items[slot];
        if item.state == State::Cancelled {
            return;
        }
        let Some(call) = item.tool_mut() else { return };
        if !piece.is_empty() {
            call.add_output(piece);
            item.source_timestamp = source.timestamp;
            self.changed(slot, Change::Text, now);
        }
        let Some(call) = self.items[slot].tool_mut() else { return };
        let progress = detail.is_some_and(|detail| call.set_detail(detail));
        self.call_changed(slot, false, progress, source, now);
    }

    fn call_changed(&mut self, slot: usize, arguments: bool, progress: bool, source: &EventSource, now: Moment) {
        if !(arguments || progress) {
            return;
        }
        self.items[slot].source_timestamp = source.timestamp;
        self.changed(slot, if progress { Change::Progress } else { Change::Arguments }, now);
    }

    /// The source's own final text, for an item that may be closed already.
    fn conclude_text(&mut self, slot: usize, wording: &str, corrected: bool, source: &EventSource, now: Moment) {
        let wording = self.without_earlier_parts(slot, wording);
        let item = &mut self.items[slot];
        let open = item.is_open();
        let Some(text) = item.text_mut() else { return };
        let changed = conclude(text, wording) | corrected;
        if open || changed {
            item.source_timestamp = source.timestamp;
            let state = if open { State::Complete } else { item.state.clone() };
            self.settle(slot, state, now);
        }
    }
}
