//! What an ACP agent says, as stream events and session facts.
//!
//! Comes in: the updates of one session in order, the prompts we send and their results, and the time. Goes out:
//! events, each of a turn, and facts. Kept out: tasks, processes, clocks. Items keep the agent's ids (`messageId`,
//! `toolCallId`) where it gives any; else their place in the turn is their id. The same code reads a live turn and
//! the replay of `session/load`, where a user's message begins a turn.

mod calls;
mod replay;

use std::collections::{HashSet, VecDeque};

use agent_client_protocol_schema::MaybeUndefined;
use agent_client_protocol_schema::v1 as acp;
use protocol::stream::{ResponseError, ResponseStart};
use protocol::{
    ErrorCode, ErrorDetail, ItemId, Origin, Permission, ResponseStatus, SessionFacts, SessionId, StreamPayload,
    Timestamp, TurnId, Usage,
};

use calls::Calls;

use super::content::{block_text, plain_words};
use super::open_text::{OpenText, Repeat, message_item_id};
use super::options::{self, SessionOptions};
use super::event_builder::{Translated, OwnTurn, EventBuilder, Voice};
use super::tool::{self, Source, ToolState};
use super::wire::{PromptResult, RpcError, SessionSetup, Update};

/// Turns that have ended and may still be spoken of.
const ENDED_TURNS_KEPT: usize = 8;
/// Stands for a message that only said what the turn's error says.
pub(crate) const TURN_FAILED: &str = "The turn failed.";
/// What Claude Code writes into its history where a turn was cancelled.
const INTERRUPTED: &str = "[Request interrupted by user";

/// What agents do differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quirks {
    /// Text without a `messageId` is not the model's: an error, a warning, the answer to a command.
    pub(crate) notices_have_no_message_id: bool,
    /// A cancel ends the turn and leaves its command running, also one that was not announced yet.
    pub(crate) cancel_leaves_commands: bool,
}

impl Quirks {
    /// Known by the name the agent gives itself in the handshake.
    pub(crate) fn of(agent: Option<&acp::Implementation>) -> Self {
        let name = agent.map_or("", |agent| agent.name.as_str());
        let is_codex = name == "@agentclientprotocol/codex-acp";
        Self { notices_have_no_message_id: is_codex, cancel_leaves_commands: is_codex }
    }
}

#[derive(Debug)]
pub(crate) struct Translator {
    session: SessionId,
    quirks: Quirks,
    options: SessionOptions,
    /// Oldest first. Only the last one can be open.
    turns: VecDeque<Turn>,
    /// A replay: turns begin by themselves.
    replaying: bool,
    /// When what is replayed happened, where the agent says so. Else nobody knows.
    replayed_at: Option<Timestamp>,
    /// Nothing was asked of the agent since the replay: what it says now still belongs to the replay.
    is_fresh: bool,
    turns_begun: u64,
    /// Something is shown as going on.
    active: bool,
    /// Calls that were told with their end and may still say more.
    ending: Vec<ItemId>,
    /// What the session has cost in all, in US dollars, now and when the turn began.
    cost: Option<f64>,
    cost_before: Option<f64>,
    /// Messages of ours that wait for the end of the text that is growing. The caller bounds them.
    reports: Vec<String>,
}

#[derive(Debug)]
struct Turn {
    id: TurnId,
    open: bool,
    /// Ended here without its agent: what that still says about its items is dropped.
    is_cut: bool,
    calls: Calls,
    /// Messages and thoughts that have begun.
    texts: HashSet<ItemId>,
    /// The text that grows now.
    growing: Option<OpenText>,
    items_begun: usize,
    /// The user's words, to know an echo of them.
    prompt: String,
    /// In a replay, when the last of it was said.
    said_at: Timestamp,
}

impl Translator {
    pub(crate) fn new(session: SessionId, quirks: Quirks) -> Self {
        Self {
            session,
            quirks,
            options: SessionOptions::default(),
            turns: VecDeque::new(),
            replaying: false,
            replayed_at: None,
            is_fresh: false,
            turns_begun: 0,
            active: false,
            ending: Vec::new(),
            cost: None,
            cost_before: None,
            reports: Vec::new(),
        }
    }

    pub(crate) fn options(&self) -> &SessionOptions {
        &self.options
    }

    pub(crate) fn set_up(&mut self, setup: &SessionSetup) -> SessionFacts {
        self.options.set_up(setup)
    }

