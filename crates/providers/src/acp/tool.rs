//! One tool call of an ACP agent, put together from many partial updates.
//!
//! Comes in: `tool_call`, `tool_call_update`, the tool call inside a permission request, output of our own terminals.
//! Goes out: payloads of stream events. The output is what `content` holds; else what came as terminal output in
//! `_meta`; else `rawOutput`.

use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use protocol::stream::{ItemDelta, ItemDone, ItemStart};
use protocol::{
    CallId, FinalItem, ItemId, ItemType, Permission, StreamPayload, Timestamp, ToolContent, ToolDetail, ToolKind,
    ToolLocation,
};
use serde::Deserialize;
use serde_json::Value;

use super::content;

#[derive(Debug)]
pub(crate) struct ToolState {
    pub(crate) item_id: ItemId,
    call_id: CallId,
    parent: Option<ItemId>,
    name: Option<String>,
    detail: ToolDetail,
    /// Text from `content`, the last wording.
    text: Option<String>,
    /// How much of `text` went out while the call ran.
    text_sent_bytes: usize,
    /// Terminal output came and was passed on; it is the processor's to keep.
    has_terminal_output: bool,
    raw_output: Option<Value>,
    output_started: bool,
    /// Terminals of ours whose output belongs to this call.
    terminals: Vec<String>,
    phase: CallPhase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallPhase {
    /// The call is known; its item has not begun.
    New,
    Pending,
    Running,
    /// It is over, but more may follow: in a replay the output follows the end.
    Ending {
        failed: bool,
    },
    Over {
        failed: bool,
    },
}

/// Where a change comes from: each means something else by the text in `content`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolCallSource {
    Call,
    Update,
    Permission,
}

impl ToolState {
    pub(crate) fn new(id: &str, parent: Option<ItemId>) -> Self {
        Self {
            item_id: ItemId::from_foreign(id),
            call_id: CallId::from_foreign(id),
            parent,
            name: None,
            detail: ToolDetail::default(),
            text: None,
            text_sent_bytes: 0,
            has_terminal_output: false,
            raw_output: None,
            output_started: false,
            terminals: Vec::new(),
            phase: CallPhase::New,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.phase, CallPhase::Over { .. })
    }

    /// It is over, and waits for what may still follow.
    pub(crate) fn is_ending(&self) -> bool {
        matches!(self.phase, CallPhase::Ending { .. })
    }

    pub(crate) fn is_open_command(&self) -> bool {
        self.is_open() && self.detail.kind == ToolKind::Execute
    }

    pub(crate) fn shows_terminal(&self, terminal: &str) -> bool {
        self.terminals.iter().any(|shown| shown == terminal)
    }

    /// Applies an update. `now` is none in a replay, whose times nobody knows.
    pub(crate) fn apply(
        &mut self,
        update: acp::ToolCallUpdate,
        source: ToolCallSource,
        now: Option<Timestamp>,
        out: &mut Vec<StreamPayload>,
    ) {
        let fields = update.fields;
        let meta = Value::Object(update.meta.unwrap_or_default());
        let before = self.detail.clone();
        let was_over = !self.is_open();
        let is_new = self.phase == CallPhase::New;

        self.name = fields.name.or_else(|| tool_name(&meta)).or(self.name.take());
        self.take_facts(fields.title, fields.kind, fields.locations, fields.raw_input.as_ref());
        let ending = self.take_status(fields.status, source);
        if let Some(content) = fields.content {
            self.take_content(content, source);
        }
        if let Some(raw_output) = fields.raw_output {
            self.detail.exit_code = content::exit_code(&raw_output).or(self.detail.exit_code);
            self.raw_output = Some(raw_output);
        }
        if let Some(code) = meta.pointer("/terminal_exit/exit_code").and_then(Value::as_i64) {
            self.detail.exit_code = i32::try_from(code).ok();
        }

        // An agent that keeps our answer with the call gives it back in a replay.
        if let Some(permission) =
            meta.pointer("/liminal/permission").and_then(|recorded| Permission::deserialize(recorded).ok())
        {
            self.detail.permission = Some(permission);
        }

        let arguments = fields.raw_input.map(arguments).filter(|arguments| !arguments.is_empty());
        if is_new {
            self.detail.started_at = now;
            // A title may become a sentence later on; the name stays.
            self.name = Some(self.shown_name());
            out.push(self.begin(arguments));
        } else if let Some(arguments) = arguments {
            let (name, call_id, tool) = (self.shown_name(), self.call_id.clone(), Some(self.shared_detail()));
            let final_item = FinalItem::FunctionCall { name, call_id, arguments, tool };
            out.push(done(&self.item_id, final_item));
        } else if self.detail != before {
            out.push(self.progress());
        }
        for place in ["/terminal_output_delta/data", "/terminal_output/data"] {
            if let Some(data) = meta.pointer(place).and_then(Value::as_str) {
                self.add_terminal_output(data, out);
            }
        }
        if ending {
            self.settle(now, out);
        } else if was_over {
            out.push(self.result());
        } else {
            self.send_growth(out);
        }
    }

