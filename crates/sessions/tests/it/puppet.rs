//! A provider on strings, and a hub with windows that a test reads frame by frame.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use catalog::Catalog;
use journal::SqliteJournal;
use protocol::stream::{ItemDone, ItemStart, ResponseDone, ResponseStart};
use protocol::{
    AgentInfo, AgentSessionId, AgentStatus, CallId, CliType, ClientFrame, ClientMessage, EventId, FinalItem, ItemId,
    ItemType, Origin, ProjectId, Prompt, ResponseStatus, ServerFrame, ServerMessage, SessionId, StreamEvent,
    StreamPayload, Timestamp, TurnId, TurnRecord, TurnRecordStatus, TurnStatus, UpsertStatus,
};
use providers::{
    AgentSession, History, HistoryCursor, LoadedSession, NewSession, OpenedSession, Probe, Provider, ProviderError,
    ProviderEvent, Registry, StatusReport, StoredSession,
};
use sessions::{Frames, Hub, HubLimits, ServerFacts, Window, WindowKind};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};

const DEADLINE: Duration = Duration::from_secs(60);
/// Longer than any idle session stays.
const LONG: Duration = Duration::from_secs(600);

/// Does as its strings say: a name in `panics` makes the call of that name panic, one in `failures` makes it fail.
#[derive(Clone, Debug)]
pub(crate) struct Puppet {
    cli_type: CliType,
    status: watch::Sender<StatusReport>,
    strings: Arc<Mutex<Strings>>,
}

/// One session of the puppet's.
#[derive(Debug)]
struct PuppetSession {
    puppet: Puppet,
    id: SessionId,
}

#[derive(Debug, Default)]
struct Strings {
    panics: HashSet<&'static str>,
    failures: HashSet<&'static str>,
    calls: Vec<&'static str>,
    sessions: HashMap<SessionId, OpenPuppet>,
    made: usize,
    /// Items every session has when it is loaded.
    history: u64,
    /// The agent's id for every session that is loaded.
    continues_as: Option<AgentSessionId>,
    /// Loads wait until this releases them.
    gate: Option<watch::Receiver<bool>>,
    /// Kills wait until this releases them, after the session's events have ended.
    kill_gate: Option<watch::Receiver<bool>>,
    /// Creations wait until this releases them.
    create_gate: Option<watch::Receiver<bool>>,
    /// Agent sessions that were loaded while an earlier one of the same id had not ended yet.
    overlaps: usize,
    ending: HashMap<SessionId, usize>,
    /// Every message is answered: its turn begins and ends.
    answers: bool,
    /// How each session was opened that was loaded.
    opened: Vec<StoredSession>,
    /// How many items each call for older ones wanted.
    asked_for: Vec<usize>,
}

#[derive(Debug)]
struct OpenPuppet {
    sender: mpsc::Sender<ProviderEvent>,
    /// The turn `turn` has begun on this channel.
    has_turn: bool,
}

impl Puppet {
    pub(crate) fn panic(&self, call: &'static str) {
        self.strings.lock().unwrap().panics.insert(call);
    }

    pub(crate) fn fail(&self, call: &'static str) {
        self.strings.lock().unwrap().failures.insert(call);
    }

    pub(crate) fn has_history(&self, items: u64) {
        self.strings.lock().unwrap().history = items;
    }

    pub(crate) fn continues_as(&self, id: Option<&str>) {
        self.strings.lock().unwrap().continues_as = id.map(|id| AgentSessionId::parse(id).unwrap());
    }

    /// Keeps every load until the sender releases it.
    pub(crate) fn hold_loads(&self) -> watch::Sender<bool> {
        let (sender, gate) = watch::channel(false);
        self.strings.lock().unwrap().gate = Some(gate);
        sender
    }

    /// Keeps every kill until the sender releases it. The session sends nothing more meanwhile.
    pub(crate) fn hold_kills(&self) -> watch::Sender<bool> {
        let (sender, gate) = watch::channel(false);
        self.strings.lock().unwrap().kill_gate = Some(gate);
        sender
    }

