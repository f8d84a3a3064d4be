//! The hub: what runs, who watches, and everything both fronts (WebSocket and HTTP) may ask.
//!
//! Comes in: requests. Goes out: answers to one window, news to all. Kept out: sockets, wires, files. Locks are held
//! for a look-up and never across an await.

mod agents;
mod directories;
mod drain;
mod entries;
mod renamed;
mod restored;
mod usage;

pub use agents::{AgentSet, AgentSetup, ProbeTarget};

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use catalog::{Catalog, NEW_SESSION_TITLE, SessionRecord};
use protocol::{
    AgentInfo, Attention, CliType, Continuity, ErrorMessage, Project, ProjectId, ServerMessage, SessionId,
    SessionState, SessionSummary, TurnId,
};
use providers::{NewSession, Registry};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::ServiceError;
use crate::frame::{After, Frame};
use crate::outbox::{Frames, Outbox, WindowKind};
use crate::session::{COMMANDS_MAX, Command, Session, now};
use crate::window::Window;
use providers::fault::contained;

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
    /// The last number of sessions whose task has ended; the next one goes on from there.
    numbers: Mutex<HashMap<SessionId, u64>>,
    renamed: Mutex<renamed::Renamed>,
    newborn: mpsc::Sender<Session>,
    tasks: TaskTracker,
    /// The server's end has begun: nothing new is taken up.
    stopping: CancellationToken,
    /// And what ran has ended: the hub's own tasks may.
    stop: CancellationToken,
}

#[derive(Debug, Default)]
struct Windows {
    next: u64,
    /// The server has said all it had to say: who comes now is told at once.
    are_over: bool,
    open: HashMap<u64, Arc<Outbox>>,
}

/// What every window is told first.
#[derive(Clone, Debug, Default)]
pub struct ServerFacts {
    pub version: String,
    pub instance: String,
    pub home: String,
    pub notices: Vec<String>,
    /// A program that is started here can show a window.
    pub has_display: bool,
}

/// How a session is opened: all that its agent has to be told.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) directory: PathBuf,
    /// Its agent was given a message.
    pub(crate) prompted: bool,
    /// What the user has switched.
    pub(crate) chosen: BTreeMap<String, String>,
}

/// A window that asked, and the id its answer repeats.
#[derive(Clone, Debug)]
pub(crate) struct Requester {
    pub(crate) window: u64,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) request_id: Option<String>,
    /// The session it is about.
    pub(crate) session: Option<SessionId>,
}

impl Requester {
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
    pub fn start(catalog: Catalog, registry: Registry, facts: ServerFacts) -> Self {
        let (newborn, births) = mpsc::channel(COMMANDS_MAX);
        let states = Mutex::new(restored::states(&catalog));
        let core = Arc::new(HubCore {
            catalog,
            agents: agents::AgentRoster::default(),
            facts,
            windows: Mutex::default(),
            sessions: Mutex::default(),
            states,
            numbers: Mutex::default(),
            renamed: Mutex::default(),
            newborn,
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            stop: CancellationToken::new(),
        });
        core.tasks.spawn(crate::supervisor::run(Arc::clone(&core), births, core.stop.clone()));
        core.install_agents(registry);
        Self { core }
    }

