//! The model's messages and the tools' results: as streamed pieces, as whole blocks, or both.

use protocol::stream::{ItemDelta, ItemDone};
use protocol::{
    CallId, FinalItem, ItemId, ItemType, Permission, PermissionDecision, StreamPayload, Timestamp, ToolDetail, TurnId,
};
use protocol::{Origin, SessionFacts};
use serde_json::{Map, Value};

use super::{KnownCall, LineSource, THREADS_MAX, Translator, TranslatorOutput, emit_facts, item_start, object};
use crate::claude::texts::{self, UserText};
use crate::claude::wire::{ContentBlock, Delta, MessageLine, PermissionDecisionRecord, StreamBody, StreamLine};
use crate::claude::{PROVIDER_ID, facts, tools};

/// The model that the program names for messages of its own.
const SYNTHETIC: &str = "<synthetic>";

/// One stream of model messages: the agent's, or that of a sub-agent.
#[derive(Debug, Default)]
pub(super) struct MessageThread {
    message: Option<String>,
    /// Blocks of the message that is being streamed.
    pub(super) blocks: Vec<OpenBlock>,
    /// Blocks of the message that came whole, where their index is not given.
    counted: u64,
}

#[derive(Debug)]
pub(super) struct OpenBlock {
    index: u64,
    pub(super) item: ItemId,
    pub(super) is_message: bool,
    pub(super) call: Option<String>,
    /// Something of it was shown.
    pub(super) has_text: bool,
    /// Its whole has come. A block whose whole never comes was withdrawn by the program.
    pub(super) confirmed: bool,
}

impl MessageThread {
    fn take_message(&mut self, message: &str) -> bool {
        let new = self.message.as_deref() != Some(message);
        if new {
            self.message = Some(message.to_owned());
            self.counted = 0;
        }
        new
    }
}

impl Translator {
    fn thread(&mut self, parent: &Option<String>) -> &mut MessageThread {
        if self.threads.len() >= THREADS_MAX && !self.threads.contains_key(parent) {
            self.threads.retain(|parent, _| parent.is_none());
        }
        self.threads.entry(parent.clone()).or_default()
    }

    pub(super) fn stream(&mut self, line: StreamLine, now: Timestamp, out: &mut Vec<TranslatorOutput>) {
        let parent = line.parent_tool_use_id;
        match line.event {
            StreamBody::MessageStart { message } => {
                let Some(id) = message.id else { return };
                if self.thread(&parent).take_message(&id) {
                    self.withdraw_unconfirmed(parent.clone(), now, out);
                }
                if parent.is_none() {
                    self.turn_for_output(&id, now, out);
                    self.model_is_used(message.model);
                }
            }
            StreamBody::MessageDelta { usage } if parent.is_none() => self.finish_usage(usage),
            StreamBody::ContentBlockStart { index, content_block } => {
                self.block_begins(parent, index, content_block, now, out);
            }
            StreamBody::ContentBlockDelta { index, delta } => {
                let Some(turn) = self.turn_of(parent.as_deref()) else { return };
                let Some(thread) = self.threads.get_mut(&parent) else { return };
                let Some(block) = thread.blocks.iter_mut().find(|block| block.index == index) else { return };
                let piece = match delta {
                    Delta::TextDelta { text } => text,
                    Delta::ThinkingDelta { thinking } => thinking,
                    Delta::InputJsonDelta { partial_json } => partial_json,
                    Delta::Unknown => return,
                };
                if piece.is_empty() {
                    return;
                }
                block.has_text = true;
                let delta = ItemDelta { item_id: block.item.clone(), delta_content: piece, tool: None };
                self.emit(&turn, now, StreamPayload::ItemDelta(delta), out);
            }
            StreamBody::MessageDelta { .. } | StreamBody::Unknown => {}
        }
    }

