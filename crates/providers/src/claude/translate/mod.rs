//! What Claude Code's lines mean: stream events, facts, questions and answers.
//!
//! Comes in: the turns we begin and the lines the program writes, or the entries of a session file. Goes out:
//! [`TranslatorOutput`], in order. One translation for both sources, so that a live turn and its history are the same
//! items under the same ids: a turn is named by the user's message, a text by its model message and block, a tool by
//! its call. Two things are live only, because the program does not keep them: the notice of an answer that broke off,
//! and a thought that a cancel cut short. Pure: the clock is an argument.

mod messages;
mod turns;

use std::collections::{HashMap, HashSet};

use protocol::stream::{ItemDone, ItemStart};
use protocol::{
    AgentSessionId, ErrorDetail, EventId, FinalItem, ItemId, ItemType, Origin, Permission, SessionFacts, SessionId,
    StreamEvent, StreamPayload, Timestamp, ToolDetail, TurnId, TurnRecord,
};
use serde_json::{Map, Value};

use self::messages::MessageThread;
use super::facts;
use super::wire::{ClaudeLine, ControlRequestBody, ControlResponse, SystemBody, SystemLine};

const COMPACTED: &str = "The conversation was compacted: the agent goes on from a summary.";
/// Tool calls remembered at once. Only running ones and sub-agents are; no real session comes near it.
const CALLS_MAX: usize = 4096;
/// Streams distinguished at once: one for the agent and one for each sub-agent.
const THREADS_MAX: usize = 512;

/// What one line led to.
#[derive(Debug)]
pub enum TranslatorOutput {
    /// A turn begins that we did not begin: the program goes on by itself when a sub-agent reports.
    TurnBegan(TurnId),
    Event(StreamEvent),
    /// The turn is over; its last event came before this.
    TurnEnded(TurnRecord),
    Facts(SessionFacts),
    PermissionRequested(PermissionRequest),
    PermissionWithdrawn {
        request_id: String,
    },
    Answer {
        request_id: String,
        answer: Result<Value, String>,
    },
    /// A request that we do not know.
    UnknownRequest {
        request_id: String,
    },
    /// The program continues under another id of its own.
    AgentIdChanged(AgentSessionId),
}

/// A tool needs a permission to run.
#[derive(Clone, Debug)]
pub struct PermissionRequest {
    pub request_id: String,
    pub tool_name: String,
    pub input: Value,
    pub tool_use_id: Option<String>,
}

/// Where the lines come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineSource {
    /// A running program. Turns begin when we send a message.
    Live,
    /// A session file. Turns begin where the user's messages stand.
    File,
}

#[derive(Debug)]
pub struct Translator {
    source: LineSource,
    /// Our own id, which every event carries. It never changes.
    session_id: SessionId,
    /// The program's present id.
    agent_id: AgentSessionId,
    turn: Option<PresentTurn>,
    /// What sub-agents write whose call we do not know belongs to this one.
    last_turn: Option<TurnId>,
    threads: HashMap<Option<String>, MessageThread>,
    calls: HashMap<String, KnownCall>,
    /// Messages of the program itself that were shown. It repeats them after a compaction.
    shown: HashSet<String>,
    model: Option<String>,
    mode: Option<String>,
    cost_total_usd: f64,
    context_used: u64,
    /// An activity beside the turn is shown.
    is_active: bool,
    /// Tasks in the background.
    background: usize,
    /// A compaction that a file records before the message that asked for it, if one did.
    compacted: Option<(String, Timestamp)>,
    /// Messages of ours, under their ids, that wait for the end of the text that is growing. The caller bounds them.
    reports: Vec<(String, String)>,
}

#[derive(Debug)]
struct PresentTurn {
    id: TurnId,
    started_at: Timestamp,
    last_at: Timestamp,
    model: Option<String>,
    /// An error of the model that may turn out to be the end of the turn.
    error: Option<ErrorDetail>,
    interrupted: bool,
    /// The user has stopped it.
    cancelled: bool,
    accepted: bool,
    retry_noted: bool,
    /// Tokens of the model messages finished before the last, and of the last.
    usage_before: protocol::Usage,
    usage_last: Option<(String, protocol::Usage)>,
}

/// A tool call that has no result yet, or a sub-agent.
#[derive(Debug)]
struct KnownCall {
    turn: TurnId,
    name: String,
    detail: ToolDetail,
    parent: Option<ItemId>,
    ended: bool,
}

impl Translator {
    pub fn new(source: LineSource, session_id: SessionId, agent_id: AgentSessionId) -> Self {
        Self {
            source,
            session_id,
            agent_id,
            turn: None,
            last_turn: None,
            threads: HashMap::new(),
            calls: HashMap::new(),
            shown: HashSet::new(),
            model: None,
            mode: None,
            cost_total_usd: 0.0,
            context_used: 0,
            is_active: false,
            background: 0,
            compacted: None,
            reports: Vec::new(),
        }
    }

    /// A turn runs.
    pub fn turn(&self) -> Option<&TurnId> {
        self.turn.as_ref().map(|turn| &turn.id)
    }

