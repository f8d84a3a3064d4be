//! Turns: how they begin, what comes beside the model's messages, and how they end.

use protocol::stream::{ItemCancelled, ItemDone, ResponseDone, ResponseStart};
use protocol::{
    ErrorCode, ErrorDetail, FinalItem, ItemId, Origin, ResponseStatus, SessionFacts, StreamPayload, Timestamp, TurnId,
    TurnRecord, TurnRecordStatus, Usage,
};
use serde_json::Value;

use super::{COMPACTED, LineSource, PresentTurn, Translator, TranslatorOutput, emit_facts, trouble};
use crate::claude::PROVIDER_ID;
use crate::claude::facts;
use crate::claude::wire::{EntryAttachment, ResultLine, WireUsage};
use crate::claude::{texts, tools};

/// What the model is called while it is not known.
const MODEL_UNKNOWN: &str = "default";
/// What replaces an answer that the program withdrew.
const BROKE_OFF: &str = "The answer broke off here and was begun again.";

const UNREADABLE_END: &str = "Claude Code ended the turn with a line that could not be read.";

impl Translator {
    /// The user's message begins a turn. It is the turn's first item, under the same id.
    pub fn begin(&mut self, turn: TurnId, text: String, now: Timestamp) -> Vec<TranslatorOutput> {
        let mut out = Vec::new();
        self.open_turn(turn.clone(), now, &mut out);
        self.emit_message(&turn, turn.as_str(), text, Origin::User, now, &mut out);
        out
    }

    /// What follows belongs to a turn whose beginning is not shown.
    pub fn within(&mut self, turn: TurnId, at: Timestamp, out: &mut Vec<TranslatorOutput>) {
        self.open_turn(turn, at, out);
    }

    pub(super) fn open_turn(&mut self, id: TurnId, at: Timestamp, out: &mut Vec<TranslatorOutput>) {
        self.turn = Some(PresentTurn {
            id: id.clone(),
            started_at: at,
            last_at: at,
            model: None,
            error: None,
            interrupted: false,
            cancelled: false,
            accepted: false,
            retry_noted: false,
            usage_before: Usage::default(),
            usage_last: None,
        });
        self.last_turn = Some(id.clone());
        let start = ResponseStart {
            model_id: self.model.clone().unwrap_or_else(|| MODEL_UNKNOWN.into()),
            provider_id: PROVIDER_ID.into(),
        };
        self.emit(&id, at, StreamPayload::ResponseStart(start), out);
    }

    /// The turn that the agent's output belongs to. Output between turns begins one, named by its first message.
    pub(super) fn turn_for_output(&mut self, message: &str, at: Timestamp, out: &mut Vec<TranslatorOutput>) -> TurnId {
        if let Some(turn) = &mut self.turn {
            turn.last_at = at;
            return turn.id.clone();
        }
        let id = TurnId::from_foreign(message);
        out.push(TranslatorOutput::TurnBegan(id.clone()));
        self.open_turn(id.clone(), at, out);
        self.accepted(Some(id.as_str()));
        id
    }