    /// A window joins. It is greeted with what it needs to know first.
    pub fn connect(&self, kind: WindowKind) -> (Window, Frames) {
        let outbox = Outbox::new(kind);
        let ServerFacts { version, instance, home, mut notices, has_display } = self.core.facts.clone();
        notices.extend(self.core.agents.notices());
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

    /// Opens a session without a window, so that it is ready. Gives the id it has then.
    pub async fn load_session(&self, id: &SessionId) -> Result<SessionId, ServiceError> {
        self.core.ask(id, |reply| Command::Ready { reply }).await?;
        Ok(self.core.current(id))
    }

    pub fn list_sessions(&self, project: &ProjectId) -> Result<Vec<SessionSummary>, ServiceError> {
        self.core.sessions(project)
    }

    /// The id it has now, whether a process stands behind it, and its state.
    pub fn session_status(&self, id: &SessionId) -> Result<(SessionId, bool, SessionState), ServiceError> {
        let SessionRecord { id, cli_type, .. } = self.core.record(id)?;
        let alive = self.core.agents.is_alive(&cli_type, &id.agent_session_id());
        let state = self.core.state_of(&id);
        Ok((id, alive, state))
    }

    pub async fn send(&self, id: &SessionId, content: String) -> Result<TurnId, ServiceError> {
        if content.trim().is_empty() {
            return Err(ServiceError::Invalid { field: "content", reason: "must not be blank" });
        }
        self.core.ask(id, |reply| Command::Send { content, requester: None, reply }).await
    }

    pub async fn cancel(&self, id: &SessionId) -> Result<(), ServiceError> {
        self.core.ask_live(id, |reply| Command::Cancel { requester: None, reply }).await?;
        Ok(())
    }

    pub async fn kill(&self, id: &SessionId) -> Result<(), ServiceError> {
        self.core.ask_live(id, |reply| Command::Kill { reply }).await?;
        Ok(())
    }

    /// Names of sessions with a turn running, for the last words of the server.
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

    /// The server's end has begun.
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
            // A session too busy to hear it notices the closed outbox when it next writes. So does the next actor of one
            // that is closing.
            entry.actor().try_send(Command::Leave { window }).ok();
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
        let session = contained(creating).await.map_err(|fault| ServiceError::fault(&fault))??;
        if self.is_stopping() {
            // It came up behind the back of whoever ended the others.
            provider.kill_session(&session.id).await.ok();
            return Err(ServiceError::ShuttingDown);
        }
        if let Err(error) = directories::set_defaults(provider.as_ref(), &session.id, &project).await {
            // In another mode than the user wants it may do more than it should, so it does not run at all.
            provider.kill_session(&session.id).await.ok();
            return Err(error);
        }
        let id = SessionId::new(cli_type, &session.id);
        let record = SessionRecord::new(id.clone(), project.id.clone(), now());
        if let Err(error) = self.catalog.add_session(record).await {
            // Not saved, so it must not run either: nobody could find it again.
            provider.kill_session(&session.id).await.ok();
            return Err(error.into());
        }
        let live = SessionState { continuity: Continuity::Live, ..SessionState::default() };
        lock(&self.states).insert(id.clone(), live);
        let summary = self.summary(&id).ok_or_else(|| ServiceError::SessionNotFound(id.clone()))?;
        let (actor, commands) = mpsc::channel(COMMANDS_MAX);
        // A place in the queue first: who is told of the session finds its actor, and the actor says nothing before that.
        let start = self.newborn.reserve().await.map_err(|_| ServiceError::ShuttingDown)?;
        if !self.enter_created(&id, &project.id, actor) {
            // Its project was removed meanwhile, and nobody could see it run.
            provider.kill_session(&session.id).await.ok();
            return Err(ServiceError::ProjectNotFound(project.id));
        }
        let created =
            ServerMessage::SessionCreated { session_id: id.clone(), project_id: project.id, session: summary.clone() };
        self.broadcast_as_answer(created, asker);
        start.send(Session::created(Arc::clone(self), id, provider, session, commands, asker));
        Ok(summary)
    }

    pub(crate) fn place_of(&self, id: &SessionId) -> Result<Place, ServiceError> {
        let record = self.record(id)?;
        let project = self.project(&record.project_id)?;
        let SessionRecord { prompted, chosen_options, .. } = record;
        Ok(Place { directory: PathBuf::from(project.path), prompted, chosen: chosen_options })
    }

    /// The last number of a session whose actor ends; the next one goes on from there.
    pub(crate) fn keep_number(&self, id: &SessionId, seq: u64) {
        lock(&self.numbers).insert(id.clone(), seq);
    }

    /// Where the numbers of a session's messages go on.
    pub(crate) fn last_number(&self, id: &SessionId) -> u64 {
        lock(&self.numbers).get(id).copied().unwrap_or(0)
    }

    /// The first message of a session becomes its title, on disk and in every window before the agent has it.
    pub(crate) async fn title_by(&self, id: &SessionId, content: &str) {
        let untitled = |record: &SessionRecord| !record.prompted && record.title == NEW_SESSION_TITLE;
        if !self.catalog.session(id).as_ref().is_some_and(untitled) {
            return;
        }
        let title = catalog::title_from(content);
        match self.catalog.set_title(id, &title).await {
            Ok(()) => self.broadcast(ServerMessage::SessionTitleUpdated { session_id: id.clone(), title }),
            // No reason to keep the message from the agent.
            Err(error) => tracing::error!(session = %id, %error, "the title could not be saved"),
        }
    }

    /// The agent took a message, so from now on the session is on its disk too.
    pub(crate) async fn was_prompted(&self, id: &SessionId) {
        let Ok(record) = self.record(id) else { return };
        if record.prompted {
            return;
        }
        let mut marked = self.catalog.mark_prompted(&record.id).await;
        if let Err(catalog::CatalogError::SessionNotFound(_)) = marked {
            // Its new id was saved just before. Without the mark its agent would begin it anew over what was said.
            marked = self.catalog.mark_prompted(&self.current(id)).await;
        }
        if let Err(error) = marked {
            tracing::error!(session = %id, %error, "could not save that the session was begun");
        }
    }

    pub(crate) fn publish_state(&self, id: &SessionId, state: &SessionState) {
        // One that is getting another id is told of once it has it.
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
        let id = &self.record(id)?.id;
        if !self.command_live(id, Command::Seen).await? {
            // Its actor is gone; what it left to be seen is cleared here.
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
        let record = self.catalog.session(id).or_else(|| self.catalog.session(&self.current(id)));
        record.ok_or_else(|| ServiceError::SessionNotFound(id.clone()))
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
        let described = registry.iter().map(|provider| contained(provider.describe()));
        let described = futures_util::future::join_all(described).await;
        described.into_iter().filter_map(|agent| agent.map_err(|fault| ServiceError::fault(&fault)).ok()).collect()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The maps are whole between any two statements, so a panic elsewhere does not spoil them.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
