//! What an ACP agent writes, as stream events and session facts.
//!
//! Comes in: the updates of one session in order, the prompts we send and their results, and the time. Goes out:
//! events, each of a turn, and facts. Kept out: tasks, processes, clocks. Items keep the agent's ids (`messageId`,
//! `toolCallId`) where it gives any; else their place in the turn is their id. The same code reads a live turn and
//! the replay of `session/load`, where a user's message begins a turn.

mod calls;
mod replay;
mod session_info;
mod texts;

use std::collections::VecDeque;

use agent_client_protocol_schema::v1 as acp;
use protocol::stream::{ResponseError, ResponseStart};
use protocol::{
    ErrorCode, ErrorDetail, ItemId, Origin, Permission, ResponseStatus, SessionFacts, SessionId, StreamPayload,
    Timestamp, TurnId, Usage,
};

use calls::Calls;
use texts::TextIds;

use super::event_builder::{EventBuilder, OwnTurn, TextKind, Translated};
use super::open_text::OpenText;
use super::options::{self, SessionOptions};
use super::tool::{self, ToolCallSource, ToolState};
use super::wire::{PromptResult, RpcError, SessionSetup, Update};

/// Turns that have ended and may still get updates.
const TURNS_MAX: usize = 8;
/// Replaces a message that only repeats the turn's error.
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
    turns: VecDeque<TranslatedTurn>,
    /// A replay: turns begin by themselves.
    replaying: bool,
    /// When what is replayed happened, where the agent reports it.
    replayed_at: Option<Timestamp>,
    /// Nothing was asked of the agent since the replay: what it writes now still belongs to the replay.
    is_fresh: bool,
    turns_begun: u64,
    /// Something is shown as going on.
    active: bool,
    /// Calls that came with their end and may still get updates.
    ending: Vec<ItemId>,
    /// What the session has cost in all, in US dollars, now and when the turn began.
    cost: Option<f64>,
    cost_before: Option<f64>,
    /// Messages of ours that wait for the end of the text that is open_text. The caller bounds them.
    reports: Vec<String>,
}

#[derive(Debug)]
struct TranslatedTurn {
    id: TurnId,
    open: bool,
    /// Ended here without its agent: what that still writes about its items is dropped.
    is_cut: bool,
    calls: Calls,
    /// Messages and thoughts that have begun.
    texts: TextIds,
    /// The text that grows now.
    open_text: Option<OpenText>,
    items_begun: usize,
    /// The user's message, to recognise an echo of it.
    prompt: String,
    /// In a replay, the time of its last update.
    updated_at: Timestamp,
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

    /// A command of the present turn has not ended, as far as is known; some agents do not announce every command.
    pub(crate) fn may_leave_command(&self) -> bool {
        let has_open_command = |turn: &TranslatedTurn| turn.calls.open().any(ToolState::is_open_command);
        self.quirks.cancel_leaves_commands || self.turns.back().is_some_and(has_open_command)
    }

    /// A call shows this terminal.
    pub(crate) fn shows_terminal(&self, terminal: &str) -> bool {
        self.turns.iter().any(|turn| turn.calls.with_terminal(terminal).is_some())
    }

    /// The user's message was handed to the agent.
    pub(crate) fn begin_turn(&mut self, id: TurnId, text: &str, now: Timestamp) -> Translated {
        let mut builder = EventBuilder::new(now);
        self.cost_before = self.cost;
        self.is_fresh = false;
        self.open_turn(id, text, &mut builder);
        let item_id = self.next_item_id("user");
        builder.message(item_id, text, Origin::User);
        builder.finish(&self.session)
    }