    pub(crate) fn set_options(&mut self, options: &[acp::SessionConfigOption]) -> SessionFacts {
        self.options.replace(options)
    }

    pub(crate) fn set_mode(&mut self, mode: &str) -> SessionFacts {
        self.options.set_mode(mode)
    }

    pub(crate) fn choose(&mut self, option: &str, value: &str) -> SessionFacts {
        self.options.choose(option, value)
    }

    /// A tool of the present turn has not ended: silence means nothing.
    pub(crate) fn has_open_tool(&self) -> bool {
        self.turns.back().is_some_and(|turn| turn.open && turn.calls.has_open())
    }

    /// A command of the present turn has not ended, as far as the agent said or is known to keep to itself.
    pub(crate) fn may_leave_command(&self) -> bool {
        let has_open_command = |turn: &Turn| turn.calls.open().any(ToolState::is_open_command);
        self.quirks.cancel_leaves_commands || self.turns.back().is_some_and(has_open_command)
    }

    /// A call shows this terminal.
    pub(crate) fn shows_terminal(&self, terminal: &str) -> bool {
        self.turns.iter().any(|turn| turn.calls.with_terminal(terminal).is_some())
    }

    /// The user's message was handed to the agent.
    pub(crate) fn begin_turn(&mut self, id: TurnId, text: &str, now: Timestamp) -> Translated {
        let mut step = EventBuilder::new(now);
        self.cost_before = self.cost;
        self.is_fresh = false;
        self.open_turn(id, text, &mut step);
        let item_id = self.next_item_id("user");
        step.message(item_id, text, Origin::User);
        step.into_output(&self.session)
    }

    /// The agent answered the prompt.
    pub(crate) fn end_turn(&mut self, result: Result<PromptResult, RpcError>, now: Timestamp) -> Translated {
        let mut step = EventBuilder::new(now);
        self.clear_activity(&mut step);
        self.settle_ending(&mut step);
        self.emit_reports(&mut step);
        let Some(turn) = self.turns.back_mut().filter(|turn| turn.open) else {
            return step.into_output(&self.session);
        };
        turn.open = false;
        step.turn = Some(turn.id.clone());
        match result {
            Ok(result) => {
                let usage = result.usage.map(|tokens| Usage {
                    input_tokens: tokens.input_tokens,
                    output_tokens: tokens.output_tokens,
                    cache_read_input_tokens: tokens.cached_read_tokens,
                    cache_creation_input_tokens: tokens.cached_write_tokens,
                    cost_usd: self.cost.map(|now| {
                        // An agent that has taken the session up again counts from nothing.
                        let before = self.cost_before.filter(|before| *before <= now);
                        now - before.unwrap_or_default()
                    }),
                });
                self.stop(&result.stop_reason, usage, &mut step);
            }
            Err(error) => {
                let message = error.text();
                // Some agents say an error twice: as their last message and as the answer. It is shown once.
                let said = turn.growing.take().filter(|text| text.voice == Voice::Agent);
                if let Some(item_id) = said.and_then(|text| text.says(&message)) {
                    step.message(item_id, TURN_FAILED, Origin::System);
                }
                let error = ErrorDetail::new(ErrorCode::AgentProtocolError, message);
                step.push(StreamPayload::ResponseError(ResponseError { error }));
            }
        }
        step.into_output(&self.session)
    }

    /// The present turn is over without an answer; the caller has told so. What comes late goes to its items.
    pub(crate) fn abandon_turn(&mut self) {
        self.active = false;
        if let Some(turn) = self.turns.back_mut() {
            turn.open = false;
            turn.growing = None;
        }
    }

    /// The present turn ends here while its agent works on. Nothing more is taken of it, however late it comes.
    pub(crate) fn cut_turn(&mut self) {
        if let Some(turn) = self.turns.back_mut() {
            turn.is_cut = true;
        }
    }

    /// A message of ours about a line that could not be read. A text that is growing is not divided by it: the message
    /// waits for what follows that text.
    pub(crate) fn report(&mut self, message: String, now: Timestamp) -> Translated {
        let mut step = EventBuilder::new(now);
        self.reports.push(message);
        if self.turns.back().is_none_or(|turn| turn.growing.is_none()) {
            self.emit_reports(&mut step);
        }
        step.into_output(&self.session)
    }