    /// Keeps every creation until the sender releases it.
    pub(crate) fn hold_creations(&self) -> watch::Sender<bool> {
        let (sender, gate) = watch::channel(false);
        self.strings.lock().unwrap().create_gate = Some(gate);
        sender
    }

    /// From now on each message is answered: a turn with the message in it begins and ends.
    pub(crate) fn answers(&self) {
        self.strings.lock().unwrap().answers = true;
    }

    /// How often a session was loaded whose agent was still being ended.
    pub(crate) fn overlaps(&self) -> usize {
        self.strings.lock().unwrap().overlaps
    }

    /// How the last session was opened.
    pub(crate) fn opened(&self) -> StoredSession {
        self.strings.lock().unwrap().opened.last().unwrap().clone()
    }

    pub(crate) fn asked_for(&self) -> Vec<usize> {
        self.strings.lock().unwrap().asked_for.clone()
    }

    pub(crate) fn heal(&self) {
        let mut strings = self.strings.lock().unwrap();
        strings.panics.clear();
        strings.failures.clear();
    }

    /// The calls that were made, in order.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        self.strings.lock().unwrap().calls.clone()
    }

    pub(crate) fn count(&self, call: &str) -> usize {
        self.strings.lock().unwrap().calls.iter().filter(|made| **made == call).count()
    }

    /// Waits until the call was made so many times.
    pub(crate) async fn until_called(&self, call: &str, times: usize) {
        let mut looks = tokio::time::interval(Duration::from_millis(5));
        let called = async {
            while self.count(call) < times {
                looks.tick().await;
            }
        };
        tokio::time::timeout(DEADLINE, called).await.unwrap_or_else(|_| panic!("{call} was never called so often"));
    }

    /// Notes the call, and panics or fails as set.
    fn called(&self, call: &'static str) -> Result<(), ProviderError> {
        let mut strings = self.strings.lock().unwrap();
        strings.calls.push(call);
        let (panics, fails) = (strings.panics.contains(call), strings.failures.contains(call));
        drop(strings);
        assert!(!panics, "{call} was set to panic");
        if fails { Err(ProviderError::Internal(format!("{call} was set to fail"))) } else { Ok(()) }
    }

    fn open_session(&self, id: SessionId, agent_id: AgentSessionId) -> OpenedSession {
        let (sender, events) = mpsc::channel(64);
        self.strings.lock().unwrap().sessions.insert(id.clone(), OpenPuppet { sender, has_turn: false });
        let session = Arc::new(PuppetSession { puppet: self.clone(), id });
        OpenedSession { agent_id, session, events }
    }

    pub(crate) async fn emit(&self, id: &SessionId, event: ProviderEvent) {
        let sender = self.strings.lock().unwrap().sessions[id].sender.clone();
        sender.send(event).await.unwrap();
    }

    /// Sends nothing more in this session, as a provider does whose task panicked.
    pub(crate) fn fall_silent(&self, id: &SessionId) {
        self.strings.lock().unwrap().sessions.remove(id);
    }

    /// Waits until the hub has dropped the session's channel.
    pub(crate) async fn until_dropped(&self, id: &SessionId) {
        let sender = self.strings.lock().unwrap().sessions[id].sender.clone();
        sender.closed().await;
    }

    /// An event of the turn `turn`, which begins with the first one.
    async fn stream(&self, id: &SessionId, payload: StreamPayload) {
        let is_new = {
            let mut strings = self.strings.lock().unwrap();
            !std::mem::replace(&mut strings.sessions.get_mut(id).unwrap().has_turn, true)
        };
        if is_new {
            self.emit(id, ProviderEvent::TurnBegan(TurnId::parse("turn").unwrap())).await;
        }
        self.emit(id, ProviderEvent::Stream(event(id, "turn", payload))).await;
    }

    pub(crate) async fn text(&self, id: &SessionId, item: &str, text: &str, status: UpsertStatus) {
        let payload = match status {
            UpsertStatus::Complete => message_done(item, text, Origin::Agent),
            _ => StreamPayload::ItemStart(ItemStart {
                item_id: ItemId::parse(item).unwrap(),
                item_type: ItemType::Message,
                initial_content: Some(text.into()),
                name: None,
                call_id: None,
                origin: None,
                parent_item_id: None,
                tool: None,
            }),
        };
        self.stream(id, payload).await;
    }

    /// One turn with the message in it. Fails if the session has ended.
    async fn answer(&self, session: &SessionId, content: &str) -> Result<(), ()> {
        let (sender, number) = {
            let mut strings = self.strings.lock().unwrap();
            strings.made += 1;
            (strings.sessions.get(session).map(|open| open.sender.clone()).ok_or(())?, strings.made)
        };
        let turn = format!("turn-{number}");
        sender.send(ProviderEvent::TurnBegan(TurnId::parse(&turn).unwrap())).await.map_err(drop)?;
        let item = message_done(&format!("message-{number}"), content, Origin::User);
        for payload in [response_start(), item, response_done(ResponseStatus::Completed)] {
            sender.send(ProviderEvent::Stream(event(session, &turn, payload))).await.map_err(drop)?;
        }
        Ok(())
    }

    pub(crate) async fn tool_call(&self, id: &SessionId, item: &str) {
        let (name, call_id) = ("shell".into(), CallId::parse(item).unwrap());
        let final_item = FinalItem::FunctionCall { name, call_id, arguments: serde_json::Map::new(), tool: None };
        let item_id = ItemId::parse(item).unwrap();
        self.stream(id, StreamPayload::ItemDone(ItemDone { item_id, final_item })).await;
    }

    pub(crate) async fn tool_result(&self, id: &SessionId, item: &str, output: &str) {
        let call_id = CallId::parse(item).unwrap();
        let final_item = FinalItem::FunctionCallOutput { call_id, output: output.into(), is_error: false, tool: None };
        let item_id = ItemId::parse(format!("{item}-output")).unwrap();
        self.stream(id, StreamPayload::ItemDone(ItemDone { item_id, final_item })).await;
    }

    pub(crate) async fn tool_output(&self, id: &SessionId, item: &str, output: &str) {
        let call_id = CallId::parse("call").unwrap();
        let call = FinalItem::FunctionCall {
            name: "shell".into(),
            call_id: call_id.clone(),
            arguments: serde_json::Map::new(),
            tool: None,
        };
        let result = FinalItem::FunctionCallOutput { call_id, output: output.into(), is_error: false, tool: None };
        for (item, final_item) in [(item.to_owned(), call), (format!("{item}-output"), result)] {
            let item_id = ItemId::parse(item).unwrap();
            self.stream(id, StreamPayload::ItemDone(ItemDone { item_id, final_item })).await;
        }
    }

    pub(crate) async fn start_turn(&self, id: &SessionId) {
        self.strings.lock().unwrap().sessions.get_mut(id).unwrap().has_turn = false;
        self.stream(id, response_start()).await;
    }

    pub(crate) async fn end_turn(&self, id: &SessionId, status: TurnStatus) {
        let status = match status {
            TurnStatus::Completed => ResponseStatus::Completed,
            TurnStatus::Cancelled => ResponseStatus::Cancelled,
        };
        self.stream(id, response_done(status)).await;
    }
}