    /// The agent answered the prompt.
    pub(crate) fn end_turn(&mut self, result: Result<PromptResult, RpcError>, now: Timestamp) -> Translated {
        let mut builder = EventBuilder::new(now);
        self.clear_activity(&mut builder);
        self.settle_ending(&mut builder);
        self.emit_reports(&mut builder);
        let Some(turn) = self.turns.back_mut().filter(|turn| turn.open) else {
            return builder.finish(&self.session);
        };
        turn.open = false;
        builder.turn = Some(turn.id.clone());
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
                self.stop(&result.stop_reason, usage, &mut builder);
            }
            Err(error) => {
                let message = error.text();
                // Some agents report an error twice: as their last message and as the answer. It is shown once.
                let last = turn.open_text.take().filter(|text| text.kind == TextKind::Agent);
                if let Some(item_id) = last.and_then(|text| text.repeats(&message)) {
                    builder.message(item_id, TURN_FAILED, Origin::System);
                }
                let error = ErrorDetail::new(ErrorCode::AgentProtocolError, message);
                builder.push(StreamPayload::ResponseError(ResponseError { error }));
            }
        }
        builder.finish(&self.session)
    }

    /// The present turn is over without an answer; the caller has reported that. What comes late goes to its items.
    pub(crate) fn abandon_turn(&mut self) {
        self.active = false;
        if let Some(turn) = self.turns.back_mut() {
            turn.open = false;
            turn.open_text = None;
        }
    }

    /// The present turn ends here while its agent works on. Nothing more is taken of it, however late it comes.
    pub(crate) fn cut_turn(&mut self) {
        if let Some(turn) = self.turns.back_mut() {
            turn.is_cut = true;
        }
    }

    /// A message of ours about a line that could not be read. A text that is open_text is not divided by it: the
    /// message waits for what follows that text.
    pub(crate) fn report(&mut self, message: String, now: Timestamp) -> Translated {
        let mut builder = EventBuilder::new(now);
        self.reports.push(message);
        if self.turns.back().is_none_or(|turn| turn.open_text.is_none()) {
            self.emit_reports(&mut builder);
        }
        builder.finish(&self.session)
    }

    fn emit_reports(&mut self, builder: &mut EventBuilder) {
        for message in std::mem::take(&mut self.reports) {
            self.ensure_turn(false, builder);
            let item_id = self.next_item_id("");
            builder.message(item_id, &message, Origin::System);
        }
    }

    /// A permission request, and how it was answered.
    pub(crate) fn permission(
        &mut self,
        call: acp::ToolCallUpdate,
        permission: Permission,
        now: Timestamp,
    ) -> Translated {
        let mut builder = EventBuilder::new(now);
        let id = call.tool_call_id.clone();
        self.tool(call, ToolCallSource::Permission, &mut builder);
        self.with_tool(&id.0, &mut builder, |tool, out| tool.set_permission(permission, out));
        builder.finish(&self.session)
    }

    /// A terminal of ours printed something.
    pub(crate) fn terminal_output(&mut self, terminal: &str, data: &str, now: Timestamp) -> Translated {
        let mut builder = EventBuilder::new(now);
        for turn in self.turns.iter_mut().rev() {
            if let Some(call) = turn.calls.with_terminal(terminal).cloned() {
                builder.turn = Some(turn.id.clone());
                turn.calls.change(&call, |tool| tool.add_terminal_output(data, &mut builder.scratch));
                builder.take_scratch();
                break;
            }
        }
        builder.finish(&self.session)
    }

    pub(crate) fn update(&mut self, update: Update, now: Timestamp) -> Translated {
        let mut builder = EventBuilder::new(if self.replaying { self.time_of_replayed(&update) } else { now });
        let is_change = matches!(update, Update::ToolCallUpdate(_));
        let is_content = is_change
            || matches!(update, Update::AgentText(_) | Update::Thought(_) | Update::UserText(_) | Update::ToolCall(_));
        if is_content {
            self.clear_activity(&mut builder);
            // A change may still be about a call that came with its end; anything else means that the call is complete.
            if !is_change {
                self.settle_ending(&mut builder);
            }
        }
        match update {
            Update::AgentText(chunk) => {
                let is_notice = self.quirks.notices_have_no_message_id && chunk.message_id.is_none();
                self.text(if is_notice { TextKind::Notice } else { TextKind::Agent }, chunk, &mut builder);
            }
            Update::Thought(chunk) => self.text(TextKind::Thought, chunk, &mut builder),
            Update::UserText(chunk) => self.user_text(chunk, &mut builder),
            Update::ToolCall(call) => self.tool(call, ToolCallSource::Call, &mut builder),
            Update::ToolCallUpdate(call) => self.tool(call, ToolCallSource::Update, &mut builder),
            Update::Plan(plan) => builder.facts.merge(options::plan(plan)),
            Update::Commands(commands) => builder.facts.merge(options::commands(commands)),
            Update::Mode(mode) => builder.facts.merge(self.options.set_mode(&mode.current_mode_id.0)),
            Update::Options(update) => builder.facts.merge(self.options.replace(&update.config_options)),
            Update::Info(info) => self.info(info, &mut builder),
            Update::Usage(usage) => self.usage(&usage, &mut builder),
            Update::Notice(notice) => self.notice(notice, &mut builder),
            Update::Compaction(compaction) => self.compaction(compaction, &mut builder),
            Update::CompactionSummary(chunk) => self.compaction_summary(chunk, &mut builder),
            Update::Unknown { kind } => tracing::info!(session = %self.session, kind, "update passed over"),
            // Who reads the lines reports it.
            Update::Unreadable { .. } => {}
        }
        if let Some(turn) = self.turns.back_mut().filter(|turn| self.replaying && turn.open) {
            turn.updated_at = builder.now;
        }
        builder.finish(&self.session)
    }

    fn open_turn(&mut self, id: TurnId, prompt: &str, builder: &mut EventBuilder) {
        while self.turns.len() >= TURNS_MAX {
            self.turns.pop_front();
        }
        self.turns_begun += 1;
        self.turns.push_back(TranslatedTurn {
            id: id.clone(),
            open: true,
            is_cut: false,
            calls: Calls::default(),
            texts: TextIds::default(),
            open_text: None,
            items_begun: 0,
            prompt: prompt.to_owned(),
            updated_at: builder.now,
        });
        builder.begun.push(id.clone());
        builder.turn = Some(id);
        if builder.own_turn != Some(OwnTurn::ItemsOnly) {
            let model_id = self.options.model_id();
            let provider_id = self.session.cli_type().to_string();
            builder.push(StreamPayload::ResponseStart(ResponseStart { model_id, provider_id }));
        }
    }

    /// The turn that new items belong to. What an agent writes between turns, and before the first message of a replay,
    /// gets a turn of its own. Only what the agent did by itself is a response: a notice is no reason to show the
    /// session as finished, and neither is a replay that goes on after its end.
    fn ensure_turn(&mut self, is_work: bool, builder: &mut EventBuilder) {
        match self.turns.back().filter(|turn| turn.open) {
            Some(turn) => builder.turn = Some(turn.id.clone()),
            None if self.replaying => self.open_replayed_turn(builder),
            None => {
                let own_turn = if is_work && !self.is_fresh { OwnTurn::Response } else { OwnTurn::ItemsOnly };
                builder.own_turn = Some(own_turn);
                self.open_turn(TurnId::generate(), "", builder);
                // Nothing marks when such a turn would end, so it ends with this update; what follows opens another.
                if let Some(turn) = self.turns.back_mut() {
                    turn.open = false;
                }
            }
        }
    }

    fn stop(&self, reason: &str, usage: Option<Usage>, builder: &mut EventBuilder) {
        let status = match reason {
            "cancelled" => ResponseStatus::Cancelled,
            "refusal" => {
                let error = ErrorDetail::new(ErrorCode::AgentProtocolError, "The agent refused to go on.");
                return builder.push(StreamPayload::ResponseError(ResponseError { error }));
            }
            _ => ResponseStatus::Completed,
        };
        let note = match reason {
            "max_tokens" => Some("Stopped: the answer reached its maximum length."),
            "max_turn_requests" => Some("Stopped: the turn reached its maximum number of requests."),
            _ => None,
        };
        if let (Some(note), Some(turn)) = (note, builder.turn.clone()) {
            builder.message(ItemId::from_foreign(&format!("{turn}.stopped")), note, Origin::System);
        }
        builder.done(status, Some(reason.to_owned()), usage);
    }

    fn notice(&mut self, notice: acp::Notice, builder: &mut EventBuilder) {
        let mark = match notice.severity {
            acp::NoticeSeverity::Warning => "Warning: ",
            acp::NoticeSeverity::Error => "Error: ",
            _ => "",
        };
        let description = notice.description.map(|text| format!("\n\n{text}")).unwrap_or_default();
        self.ensure_turn(false, builder);
        let item_id = self.next_item_id("");
        self.close_text();
        builder.message(item_id, &format!("{mark}{}{description}", notice.title), Origin::System);
    }

    fn tool(&mut self, call: acp::ToolCallUpdate, source: ToolCallSource, builder: &mut EventBuilder) {
        let id = call.tool_call_id.clone();
        let now = (!self.replaying).then_some(builder.now);
        let item_id = ItemId::from_foreign(&id.0);
        let is_known = self.turns.iter().rev().any(|turn| turn.calls.contains(&item_id));
        if !is_known {
            // First of all: a report may open a turn, which moves the others.
            self.emit_reports(builder);
            let parent = tool::parent(call.meta.as_ref());
            // A sub-agent's call belongs to the turn of the call that started it, also when that turn is over.
            let home =
                parent.as_ref().and_then(|parent| self.turns.iter().position(|turn| turn.calls.contains(parent)));
            if home.and_then(|home| self.turns.get(home)).is_some_and(|turn| turn.is_cut) {
                return;
            }
            if home.is_none() {
                self.ensure_turn(true, builder);
            }
            self.close_text();
            let home = home.unwrap_or(self.turns.len().saturating_sub(1));
            if let Some(turn) = self.turns.get_mut(home) {
                turn.calls.add(ToolState::new(&id.0, parent));
            }
        }
        self.with_tool(&id.0, builder, |tool, out| tool.apply(call, source, now, out));
    }

    fn with_tool(
        &mut self,
        id: &str,
        builder: &mut EventBuilder,
        act: impl FnOnce(&mut ToolState, &mut Vec<StreamPayload>),
    ) {
        let item_id = ItemId::from_foreign(id);
        let its_turn = self.turns.iter_mut().rev().find(|turn| turn.calls.contains(&item_id));
        let Some(turn) = its_turn.filter(|turn| !turn.is_cut) else { return };
        builder.turn = Some(turn.id.clone());
        let is_ending = turn.calls.change(&item_id, |tool| {
            act(tool, &mut builder.scratch);
            tool.is_ending()
        });
        if is_ending == Some(true) {
            self.ending.push(item_id);
        }
        builder.take_scratch();
    }

    /// Ends the calls whose end came with their beginning, now that something else follows.
    fn settle_ending(&mut self, builder: &mut EventBuilder) {
        let now = (!self.replaying).then_some(builder.now);
        for call in std::mem::take(&mut self.ending) {
            let Some(turn) = self.turns.iter_mut().rev().find(|turn| turn.calls.contains(&call)) else { continue };
            builder.turn = Some(turn.id.clone());
            turn.calls.change(&call, |tool| tool.settle_if_ending(now, &mut builder.scratch));
            builder.take_scratch();
        }
    }

    fn next_item_id(&mut self, suffix: &str) -> ItemId {
        let Some(turn) = self.turns.back_mut() else { return ItemId::generate() };
        turn.items_begun += 1;
        let place = if suffix.is_empty() { turn.items_begun.to_string() } else { suffix.to_owned() };
        ItemId::from_foreign(&format!("{}.{place}", turn.id))
    }

    fn clear_activity(&mut self, builder: &mut EventBuilder) {
        if std::mem::take(&mut self.active) {
            builder.facts.activity = Some(String::new());
        }
    }
}