    fn emit_reports(&mut self, step: &mut EventBuilder) {
        for message in std::mem::take(&mut self.reports) {
            self.ensure_turn(false, step);
            let item_id = self.next_item_id("");
            step.message(item_id, &message, Origin::System);
        }
    }

    /// The agent asked for leave, and was answered.
    pub(crate) fn permission(&mut self, call: acp::ToolCallUpdate, permission: Permission, now: Timestamp) -> Translated {
        let mut step = EventBuilder::new(now);
        let id = call.tool_call_id.clone();
        self.tool(call, Source::Permission, &mut step);
        self.with_tool(&id.0, &mut step, |tool, out| tool.set_permission(permission, out));
        step.into_output(&self.session)
    }

    /// A terminal of ours printed something.
    pub(crate) fn terminal_output(&mut self, terminal: &str, data: &str, now: Timestamp) -> Translated {
        let mut step = EventBuilder::new(now);
        for turn in self.turns.iter_mut().rev() {
            if let Some(call) = turn.calls.with_terminal(terminal).cloned() {
                step.turn = Some(turn.id.clone());
                turn.calls.change(&call, |tool| tool.add_terminal_output(data, &mut step.scratch));
                step.take_scratch();
                break;
            }
        }
        step.into_output(&self.session)
    }

    pub(crate) fn update(&mut self, update: Update, now: Timestamp) -> Translated {
        let mut step = EventBuilder::new(if self.replaying { self.time_of_replayed(&update) } else { now });
        let is_change = matches!(update, Update::ToolCallUpdate(_));
        let says_something = is_change
            || matches!(update, Update::AgentText(_) | Update::Thought(_) | Update::UserText(_) | Update::ToolCall(_));
        if says_something {
            self.clear_activity(&mut step);
            if !is_change {
                self.settle_ending(&mut step);
            }
        }
        match update {
            Update::AgentText(chunk) => {
                let is_notice = self.quirks.notices_have_no_message_id && chunk.message_id.is_none();
                self.text(if is_notice { Voice::Notice } else { Voice::Agent }, chunk, &mut step);
            }
            Update::Thought(chunk) => self.text(Voice::Thought, chunk, &mut step),
            Update::UserText(chunk) => self.user_text(chunk, &mut step),
            Update::ToolCall(call) => self.tool(call, Source::Call, &mut step),
            Update::ToolCallUpdate(call) => self.tool(call, Source::Update, &mut step),
            Update::Plan(plan) => step.facts.merge(options::plan(plan)),
            Update::Commands(commands) => step.facts.merge(options::commands(commands)),
            Update::Mode(mode) => step.facts.merge(self.options.set_mode(&mode.current_mode_id.0)),
            Update::Options(update) => step.facts.merge(self.options.replace(&update.config_options)),
            Update::Info(info) => self.info(info, &mut step),
            Update::Usage(usage) => self.usage(&usage, &mut step),
            Update::Notice(notice) => self.notice(notice, &mut step),
            Update::Compaction(compaction) => self.compaction(compaction, &mut step),
            Update::CompactionSummary(chunk) => self.compaction_summary(chunk, &mut step),
            Update::Unknown { kind } => tracing::info!(session = %self.session, kind, "update passed over"),
            // Who reads the lines reports it.
            Update::Unreadable { .. } => {}
        }
        if let Some(turn) = self.turns.back_mut().filter(|turn| self.replaying && turn.open) {
            turn.said_at = step.now;
        }
        step.into_output(&self.session)
    }

    fn open_turn(&mut self, id: TurnId, prompt: &str, step: &mut EventBuilder) {
        while self.turns.len() >= ENDED_TURNS_KEPT {
            self.turns.pop_front();
        }
        self.turns_begun += 1;
        self.turns.push_back(Turn {
            id: id.clone(),
            open: true,
            is_cut: false,
            calls: Calls::default(),
            texts: HashSet::new(),
            growing: None,
            items_begun: 0,
            prompt: prompt.to_owned(),
            said_at: step.now,
        });
        step.begun.push(id.clone());
        step.turn = Some(id);
        if step.own_turn != Some(OwnTurn::ItemsOnly) {
            let model_id = self.options.model_id();
            let provider_id = self.session.cli_type().to_string();
            step.push(StreamPayload::ResponseStart(ResponseStart { model_id, provider_id }));
        }
    }

