//! A provider on strings, and a hub with windows that a test reads frame by frame.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use catalog::Catalog;
use protocol::{
    AgentInfo, AgentSessionId, AgentStatus, CallId, CliType, ClientFrame, ClientMessage, ItemId, Origin, ProjectId,
    ServerFrame, ServerMessage, SessionId, Timestamp, TurnEvent, TurnId, TurnStatus, UpsertStatus,
};
use providers::{
    History, HistoryCursor, Loaded, NewSession, OpenSession, Provider, ProviderError, ProviderEvent, ProviderSession,
    Registry, StatusReport, Trial,
};
use sessions::{Frames, Hub, ServerFacts, Window, WindowKind};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use upserts::{Emission, ItemBody, ItemUpdate, Text};

const DEADLINE: Duration = Duration::from_secs(60);
/// Longer than any session waits before it rests.
const LONG: Duration = Duration::from_secs(600);

/// Does as its strings say: a word in `faults` makes the call of that name panic, one in `failures` makes it fail.
#[derive(Debug)]
pub(crate) struct Puppet {
    cli_type: CliType,
    status: watch::Sender<StatusReport>,
    strings: Mutex<Strings>,
}

#[derive(Debug, Default)]
struct Strings {
    faults: HashSet<&'static str>,
    failures: HashSet<&'static str>,
    calls: Vec<&'static str>,
    sessions: HashMap<AgentSessionId, mpsc::Sender<ProviderEvent>>,
    made: usize,
    /// Items every session has when it is loaded.
    past: u64,
    /// The id under which every session goes on that is loaded.
    goes_on_as: Option<AgentSessionId>,
    /// Loads wait until this says so.
    gate: Option<watch::Receiver<bool>>,
    /// Kills wait until this says so, after the session's events have ended.
    kill_gate: Option<watch::Receiver<bool>>,
    /// Creations wait until this says so.
    create_gate: Option<watch::Receiver<bool>>,
    /// Agent sessions that were loaded while an earlier one of the same id had not ended yet.
    overlaps: usize,
    ending: HashMap<AgentSessionId, usize>,
    /// Every message says so, and its turn begins and ends.
    answers: bool,
    /// How each session was opened that was loaded.
    opened: Vec<OpenSession>,
    /// How many items each call for older ones wanted.
    asked_for: Vec<usize>,
}

impl Puppet {
    pub(crate) fn fault(&self, call: &'static str) {
        self.strings.lock().unwrap().faults.insert(call);
    }

    pub(crate) fn fail(&self, call: &'static str) {
        self.strings.lock().unwrap().failures.insert(call);
    }

    pub(crate) fn has_past(&self, items: u64) {
        self.strings.lock().unwrap().past = items;
    }

    pub(crate) fn goes_on_as(&self, id: Option<&SessionId>) {
        self.strings.lock().unwrap().goes_on_as = id.map(SessionId::agent_session_id);
    }

    /// Keeps every load until the answer is told to let it go.
    pub(crate) fn hold_loads(&self) -> watch::Sender<bool> {
        let (sender, gate) = watch::channel(false);
        self.strings.lock().unwrap().gate = Some(gate);
        sender
    }

    /// Keeps every kill until the answer is told to let it go. The session says nothing more meanwhile.
    pub(crate) fn hold_kills(&self) -> watch::Sender<bool> {
        let (sender, gate) = watch::channel(false);
        self.strings.lock().unwrap().kill_gate = Some(gate);
        sender
    }

    /// Keeps every creation until the answer is told to let it go.
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
    pub(crate) fn opened(&self) -> OpenSession {
        self.strings.lock().unwrap().opened.last().unwrap().clone()
    }

    pub(crate) fn asked_for(&self) -> Vec<usize> {
        self.strings.lock().unwrap().asked_for.clone()
    }

