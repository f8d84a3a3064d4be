//! Agents with the Agent Client Protocol, Codex first.
//!
//! Comes in: calls of the session hub, each for one session. Goes out: each session's events. One process per agent
//! serves all its sessions; it is started by the first call that needs it. Inside: `wire` (the shape of a line),
//! `translate` (its meaning), `session` (one task per open session; its turns are in `turn`), `supervisor` (the process
//! and its restarts), `connection` (its lines in and out), `requests` (what it may ask of us).

mod agent;
mod attach;
mod attach_state;
mod cancel;
mod connection;
mod content;
mod deadlines;
mod event_builder;
mod files;
mod history;
mod listing;
mod login;
mod open_beneath;
mod open_text;
mod options;
mod probe;
mod program_name;
mod replace_file;
mod requests;
mod router;
mod rpc_client;
mod session;
mod session_end;
mod session_options;
mod session_status;
mod settings;
mod supervisor;
mod terminal_output;
mod terminals;
mod tool;
mod translate;
mod turn;
mod version;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use async_trait::async_trait;
use protocol::{AgentInfo, AgentSessionId, CliType, Continuity, Prompt, SessionId, TurnId};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use self::attach_state::OpenAnswer;
use self::connection::{Connection, real_directory};
use self::router::{AcpCommand, Router, SessionLink};
use self::rpc_client::CallError;
use self::session::{AcpSession, SessionStart};
use self::supervisor::{AcpContext, COMMAND_QUEUE_MAX, Supervisor, SupervisorCommand};
use self::version::VersionProbe;
use self::wire::SessionSetup;
use crate::conversation::OptionValues;
use crate::error::ProviderError;
use crate::provider::{
    AgentSession, EVENT_QUEUE_MAX, History, HistoryCursor, HistoryWanted, LoadedSession, NewSession, OpenedSession,
    Probe, Provider, ProviderEvent, StatusReport, StoredSession,
};

pub use self::agent::{AcpAgent, AgentDefinitionError, ConfiguredAgents, parse_agents};
pub use self::history::read_lines;
pub use self::settings::AcpSettings;

/// For an agent to finish a replay that nobody wants any more. If it has not by then, it is asked to load all the same.
const HISTORY_WITHIN: Duration = Duration::from_secs(20);

/// Drives one ACP agent. Nothing is started before the first session.
#[derive(Debug)]
pub struct AcpProvider {
    context: Arc<AcpContext>,
    version: VersionProbe,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Dropped with the provider: the supervisor ends the process.
    _stop: DropGuard,
}

impl AcpProvider {
    /// Has to be called inside a tokio runtime.
    pub fn new(agent: AcpAgent, settings: AcpSettings) -> Self {
        let (supervisor, commands) = mpsc::channel(COMMAND_QUEUE_MAX);
        let (status, _) = watch::channel(StatusReport::default());
        let version = VersionProbe::new(&agent);
        let context = Arc::new(AcpContext { agent, settings, router: Router::default(), supervisor, status });
        let tasks = TaskTracker::new();
        let stop = CancellationToken::new();
        tasks.spawn(Supervisor::new(Arc::clone(&context), commands).run(stop.clone()));
        Self { context, version, tasks, _stop: stop.clone().drop_guard(), stop }
    }

    /// The process id of the agent, while it runs.
    pub async fn process_id(&self) -> Option<u32> {
        let (reply, connection) = oneshot::channel();
        self.context.supervisor.send(SupervisorCommand::Peek(reply)).await.ok()?;
        connection.await.ok()?.map(|connection: Arc<Connection>| connection.handle.pid())
    }

    async fn connect(&self) -> Result<Arc<Connection>, ProviderError> {
        let (reply, connection) = oneshot::channel();
        let gone = || ProviderError::Unavailable { name: self.context.agent.name.clone() };
        self.context.supervisor.send(SupervisorCommand::Connect(reply)).await.map_err(|_| gone())?;
        let connection = connection.await.map_err(|_| gone())??;
        self.version.learn(connection.capabilities().version.as_deref());
        Ok(connection)
    }

    /// Asks for a session; logs in first if the agent wants that and it can be done.
    async fn ask_for_session(&self, connection: &Connection, directory: &Path) -> Result<SessionSetup, ProviderError> {
        let AcpContext { agent, settings, .. } = &*self.context;
        let request = acp::NewSessionRequest::new(directory);
        let ask = || connection.rpc.call::<SessionSetup>("session/new", &request, settings.session_timeout);
        let mut answer = ask().await;
        if let Err(CallError::Refused(error)) = &answer
            && error.code == wire::AUTH_REQUIRED
        {
            login::log_in(connection, agent, settings, &error.text()).await?;
            answer = ask().await;
        }
        let name = agent.name.clone();
        answer.map_err(|error| match error {
            CallError::Refused(error) if error.code == wire::AUTH_REQUIRED => {
                ProviderError::LoginRequired { name, detail: error.text() }
            }
            CallError::Gone(detail) => ProviderError::Crashed { name, detail },
            error => ProviderError::CreateFailed { detail: error.to_string() },
        })
    }

