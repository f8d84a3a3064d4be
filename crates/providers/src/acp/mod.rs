//! Agents that speak the Agent Client Protocol, Codex first.
//!
//! Comes in: calls of the session hub, each for one session. Goes out: each session's events. One process per agent
//! serves all its sessions; it is started by the first call that needs it. Inside: `wire` (the shape of a line),
//! `translate` (its meaning), `session` (one task per open session; its turns are in `turn`), `supervisor` (the process and
//! its restarts), `connection` (its lines in and out), `requests` (what it may ask of us).

mod agent;
mod attach;
mod beneath;
mod connection;
mod content;
mod extras;
mod files;
mod growing;
mod history;
mod listing;
mod login;
mod options;
mod peer;
mod program_name;
mod replace;
mod requests;
mod router;
mod session;
mod settings;
mod step;
mod stop;
mod supervisor;
mod terminals;
mod time;
mod tool;
mod translate;
mod trial;
mod turn;
mod version;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use async_trait::async_trait;
use protocol::{AgentInfo, AgentSessionId, CliType, Continuity, TurnId};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use self::connection::{Connection, real_directory};
use self::peer::CallError;
use self::router::{Router, SessionCommand, SessionLink};
use self::session::Session;
use self::supervisor::{COMMAND_QUEUE_MAX, Command, Context, Supervisor};
use self::version::Version;
use self::wire::SessionSetup;
use crate::provider::{
    EVENT_QUEUE_MAX, History, HistoryCursor, Loaded, NewSession, OpenSession, Provider, ProviderError, ProviderSession,
    StatusReport, Trial,
};

pub use self::agent::{AcpAgent, AgentDefinitionError, ConfiguredAgents, parse_agents};
pub use self::history::read_lines;
pub use self::settings::AcpSettings;

/// For an agent to end telling a past that nobody wants any more. One that has not by then is asked for it all the same.
const PAST_TIME_MAX: Duration = Duration::from_secs(20);