    /// The program has begun with a message.
    pub(super) fn accepted(&mut self, message: Option<&str>) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| Some(turn.id.as_str()) == message) {
            turn.accepted = true;
        }
    }

    /// A message was interrupted while it waited. The program never begins with it, so no `result` will end its turn.
    pub(super) fn dropped(&mut self, message: Option<&str>, now: Timestamp, out: &mut Vec<TranslatorOutput>) {
        let waiting = self.turn.as_ref().filter(|turn| !turn.accepted).map(|turn| turn.id.as_str());
        if waiting.is_some() && waiting == message {
            self.close_turn(ResponseStatus::Cancelled, None, None, None, now, out);
        }
    }

    /// The program is gone in the middle of the turn. Whoever holds its items ends them.
    pub fn abandon_turn(&mut self) {
        self.turn = None;
        self.threads.clear();
        self.calls.clear();
    }

    /// A notice of the program itself, between the messages.
    pub(super) fn notice(&mut self, id: Option<String>, text: &str, at: Timestamp, out: &mut Vec<TranslatorOutput>) {
        let Some(id) = id.filter(|id| self.is_new(id)) else { return };
        let turn = self.turn_for_output(&id, at, out);
        self.emit_message(&turn, &id, text.into(), Origin::System, at, out);
    }

    /// A message of ours about what could not be read. A text that is growing is not divided by it: the message waits
    /// for the end of that text.
    pub fn left_out(&mut self, id: String, message: &str, at: Timestamp) -> Vec<TranslatorOutput> {
        let mut out = Vec::new();
        self.reports.push((id, message.to_owned()));
        if !self.text_is_growing() {
            self.emit_reports(at, &mut out);
        }
        out
    }

    pub(super) fn emit_reports(&mut self, at: Timestamp, out: &mut Vec<TranslatorOutput>) {
        for (id, message) in std::mem::take(&mut self.reports) {
            self.notice(Some(id), &message, at, out);
        }
    }

    /// The agent streams a text or a thought whose whole has not come yet.
    pub(super) fn text_is_growing(&self) -> bool {
        let blocks = self.threads.get(&None).map(|thread| &thread.blocks[..]).unwrap_or_default();
        blocks.iter().any(|block| block.call.is_none() && !block.confirmed)
    }

    /// The notice of a compaction that was held back, now that its turn is known.
    pub(super) fn emit_compacted(&mut self, out: &mut Vec<TranslatorOutput>) {
        if let Some((uuid, at)) = self.compacted.take() {
            self.notice(Some(uuid), COMPACTED, at, out);
        }
    }

    /// What a command of the program itself printed.
    pub(super) fn local_output(
        &mut self,
        id: Option<String>,
        text: &str,
        at: Timestamp,
        out: &mut Vec<TranslatorOutput>,
    ) {
        let Some(id) = id else { return };
        let text = texts::local_output(text);
        if text.is_empty() || !self.is_new(&id) {
            return;
        }
        let turn = self.turn_for_output(&id, at, out);
        self.emit_message(&turn, &id, text.to_owned(), Origin::Agent, at, out);
    }

    fn is_new(&mut self, id: &str) -> bool {
        // More than any session has; a program that floods us with ids only makes us forget the old ones.
        const SHOWN_MAX: usize = 4096;
        if self.shown.len() >= SHOWN_MAX {
            self.shown.clear();
        }
        self.shown.insert(id.to_owned())
    }

    /// The program tries again: one notice per turn, in the file as well, and what its last try wrote is withdrawn.
    pub(super) fn retried(&mut self, status: Option<u16>, at: Timestamp, out: &mut Vec<TranslatorOutput>) {
        self.withdraw_unconfirmed(None, at, out);
        let Some(turn) = &mut self.turn else { return };
        if std::mem::replace(&mut turn.retry_noted, true) {
            return;
        }
        let turn = turn.id.clone();
        let text = format!("{} Claude Code tries again.", trouble(status));
        self.emit_message(&turn, &format!("{turn}.retry"), text, Origin::System, at, out);
    }

    /// Blocks that were streamed but never confirmed: their message broke off and comes again. The program keeps
    /// nothing of it, so its history does not have it. What is on the screen already is replaced by a notice, so that
    /// nobody reads it twice: the one item of a live turn that its history lacks.
    pub(super) fn withdraw_unconfirmed(
        &mut self,
        parent: Option<String>,
        at: Timestamp,
        out: &mut Vec<TranslatorOutput>,
    ) {
        let Some(thread) = self.threads.get_mut(&parent) else { return };
        let blocks = std::mem::take(&mut thread.blocks);
        let Some(turn) = self.turn_of(parent.as_deref()) else { return };
        for block in blocks.into_iter().filter(|block| !block.confirmed) {
            if let Some(call) = &block.call {
                self.calls.remove(call);
            }
            let payload = if block.is_message && block.has_text {
                let final_item = FinalItem::Message { content: BROKE_OFF.into(), origin: Origin::System };
                StreamPayload::ItemDone(ItemDone { item_id: block.item, final_item })
            } else {
                StreamPayload::ItemCancelled(ItemCancelled { item_id: block.item, reason: None })
            };
            self.emit(&turn, at, payload, out);
        }
    }

    pub(super) fn turn_of(&self, parent: Option<&str>) -> Option<TurnId> {
        let of_call = parent.and_then(|parent| self.calls.get(parent)).map(|call| call.turn.clone());
        of_call.or_else(|| self.turn().cloned()).or_else(|| self.last_turn.clone())
    }

    pub(super) fn attachment(
        &mut self,
        id: Option<String>,
        at: Timestamp,
        what: EntryAttachment,
        out: &mut Vec<TranslatorOutput>,
    ) {
        let EntryAttachment::QueuedCommand { prompt, command_mode } = what else { return };
        let text = tools::text_of(&prompt);
        let of_user = command_mode.is_none_or(|mode| mode == "prompt");
        if let (Some(id), Some(turn), true) = (id, self.turn().cloned(), of_user && !text.is_empty()) {
            self.emit_message(&turn, &id, text, Origin::User, at, out);
        }
    }

    /// A sub-agent reports, perhaps long after the turn that started it.
    pub(super) fn sub_agent_ended(
        &mut self,
        call: &str,
        summary: String,
        failed: bool,
        at: Timestamp,
        out: &mut Vec<TranslatorOutput>,
    ) {
        self.threads.remove(&Some(call.to_owned()));
        let Some(known) = self.calls.get_mut(call).filter(|known| tools::is_agent(&known.name)) else { return };
        known.ended = true;
        let turn = known.turn.clone();
        let detail = known.detail.clone();
        self.emit_result(&turn, call, summary, failed, detail, at, out);
    }

    /// The end of a turn, and the only one.
    pub(super) fn result(&mut self, result: &ResultLine, now: Timestamp, out: &mut Vec<TranslatorOutput>) {
        let Some(turn) = &self.turn else { return };
        if result.origin.is_some() && !turn.accepted {
            // The end of a turn of the program's own, while our message still waits for its turn.
            return;
        }
        let (interrupted, cancelled) = (turn.interrupted, turn.cancelled);
        let aborted = result.terminal_reason.as_deref().is_some_and(|reason| reason.starts_with("aborted"));
        let status = if cancelled {
            // The user has stopped it: that is how it ended, whatever the program reports.
            ResponseStatus::Cancelled
        } else if !result.is_error {
            ResponseStatus::Completed
        } else if aborted || interrupted {
            ResponseStatus::Cancelled
        } else {
            ResponseStatus::Error
        };
        let usage = self.turn_usage(result);
        let error = (status == ResponseStatus::Error).then(|| self.turn_error(result));
        let mut facts = SessionFacts { activity: self.clear_activity(), ..SessionFacts::default() };
        facts.context = facts::context(self.context_used, self.model.as_deref(), &result.model_usage);
        emit_facts(facts, out);
        self.close_turn(status, result.stop_reason.clone(), error, Some(usage), now, out);
    }

    /// The end of a turn, in a line of which no more than that can be seen.
    pub fn unreadable_result(&mut self, now: Timestamp) -> Vec<TranslatorOutput> {
        let mut out = Vec::new();
        let activity = self.clear_activity();
        emit_facts(SessionFacts { activity, ..SessionFacts::default() }, &mut out);
        if self.turn.as_ref().is_some_and(|turn| turn.cancelled) {
            self.close_turn(ResponseStatus::Cancelled, None, None, None, now, &mut out);
        } else {
            let error = ErrorDetail::new(ErrorCode::AgentProtocolError, UNREADABLE_END);
            self.close_turn(ResponseStatus::Error, None, Some(error), None, now, &mut out);
        }
        out
    }

    /// The user has stopped the present turn. However the program ends it now, it was cancelled.
    pub fn turn_is_cancelled(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.cancelled = true;
        }
    }

    /// The program is gone, or a file goes on with the next message: whatever runs is over.
    pub fn close_turn(
        &mut self,
        status: ResponseStatus,
        finish_reason: Option<String>,
        error: Option<ErrorDetail>,
        usage: Option<Usage>,
        at: Timestamp,
        out: &mut Vec<TranslatorOutput>,
    ) {
        if status != ResponseStatus::Cancelled {
            self.withdraw_unconfirmed(None, at, out);
        }
        if self.turn.is_some() {
            self.emit_reports(at, out);
        }
        let Some(turn) = self.turn.take() else { return };
        self.threads.remove(&None);
        // Sub-agents may outlive the turn, and with them what they run: its result still has to find its call. The
        // processor settles everything else.
        self.calls.retain(|_, call| tools::is_agent(&call.name) || call.parent.is_some());
        self.calls.values_mut().for_each(|call| call.ended = true);
        let done = ResponseDone { status, finish_reason, error: error.clone(), usage };
        self.emit(&turn.id, at, StreamPayload::ResponseDone(done), out);
        out.push(TranslatorOutput::TurnEnded(TurnRecord {
            turn_id: turn.id,
            status: match status {
                ResponseStatus::Completed => TurnRecordStatus::Completed,
                ResponseStatus::Cancelled => TurnRecordStatus::Cancelled,
                ResponseStatus::Error => TurnRecordStatus::Error,
            },
            started_at: turn.started_at,
            ended_at: Some(at),
            model_id: turn.model,
            usage,
            error_code: error.as_ref().map(|error| error.code.clone()),
            error_message: error.map(|error| error.message),
            forgotten: false,
        }));
    }

    /// A file does not record how a turn ended; its last entries show it.
    pub fn close_recorded_turn(&mut self, out: &mut Vec<TranslatorOutput>) {
        self.emit_compacted(out);
        let Some(turn) = &self.turn else { return };
        let open_calls = self.calls.values().any(|call| !call.ended && call.turn == turn.id);
        let status = match &turn.error {
            Some(_) => ResponseStatus::Error,
            None if turn.interrupted || open_calls => ResponseStatus::Cancelled,
            None => ResponseStatus::Completed,
        };
        let (error, at) = (turn.error.clone(), turn.last_at);
        let usage = turn.usage_last.as_ref().map(|(_, last)| add(turn.usage_before, *last));
        self.close_turn(status, None, error, usage, at, out);
    }

    fn turn_error(&mut self, result: &ResultLine) -> ErrorDetail {
        if let Some(error) = self.turn.as_mut().and_then(|turn| turn.error.take()) {
            return error;
        }
        let errors = result.errors.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
        let text = result.result.clone().filter(|text| !text.is_empty()).unwrap_or(errors);
        let message = match (text.is_empty(), result.subtype.as_str()) {
            (false, _) => text,
            (true, "error_max_turns") => "Claude Code reached its limit of steps for one turn.".into(),
            (true, "error_max_budget_usd") => "Claude Code reached its budget for one turn.".into(),
            (true, subtype) => format!("Claude Code ended the turn with an error ({subtype})."),
        };
        texts::model_error(&message, result.api_error_status)
    }

    fn turn_usage(&mut self, result: &ResultLine) -> Usage {
        let total = result.total_cost_usd.unwrap_or(self.cost_total_usd);
        let since = result
            .model_usage_since_last_result
            .as_ref()
            .map(|models| models.values().filter_map(|model| model["costUSD"].as_f64()).sum::<f64>());
        // An empty sum is minus zero.
        let cost = since.unwrap_or(total - self.cost_total_usd).max(0.0) + 0.0;
        self.cost_total_usd = total;
        Usage { cost_usd: Some(cost), ..usage(result.usage.unwrap_or_default()) }
    }

    /// What a model message cost so far. Reported once per block, the last time with the final figures.
    pub(super) fn count_usage(&mut self, message: &str, spent: WireUsage) {
        self.context_used = spent.input_tokens
            + spent.cache_read_input_tokens
            + spent.cache_creation_input_tokens
            + spent.output_tokens;
        let Some(turn) = &mut self.turn else { return };
        match &mut turn.usage_last {
            Some((last, figures)) if last == message => *figures = usage(spent),
            last => {
                if let Some((_, figures)) = last.replace((message.to_owned(), usage(spent))) {
                    turn.usage_before = add(turn.usage_before, figures);
                }
            }
        }
    }

    /// The last figures of the message that was streamed.
    pub(super) fn finish_usage(&mut self, last: WireUsage) {
        let Some((_, figures)) = self.turn.as_mut().and_then(|turn| turn.usage_last.as_mut()) else { return };
        let more = last.output_tokens.saturating_sub(figures.output_tokens);
        self.context_used = self.context_used.saturating_add(more);
        figures.output_tokens = figures.output_tokens.max(last.output_tokens);
    }

    /// In a file, the next message of the user, or one the program sent itself, ends a turn.
    pub(super) fn next_recorded_turn(&mut self, out: &mut Vec<TranslatorOutput>) {
        if self.source == LineSource::File {
            self.close_recorded_turn(out);
        }
    }

    pub(super) fn failed_with(&mut self, message: &str, status: Option<u16>) {
        if let Some(turn) = &mut self.turn {
            turn.error = Some(texts::model_error(message, status));
        }
    }

    pub(super) fn item_of(call: &str) -> ItemId {
        ItemId::from_foreign(call)
    }
}

fn usage(wire: WireUsage) -> Usage {
    Usage {
        input_tokens: wire.input_tokens,
        output_tokens: wire.output_tokens,
        cache_read_input_tokens: Some(wire.cache_read_input_tokens),
        cache_creation_input_tokens: Some(wire.cache_creation_input_tokens),
        cost_usd: None,
    }
}

fn add(a: Usage, b: Usage) -> Usage {
    let sum = |a: Option<u64>, b: Option<u64>| Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0)));
    Usage {
        input_tokens: a.input_tokens.saturating_add(b.input_tokens),
        output_tokens: a.output_tokens.saturating_add(b.output_tokens),
        cache_read_input_tokens: sum(a.cache_read_input_tokens, b.cache_read_input_tokens),
        cache_creation_input_tokens: sum(a.cache_creation_input_tokens, b.cache_creation_input_tokens),
        cost_usd: None,
    }
}