    /// With `stored`, a session of ours that the agent has nothing of: it keeps our id, and gets another of the
    /// agent's.
    async fn create(
        &self,
        project_dir: PathBuf,
        stored: Option<&StoredSession>,
    ) -> Result<OpenedSession, ProviderError> {
        let directory = real_directory(&project_dir)?;
        let connection = self.connect().await?;
        let mut expectation = Expectation::new(&self.context.router);
        let setup = self.ask_for_session(&connection, &project_dir).await?;
        let failed = |detail: &str| ProviderError::CreateFailed { detail: detail.to_owned() };
        let id = setup.session_id.as_deref().ok_or_else(|| failed("the agent gave no session id"))?;
        let id = AgentSessionId::parse(id).map_err(|error| failed(&format!("the agent's session id {error}")))?;
        let ends = SessionLink::open(directory);
        let link = ends.link.clone();
        if !expectation.fulfil(&id, &link) {
            return Err(failed("the agent gave the id of a session that is open"));
        }
        // Sessions in the router are notified of a loss. This one may have come in too late for it.
        if let Some(detail) = connection.rpc.closed() {
            self.context.router.remove(&id);
            return Err(ProviderError::Crashed { name: self.context.agent.name.clone(), detail });
        }
        let (events, receiver) = mpsc::channel(EVENT_QUEUE_MAX);
        let new_id = || SessionId::new(&self.context.agent.cli_type, &id);
        let session_id = stored.map_or_else(new_id, |stored| stored.id.clone());
        let context = Arc::clone(&self.context);
        let start = SessionStart {
            session_id,
            agent_id: id.clone(),
            directory: project_dir,
            // They are set again by requests of their own: an agent that refuses one is used all the same.
            options: OptionValues::new(),
        };
        let mut session = AcpSession::new(context, start, ends, connection, events);
        session.created(&setup, stored.map(|stored| &stored.agent_id));
        self.tasks.spawn(session.run());
        // Nobody waits for the supervisor.
        let _ = self.context.supervisor.try_send(SupervisorCommand::ResetRestarts);
        Ok(self.opened(id, link, receiver))
    }

    async fn load(&self, stored: &StoredSession, connection: Arc<Connection>) -> Result<LoadedSession, ProviderError> {
        let ends = SessionLink::open(real_directory(&stored.project_dir).map_err(|error| not_loaded(&error))?);
        let (link, id) = (ends.link.clone(), stored.agent_id.clone());
        if !self.context.router.add(id.clone(), link.clone()) {
            return Err(ProviderError::LoadFailed { detail: "the session is open already".into() });
        }
        let (events, receiver) = mpsc::channel(EVENT_QUEUE_MAX);
        let (reply, history) = oneshot::channel();
        let start = SessionStart {
            session_id: stored.id.clone(),
            agent_id: id.clone(),
            directory: stored.project_dir.clone(),
            options: stored.options.clone(),
        };
        let mut session = AcpSession::new(Arc::clone(&self.context), start, ends, connection, events);
        session.open(stored.history, stored.prompted, reply);
        self.tasks.spawn(session.run());
        let gone = |_| Err(ProviderError::LoadFailed { detail: "the session was closed".into() });
        let OpenAnswer { history, has_history } = history.await.unwrap_or_else(gone)?;
        Ok(LoadedSession { opened: self.opened(id, link, receiver), history, has_history })
    }

    /// The agent has nothing of this session: it gets another one, with the options that the user had set.
    async fn create_again(&self, stored: StoredSession) -> Result<LoadedSession, ProviderError> {
        let opened = self.create(stored.project_dir.clone(), Some(&stored)).await?;
        for (option, value) in &stored.options {
            if let Err(error) = opened.session.set_option(option, value).await {
                // Nothing was sent yet, and the page shows the value it has instead.
                tracing::warn!(session = %opened.agent_id, option, value, %error, "an option could not be restored");
            }
        }
        let history = History { continuity: Continuity::Live, ..History::default() };
        Ok(LoadedSession { opened, history, has_history: false })
    }

    fn opened(
        &self,
        agent_id: AgentSessionId,
        link: SessionLink,
        events: mpsc::Receiver<ProviderEvent>,
    ) -> OpenedSession {
        let context = Arc::clone(&self.context);
        let session = Arc::new(AcpSessionHandle { agent_id: agent_id.clone(), link, context });
        OpenedSession { agent_id, session, events }
    }
}

#[async_trait]
impl Provider for AcpProvider {
    fn cli_type(&self) -> &CliType {
        &self.context.agent.cli_type
    }

    fn name(&self) -> &str {
        &self.context.agent.name
    }