    /// Output of a terminal, an agent's own or ours.
    pub(crate) fn add_terminal_output(&mut self, data: &str, out: &mut Vec<StreamPayload>) {
        if data.is_empty() {
            return;
        }
        self.has_terminal_output = true;
        self.add_output(data, out);
    }

    pub(crate) fn set_permission(&mut self, permission: Permission, out: &mut Vec<StreamPayload>) {
        self.detail.permission = Some(permission);
        out.push(self.progress());
    }

    /// Ends a call that is over and to which nothing more was added.
    pub(crate) fn settle_if_ending(&mut self, now: Option<Timestamp>, out: &mut Vec<StreamPayload>) {
        if self.is_ending() {
            self.settle(now, out);
        }
    }

    fn settle(&mut self, now: Option<Timestamp>, out: &mut Vec<StreamPayload>) {
        if let CallPhase::Ending { failed } | CallPhase::Over { failed } = self.phase {
            self.phase = CallPhase::Over { failed };
            self.detail.ended_at = now;
            out.push(self.result());
            // The wording is the processor's now; a late update brings its own.
            self.text = None;
            self.raw_output = None;
        }
    }

    fn take_facts(
        &mut self,
        title: Option<String>,
        kind: Option<acp::ToolKind>,
        locations: Option<Vec<acp::ToolCallLocation>>,
        raw_input: Option<&Value>,
    ) {
        if let Some(title) = title.filter(|title| !title.is_empty()) {
            self.detail.title = Some(title);
        }
        if let Some(kind) = kind {
            self.detail.kind = tool_kind(kind);
        }
        if matches!(self.name.as_deref(), Some("Agent" | "Task")) {
            self.detail.kind = ToolKind::Agent;
        }
        if let Some(locations) = locations.filter(|locations| !locations.is_empty()) {
            self.detail.locations = locations.into_iter().map(location).collect();
        }
        if self.detail.kind == ToolKind::Execute {
            let command = raw_input.and_then(content::command_line).or_else(|| self.detail.command.take());
            self.detail.command = command.or_else(|| self.detail.title.clone());
        }
    }

    /// Whether the call ends with this.
    fn take_status(&mut self, status: Option<acp::ToolCallStatus>, source: ToolCallSource) -> bool {
        let ended = match status {
            Some(acp::ToolCallStatus::Completed) => CallPhase::Ending { failed: false },
            Some(acp::ToolCallStatus::Failed) => CallPhase::Ending { failed: true },
            Some(acp::ToolCallStatus::InProgress) if self.is_open() => {
                self.phase = CallPhase::Running;
                return false;
            }
            _ if self.phase == CallPhase::New => {
                self.phase = CallPhase::Pending;
                return false;
            }
            _ => return false,
        };
        self.phase = ended;
        source == ToolCallSource::Update
    }