/// An agent's session is ending as long as this is there; also when whoever ends it gives up.
struct EndingGuard<'a> {
    puppet: &'a Puppet,
    id: &'a SessionId,
}

impl Drop for EndingGuard<'_> {
    fn drop(&mut self) {
        let mut strings = self.puppet.strings.lock().unwrap();
        let left = strings.ending.remove(self.id).unwrap_or(1) - 1;
        if left > 0 {
            strings.ending.insert(self.id.clone(), left);
        }
    }
}

async fn pass(gate: Option<watch::Receiver<bool>>) {
    if let Some(mut gate) = gate {
        gate.wait_for(|is_open| *is_open).await.ok();
    }
}

fn event(session: &SessionId, turn: &str, payload: StreamPayload) -> StreamEvent {
    StreamEvent {
        event_id: EventId::generate(),
        timestamp: Timestamp::default(),
        turn_id: TurnId::parse(turn).unwrap(),
        session_id: session.clone(),
        payload,
    }
}

fn response_start() -> StreamPayload {
    StreamPayload::ResponseStart(ResponseStart { model_id: "puppet".into(), provider_id: "puppet".into() })
}

fn response_done(status: ResponseStatus) -> StreamPayload {
    StreamPayload::ResponseDone(ResponseDone { status, finish_reason: None, error: None, usage: None })
}

