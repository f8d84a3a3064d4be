//! The hub: what runs, who watches, and everything both fronts (WebSocket and HTTP) may request.
//!
//! Comes in: requests. Goes out: answers to one window, news to all. Kept out: sockets, wires, files. Locks are held
//! for a look-up and never across an await.

mod agents;
mod directories;
mod drain;
mod entries;
mod journal;
mod startup_states;
mod usage;

pub use agents::{AgentSet, AgentSetup, ProbeTarget};

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::journal::{Journal, SessionHead};
use catalog::{Catalog, NEW_SESSION_TITLE, SessionRecord};
use protocol::{
    AgentInfo, AgentSessionId, Attention, CliType, Continuity, ErrorMessage, Project, ProjectId, Prompt, ServerMessage,
    SessionId, SessionState, SessionSummary,
};
use providers::catch_panic::catch_panic;
use providers::{HistoryWanted, NewSession, ProviderError, Registry, StoredSession};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::ServiceError;
use crate::frame::{After, Frame};
use crate::outbox::{Frames, Outbox, WindowKind};
use crate::session::{COMMANDS_MAX, CancelReply, SendReply, SentMessage, SessionActor, SessionCommand, now};
use crate::window::Window;

/// Newest items of a session's history that are loaded at first.
const HISTORY_ITEMS_LOADED: usize = 400;

/// Cheap to clone; every front holds one.
#[derive(Clone, Debug)]
pub struct Hub {
    core: Arc<HubCore>,
}

#[derive(Debug)]
pub(crate) struct HubCore {
    catalog: Catalog,
    agents: agents::AgentRoster,
    facts: ServerFacts,
    windows: Mutex<Windows>,
    sessions: Mutex<entries::Entries>,
    states: Mutex<HashMap<SessionId, SessionState>>,
    journal: Arc<dyn Journal>,
    /// Where sessions that this server has taken over continue in the journal.
    heads: Mutex<HashMap<SessionId, SessionHead>>,
    spawn_session: mpsc::Sender<SessionActor>,
    tasks: TaskTracker,
    limits: HubLimits,
    /// The server has begun to stop: nothing new is started.
    stopping: CancellationToken,
    /// What ran has ended: the hub's own tasks may end too.
    stop: CancellationToken,
}

#[derive(Debug, Default)]
struct Windows {
    next: u64,
    /// The server has nothing more to send: a window that connects now is finished at once.
    are_over: bool,
    open: HashMap<u64, Arc<Outbox>>,
}

/// What every window gets first.
#[derive(Clone, Debug, Default)]
pub struct ServerFacts {
    pub version: String,
    pub instance: String,
    pub home: String,
    pub notices: Vec<String>,
    /// A program that is started here can show a window.
    pub has_display: bool,
}

/// What a session may take.
#[derive(Clone, Copy, Debug)]
pub struct HubLimits {
    /// What one turn may bring. An agent that brings more is cancelled, and the turn ends with an error.
    pub turn_bytes_max: usize,
}

impl Default for HubLimits {
    fn default() -> Self {
        Self { turn_bytes_max: upserts::UpsertConfig::live().turn_bytes_max }
    }
}

/// A window with a request, and the id its answer repeats.
#[derive(Clone, Debug)]
pub(crate) struct Requester {
    pub(crate) window: u64,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) request_id: Option<String>,
    /// The session it is about.
    pub(crate) session: Option<SessionId>,
    /// Its place among the window's requests, until it is answered.
    pub(crate) _permit: Option<Arc<OwnedSemaphorePermit>>,
}

impl Requester {
    /// The same, with its place among the window's requests.
    pub(crate) fn with_permit(&self, permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: Some(Arc::new(permit)), ..self.clone() }
    }

    pub(crate) fn answer(&self, message: ServerMessage) {
        let after = match After::of(&message) {
            After::Nothing => After::one_of(self.session.as_ref()),
            after => after,
        };
        self.outbox.push(after, Frame::of(message, self.request_id.clone()));
    }

    pub(crate) fn fail(&self, error: &ServiceError) {
        self.refuse(error.to_message());
    }

    pub(crate) fn refuse(&self, message: ErrorMessage) {
        self.answer(ServerMessage::Error(message));
    }
}

impl Hub {
    /// Starts the hub's own task. Must be called inside a tokio runtime.
    pub fn start(catalog: Catalog, journal: Arc<dyn Journal>, registry: Registry, facts: ServerFacts) -> Self {
        Self::start_with(catalog, journal, registry, facts, HubLimits::default())
    }