    /// The turn that new items belong to. What an agent says between turns, and before the first message of a replay,
    /// gets a turn of its own. Only what the agent did by itself is told as a turn: a notice is no reason to show the
    /// session as finished, and neither is a replay that goes on after its end.
    fn ensure_turn(&mut self, is_work: bool, step: &mut EventBuilder) {
        match self.turns.back().filter(|turn| turn.open) {
            Some(turn) => step.turn = Some(turn.id.clone()),
            None if self.replaying => self.open_replayed_turn(step),
            None => {
                let own_turn = if is_work && !self.is_fresh { OwnTurn::Response } else { OwnTurn::ItemsOnly };
                step.own_turn = Some(own_turn);
                self.open_turn(TurnId::generate(), "", step);
                if let Some(turn) = self.turns.back_mut() {
                    turn.open = false;
                }
            }
        }
    }

    fn stop(&self, reason: &str, usage: Option<Usage>, step: &mut EventBuilder) {
        let status = match reason {
            "cancelled" => ResponseStatus::Cancelled,
            "refusal" => {
                let error = ErrorDetail::new(ErrorCode::AgentProtocolError, "The agent refused to go on.");
                return step.push(StreamPayload::ResponseError(ResponseError { error }));
            }
            _ => ResponseStatus::Completed,
        };
        let note = match reason {
            "max_tokens" => Some("Stopped: the answer reached its maximum length."),
            "max_turn_requests" => Some("Stopped: the turn reached its maximum number of requests."),
            _ => None,
        };
        if let (Some(note), Some(turn)) = (note, step.turn.clone()) {
            step.message(ItemId::from_foreign(&format!("{turn}.stopped")), note, Origin::System);
        }
        step.done(status, Some(reason.to_owned()), usage);
    }

    fn user_text(&mut self, chunk: acp::ContentChunk, step: &mut EventBuilder) {
        let message_id = chunk.message_id.as_ref().map(|id| id.0.to_string());
        if !self.replaying {
            let acp::ContentBlock::Text(text) = &chunk.content else { return };
            let is_echo = self.turns.back().is_some_and(|turn| turn.prompt.contains(text.text.trim()));
            if !is_echo {
                self.text(Voice::User, chunk, step);
            }
            return;
        }
        if matches!(&chunk.content, acp::ContentBlock::Text(text) if text.text.starts_with(INTERRUPTED)) {
            if let Some(turn) = self.turns.back_mut() {
                turn.said_at = step.now;
            }
            return self.finish_replayed(ResponseStatus::Cancelled, step);
        }
        let growing = self.turns.back().and_then(|turn| turn.growing.as_ref());
        let continues = growing
            .is_some_and(|text| text.voice == Voice::User && message_id.is_some() && text.message_id == message_id);
        if !continues {
            self.finish_replayed(ResponseStatus::Completed, step);
            self.open_replayed_turn(step);
        }
        self.text(Voice::User, chunk, step);
    }

    fn text(&mut self, voice: Voice, chunk: acp::ContentChunk, step: &mut EventBuilder) {
        let parent = tool::parent(chunk.meta.as_ref());
        let message_id = chunk.message_id.map(|id| id.0.to_string());
        let is_plain = matches!(chunk.content, acp::ContentBlock::Text(_));
        let mut text = block_text(chunk.content);
        if message_id.as_deref().is_some_and(|id| self.is_cut(id)) {
            return;
        }
        // Text that goes on after the end of its turn stays with its message.
        let item_id = message_id.as_deref().map(|id| message_item_id(id, voice));
        let known = item_id.as_ref().and_then(|id| self.turns.iter_mut().rev().find(|turn| turn.texts.contains(id)));
        if let (Some(turn), Some(item_id)) = (known, item_id.clone()) {
            step.turn = Some(turn.id.clone());
            match turn.growing.as_mut().filter(|growing| growing.item_id == item_id) {
                Some(growing) => {
                    if !is_plain {
                        text.insert(0, '\n');
                    }
                    growing.add(&text);
                }
                None => turn.growing = Some(OpenText::new(item_id.clone(), voice, message_id, None)),
            }
            return step.delta(item_id, text);
        }
        // A stream that was cut begins anew under another id. What is on the screen is not said again.
        if let Some(turn) = self.turns.back_mut().filter(|turn| turn.open && !self.replaying && is_plain)
            && let (Some(id), None) = (&message_id, &parent)
            && let Some(growing) = turn.growing.as_mut().filter(|growing| growing.voice == voice && !growing.is_nested)
        {
            match growing.follow(id, text) {
                Repeat::Nothing => return,
                Repeat::More(rest) => {
                    step.turn = Some(turn.id.clone());
                    return step.delta(growing.item_id.clone(), rest);
                }
                Repeat::Other(all) => text = all,
            }
        }
        if let Some(turn) = self.turns.back_mut().filter(|turn| turn.open) {
            let growing = turn.growing.as_mut();
            if let Some(growing) = growing.filter(|text| text.voice == voice && text.message_id == message_id) {
                step.turn = Some(turn.id.clone());
                growing.add(&text);
                return step.delta(growing.item_id.clone(), text);
            }
        }
        match voice {
            Voice::Thought => text = text.trim_start_matches('\n').to_owned(),
            Voice::Notice => text = plain_words(&text).into_owned(),
            Voice::Agent | Voice::User => {}
        }
        if text.is_empty() {
            return;
        }
        self.ensure_turn(voice != Voice::Notice, step);
        let item_id = item_id.unwrap_or_else(|| self.next_item_id(""));
        if let Some(turn) = self.turns.back_mut() {
            turn.texts.insert(item_id.clone());
            let words = is_plain.then(String::new);
            let mut growing = OpenText::new(item_id.clone(), voice, message_id, words);
            growing.is_nested = parent.is_some();
            growing.add(&text);
            turn.growing = Some(growing);
        }
        step.start(item_id, text, voice, parent);
    }