fn message_done(item: &str, content: &str, origin: Origin) -> StreamPayload {
    let final_item = FinalItem::Message { content: content.into(), origin };
    StreamPayload::ItemDone(ItemDone { item_id: ItemId::parse(item).unwrap(), final_item })
}

/// Up to `limit` items of a long history, those before a number.
fn history_before(session: &SessionId, end: u64, limit: usize) -> History {
    let from = end.saturating_sub(limit as u64);
    let items = (from..end).map(|number| message_done(&format!("item-{number}"), "old text", Origin::Agent));
    let payloads = items.chain([response_done(ResponseStatus::Completed)]);
    let older = (from > 0).then_some(HistoryCursor(from));
    let events = payloads.map(|payload| event(session, "turn", payload)).collect();
    let turn = TurnRecord {
        turn_id: TurnId::parse("turn").unwrap(),
        status: TurnRecordStatus::Completed,
        started_at: Timestamp::default(),
        ended_at: None,
        model_id: None,
        usage: None,
        error_code: None,
        error_message: None,
        forgotten: false,
    };
    let turns = if end > 0 { vec![turn] } else { Vec::new() };
    History { events, turns, older, ..History::default() }
}

#[async_trait]
impl Provider for Puppet {
    fn cli_type(&self) -> &CliType {
        &self.cli_type
    }

    fn name(&self) -> &str {
        "Puppet"
    }

    async fn probe(&self, _: &std::path::Path) -> Result<Probe, ProviderError> {
        Err(ProviderError::Internal("a puppet is not probed".into()))
    }

    async fn describe(&self) -> AgentInfo {
        self.called("describe").unwrap();
        AgentInfo {
            cli_type: self.cli_type.clone(),
            name: "Puppet".into(),
            installed: true,
            version: None,
            program: None,
            install_hint: None,
            logged_in: None,
            login_hint: None,
            status: AgentStatus::Idle,
        }
    }

    fn watch_status(&self) -> watch::Receiver<StatusReport> {
        self.status.subscribe()
    }

    async fn create_session(&self, _: NewSession) -> Result<OpenedSession, ProviderError> {
        self.called("create")?;
        let gate = self.strings.lock().unwrap().create_gate.clone();
        pass(gate).await;
        let made = {
            let mut strings = self.strings.lock().unwrap();
            strings.made += 1;
            strings.made
        };
        let agent_id = AgentSessionId::parse(format!("p-{made}")).unwrap();
        Ok(self.open_session(SessionId::new(&self.cli_type, &agent_id), agent_id))
    }

    async fn load_session(&self, session: StoredSession) -> Result<LoadedSession, ProviderError> {
        self.called("load")?;
        let gate = self.strings.lock().unwrap().gate.clone();
        pass(gate).await;
        let (items, agent_id) = {
            let mut strings = self.strings.lock().unwrap();
            strings.overlaps += usize::from(strings.ending.contains_key(&session.id));
            strings.opened.push(session.clone());
            (strings.history, strings.continues_as.clone().unwrap_or_else(|| session.agent_id.clone()))
        };
        let history = history_before(&session.id, items, session.items_max);
        Ok(LoadedSession { opened: self.open_session(session.id, agent_id), history, has_history: true })
    }

    fn keeps_history(&self) -> bool {
        self.called("keeps").is_ok()
    }

    async fn reconnect(&self) -> Result<(), ProviderError> {
        self.called("reconnect")
    }

    async fn shutdown(&self) {}
}

#[async_trait]
impl AgentSession for PuppetSession {
    fn is_alive(&self) -> bool {
        self.puppet.called("alive").is_err()
    }