    /// Text that comes before a tool runs, or with a permission request, describes what it will do. After that it is
    /// output.
    fn take_content(&mut self, blocks: Vec<acp::ToolCallContent>, source: ToolCallSource) {
        let is_output = match source {
            ToolCallSource::Call => matches!(self.phase, CallPhase::Ending { .. }),
            ToolCallSource::Update => self.phase != CallPhase::Pending,
            ToolCallSource::Permission => false,
        };
        let mut shown = Vec::new();
        let mut texts = Vec::new();
        let mut terminals = Vec::new();
        for block in blocks {
            match block {
                acp::ToolCallContent::Diff(diff) => shown.push(ToolContent::Diff {
                    path: diff.path.to_string_lossy().into_owned(),
                    old_text: diff.old_text,
                    new_text: diff.new_text,
                    start_line: None,
                }),
                acp::ToolCallContent::Terminal(terminal) => terminals.push(terminal.terminal_id.to_string()),
                acp::ToolCallContent::Content(acp::Content { content: acp::ContentBlock::Image(image), .. }) => {
                    shown.push(ToolContent::Image { mime_type: image.mime_type, data: image.data });
                }
                acp::ToolCallContent::Content(block) => texts.push(content::block_text(block.content)),
                _ => {}
            }
        }
        if !terminals.is_empty() {
            self.terminals = terminals;
        }
        let text = texts.join("\n\n");
        if is_output {
            self.take_text(content::without_fence(&text));
        } else if !text.is_empty() {
            shown.push(ToolContent::Text { text });
        }
        if !shown.is_empty() {
            self.detail.content = shown;
        } else if is_output && self.text.is_some() {
            // The result of an edit is text; its diff came before and is still what was done.
            self.detail.content.retain(|content| !matches!(content, ToolContent::Text { .. }));
        } else if source != ToolCallSource::Permission {
            self.detail.content.clear();
        }
    }

    fn take_text(&mut self, text: &str) {
        let sent = self.text.as_deref().and_then(|known| known.get(..self.text_sent_bytes)).unwrap_or_default();
        if !text.starts_with(sent) {
            self.text_sent_bytes = usize::MAX;
        }
        self.text = (!text.is_empty()).then(|| text.to_owned());
    }

    /// Passes on what the text gained. A wording that differs from what went out waits for the end.
    fn send_growth(&mut self, out: &mut Vec<StreamPayload>) {
        let Some(text) = self.text.as_ref().filter(|_| self.phase == CallPhase::Running && !self.has_terminal_output)
        else {
            return;
        };
        let Some(growth) = text.get(self.text_sent_bytes..).filter(|growth| !growth.is_empty()).map(str::to_owned)
        else {
            return;
        };
        self.text_sent_bytes = text.len();
        self.add_output(&growth, out);
    }

    fn add_output(&mut self, data: &str, out: &mut Vec<StreamPayload>) {
        if !self.output_started {
            self.output_started = true;
            out.push(StreamPayload::ItemStart(ItemStart {
                item_id: self.output_id(),
                item_type: ItemType::FunctionCallOutput,
                initial_content: None,
                name: None,
                call_id: Some(self.call_id.clone()),
                origin: None,
                parent_item_id: None,
                tool: None,
            }));
        }
        out.push(StreamPayload::ItemDelta(ItemDelta {
            item_id: self.output_id(),
            delta_content: data.to_owned(),
            tool: None,
        }));
    }

    fn begin(&self, arguments: Option<serde_json::Map<String, Value>>) -> StreamPayload {
        StreamPayload::ItemStart(ItemStart {
            item_id: self.item_id.clone(),
            item_type: ItemType::FunctionCall,
            initial_content: arguments.and_then(|arguments| serde_json::to_string(&arguments).ok()),
            name: Some(self.shown_name()),
            call_id: Some(self.call_id.clone()),
            origin: None,
            parent_item_id: self.parent.clone(),
            tool: Some(self.shared_detail()),
        })
    }