    /// As [`Self::start`], with other limits than the usual ones.
    pub fn start_with(
        catalog: Catalog,
        journal: Arc<dyn Journal>,
        registry: Registry,
        facts: ServerFacts,
        limits: HubLimits,
    ) -> Self {
        let (spawn_session, new_sessions) = mpsc::channel(COMMANDS_MAX);
        let states = Mutex::new(startup_states::states(&catalog));
        let core = Arc::new(HubCore {
            catalog,
            agents: agents::AgentRoster::default(),
            facts,
            windows: Mutex::default(),
            sessions: Mutex::default(),
            states,
            journal,
            heads: Mutex::default(),
            spawn_session,
            limits,
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            stop: CancellationToken::new(),
        });
        core.tasks.spawn(crate::supervisor::run(Arc::clone(&core), new_sessions, core.stop.clone()));
        core.tasks.spawn(journal::report_health(Arc::clone(&core), core.stop.clone()));
        core.install_agents(registry);
        Self { core }
    }

    /// A window joins. It is greeted with what it needs to know first.
    pub fn connect(&self, kind: WindowKind) -> (Window, Frames) {
        let outbox = Outbox::new(kind);
        let ServerFacts { version, instance, home, notices: _, has_display } = self.core.facts.clone();
        let notices = self.core.notices();
        let hello = ServerMessage::ServerHello { version, instance, home, notices, has_display };
        outbox.push(After::Nothing, Frame::of(hello, None));
        let id = {
            let mut windows = lock(&self.core.windows);
            windows.next += 1;
            let id = windows.next;
            windows.open.insert(id, Arc::clone(&outbox));
            if windows.are_over {
                outbox.finish();
            }
            id
        };
        // Finding programs and asking their versions may take a moment; the greeting does not wait for it.
        let (core, news) = (Arc::clone(&self.core), Arc::clone(&outbox));
        self.core.tasks.spawn(async move {
            let agents = core.agents().await;
            news.push(After::Nothing, Frame::of(ServerMessage::AgentList { agents }, None));
        });
        (Window::new(Arc::clone(&self.core), id, Arc::clone(&outbox)), Frames::new(outbox))
    }

    pub fn catalog(&self) -> &Catalog {
        &self.core.catalog
    }

    pub async fn create_session(
        &self,
        cli_type: &CliType,
        project: Option<&ProjectId>,
        directory: Option<&str>,
    ) -> Result<SessionSummary, ServiceError> {
        // The agent type first: a wrong one must not add a project.
        self.core.registry().get(cli_type)?;
        let project = match (project, directory) {
            (Some(id), _) => id.clone(),
            (None, Some(directory)) => self.core.project_in(directory).await?,
            (None, None) => return Err(ServiceError::Invalid { field: "projectId", reason: "is missing" }),
        };
        self.core.create_session(cli_type, &project, None).await
    }

    /// Opens a session without a window, so that it is ready.
    pub async fn load_session(&self, id: &SessionId) -> Result<(), ServiceError> {
        self.core.ask(id, |reply| SessionCommand::Ready { reply }).await
    }

    pub fn list_sessions(&self, project: &ProjectId) -> Result<Vec<SessionSummary>, ServiceError> {
        self.core.sessions(project)
    }

    /// Whether a process stands behind it, and its state.
    pub fn session_status(&self, id: &SessionId) -> Result<(bool, SessionState), ServiceError> {
        self.core.record(id)?;
        Ok((self.core.is_alive(id), self.core.state_of(id)))
    }

    pub async fn send(&self, id: &SessionId, prompt: Prompt) -> Result<SentMessage, ServiceError> {
        if prompt.is_blank() {
            return Err(ServiceError::Invalid { field: "content", reason: "must not be blank" });
        }
        self.core.ask(id, |reply| SessionCommand::Send { prompt, reply: SendReply::Caller(reply) }).await
    }

    pub async fn cancel(&self, id: &SessionId) -> Result<(), ServiceError> {
        self.core.ask_live(id, |reply| SessionCommand::Cancel { reply: CancelReply::Caller(reply) }).await?;
        Ok(())
    }

    pub async fn kill(&self, id: &SessionId) -> Result<(), ServiceError> {
        self.core.ask_live(id, |reply| SessionCommand::Kill { reply }).await?;
        Ok(())
    }

    /// Sessions with a turn running, for the last message of the server.
    pub fn working_sessions(&self) -> Vec<SessionSummary> {
        let working: Vec<SessionId> = lock(&self.core.states)
            .iter()
            .filter(|(_, state)| state.attention == Attention::Working)
            .map(|(id, _)| id.clone())
            .collect();
        working.iter().filter_map(|id| self.core.summary(id)).collect()
    }
}