    async fn send(&self, prompt: Prompt) -> Result<TurnId, ProviderError> {
        self.puppet.called("send")?;
        if self.puppet.strings.lock().unwrap().answers {
            let answered = self.puppet.answer(&self.id, &prompt.text()).await;
            answered.map_err(|()| ProviderError::SessionNotFound(self.id.agent_session_id()))?;
        }
        Ok(TurnId::parse("turn").unwrap())
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        self.puppet.called("cancel")
    }

    async fn set_option(&self, _: &str, _: &str) -> Result<(), ProviderError> {
        self.puppet.called("option")
    }

    async fn reconnect(&self) -> Result<(), ProviderError> {
        self.puppet.called("reconnect")
    }

    async fn older_history(&self, before: &HistoryCursor, limit: usize) -> Result<History, ProviderError> {
        self.puppet.called("older")?;
        self.puppet.strings.lock().unwrap().asked_for.push(limit);
        Ok(history_before(&self.id, before.0, limit))
    }

    async fn close(&self) -> Result<(), ProviderError> {
        self.puppet.called("kill")?;
        let (known, gate) = {
            let mut strings = self.puppet.strings.lock().unwrap();
            let known = strings.sessions.remove(&self.id);
            if known.is_some() {
                *strings.ending.entry(self.id.clone()).or_default() += 1;
            }
            (known, strings.kill_gate.clone())
        };
        if known.is_some() {
            let guard = EndingGuard { puppet: &self.puppet, id: &self.id };
            pass(gate).await;
            drop(guard);
        }
        known.map(drop).ok_or_else(|| ProviderError::SessionNotFound(self.id.agent_session_id()))
    }
}

/// A hub with one project whose agent is the puppet.
pub(crate) struct Stage {
    pub(crate) hub: Hub,
    pub(crate) puppet: Arc<Puppet>,
    pub(crate) project: ProjectId,
    home: TempDir,
}

fn journal_in(home: &TempDir) -> Arc<SqliteJournal> {
    Arc::new(SqliteJournal::open(&home.path().join("data")).unwrap().journal)
}

impl Stage {
    pub(crate) async fn set() -> Self {
        Self::with_limits(HubLimits::default()).await
    }

    pub(crate) async fn with_limits(limits: HubLimits) -> Self {
        let home = TempDir::new().unwrap();
        let catalog = Catalog::open(&home.path().join("data")).unwrap().catalog;
        let puppet = Arc::new(Puppet {
            cli_type: CliType::parse("puppet").unwrap(),
            status: watch::Sender::new(StatusReport::default()),
            strings: Arc::default(),
        });
        let registry = Registry::new([Arc::clone(&puppet) as Arc<dyn Provider>]);
        let project = catalog.add_project(home.path().to_str().unwrap()).await.unwrap().id;
        let hub = Hub::start_with(catalog, journal_in(&home), registry, ServerFacts::default(), limits);
        Self { hub, puppet, project, home }
    }

    /// A new server over the same data directory, with the same agent.
    pub(crate) async fn restart(self) -> Self {
        let Self { hub, puppet, project, home } = self;
        hub.drain(tokio::time::Instant::now()).await;
        hub.catalog().flush().await.unwrap();
        hub.journal().close().await;
        drop(hub);
        let data = home.path().join("data");
        let open = || Catalog::open(&data).ok();
        let mut looks = tokio::time::interval(Duration::from_millis(5));
        let opened = async {
            loop {
                looks.tick().await;
                if let Some(opened) = open() {
                    return opened;
                }
            }
        };
        let opened = tokio::time::timeout(DEADLINE, opened).await.expect("the directory is not released");
        let registry = Registry::new([Arc::clone(&puppet) as Arc<dyn Provider>]);
        let hub = Hub::start(opened.catalog, journal_in(&home), registry, ServerFacts::default());
        Self { hub, puppet, project, home }
    }