    pub(crate) fn heal(&self) {
        let mut strings = self.strings.lock().unwrap();
        strings.faults.clear();
        strings.failures.clear();
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

    /// Notes the call, and panics or fails as told.
    fn called(&self, call: &'static str) -> Result<(), ProviderError> {
        let mut strings = self.strings.lock().unwrap();
        strings.calls.push(call);
        let (faults, fails) = (strings.faults.contains(call), strings.failures.contains(call));
        drop(strings);
        assert!(!faults, "{call} was told to panic");
        if fails { Err(ProviderError::Internal(format!("{call} was told to fail"))) } else { Ok(()) }
    }

    fn take_up(&self, id: AgentSessionId) -> ProviderSession {
        let (sender, events) = mpsc::channel(64);
        self.strings.lock().unwrap().sessions.insert(id.clone(), sender);
        ProviderSession { id, events }
    }

    pub(crate) async fn say(&self, id: &SessionId, event: ProviderEvent) {
        let sender = self.strings.lock().unwrap().sessions[&id.agent_session_id()].clone();
        sender.send(event).await.unwrap();
    }

    /// Says nothing more in this session, as a provider does whose task broke.
    pub(crate) fn fall_silent(&self, id: &SessionId) {
        self.strings.lock().unwrap().sessions.remove(&id.agent_session_id());
    }

    /// Waits until the hub has let the session go.
    pub(crate) async fn let_go(&self, id: &SessionId) {
        let sender = self.strings.lock().unwrap().sessions[&id.agent_session_id()].clone();
        sender.closed().await;
    }

    pub(crate) async fn text(&self, id: &SessionId, item: &str, text: &str, status: UpsertStatus) {
        let body = ItemBody::Message { text: Text::from(text), origin: Origin::Agent };
        self.say(id, ProviderEvent::Emission(Emission::Item(update(id, item, status, body)))).await;
    }

    /// One turn that says what the message was. Fails if the session has ended.
    async fn answer(&self, session: &SessionId, content: &str) -> Result<(), ()> {
        let (sender, number) = {
            let mut strings = self.strings.lock().unwrap();
            strings.made += 1;
            (strings.sessions.get(&session.agent_session_id()).cloned().ok_or(())?, strings.made)
        };
        let turn_id = TurnId::parse(format!("turn-{number}")).unwrap();
        let started = TurnEvent::TurnStarted {
            turn_id: turn_id.clone(),
            session_id: session.clone(),
            model_id: "puppet".into(),
            provider_id: "puppet".into(),
            at: Timestamp::default(),
        };
        let body = ItemBody::Message { text: Text::from(content), origin: Origin::User };
        let mut item = update(session, &format!("message-{number}"), UpsertStatus::Complete, body);
        item.turn_id = turn_id.clone();
        let complete = TurnEvent::TurnComplete {
            turn_id,
            session_id: session.clone(),
            status: TurnStatus::Completed,
            usage: None,
            at: Timestamp::default(),
        };
        for emission in [Emission::Turn(started), Emission::Item(item), Emission::Turn(complete)] {
            sender.send(ProviderEvent::Emission(emission)).await.map_err(drop)?;
        }
        Ok(())
    }

    pub(crate) async fn tool_output(&self, id: &SessionId, item: &str, output: &str) {
        let body = ItemBody::ToolCall {
            name: "shell".into(),
            arguments: Arc::default(),
            call_id: CallId::parse("call").unwrap(),
            output: Some(Text::from(output)),
            is_error: Some(false),
            tool: None,
        };
        self.say(id, ProviderEvent::Emission(Emission::Item(update(id, item, UpsertStatus::Complete, body)))).await;
    }

    pub(crate) async fn start_turn(&self, id: &SessionId) {
        let started = TurnEvent::TurnStarted {
            turn_id: TurnId::parse("turn").unwrap(),
            session_id: id.clone(),
            model_id: "puppet".into(),
            provider_id: "puppet".into(),
            at: Timestamp::default(),
        };
        self.say(id, ProviderEvent::Emission(Emission::Turn(started))).await;
    }

    pub(crate) async fn end_turn(&self, id: &SessionId, status: TurnStatus) {
        let complete = TurnEvent::TurnComplete {
            turn_id: TurnId::parse("turn").unwrap(),
            session_id: id.clone(),
            status,
            usage: None,
            at: Timestamp::default(),
        };
        self.say(id, ProviderEvent::Emission(Emission::Turn(complete))).await;
    }
}

/// An agent's session is ending as long as this is there; also when whoever ends it gives up.
struct EndingGuard<'a> {
    puppet: &'a Puppet,
    id: &'a AgentSessionId,
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

fn update(session: &SessionId, item: &str, status: UpsertStatus, body: ItemBody) -> ItemUpdate {
    ItemUpdate {
        turn_id: TurnId::parse("turn").unwrap(),
        session_id: session.clone(),
        item_id: ItemId::parse(item).unwrap(),
        parent_item_id: None,
        source_timestamp: Timestamp::default(),
        emitted_at: Timestamp::default(),
        status,
        error: None,
        body,
    }
}

/// Up to `limit` items of a long past, those before a number.
fn past_before(session: &SessionId, end: u64, limit: usize) -> History {
    let from = end.saturating_sub(limit as u64);
    let item = |number: u64| {
        let body = ItemBody::Message { text: Text::from("past"), origin: Origin::Agent };
        update(session, &format!("past-{number}"), UpsertStatus::Complete, body)
    };
    let older = (from > 0).then_some(HistoryCursor(from));
    History { items: (from..end).map(item).collect(), older, ..History::default() }
}

#[async_trait]
impl Provider for Puppet {
    fn cli_type(&self) -> &CliType {
        &self.cli_type
    }

    fn name(&self) -> &str {
        "Puppet"
    }