/// Drives one ACP agent. Nothing is started before the first session.
#[derive(Debug)]
pub struct AcpProvider {
    context: Arc<Context>,
    version: Version,
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
        let version = Version::new(&agent);
        let context = Arc::new(Context { agent, settings, router: Router::default(), supervisor, status });
        let tasks = TaskTracker::new();
        let stop = CancellationToken::new();
        tasks.spawn(Supervisor::new(Arc::clone(&context), commands).run(stop.clone()));
        Self { context, version, tasks, _stop: stop.clone().drop_guard(), stop }
    }

    /// The process id of the agent, while it runs.
    pub async fn process_id(&self) -> Option<u32> {
        let (reply, connection) = oneshot::channel();
        self.context.supervisor.send(Command::Peek(reply)).await.ok()?;
        connection.await.ok()?.map(|connection: Arc<Connection>| connection.handle.pid())
    }

    async fn connect(&self) -> Result<Arc<Connection>, ProviderError> {
        let (reply, connection) = oneshot::channel();
        let gone = || ProviderError::Unavailable { name: self.context.agent.name.clone() };
        self.context.supervisor.send(Command::Connect(reply)).await.map_err(|_| gone())?;
        let connection = connection.await.map_err(|_| gone())??;
        self.version.learn(connection.about().version.as_deref());
        Ok(connection)
    }

    /// Asks for a session; logs in first if the agent wants that and it can be done.
    async fn ask_for_session(&self, connection: &Connection, directory: &Path) -> Result<SessionSetup, ProviderError> {
        let Context { agent, settings, .. } = &*self.context;
        let request = acp::NewSessionRequest::new(directory);
        let ask = || connection.peer.call::<SessionSetup>("session/new", &request, settings.session_timeout);
        let mut answer = ask().await;
        if let Err(CallError::Refused(error)) = &answer
            && error.code == wire::AUTH_REQUIRED
        {
            login::log_in(connection, agent, settings, &error.words()).await?;
            answer = ask().await;
        }
        let name = agent.name.clone();
        answer.map_err(|error| match error {
            CallError::Refused(error) if error.code == wire::AUTH_REQUIRED => {
                ProviderError::LoginRequired { name, detail: error.words() }
            }
            CallError::Gone(detail) => ProviderError::Crashed { name, detail },
            error => ProviderError::CreateFailed { detail: error.to_string() },
        })
    }

    async fn create(&self, project_dir: PathBuf) -> Result<ProviderSession, ProviderError> {
        let directory = real_directory(&project_dir)?;
        let connection = self.connect().await?;
        let mut expectation = Expectation::new(&self.context.router);
        let setup = self.ask_for_session(&connection, &project_dir).await?;
        let failed = |detail: &str| ProviderError::CreateFailed { detail: detail.to_owned() };
        let id = setup.session_id.as_deref().ok_or_else(|| failed("the agent gave no session id"))?;
        let id = AgentSessionId::parse(id).map_err(|error| failed(&format!("the agent's session id {error}")))?;
        let ends = SessionLink::open(directory);
        if !expectation.fulfil(&id, &ends.link) {
            return Err(failed("the agent gave the id of a session that is open"));
        }
        // Who is in the router hears of a loss. This one may have come in too late for it.
        if let Some(detail) = connection.peer.closed() {
            self.context.router.remove(&id);
            return Err(ProviderError::Crashed { name: self.context.agent.name.clone(), detail });
        }
        let (events, receiver) = mpsc::channel(EVENT_QUEUE_MAX);
        let mut session = Session::new(Arc::clone(&self.context), id.clone(), project_dir, ends, connection, events);
        session.introduce(&setup);
        self.tasks.spawn(session.run());
        // Nobody waits for the supervisor.
        let _ = self.context.supervisor.try_send(Command::Proved);
        Ok(ProviderSession { id, events: receiver })
    }

    async fn load(&self, open: &OpenSession, connection: Arc<Connection>) -> Result<Loaded, ProviderError> {
        let ends = SessionLink::open(real_directory(&open.project_dir).map_err(|error| not_loaded(&error))?);
        if !self.context.router.add(open.id.clone(), ends.link.clone()) {
            return Err(ProviderError::SessionOpen(open.id.clone()));
        }
        let (events, receiver) = mpsc::channel(EVENT_QUEUE_MAX);
        let (reply, history) = oneshot::channel();
        let (context, id, directory) = (Arc::clone(&self.context), open.id.clone(), open.project_dir.clone());
        let mut session = Session::new(context, id.clone(), directory, ends, connection, events);
        session.remember(&open.chosen);
        session.load(reply);
        self.tasks.spawn(session.run());
        let gone = |_| Err(ProviderError::LoadFailed { detail: "the session was let go of".into() });
        let history = history.await.unwrap_or_else(gone)?;
        Ok(Loaded { session: ProviderSession { id, events: receiver }, history })
    }

    fn session(&self, id: &AgentSessionId) -> Result<SessionLink, ProviderError> {
        self.context.router.get(id.as_str()).ok_or_else(|| ProviderError::SessionNotFound(id.clone()))
    }

    /// Asks the session's task and waits for its answer.
    async fn ask<T>(
        &self,
        id: &AgentSessionId,
        command: impl FnOnce(oneshot::Sender<T>) -> SessionCommand,
    ) -> Result<T, ProviderError> {
        let link = self.session(id)?;
        let (reply, answer) = oneshot::channel();
        let gone = || ProviderError::SessionNotFound(id.clone());
        link.commands.send(command(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
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

    async fn try_out(&self, directory: &Path) -> Result<Trial, ProviderError> {
        let connection = self.connect().await?;
        let Context { agent, settings, .. } = &*self.context;
        let login = trial::login(&connection, agent, settings, directory).await;
        Ok(Trial { version: connection.about().version.clone(), login: login? })
    }

    fn watch_status(&self) -> watch::Receiver<StatusReport> {
        self.context.status.subscribe()
    }

    async fn create_session(&self, session: NewSession) -> Result<ProviderSession, ProviderError> {
        self.create(session.project_dir).await
    }

    async fn load_session(&self, open: OpenSession) -> Result<Loaded, ProviderError> {
        if self.session(&open.id).is_ok() {
            return Err(ProviderError::SessionOpen(open.id));
        }
        if !open.prompted {
            let session = self.create(open.project_dir).await?;
            for (option, value) in &open.chosen {
                if let Err(error) = self.set_option(&session.id, option, value).await {
                    // Nothing was said yet, and the page shows what it is instead.
                    tracing::warn!(session = %session.id, option, value, %error, "an option could not be set again");
                }
            }
            let history = History { continuity: Continuity::Live, ..History::default() };
            return Ok(Loaded { session, history });
        }
        let Context { agent, settings, .. } = &*self.context;
        self.connect().await?.peer.past_told(open.id.as_str(), PAST_TIME_MAX).await;
        // It may have been another process.
        let connection = self.connect().await?;
        let loaded = match self.load(&open, Arc::clone(&connection)).await {
            Err(ProviderError::LoginRequired { detail, .. }) => {
                login::log_in(&connection, agent, settings, &detail).await?;
                self.load(&open, Arc::clone(&connection)).await
            }
            loaded => loaded,
        };
        match loaded {
            Err(ProviderError::LoadFailed { detail })
                if listing::has_session(&connection, &open.id, settings.session_timeout).await == Some(false) =>
            {
                let detail = format!("{} no longer has this session ({detail})", agent.name);
                Err(ProviderError::LoadFailed { detail })
            }
            loaded => loaded,
        }
    }

    async fn older_history(&self, _: &AgentSessionId, _: &HistoryCursor, _: usize) -> Result<History, ProviderError> {
        // A replay brings all there is, so no cursor was ever given out.
        Ok(History::default())
    }

    async fn send_message(&self, id: &AgentSessionId, text: &str) -> Result<TurnId, ProviderError> {
        self.ask(id, |reply| SessionCommand::Send { text: text.to_owned(), reply }).await?
    }

    async fn cancel_turn(&self, id: &AgentSessionId) -> Result<(), ProviderError> {
        let link = self.session(id)?;
        link.commands.send(SessionCommand::Cancel).await.map_err(|_| ProviderError::SessionNotFound(id.clone()))
    }

    async fn kill_session(&self, id: &AgentSessionId) -> Result<(), ProviderError> {
        self.ask(id, |reply| SessionCommand::Close { politely: true, reply }).await
    }

    fn is_alive(&self, id: &AgentSessionId) -> bool {
        self.session(id).is_ok_and(|link| link.is_attached())
    }

    async fn set_option(&self, id: &AgentSessionId, option: &str, value: &str) -> Result<(), ProviderError> {
        let (option, value) = (option.to_owned(), value.to_owned());
        self.ask(id, |reply| SessionCommand::SetOption { option, value, reply }).await?
    }

    async fn reconnect(&self, id: Option<&AgentSessionId>) -> Result<(), ProviderError> {
        let only = id.map(|id| self.session(id)).transpose()?;
        let (reply, done) = oneshot::channel();
        let gone = || ProviderError::Unavailable { name: self.context.agent.name.clone() };
        self.context.supervisor.send(Command::Reconnect { only, reply }).await.map_err(|_| gone())?;
        done.await.map_err(|_| gone())?
    }

    async fn shutdown(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
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