    /// This message, its text or its thought, began in a turn that was cut.
    fn is_cut(&self, message_id: &str) -> bool {
        // Asked for every piece of text; nearly no session has such a turn.
        if !self.turns.iter().any(|turn| turn.is_cut) {
            return false;
        }
        let items = [Voice::Agent, Voice::Thought].map(|voice| message_item_id(message_id, voice));
        self.turns.iter().filter(|turn| turn.is_cut).any(|turn| items.iter().any(|item| turn.texts.contains(item)))
    }

    fn notice(&mut self, notice: acp::Notice, step: &mut EventBuilder) {
        let mark = match notice.severity {
            acp::NoticeSeverity::Warning => "Warning: ",
            acp::NoticeSeverity::Error => "Error: ",
            _ => "",
        };
        let description = notice.description.map(|text| format!("\n\n{text}")).unwrap_or_default();
        self.ensure_turn(false, step);
        let item_id = self.next_item_id("");
        self.close_text();
        step.message(item_id, &format!("{mark}{}{description}", notice.title), Origin::System);
    }

    fn tool(&mut self, call: acp::ToolCallUpdate, source: Source, step: &mut EventBuilder) {
        let id = call.tool_call_id.clone();
        let now = (!self.replaying).then_some(step.now);
        let item_id = ItemId::from_foreign(&id.0);
        let is_known = self.turns.iter().rev().any(|turn| turn.calls.contains(&item_id));
        if !is_known {
            // First of all: a report may open a turn, which moves the others.
            self.emit_reports(step);
            let parent = tool::parent(call.meta.as_ref());
            // A sub-agent's call belongs to the turn of the call that started it, also when that turn is over.
            let home =
                parent.as_ref().and_then(|parent| self.turns.iter().position(|turn| turn.calls.contains(parent)));
            if home.and_then(|home| self.turns.get(home)).is_some_and(|turn| turn.is_cut) {
                return;
            }
            if home.is_none() {
                self.ensure_turn(true, step);
            }
            self.close_text();
            let home = home.unwrap_or(self.turns.len().saturating_sub(1));
            if let Some(turn) = self.turns.get_mut(home) {
                turn.calls.add(ToolState::new(&id.0, parent));
            }
        }
        self.with_tool(&id.0, step, |tool, out| tool.apply(call, source, now, out));
    }

    fn with_tool(&mut self, id: &str, step: &mut EventBuilder, act: impl FnOnce(&mut ToolState, &mut Vec<StreamPayload>)) {
        let item_id = ItemId::from_foreign(id);
        let its_turn = self.turns.iter_mut().rev().find(|turn| turn.calls.contains(&item_id));
        let Some(turn) = its_turn.filter(|turn| !turn.is_cut) else { return };
        step.turn = Some(turn.id.clone());
        let is_ending = turn.calls.change(&item_id, |tool| {
            act(tool, &mut step.scratch);
            tool.is_ending()
        });
        if is_ending == Some(true) {
            self.ending.push(item_id);
        }
        step.take_scratch();
    }