impl HubCore {
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The agents as they are now.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.agents.registry()
    }

    pub(crate) fn turn_bytes_max(&self) -> usize {
        self.limits.turn_bytes_max
    }

    /// The server has begun to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    fn unless_stopping(&self) -> Result<(), ServiceError> {
        if self.is_stopping() { Err(ServiceError::ShuttingDown) } else { Ok(()) }
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    pub(crate) fn disconnect(&self, window: u64) {
        let gone = lock(&self.windows).open.remove(&window);
        if let Some(outbox) = gone {
            outbox.close();
        }
        for entry in lock(&self.sessions).values() {
            // A session with a full queue notices the closed outbox when it next writes. So does the next actor of one that
            // is closing.
            entry.actor().try_send(SessionCommand::Leave { window }).ok();
        }
    }

    /// News for every window.
    pub(crate) fn broadcast(&self, message: ServerMessage) {
        self.broadcast_as_answer(message, None);
    }

    /// News for every window; in the asker's copy it is the answer.
    pub(crate) fn broadcast_as_answer(&self, message: ServerMessage, asker: Option<&Requester>) {
        if let Some(asker) = asker {
            asker.answer(message.clone());
        }
        let (after, frame) = (After::of(&message), Frame::of(message, None));
        let skip = asker.map(|asker| asker.window);
        for (window, outbox) in &lock(&self.windows).open {
            if Some(*window) != skip {
                outbox.push(after.clone(), frame.clone());
            }
        }
    }

    pub(crate) async fn create_session(
        self: &Arc<Self>,
        cli_type: &CliType,
        project: &ProjectId,
        asker: Option<&Requester>,
    ) -> Result<SessionSummary, ServiceError> {
        let provider = Arc::clone(self.registry().get(cli_type)?);
        let project = self.project(project)?;
        self.unless_stopping()?;
        let creating = provider.create_session(NewSession { project_dir: PathBuf::from(&project.path) });
        let opened = catch_panic(creating).await.map_err(|panic| ServiceError::panic(&panic))??;
        if self.is_stopping() {
            // It was created after the others had been ended.
            opened.session.close().await.ok();
            return Err(ServiceError::ShuttingDown);
        }
        if let Err(error) = directories::set_defaults(cli_type, opened.session.as_ref(), &project).await {
            // In another mode than the user wants it may do more than it should, so it does not run at all.
            opened.session.close().await.ok();
            return Err(error);
        }
        let id = SessionId::new(cli_type, &opened.agent_id);
        let record = SessionRecord::new(id.clone(), project.id.clone(), now());
        if let Err(error) = self.catalog.add_session(record).await {
            // Not saved, so it must not run either: nobody could find it again.
            opened.session.close().await.ok();
            return Err(error.into());
        }
        let live = SessionState { continuity: Continuity::Live, ..SessionState::default() };
        lock(&self.states).insert(id.clone(), live);
        let summary = self.summary(&id).ok_or_else(|| ServiceError::SessionNotFound(id.clone()))?;
        let (actor, commands) = mpsc::channel(COMMANDS_MAX);
        // A place in the queue first: whoever learns of the session finds its actor, and the actor sends nothing before that.
        let start = self.spawn_session.reserve().await.map_err(|_| ServiceError::ShuttingDown)?;
        if !self.enter_created(&id, &project.id, actor) {
            // Its project was removed meanwhile, and nobody could see it run.
            opened.session.close().await.ok();
            return Err(ServiceError::ProjectNotFound(project.id));
        }
        let head = self.head(&id).await.unwrap_or_else(|error| {
            tracing::error!(session = %id, %error, "a new session is not recorded yet");
            (journal::new_head(), false)
        });
        let created =
            ServerMessage::SessionCreated { session_id: id.clone(), project_id: project.id, session: summary.clone() };
        self.broadcast_as_answer(created, asker);
        start.send(SessionActor::created(Arc::clone(self), id, provider, opened, commands, head, asker));
        Ok(summary)
    }

    /// What its agent needs to open the session.
    pub(crate) fn stored_session(&self, id: &SessionId) -> Result<StoredSession, ServiceError> {
        let record = self.record(id)?;
        let project = self.project(&record.project_id)?;
        Ok(StoredSession {
            agent_id: record.current_agent_id(),
            id: record.id,
            project_dir: PathBuf::from(project.path),
            prompted: record.prompted,
            options: record.options,
            history: HistoryWanted::Newest,
            items_max: HISTORY_ITEMS_LOADED,
        })
    }

    pub(crate) fn directory_of(&self, id: &SessionId) -> Result<PathBuf, ServiceError> {
        Ok(PathBuf::from(self.project(&self.record(id)?.project_id)?.path))
    }

    /// The title that a message gives its session, if it is the first one.
    pub(crate) fn first_title(&self, id: &SessionId, text: &str) -> Option<String> {
        let record = self.catalog.session(id)?;
        let is_untitled = !record.prompted && record.title == NEW_SESSION_TITLE;
        is_untitled.then(|| catalog::title_from(text))
    }

    /// The agent's present id is on the disk when this returns `Ok`. Costs a look-up when it is there already.
    pub(crate) async fn save_agent_id(&self, id: &SessionId, agent_id: &AgentSessionId) -> Result<(), ProviderError> {
        if self.catalog.session(id).is_some_and(|record| record.current_agent_id() == *agent_id) {
            return Ok(());
        }
        let saved = self.catalog.set_agent_session_id(id, agent_id).await;
        saved.map_err(|error| ProviderError::LoadFailed { detail: format!("its new id could not be saved: {error}") })
    }

    pub(crate) fn publish_state(&self, id: &SessionId, state: &SessionState) {
        let Some(record) = self.catalog.session(id) else { return };
        let before = lock(&self.states).insert(id.clone(), state.clone());
        if before.as_ref() == Some(state) {
            return;
        }
        let (session_id, last_active_at) = (id.clone(), record.last_active_at);
        let news = ServerMessage::SessionState { session_id, state: state.clone(), last_active_at };
        let frame = Frame::of(news, None);
        for outbox in lock(&self.windows).open.values() {
            outbox.push_state(id, frame.clone());
        }
    }

    /// Someone looked at the session, in some window.
    pub(crate) async fn seen(&self, id: &SessionId) -> Result<(), ServiceError> {
        self.record(id)?;
        if !self.command_live(id, SessionCommand::Seen).await? {
            // It has no actor; what nobody has seen is cleared here.
            let state = self.state_of(id);
            if matches!(state.attention, Attention::Finished | Attention::Error) {
                let seen = SessionState { attention: Attention::Idle, reason: None, ..state };
                self.publish_state(id, &seen);
                self.catalog.set_unseen(id, None);
            }
        }
        Ok(())
    }

    pub(crate) fn state_of(&self, id: &SessionId) -> SessionState {
        lock(&self.states).get(id).cloned().unwrap_or_default()
    }

    pub(crate) fn record(&self, id: &SessionId) -> Result<SessionRecord, ServiceError> {
        self.catalog.session(id).ok_or_else(|| ServiceError::SessionNotFound(id.clone()))
    }

    pub(crate) fn project(&self, id: &ProjectId) -> Result<Project, ServiceError> {
        self.catalog.project(id).ok_or_else(|| ServiceError::ProjectNotFound(id.clone()))
    }

    async fn project_in(&self, directory: &str) -> Result<ProjectId, ServiceError> {
        match self.catalog.add_project(directory).await {
            Ok(project) => {
                let id = project.id.clone();
                self.broadcast(ServerMessage::ProjectAdded { project });
                Ok(id)
            }
            Err(catalog::CatalogError::Duplicate(path)) => {
                let known = self.catalog.projects().into_iter().find(|project| project.path == path);
                known.map(|project| project.id).ok_or(catalog::CatalogError::Duplicate(path).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn sessions(&self, project: &ProjectId) -> Result<Vec<SessionSummary>, ServiceError> {
        self.project(project)?;
        Ok(self.catalog.sessions(project).into_iter().map(|record| self.summarize(record)).collect())
    }

    pub(crate) fn summary(&self, id: &SessionId) -> Option<SessionSummary> {
        self.catalog.session(id).map(|record| self.summarize(record))
    }

    fn summarize(&self, record: SessionRecord) -> SessionSummary {
        let state = self.state_of(&record.id);
        SessionSummary {
            id: record.id,
            project_id: record.project_id,
            title: record.title,
            last_active_at: record.last_active_at,
            created_at: record.created_at,
            cli_type: record.cli_type,
            state,
        }
    }

    pub(crate) async fn agents(&self) -> Vec<AgentInfo> {
        let registry = self.registry();
        let described = registry.iter().map(|provider| catch_panic(provider.describe()));
        let described = futures_util::future::join_all(described).await;
        described.into_iter().filter_map(|agent| agent.map_err(|panic| ServiceError::panic(&panic)).ok()).collect()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The maps are whole between any two statements, so a panic elsewhere does not spoil them.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