    /// A tool runs that has given no result yet: silence is to be expected.
    pub fn tool_is_running(&self) -> bool {
        self.calls.values().any(|call| !call.ended)
    }

    /// The model it would use now.
    pub fn model_is(&mut self, model: String) {
        self.model = Some(model);
    }

    /// Something goes on beside turns: a sub-agent or a command in the background.
    pub fn is_busy(&self) -> bool {
        self.turn.is_some() || self.background > 0
    }

    /// The program has begun with the message of the present turn, so it will end the turn.
    pub fn turn_is_accepted(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.accepted)
    }

    /// The program was restarted: it repeats nothing and counts from the beginning.
    pub fn process_restarted(&mut self) {
        self.threads.clear();
        self.calls.clear();
        self.background = 0;
        self.cost_total_usd = 0.0;
    }

    /// Takes in one line. `now` is when it came; a line that knows its own time keeps it.
    pub fn line(&mut self, line: ClaudeLine, now: Timestamp) -> Vec<TranslatorOutput> {
        let mut out = Vec::new();
        match line {
            ClaudeLine::Assistant(line) => self.assistant(*line, now, &mut out),
            ClaudeLine::User(line) => self.user(*line, now, &mut out),
            ClaudeLine::CommandLifecycle { command_uuid, state } => match state.as_str() {
                "started" => self.accepted(command_uuid.as_deref()),
                "cancelled" => self.dropped(command_uuid.as_deref(), now, &mut out),
                _ => {}
            },
            ClaudeLine::StreamEvent(line) => {
                self.follow_agent_id(line.session_id.as_deref(), &mut out);
                self.stream(line, now, &mut out);
            }
            ClaudeLine::Result(result) => {
                self.follow_agent_id(result.session_id.as_deref(), &mut out);
                self.result(&result, now, &mut out);
            }
            ClaudeLine::System(line) => self.system(*line, now, &mut out),
            ClaudeLine::ControlRequest(request) => out.push(match request.request {
                ControlRequestBody::CanUseTool { tool_name, input, tool_use_id } => {
                    let request_id = request.request_id;
                    TranslatorOutput::PermissionRequested(PermissionRequest {
                        request_id,
                        tool_name,
                        input,
                        tool_use_id,
                    })
                }
                ControlRequestBody::Unknown => TranslatorOutput::UnknownRequest { request_id: request.request_id },
            }),
            ClaudeLine::ControlResponse { response } => match response {
                ControlResponse::Success { request_id, response } => {
                    out.push(TranslatorOutput::Answer { request_id, answer: Ok(response) });
                }
                ControlResponse::Error { request_id, error } => {
                    out.push(TranslatorOutput::Answer { request_id, answer: Err(error) });
                }
                ControlResponse::Unknown => {}
            },
            ClaudeLine::ControlCancelRequest { request_id } => {
                out.push(TranslatorOutput::PermissionWithdrawn { request_id });
            }
            ClaudeLine::Attachment { uuid, timestamp, attachment } => {
                self.attachment(uuid, timestamp.unwrap_or(now), attachment, &mut out);
            }
            ClaudeLine::Unknown => {}
        }
        if self.turn.is_some() && !self.text_is_growing() {
            self.emit_reports(now, &mut out);
        }
        out
    }

    fn system(&mut self, line: SystemLine, now: Timestamp, out: &mut Vec<TranslatorOutput>) {
        let at = line.timestamp.unwrap_or(now);
        match line.body {
            SystemBody::Init { model, permission_mode } => {
                self.follow_agent_id(line.session_id.as_deref(), out);
                let mut facts = SessionFacts::default();
                if model.is_some() && model != self.model {
                    self.model = model.clone();
                    facts.model = model;
                }
                self.mode_is(permission_mode, &mut facts);
                emit_facts(facts, out);
            }
            SystemBody::Status { status, permission_mode } => {
                let mut facts = SessionFacts::default();
                match status.as_deref() {
                    Some("compacting") => facts.activity = self.active("Compacting the conversation".into()),
                    Some("requesting") => {}
                    _ => facts.activity = self.clear_activity(),
                }
                self.mode_is(permission_mode, &mut facts);
                emit_facts(facts, out);
            }
            SystemBody::ApiRetry { attempt, max_retries, retry_delay_ms, error_status } => {
                let seconds = (retry_delay_ms / 1000.0).max(0.0);
                let activity = format!("{} Try {attempt} of {max_retries} in {seconds:.1} s", trouble(error_status));
                emit_facts(SessionFacts { activity: self.active(activity), ..SessionFacts::default() }, out);
                self.retried(error_status, at, out);
            }
            SystemBody::ApiError { error } => self.retried(error.status, at, out),
            SystemBody::CompactBoundary => {
                self.context_used = 0;
                match (self.source, line.uuid) {
                    (LineSource::Live, uuid) => self.notice(uuid, COMPACTED, at, out),
                    (LineSource::File, uuid) => self.compacted = uuid.map(|uuid| (uuid, at)),
                }
            }
            SystemBody::LocalCommand { content } => self.local_output(line.uuid, &content, at, out),
            SystemBody::TaskNotification { tool_use_id: Some(call), status, summary } => {
                let failed = status.as_deref().is_some_and(|status| status != "completed");
                self.sub_agent_ended(&call, summary.unwrap_or_default(), failed, at, out);
            }
            SystemBody::BackgroundTasksChanged { tasks } => self.background = tasks.len(),
            SystemBody::SessionTitleChanged { title: Some(title) } => {
                emit_facts(SessionFacts { agent_title: Some(title), ..SessionFacts::default() }, out);
            }
            SystemBody::TaskNotification { .. } | SystemBody::SessionTitleChanged { .. } | SystemBody::Unknown => {}
        }
    }

    fn active(&mut self, what: String) -> Option<String> {
        self.is_active = true;
        Some(what)
    }

    /// The activity beside the turn is over; reported once.
    pub(super) fn clear_activity(&mut self) -> Option<String> {
        std::mem::take(&mut self.is_active).then(String::new)
    }

    fn mode_is(&mut self, mode: Option<String>, facts: &mut SessionFacts) {
        if mode.is_some() && mode != self.mode {
            self.mode = mode;
            facts.options = self.mode.as_deref().map(|mode| vec![facts::mode_option(mode)]);
        }
    }

    /// The process was started for another session of the program's.
    pub(super) fn agent_id_is(&mut self, id: AgentSessionId) {
        self.agent_id = id;
    }

    /// The program names its session on every line; `/clear` changes it.
    fn follow_agent_id(&mut self, id: Option<&str>, out: &mut Vec<TranslatorOutput>) {
        if self.source == LineSource::File || id.is_none_or(|id| id == self.agent_id.as_str()) {
            return;
        }
        // Nothing but a UUID would be accepted by the next process.
        let id = id.filter(|id| uuid::Uuid::try_parse(id).is_ok());
        let Some(Ok(id)) = id.map(AgentSessionId::parse) else { return };
        self.agent_id = id.clone();
        self.cost_total_usd = 0.0;
        self.context_used = 0;
        out.push(TranslatorOutput::AgentIdChanged(id));
    }

    /// How a permission was decided, for the record of its call.
    pub fn permission_decided(&mut self, call: &str, permission: Permission, now: Timestamp) -> Option<StreamEvent> {
        let known = self.calls.get_mut(call)?;
        known.detail.permission = Some(permission);
        let delta = protocol::stream::ItemDelta {
            item_id: ItemId::from_foreign(call),
            delta_content: String::new(),
            tool: Some(known.detail.clone().into()),
        };
        let turn = known.turn.clone();
        Some(self.event(turn, now, StreamPayload::ItemDelta(delta)))
    }

    fn event(&self, turn: TurnId, at: Timestamp, payload: StreamPayload) -> StreamEvent {
        StreamEvent {
            event_id: EventId::generate(),
            timestamp: at,
            turn_id: turn,
            session_id: self.session_id.clone(),
            payload,
        }
    }

    fn emit(&self, turn: &TurnId, at: Timestamp, payload: StreamPayload, out: &mut Vec<TranslatorOutput>) {
        out.push(TranslatorOutput::Event(self.event(turn.clone(), at, payload)));
    }

    /// A whole message at once.
    fn emit_message(
        &self,
        turn: &TurnId,
        id: &str,
        text: String,
        origin: Origin,
        at: Timestamp,
        out: &mut Vec<TranslatorOutput>,
    ) {
        let item_id = ItemId::from_foreign(id);
        let mut start = item_start(item_id.clone(), ItemType::Message, None);
        start.origin = Some(origin);
        self.emit(turn, at, StreamPayload::ItemStart(start), out);
        let final_item = FinalItem::Message { content: text, origin };
        self.emit(turn, at, StreamPayload::ItemDone(ItemDone { item_id, final_item }), out);
    }

    fn remember_call(&mut self, id: String, call: KnownCall) {
        if self.calls.len() >= CALLS_MAX {
            self.calls.retain(|_, call| !call.ended);
        }
        if self.calls.len() >= CALLS_MAX {
            self.calls.clear();
        }
        self.calls.insert(id, call);
    }
}

fn emit_facts(facts: SessionFacts, out: &mut Vec<TranslatorOutput>) {
    if !facts.is_empty() {
        out.push(TranslatorOutput::Facts(facts));
    }
}

/// What went wrong between the program and the model.
fn trouble(status: Option<u16>) -> String {
    match status {
        Some(429) => "The model's rate limit is reached.".into(),
        Some(529) => "The model is overloaded.".into(),
        Some(401 | 403) => "The model's API refused the login.".into(),
        Some(status) => format!("The model's API failed with status {status}."),
        None => "The connection to the model broke off.".into(),
    }
}

fn item_start(item_id: ItemId, item_type: ItemType, parent: Option<ItemId>) -> ItemStart {
    ItemStart {
        item_id,
        item_type,
        initial_content: None,
        name: None,
        call_id: None,
        origin: None,
        parent_item_id: parent,
        tool: None,
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