    /// Ends the calls whose end was told with their beginning, now that something else follows.
    fn settle_ending(&mut self, step: &mut EventBuilder) {
        let now = (!self.replaying).then_some(step.now);
        for call in std::mem::take(&mut self.ending) {
            let Some(turn) = self.turns.iter_mut().rev().find(|turn| turn.calls.contains(&call)) else { continue };
            step.turn = Some(turn.id.clone());
            turn.calls.change(&call, |tool| tool.settle_if_ending(now, &mut step.scratch));
            step.take_scratch();
        }
    }

    /// Without ids of their own, what is said after something else is another message.
    fn close_text(&mut self) {
        if let Some(turn) = self.turns.back_mut() {
            turn.growing = None;
        }
    }

    fn next_item_id(&mut self, suffix: &str) -> ItemId {
        let Some(turn) = self.turns.back_mut() else { return ItemId::generate() };
        turn.items_begun += 1;
        let place = if suffix.is_empty() { turn.items_begun.to_string() } else { suffix.to_owned() };
        ItemId::from_foreign(&format!("{}.{place}", turn.id))
    }

    fn info(&mut self, info: acp::SessionInfoUpdate, step: &mut EventBuilder) {
        if let MaybeUndefined::Value(title) = info.title {
            step.facts.agent_title = Some(title).filter(|title| !title.trim().is_empty());
        }
        let meta = serde_json::Value::Object(info.meta.unwrap_or_default());
        if self.replaying
            && let Some(message) = meta.pointer("/liminal/turnFailed").and_then(serde_json::Value::as_str)
        {
            self.fail_replayed(message, step);
        }
        let Some(error) = meta.pointer("/codex/error") else { return };
        if error["willRetry"].as_bool() != Some(true) {
            return;
        }
        if let Some(message) = error["message"].as_str() {
            self.active = true;
            step.facts.activity = Some(message.to_owned());
        }
    }

    fn usage(&mut self, usage: &acp::UsageUpdate, step: &mut EventBuilder) {
        step.facts.context = Some(protocol::facts::ContextUse { used: usage.used, size: usage.size });
        if let Some(cost) = usage.cost.as_ref().filter(|cost| cost.currency.eq_ignore_ascii_case("usd")) {
            self.cost = Some(cost.amount);
        }
    }

    /// A compaction is shown as a call: it runs, it may fail, and its summary is there to be opened.
    fn compaction(&mut self, compaction: acp::CompactionUpdate, step: &mut EventBuilder) {
        use acp::CompactionStatus as Status;
        let (status, title) = match compaction.status {
            Status::Completed => (acp::ToolCallStatus::Completed, "Conversation compacted"),
            Status::Failed => (acp::ToolCallStatus::Failed, "Compaction failed"),
            Status::Cancelled => (acp::ToolCallStatus::Failed, "Compaction cancelled"),
            _ => (acp::ToolCallStatus::InProgress, "Compacting the conversation"),
        };
        let is_running = status == acp::ToolCallStatus::InProgress;
        self.active = is_running;
        step.facts.activity = Some(if is_running { title.to_owned() } else { String::new() });
        let text = match (compaction.error, compaction.summary) {
            (MaybeUndefined::Value(error), _) => Some(error),
            (_, MaybeUndefined::Value(blocks)) => {
                Some(blocks.into_iter().map(block_text).collect::<Vec<_>>().join("\n\n"))
            }
            _ => None,
        };
        let id = compaction_call_id(&compaction.compaction_id);
        let fields = acp::ToolCallUpdateFields::new()
            .kind(acp::ToolKind::Think)
            .name("compaction".to_owned())
            .title(title.to_owned())
            .status(status)
            .content(text.map(|text| vec![acp::ToolCallContent::from(text)]));
        self.tool(acp::ToolCallUpdate::new(id, fields), Source::Update, step);
    }

    fn compaction_summary(&mut self, chunk: acp::CompactionSummaryChunk, step: &mut EventBuilder) {
        let text = block_text(chunk.content);
        self.with_tool(&compaction_call_id(&chunk.compaction_id), step, |tool, out| {
            tool.add_terminal_output(&text, out);
        });
    }

    fn clear_activity(&mut self, step: &mut EventBuilder) {
        if std::mem::take(&mut self.active) {
            step.facts.activity = Some(String::new());
        }
    }
}

fn compaction_call_id(id: &acp::CompactionId) -> String {
    format!("compaction.{}", id.0)
}