    fn block_begins(
        &mut self,
        parent: Option<String>,
        index: u64,
        block: ContentBlock,
        now: Timestamp,
        out: &mut Vec<TranslatorOutput>,
    ) {
        let Some(turn) = self.turn_of(parent.as_deref()) else { return };
        let parent_item = parent.as_deref().map(Self::item_of);
        let Some(message) = self.thread(&parent).message.clone() else { return };
        let (item, call, is_message) = match block {
            ContentBlock::Text { .. } => (text_item(&message, index), None, true),
            ContentBlock::Thinking { .. } => (text_item(&message, index), None, false),
            ContentBlock::ToolUse { id, .. } if self.calls.contains_key(&id) => return,
            ContentBlock::ToolUse { id, name, .. } => {
                let item = self.call_begins(&turn, &id, &name, &Map::new(), parent_item.clone(), now, out);
                (item, Some(id), false)
            }
            _ => return,
        };
        if call.is_none() {
            let kind = if is_message { ItemType::Message } else { ItemType::Reasoning };
            let start = item_start(item.clone(), kind, parent_item);
            self.emit(&turn, now, StreamPayload::ItemStart(start), out);
        }
        let block = OpenBlock { index, item, is_message, call, has_text: false, confirmed: false };
        self.thread(&parent).blocks.push(block);
    }

    pub(super) fn assistant(&mut self, line: MessageLine, now: Timestamp, out: &mut Vec<TranslatorOutput>) {
        let at = line.timestamp.unwrap_or(now);
        let parent = line.parent_tool_use_id.clone();
        if parent.is_none() {
            self.follow_agent_id(line.session_id.as_deref(), out);
        }
        if line.message.model.as_deref() == Some(SYNTHETIC) {
            return self.synthetic(line, at, out);
        }
        self.emit_compacted(out);
        let Some(message) = line.message.id.or(line.uuid) else { return };
        let turn = match &parent {
            Some(parent) => self.turn_of(Some(parent)),
            None => Some(self.turn_for_output(&message, at, out)),
        };
        let Some(turn) = turn else { return };
        if self.thread(&parent).take_message(&message) {
            self.withdraw_unconfirmed(parent.clone(), at, out);
        }
        if parent.is_none() {
            self.model_is_used(line.message.model);
            if let Some(usage) = line.message.usage {
                self.count_usage(&message, usage);
            }
            if let Some(turn) = &mut self.turn {
                turn.error = None;
            }
        }
        for block in line.message.content {
            self.whole_block(&turn, &message, &parent, line.api_block_index, block, at, out);
        }
    }

    fn model_is_used(&mut self, model: Option<String>) {
        if let (Some(turn), Some(model)) = (&mut self.turn, model) {
            turn.model = Some(model);
        }
    }