    async fn describe(&self) -> AgentInfo {
        let agent = &self.context.agent;
        let program = agent.command.resolve();
        let version = match &program {
            Ok(program) => self.version.of(program, &agent.command).await,
            Err(_) => None,
        };
        AgentInfo {
            cli_type: agent.cli_type.clone(),
            name: agent.name.clone(),
            installed: program.is_ok(),
            version,
            program: Some(program_name::of(&agent.command, program.is_ok())),
            logged_in: program.is_ok().then(|| login::evident(agent)).flatten(),
            login_hint: agent.codex_home.is_some().then(|| "codex login".to_owned()),
            install_hint: agent.install_hint.clone(),
            status: self.context.status.borrow().status,
        }
    }

    async fn probe(&self, directory: &Path) -> Result<Probe, ProviderError> {
        let connection = self.connect().await?;
        let AcpContext { agent, settings, .. } = &*self.context;
        let login = probe::login(&connection, agent, settings, directory).await;
        Ok(Probe { version: connection.capabilities().version.clone(), login: login? })
    }

    fn watch_status(&self) -> watch::Receiver<StatusReport> {
        self.context.status.subscribe()
    }

    async fn create_session(&self, session: NewSession) -> Result<OpenedSession, ProviderError> {
        self.create(session.project_dir, None).await
    }

    async fn load_session(&self, stored: StoredSession) -> Result<LoadedSession, ProviderError> {
        let can_be_lost = stored.history == HistoryWanted::Compare;
        if !stored.prompted && !can_be_lost {
            return self.create_again(stored).await;
        }
        let AcpContext { agent, settings, .. } = &*self.context;
        self.context.router.released(&stored.agent_id, HISTORY_WITHIN).await;
        self.connect().await?.rpc.history_sent(stored.agent_id.as_str(), HISTORY_WITHIN).await;
        // It may have been another process.
        let connection = self.connect().await?;
        let loaded = match self.load(&stored, Arc::clone(&connection)).await {
            Err(ProviderError::LoginRequired { detail, .. }) => {
                login::log_in(&connection, agent, settings, &detail).await?;
                self.load(&stored, Arc::clone(&connection)).await
            }
            loaded => loaded,
        };
        match loaded {
            Err(ProviderError::LoadFailed { detail })
                if listing::has_session(&connection, &stored.agent_id, settings.session_timeout).await
                    == Some(false) =>
            {
                if can_be_lost && stored.prompted {
                    tracing::warn!(session = %stored.agent_id, detail, "the agent no longer has this session");
                    return self.load(&StoredSession { prompted: false, ..stored }, connection).await;
                }
                let detail = format!("{} no longer has this session ({detail})", agent.name);
                Err(ProviderError::LoadFailed { detail })
            }
            loaded => loaded,
        }
    }

    async fn reconnect(&self) -> Result<(), ProviderError> {
        self.context.reconnect(None).await
    }

    async fn shutdown(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// The handle to one session; its task does the work.
#[derive(Debug)]
struct AcpSessionHandle {
    /// As it was when the session was opened; names it in errors.
    agent_id: AgentSessionId,
    link: SessionLink,
    context: Arc<AcpContext>,
}

impl AcpSessionHandle {
    /// Asks the session's task and waits for its answer.
    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> AcpCommand) -> Result<T, ProviderError> {
        let (reply, answer) = oneshot::channel();
        let gone = || ProviderError::SessionNotFound(self.agent_id.clone());
        self.link.commands.send(command(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }
}

#[async_trait]
impl AgentSession for AcpSessionHandle {
    fn is_alive(&self) -> bool {
        self.link.is_attached()
    }

    async fn send(&self, prompt: Prompt) -> Result<TurnId, ProviderError> {
        self.ask(|reply| AcpCommand::Send { prompt, reply }).await?
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        self.ask(|reply| AcpCommand::Cancel { reply }).await
    }

    async fn set_option(&self, option: &str, value: &str) -> Result<(), ProviderError> {
        let (option, value) = (option.to_owned(), value.to_owned());
        self.ask(|reply| AcpCommand::SetOption { option, value, reply }).await?
    }

    async fn reconnect(&self) -> Result<(), ProviderError> {
        self.context.reconnect(Some(self.link.clone())).await
    }

    async fn older_history(&self, _: &HistoryCursor, _: usize) -> Result<History, ProviderError> {
        // A replay brings all there is, so no cursor was ever given out.
        Ok(History::default())
    }

    async fn close(&self) -> Result<(), ProviderError> {
        self.ask(|reply| AcpCommand::Close { at_agent: true, reply }).await
    }
}

/// That a session is being created, until it is there or is not to be.
struct Expectation<'a>(Option<&'a Router>);

impl<'a> Expectation<'a> {
    fn new(router: &'a Router) -> Self {
        router.expect();
        Self(Some(router))
    }

    fn fulfil(&mut self, id: &AgentSessionId, link: &SessionLink) -> bool {
        self.0.take().is_some_and(|router| router.adopt(id.clone(), link.clone()))
    }
}

impl Drop for Expectation<'_> {
    fn drop(&mut self) {
        if let Some(router) = self.0 {
            router.give_up();
        }
    }
}

fn not_loaded(error: &ProviderError) -> ProviderError {
    ProviderError::LoadFailed { detail: error.to_string() }
}

#[cfg(test)]
mod transcript_tests;