    /// A new server over a copy of the data directory as it is at this moment.
    pub(crate) async fn killed(self) -> Self {
        // All that was shown is recorded within a tick; this is no power cut.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let home = TempDir::new().unwrap();
        let data = home.path().join("data");
        std::fs::create_dir(&data).unwrap();
        for file in std::fs::read_dir(self.home.path().join("data")).unwrap() {
            let file = file.unwrap();
            if file.file_type().unwrap().is_file() && !file.file_name().to_string_lossy().ends_with("-shm") {
                std::fs::copy(file.path(), data.join(file.file_name())).unwrap();
            }
        }
        let catalog = Catalog::open(&data).unwrap().catalog;
        let registry = Registry::new([Arc::clone(&self.puppet) as Arc<dyn Provider>]);
        let hub = Hub::start(catalog, journal_in(&home), registry, ServerFacts::default());
        Self { hub, puppet: self.puppet, project: self.project, home }
    }

    /// The journal can be read and not written while this is held.
    pub(crate) fn lock_journal(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.home.path().join("data/journal.db")).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        connection
    }

    /// With a new session, open in a window.
    pub(crate) async fn begin() -> (Self, Seat, SessionId) {
        let stage = Self::set().await;
        let mut seat = stage.seat();
        let session = stage.create(&mut seat).await;
        seat.call(open(&session, None)).await;
        (stage, seat, session)
    }

    pub(crate) fn seat(&self) -> Seat {
        self.seat_of(WindowKind::View)
    }

    pub(crate) fn seat_of(&self, kind: WindowKind) -> Seat {
        let (window, frames) = self.hub.connect(kind);
        Seat { window, frames, asked: 0 }
    }

    pub(crate) async fn create(&self, seat: &mut Seat) -> SessionId {
        let cli_type = CliType::parse("puppet").unwrap();
        match seat.call(ClientMessage::SessionCreate { project_id: self.project.clone(), cli_type }).await {
            ServerMessage::SessionCreated { session_id, .. } => session_id,
            other => panic!("{other:?}"),
        }
    }
}

/// One window.
pub(crate) struct Seat {
    window: Window,
    frames: Frames,
    asked: usize,
}

impl Seat {
    pub(crate) async fn ask(&mut self, message: ClientMessage) -> String {
        self.asked += 1;
        let id = format!("r{}", self.asked);
        self.window.request(ClientFrame { request_id: Some(id.clone()), message }).await;
        id
    }

    /// Asks and gives the answer; what comes before it is dropped.
    pub(crate) async fn call(&mut self, message: ClientMessage) -> ServerMessage {
        let id = self.ask(message).await;
        self.until("an answer", |frame| frame.request_id.as_deref() == Some(&id)).await.message
    }

    pub(crate) async fn next(&mut self) -> ServerFrame {
        let frame = self.frames.next().await.expect("the window was closed");
        serde_json::from_slice(&frame.into_bytes()).unwrap()
    }

    /// None once the window is closed.
    pub(crate) async fn next_or_end(&mut self) -> Option<ServerFrame> {
        let frame = tokio::time::timeout(DEADLINE, self.frames.next()).await.expect("nothing came")?;
        Some(serde_json::from_slice(&frame.into_bytes()).unwrap())
    }

    /// The next frame that is it.
    pub(crate) async fn until(&mut self, what: &str, is_it: impl Fn(&ServerFrame) -> bool) -> ServerFrame {
        let found = async {
            loop {
                let frame = self.next().await;
                if is_it(&frame) {
                    return frame;
                }
            }
        };
        match tokio::time::timeout(DEADLINE, found).await {
            Ok(frame) => frame,
            Err(_) => panic!("{what} never came"),
        }
    }
}

/// Lets time go by for timers alone: the disk and its threads are not waited for meanwhile.
pub(crate) async fn pass_time() {
    // Requests are handled first: one thread runs all tasks here, in turn.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    tokio::time::advance(LONG).await;
    tokio::time::resume();
}

pub(crate) fn open(session: &SessionId, since: Option<u64>) -> ClientMessage {
    ClientMessage::SessionOpen { session_id: session.clone(), since, epoch: None, journal_id: None }
}

pub(crate) fn send(session: &SessionId) -> ClientMessage {
    ClientMessage::SessionSend { session_id: session.clone(), content: "hello".into() }
}