    fn progress(&self) -> StreamPayload {
        StreamPayload::ItemDelta(ItemDelta {
            item_id: self.item_id.clone(),
            delta_content: String::new(),
            tool: Some(self.shared_detail()),
        })
    }

    /// What the call gave back. Terminal output stands as it went out: an empty wording leaves it alone.
    fn result(&self) -> StreamPayload {
        let raw_output = || self.raw_output.as_ref().map(content::raw_output_text).unwrap_or_default();
        let output = match &self.text {
            Some(text) => text.clone(),
            None if self.has_terminal_output => String::new(),
            None => raw_output(),
        };
        let failed = matches!(self.phase, CallPhase::Ending { failed: true } | CallPhase::Over { failed: true });
        let is_error = failed || self.detail.exit_code.is_some_and(|code| code != 0);
        let (call_id, tool) = (self.call_id.clone(), Some(self.shared_detail()));
        done(&self.output_id(), FinalItem::FunctionCallOutput { call_id, output, is_error, tool })
    }

    fn output_id(&self) -> ItemId {
        ItemId::from_foreign(&format!("{}.output", self.item_id))
    }

    /// What the tool is called: by the agent, else by its kind, else by what it does.
    fn shown_name(&self) -> String {
        let kind = match self.detail.kind {
            ToolKind::Other => self.detail.title.as_deref().unwrap_or("tool"),
            ToolKind::Read => "read",
            ToolKind::Edit => "edit",
            ToolKind::Delete => "delete",
            ToolKind::Move => "move",
            ToolKind::Search => "search",
            ToolKind::Execute => "execute",
            ToolKind::Think => "think",
            ToolKind::Fetch => "fetch",
            ToolKind::SwitchMode => "switch_mode",
            ToolKind::Agent => "agent",
        };
        self.name.clone().unwrap_or_else(|| kind.to_owned())
    }

    fn shared_detail(&self) -> Arc<ToolDetail> {
        Arc::new(self.detail.clone())
    }
}

fn done(item_id: &ItemId, final_item: FinalItem) -> StreamPayload {
    StreamPayload::ItemDone(ItemDone { item_id: item_id.clone(), final_item })
}

fn arguments(raw_input: Value) -> serde_json::Map<String, Value> {
    match raw_input {
        Value::Object(fields) => fields,
        Value::Null => serde_json::Map::new(),
        other => [("input".to_owned(), other)].into_iter().collect(),
    }
}

fn tool_name(meta: &Value) -> Option<String> {
    meta.pointer("/claudeCode/toolName").and_then(Value::as_str).map(str::to_owned)
}

/// The call under which a sub-agent works, where the agent names it.
pub(crate) fn parent(meta: Option<&acp::Meta>) -> Option<ItemId> {
    meta?.get("claudeCode")?.get("parentToolUseId")?.as_str().map(ItemId::from_foreign)
}

fn location(location: acp::ToolCallLocation) -> ToolLocation {
    ToolLocation { path: location.path.to_string_lossy().into_owned(), line: location.line }
}

fn tool_kind(kind: acp::ToolKind) -> ToolKind {
    match kind {
        acp::ToolKind::Read => ToolKind::Read,
        acp::ToolKind::Edit => ToolKind::Edit,
        acp::ToolKind::Delete => ToolKind::Delete,
        acp::ToolKind::Move => ToolKind::Move,
        acp::ToolKind::Search => ToolKind::Search,
        acp::ToolKind::Execute => ToolKind::Execute,
        acp::ToolKind::Think => ToolKind::Think,
        acp::ToolKind::Fetch => ToolKind::Fetch,
        acp::ToolKind::SwitchMode => ToolKind::SwitchMode,
        _ => ToolKind::Other,
    }
}