    async fn try_out(&self, _: &std::path::Path) -> Result<Trial, ProviderError> {
        Err(ProviderError::Internal("a puppet is not tried out".into()))
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

    async fn create_session(&self, _: NewSession) -> Result<ProviderSession, ProviderError> {
        self.called("create")?;
        let gate = self.strings.lock().unwrap().create_gate.clone();
        pass(gate).await;
        let made = {
            let mut strings = self.strings.lock().unwrap();
            strings.made += 1;
            strings.made
        };
        Ok(self.take_up(AgentSessionId::parse(format!("p-{made}")).unwrap()))
    }

    async fn load_session(&self, session: OpenSession) -> Result<Loaded, ProviderError> {
        self.called("load")?;
        let gate = self.strings.lock().unwrap().gate.clone();
        pass(gate).await;
        let (past, id) = {
            let mut strings = self.strings.lock().unwrap();
            strings.overlaps += usize::from(strings.ending.contains_key(&session.id));
            strings.opened.push(session.clone());
            (strings.past, strings.goes_on_as.clone().unwrap_or_else(|| session.id.clone()))
        };
        let history = past_before(&SessionId::new(&self.cli_type, &session.id), past, session.items_max);
        Ok(Loaded { session: self.take_up(id), history })
    }

    async fn older_history(
        &self,
        id: &AgentSessionId,
        before: &HistoryCursor,
        limit: usize,
    ) -> Result<History, ProviderError> {
        self.called("older")?;
        self.strings.lock().unwrap().asked_for.push(limit);
        Ok(past_before(&SessionId::new(&self.cli_type, id), before.0, limit))
    }

    async fn send_message(&self, id: &AgentSessionId, content: &str) -> Result<TurnId, ProviderError> {
        self.called("send")?;
        if self.strings.lock().unwrap().answers {
            let session = SessionId::new(&self.cli_type, id);
            self.answer(&session, content).await.map_err(|()| ProviderError::SessionNotFound(id.clone()))?;
        }
        Ok(TurnId::parse("turn").unwrap())
    }

    async fn cancel_turn(&self, _: &AgentSessionId) -> Result<(), ProviderError> {
        self.called("cancel")
    }

    async fn kill_session(&self, id: &AgentSessionId) -> Result<(), ProviderError> {
        self.called("kill")?;
        let (known, gate) = {
            let mut strings = self.strings.lock().unwrap();
            let known = strings.sessions.remove(id);
            if known.is_some() {
                *strings.ending.entry(id.clone()).or_default() += 1;
            }
            (known, strings.kill_gate.clone())
        };
        if known.is_some() {
            let guard = EndingGuard { puppet: self, id };
            pass(gate).await;
            drop(guard);
        }
        known.map(drop).ok_or_else(|| ProviderError::SessionNotFound(id.clone()))
    }

    fn is_alive(&self, _: &AgentSessionId) -> bool {
        self.called("alive").is_err()
    }

    fn keeps_history(&self) -> bool {
        self.called("keeps").is_ok()
    }

    async fn set_option(&self, _: &AgentSessionId, _: &str, _: &str) -> Result<(), ProviderError> {
        self.called("option")
    }

    async fn reconnect(&self, _: Option<&AgentSessionId>) -> Result<(), ProviderError> {
        self.called("reconnect")
    }

    async fn shutdown(&self) {}
}

/// A hub with one project whose agent is the puppet.
pub(crate) struct Stage {
    pub(crate) hub: Hub,
    pub(crate) puppet: Arc<Puppet>,
    pub(crate) project: ProjectId,
    _home: TempDir,
}

impl Stage {
    pub(crate) async fn set() -> Self {
        let home = TempDir::new().unwrap();
        let catalog = Catalog::open(&home.path().join("data")).unwrap().catalog;
        let puppet = Arc::new(Puppet {
            cli_type: CliType::parse("puppet").unwrap(),
            status: watch::Sender::new(StatusReport::default()),
            strings: Mutex::default(),
        });
        let registry = Registry::new([Arc::clone(&puppet) as Arc<dyn Provider>]);
        let project = catalog.add_project(home.path().to_str().unwrap()).await.unwrap().id;
        let hub = Hub::start(catalog, registry, ServerFacts::default());
        Self { hub, puppet, project, _home: home }
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

    /// Asks and gives the answer; what comes before it is passed over.
    pub(crate) async fn call(&mut self, message: ClientMessage) -> ServerMessage {
        let id = self.ask(message).await;
        self.until("an answer", |frame| frame.request_id.as_deref() == Some(&id)).await.message
    }

    pub(crate) async fn next(&mut self) -> ServerFrame {
        let frame = self.frames.next().await.expect("the window was let go");
        serde_json::from_slice(&frame.into_bytes()).unwrap()
    }

    /// None once the window is let go.
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
    // Whatever was asked is heard first: one thread runs all tasks here, in turn.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    tokio::time::advance(LONG).await;
    tokio::time::resume();
}

pub(crate) fn open(session: &SessionId, since: Option<u64>) -> ClientMessage {
    ClientMessage::SessionOpen { session_id: session.clone(), since }
}

pub(crate) fn send(session: &SessionId) -> ClientMessage {
    ClientMessage::SessionSend { session_id: session.clone(), content: "hello".into() }
}