    /// A message of the program itself: an error of the model, or what one of its own commands printed.
    fn synthetic(&mut self, line: MessageLine, at: Timestamp, out: &mut Vec<TranslatorOutput>) {
        let text = tools::text_of(&line.message.content);
        if line.is_api_error_message || line.error.is_some() {
            self.failed_with(&text, line.api_error_status);
        } else if text != texts::NO_RESPONSE {
            self.local_output(line.uuid, &text, at, out);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a block is known by all of them")]
    fn whole_block(
        &mut self,
        turn: &TurnId,
        message: &str,
        parent: &Option<String>,
        index: Option<u64>,
        block: ContentBlock,
        at: Timestamp,
        out: &mut Vec<TranslatorOutput>,
    ) {
        let parent_item = parent.as_deref().map(Self::item_of);
        let thread = self.thread(parent);
        let counted = thread.counted;
        thread.counted += 1;
        let (is_message, content) = match block {
            ContentBlock::Text { text } => (true, text),
            ContentBlock::Thinking { thinking } => (false, thinking),
            ContentBlock::ToolUse { id, name, input } => {
                if let Some(block) = thread.blocks.iter_mut().find(|block| block.call.as_ref() == Some(&id)) {
                    block.confirmed = true;
                }
                self.call_is_whole(turn, id, name, object(input), parent_item, at, out);
                return;
            }
            ContentBlock::ToolResult { tool_use_id, content, is_error } => {
                let ended = ToolEnd {
                    content: &content,
                    is_error,
                    structured: None,
                    meta: None,
                    decision: None,
                    is_by_program: true,
                };
                self.tool_ended(&tool_use_id, &ended, at, out);
                return;
            }
            ContentBlock::Image { .. } | ContentBlock::Unknown => return,
        };
        let streamed = thread
            .blocks
            .iter_mut()
            .find(|block| block.call.is_none() && block.is_message == is_message && !block.confirmed);
        let item = match streamed {
            Some(block) => {
                block.confirmed = true;
                block.item.clone()
            }
            None => {
                let item = text_item(message, index.unwrap_or(counted));
                let kind = if is_message { ItemType::Message } else { ItemType::Reasoning };
                self.emit(turn, at, StreamPayload::ItemStart(item_start(item.clone(), kind, parent_item)), out);
                item
            }
        };
        let final_item = if is_message {
            FinalItem::Message { content, origin: Origin::Agent }
        } else {
            FinalItem::Reasoning { content, provider_id: PROVIDER_ID.into() }
        };
        self.emit(turn, at, StreamPayload::ItemDone(ItemDone { item_id: item, final_item }), out);
    }

    #[expect(clippy::too_many_arguments, reason = "a call is known by all of them")]
    fn call_begins(
        &mut self,
        turn: &TurnId,
        id: &str,
        name: &str,
        input: &Map<String, Value>,
        parent: Option<ItemId>,
        at: Timestamp,
        out: &mut Vec<TranslatorOutput>,
    ) -> ItemId {
        let item = Self::item_of(id);
        let detail = ToolDetail { started_at: Some(at), ..tools::called(name, input) };
        let mut start = item_start(item.clone(), ItemType::FunctionCall, parent.clone());
        start.name = Some(name.into());
        start.call_id = Some(CallId::from_foreign(id));
        start.tool = Some(detail.clone().into());
        self.emit(turn, at, StreamPayload::ItemStart(start), out);
        let call = KnownCall { turn: turn.clone(), name: name.into(), detail, parent, ended: false };
        self.remember_call(id.to_owned(), call);
        item
    }

    #[expect(clippy::too_many_arguments, reason = "a call is known by all of them")]
    fn call_is_whole(
        &mut self,
        turn: &TurnId,
        id: String,
        name: String,
        input: Map<String, Value>,
        parent: Option<ItemId>,
        at: Timestamp,
        out: &mut Vec<TranslatorOutput>,
    ) {
        let item = match self.calls.contains_key(&id) {
            true => Self::item_of(&id),
            false => self.call_begins(turn, &id, &name, &input, parent, at, out),
        };
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.detail = ToolDetail {
            started_at: call.detail.started_at,
            permission: call.detail.permission.take(),
            ..tools::called(&name, &input)
        };
        let final_item = FinalItem::FunctionCall {
            call_id: CallId::from_foreign(&id),
            tool: Some(call.detail.clone().into()),
            arguments: input.clone(),
            name: name.clone(),
        };
        let turn = call.turn.clone();
        let main = call.parent.is_none();
        self.emit(&turn, at, StreamPayload::ItemDone(ItemDone { item_id: item, final_item }), out);
        if main && let Some(plan) = facts::plan(&name, &input) {
            emit_facts(SessionFacts { plan: Some(plan), ..SessionFacts::default() }, out);
        }
    }

    pub(super) fn user(&mut self, line: MessageLine, now: Timestamp, out: &mut Vec<TranslatorOutput>) {
        let at = line.timestamp.unwrap_or(now);
        let mut has_result = false;
        for block in &line.message.content {
            if let ContentBlock::ToolResult { tool_use_id, content, is_error } = block {
                has_result = true;
                let meta = line.tool_result_meta.iter().find(|meta| meta.id == *tool_use_id);
                let decision = meta.and_then(|meta| meta.permission_decision.as_ref());
                let ended = ToolEnd {
                    content,
                    is_error: *is_error,
                    structured: line.tool_use_result.as_ref(),
                    meta: meta.and_then(|meta| meta.non_execution_kind.as_deref()),
                    decision: decision.or(line.permission_decision.as_ref()),
                    is_by_program: match line.entrypoint.as_deref() {
                        Some(entrypoint) => entrypoint.starts_with("sdk"),
                        None => self.source == LineSource::Live,
                    },
                };
                self.tool_ended(tool_use_id, &ended, at, out);
            }
        }
        if has_result || line.parent_tool_use_id.is_some() || line.is_sidechain {
            return;
        }
        self.user_message(line, at, out);
    }

    /// A text in the user's name: the user's own, or one of the program's.
    fn user_message(&mut self, line: MessageLine, at: Timestamp, out: &mut Vec<TranslatorOutput>) {
        if line.is_replay {
            self.accepted(line.uuid.as_deref());
        }
        let hidden = line.is_meta || line.is_synthetic || line.is_compact_summary || line.is_visible_in_transcript_only;
        if hidden {
            return;
        }
        match texts::user_text(&line.message.content) {
            UserText::Interrupted => {
                if let Some(turn) = &mut self.turn {
                    turn.interrupted = true;
                    turn.last_at = at;
                }
            }
            UserText::LocalOutput(text) => self.local_output(line.uuid, &text, at, out),
            UserText::TaskReport(report) => {
                if let Some(call) = &report.call {
                    self.sub_agent_ended(call, report.result, report.failed, at, out);
                }
                self.next_recorded_turn(out);
            }
            UserText::Hidden => {}
            UserText::User(text) => {
                if self.source == LineSource::File
                    && let Some(uuid) = line.uuid
                {
                    let asked_to_compact = text.starts_with("/compact");
                    let compacted = self.compacted.take_if(|_| asked_to_compact);
                    self.next_recorded_turn(out);
                    let began = self.begin(TurnId::from_foreign(&uuid), text, at);
                    out.extend(began);
                    self.compacted = compacted;
                    self.emit_compacted(out);
                }
            }
        }
    }

    fn tool_ended(&mut self, id: &str, end: &ToolEnd<'_>, at: Timestamp, out: &mut Vec<TranslatorOutput>) {
        let turn = self.turn_of(None);
        let (name, mut detail, turn) = match self.calls.get_mut(id) {
            Some(call) => {
                call.ended = true;
                (call.name.clone(), call.detail.clone(), Some(call.turn.clone()))
            }
            // A result whose call we never saw is shown all the same.
            None => (String::new(), ToolDetail::default(), turn),
        };
        let Some(turn) = turn else { return };
        let is_error = end.is_error.unwrap_or(false);
        let outcome = tools::ended(&name, &mut detail, end.content, is_error, end.structured);
        detail.interrupted |= end.meta == Some("user-rejected");
        detail.ended_at = Some(at);
        detail.permission =
            detail.permission.or_else(|| end.decision.and_then(|decision| permission(decision, end.is_by_program)));
        if tools::is_agent(&name) {
            if let Some(call) = self.calls.get_mut(id) {
                call.detail = detail.clone();
            }
        } else {
            self.calls.remove(id);
        }
        if let Some(turn) = self.turn.as_mut().filter(|running| running.id == turn) {
            turn.last_at = at;
        }
        self.emit_result(&turn, id, outcome.output, outcome.is_error, detail, at, out);
    }

    #[expect(clippy::too_many_arguments, reason = "a result is known by all of them")]
    pub(super) fn emit_result(
        &self,
        turn: &TurnId,
        id: &str,
        output: String,
        is_error: bool,
        detail: ToolDetail,
        at: Timestamp,
        out: &mut Vec<TranslatorOutput>,
    ) {
        let call_id = CallId::from_foreign(id);
        let final_item = FinalItem::FunctionCallOutput { call_id, output, is_error, tool: Some(detail.into()) };
        let done = ItemDone { item_id: Self::item_of(id), final_item };
        self.emit(turn, at, StreamPayload::ItemDone(done), out);
    }
}

/// What is known of a tool's end.
struct ToolEnd<'a> {
    content: &'a [ContentBlock],
    is_error: Option<bool>,
    structured: Option<&'a Value>,
    meta: Option<&'a str>,
    decision: Option<&'a PermissionDecisionRecord>,
    /// Another program drove Claude Code, and answered its requests: this one.
    is_by_program: bool,
}

/// Texts and thoughts are named by their message and their position in it.
fn text_item(message: &str, index: u64) -> ItemId {
    ItemId::from_foreign(&format!("{message}.{index}"))
}

/// How Claude Code recorded that a permission was given. What its settings allow was never asked. It does not
/// distinguish our policy from a person, so a record of a run under our control is read as what the policy does.
fn permission(record: &PermissionDecisionRecord, is_by_program: bool) -> Option<Permission> {
    let decision = match (record.decision.as_str(), record.source.as_str()) {
        (_, "config" | "hook" | "") => return None,
        ("accept", "user_permanent") => PermissionDecision::AllowedAlways,
        ("accept", _) if is_by_program => PermissionDecision::AllowedAutomatically,
        ("accept", _) => PermissionDecision::AllowedOnce,
        ("reject", _) => PermissionDecision::Rejected,
        _ => return None,
    };
    Some(Permission { decision, option: None })
}
