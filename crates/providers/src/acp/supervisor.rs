//! One agent process at a time, for all sessions of the agent: when it starts, that it is lost, when it starts again.
//!
//! Comes in: that somebody needs the agent, and how its process ended. Goes out: the connection, and the state of the
//! agent for everyone to watch. Sessions are resumed before "connected" is reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_process::{ProcessHandle, StopLadder};
use protocol::ErrorCode;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::agent::AcpAgent;
use super::connection::{self, Connection, ConnectionLoss};
use super::router::{AcpCommand, AgentInput, Router, SessionLink};
use super::settings::AcpSettings;
use crate::catch_panic::{Panic, catch_panic, catch_panic_now};
use crate::error::ProviderError;
use crate::lifecycle::{JUST_STARTED, Lifecycle, Loss};
use crate::provider::StatusReport;

/// Calls that may wait for the supervisor; it answers at once.
pub(crate) const COMMAND_QUEUE_MAX: usize = 64;
/// For all sessions to settle when we end.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(4);

/// What the parts of one agent's provider share.
#[derive(Debug)]
pub(crate) struct AcpContext {
    pub(crate) agent: AcpAgent,
    pub(crate) settings: AcpSettings,
    pub(crate) router: Router,
    pub(crate) supervisor: mpsc::Sender<SupervisorCommand>,
    pub(crate) status: watch::Sender<StatusReport>,
}

impl AcpContext {
    /// Restarts the agent, or where it can do that one of its sessions.
    pub(crate) async fn reconnect(&self, only: Option<SessionLink>) -> Result<(), ProviderError> {
        let (reply, done) = oneshot::channel();
        let gone = || ProviderError::Unavailable { name: self.agent.name.clone() };
        self.supervisor.send(SupervisorCommand::Reconnect { only, reply }).await.map_err(|_| gone())?;
        done.await.map_err(|_| gone())?
    }
}

#[derive(Debug)]
pub(crate) enum SupervisorCommand {
    /// The agent is needed.
    Connect(oneshot::Sender<Result<Arc<Connection>, ProviderError>>),
    /// The user wants it restarted, for one session or as a whole.
    Reconnect { only: Option<SessionLink>, reply: oneshot::Sender<Result<(), ProviderError>> },
    /// It did something for a user, so its next loss counts as the first.
    ResetRestarts,
    /// The connection, if there is one.
    Peek(oneshot::Sender<Option<Arc<Connection>>>),
}

pub(crate) struct Supervisor {
    context: Arc<AcpContext>,
    commands: mpsc::Receiver<SupervisorCommand>,
    lifecycle: Lifecycle,
    began: Instant,
    connection: Option<Arc<Connection>>,
    /// When the present process came up, if the user had asked for it.
    restarted_at: Option<Instant>,
    starting: Option<oneshot::Receiver<Result<Arc<Connection>, ProviderError>>>,
    /// The one process, and whatever has to be done beside it.
    tasks: JoinSet<Option<ProcessEnd>>,
    waiting: Vec<oneshot::Sender<Result<Arc<Connection>, ProviderError>>>,
    reconnecting: Vec<oneshot::Sender<Result<(), ProviderError>>>,
    /// The user asked for the end that comes next.
    restart_requested: Arc<AtomicBool>,
    /// The process before the present one: lost, and perhaps not quite gone. Only one runs at a time.
    previous: Option<ProcessHandle>,
}

/// How a process was lost.
#[derive(Debug)]
struct ProcessEnd {
    lost: ConnectionLoss,
    /// What is left of it, if it ever ran.
    process: Option<ProcessHandle>,
}

impl Supervisor {
    pub(crate) fn new(context: Arc<AcpContext>, commands: mpsc::Receiver<SupervisorCommand>) -> Self {
        Self {
            context,
            commands,
            lifecycle: Lifecycle::default(),
            began: Instant::now(),
            connection: None,
            restarted_at: None,
            starting: None,
            tasks: JoinSet::new(),
            waiting: Vec::new(),
            reconnecting: Vec::new(),
            restart_requested: Arc::default(),
            previous: None,
        }
    }

    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while let Err(panic) = catch_panic(self.run_until_stopped(&stop)).await {
            self.recover_from_panic(&panic).await;
        }
        self.shut_down().await;
    }

    async fn run_until_stopped(&mut self, stop: &CancellationToken) {
        loop {
            let due = self.lifecycle.deadline().map(|due| self.began + due);
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                command = self.commands.recv() => match command {
                    Some(command) => self.handle(command),
                    None => break,
                },
                result = started(&mut self.starting) => self.started(result),
                ended = self.tasks.join_next(), if !self.tasks.is_empty() => match ended {
                    Some(Ok(Some(ended))) => self.ended(ended),
                    Some(Ok(None)) | None => {}
                    Some(Err(error)) => {
                        let lost = ConnectionLoss { detail: error.to_string(), clean: false };
                        self.ended(ProcessEnd { lost, process: None });
                    }
                },
                () = at(due) => if self.lifecycle.want() { self.start() },
            }
        }
    }

    /// A panic of ours, in the middle of anything: the agent is lost like any other, and started again.
    async fn recover_from_panic(&mut self, panic: &Panic) {
        tracing::error!(agent = %self.context.agent.cli_type, %panic, "the supervisor of an agent panicked");
        let detail = ErrorCode::InternalError.message("");
        self.tasks.shutdown().await;
        self.restart_requested.store(false, Ordering::Relaxed);
        let process = self.connection.as_ref().map(|connection| connection.handle.clone()).or(self.previous.take());
        if let Some(connection) = self.connection.take() {
            connection.close(&detail).await;
        }
        report_loss(&self.context, &detail, false).await;
        let ended = ProcessEnd { lost: ConnectionLoss { detail, clean: false }, process };
        if let Err(panic) = catch_panic_now(|| self.ended(ended)) {
            tracing::error!(agent = %self.context.agent.cli_type, %panic, "an agent is given up");
            self.lifecycle = Lifecycle::default();
            self.publish(self.report());
        }
    }

    fn handle(&mut self, command: SupervisorCommand) {
        match command {
            SupervisorCommand::Connect(reply) => match &self.connection {
                Some(connection) => drop(reply.send(Ok(Arc::clone(connection)))),
                None => {
                    self.waiting.push(reply);
                    if self.lifecycle.want() {
                        self.start();
                    }
                }
            },
            SupervisorCommand::Reconnect { only, reply } => self.reconnect(only, reply),
            SupervisorCommand::ResetRestarts => self.lifecycle.reset_restarts(),
            SupervisorCommand::Peek(reply) => drop(reply.send(self.connection.clone())),
        }
    }

    /// Decided here and at once, so that nobody ends a process that came up between the request and the restart.
    fn reconnect(&mut self, only: Option<SessionLink>, reply: oneshot::Sender<Result<(), ProviderError>>) {
        if let Some(connection) = &self.connection {
            // One session that hangs need not cost the others their turns, where the agent can close it.
            if let Some(link) = only.filter(|_| connection.capabilities().can_close) {
                // A session that has ended answers by dropping the sender.
                return drop(link.commands.try_send(AcpCommand::Reattach { reply }));
            }
            if self.restarted_at.is_some_and(|at| at.elapsed() < JUST_STARTED) {
                return drop(reply.send(Ok(())));
            }
        }
        self.reconnecting.push(reply);
        if !self.lifecycle.request_restart() {
            return;
        }
        match self.connection.take() {
            Some(connection) => {
                self.restart_requested.store(true, Ordering::Relaxed);
                let ladder = self.at_once();
                self.tasks.spawn(async move {
                    connection.handle.stop(ladder).await;
                    None
                });
                self.publish(self.report());
            }
            None => self.start(),
        }
    }

    fn start(&mut self) {
        self.publish(self.report());
        let (ready, starting) = oneshot::channel();
        self.starting = Some(starting);
        self.restart_requested.store(false, Ordering::Relaxed);
        let previous = self.previous.take();
        self.tasks.spawn(run_process(Arc::clone(&self.context), previous, ready, Arc::clone(&self.restart_requested)));
    }

    fn started(&mut self, result: Result<Arc<Connection>, ProviderError>) {
        self.starting = None;
        if let Ok(connection) = &result {
            self.connection = Some(Arc::clone(connection));
            self.restarted_at = self.lifecycle.is_restart_requested().then(Instant::now);
            self.lifecycle.connected();
            self.publish(self.report());
        }
        for waiting in self.waiting.drain(..) {
            drop(waiting.send(result.clone()));
        }
        for waiting in self.reconnecting.drain(..) {
            drop(waiting.send(result.clone().map(drop)));
        }
    }

    /// The process is lost: that is reported at once. What is left of it is ended meanwhile.
    fn ended(&mut self, ProcessEnd { lost, process }: ProcessEnd) {
        // The result of its start comes first.
        if let Some(mut starting) = self.starting.take() {
            let silent = |_| Err(ProviderError::Internal(lost.detail.clone()));
            self.started(starting.try_recv().unwrap_or_else(silent));
        }
        self.connection = None;
        self.previous.clone_from(&process);
        if let Some(process) = process {
            let ladder = self.at_once();
            self.tasks.spawn(async move {
                process.stop(ladder).await;
                None
            });
        }
        if self.restart_requested.load(Ordering::Relaxed) {
            return self.start();
        }
        let wanted = !self.context.router.is_empty();
        let clean_exit = lost.clean && !wanted && self.lifecycle.is_connected();
        tracing::warn!(agent = %self.context.agent.cli_type, detail = lost.detail, wanted, "agent lost");
        for report in self.lifecycle.lost(Loss { detail: lost.detail, wanted, clean_exit }, self.began.elapsed()) {
            self.publish(report);
        }
        // Who came between the failure and its end has waited for this one, and gets one of its own.
        let is_awaited = !self.waiting.is_empty() || !self.reconnecting.is_empty();
        if is_awaited && self.lifecycle.want() {
            self.start();
        }
    }

    async fn shut_down(mut self) {
        let mut settled = Vec::new();
        for link in self.context.router.all() {
            let (reply, done) = oneshot::channel();
            if link.commands.send(AcpCommand::Close { at_agent: false, reply }).await.is_ok() {
                settled.push(done);
            }
        }
        let all = async {
            for done in settled {
                // A session that is gone has settled.
                let _ = done.await;
            }
        };
        if tokio::time::timeout(SETTLE_TIMEOUT, all).await.is_err() {
            tracing::warn!(agent = %self.context.agent.cli_type, "not every session settled in time");
        }
        if let Some(connection) = self.connection.take() {
            connection.handle.stop(self.context.settings.stop).await;
        }
        if let Some(previous) = self.previous.take() {
            previous.stop(self.at_once()).await;
        }
        // A process that was just starting goes with its task.
        self.tasks.shutdown().await;
        self.context.status.send_replace(StatusReport::default());
    }

    /// For a process that is of no more use: no time to finish anything.
    fn at_once(&self) -> StopLadder {
        StopLadder { grace_eof: Duration::ZERO, ..self.context.settings.stop }
    }

    fn report(&self) -> StatusReport {
        self.lifecycle.report(self.began.elapsed())
    }

    fn publish(&self, report: StatusReport) {
        self.context.status.send_replace(report);
    }
}

/// From the start of a process to its loss.
async fn run_process(
    context: Arc<AcpContext>,
    previous: Option<ProcessHandle>,
    ready: oneshot::Sender<Result<Arc<Connection>, ProviderError>>,
    restart_requested: Arc<AtomicBool>,
) -> Option<ProcessEnd> {
    if let Some(previous) = previous {
        previous.gone().await;
    }
    let (connection, reader) = match Connection::start(&context.agent).await {
        Ok(started) => started,
        Err(error) => {
            let detail = error.to_string();
            drop(ready.send(Err(error)));
            return Some(ProcessEnd { lost: ConnectionLoss { detail, clean: false }, process: None });
        }
    };
    let reading = connection::run(Arc::clone(&connection), reader, &context.router);
    let starting = async {
        match connection.handshake(&context.agent, &context.settings).await {
            Ok(()) => {
                resume_sessions(&context, &connection).await;
                drop(ready.send(Ok(Arc::clone(&connection))));
                None
            }
            Err(error) => {
                let detail = error.to_string();
                drop(ready.send(Err(error)));
                connection.handle.stop(StopLadder { grace_eof: Duration::ZERO, ..context.settings.stop }).await;
                Some(detail)
            }
        }
    };
    let lost = match catch_panic(async { tokio::join!(reading, starting) }).await {
        Ok((lost, None)) => lost,
        Ok((lost, Some(refused))) => ConnectionLoss { detail: refused, ..lost },
        Err(panic) => {
            tracing::error!(agent = %context.agent.cli_type, %panic, "the task of an agent panicked");
            let detail = ErrorCode::InternalError.message("");
            connection.close(&detail).await;
            ConnectionLoss { detail, clean: false }
        }
    };
    report_loss(&context, &lost.detail, restart_requested.load(Ordering::Relaxed)).await;
    Some(ProcessEnd { lost, process: Some(connection.handle.clone()) })
}

async fn report_loss(context: &AcpContext, detail: &str, was_requested: bool) {
    for link in context.router.all() {
        // A session that is gone need not know.
        drop(link.inputs.send(AgentInput::Lost { detail: detail.to_owned(), was_requested }).await);
    }
}

/// Every open session is handed to the new process. One that cannot be resumed reports that itself, and so does one
/// that takes its time: the others do not wait for it.
async fn resume_sessions(context: &AcpContext, connection: &Arc<Connection>) {
    let mut resumed = Vec::new();
    for link in context.router.all() {
        let (done, result) = oneshot::channel();
        let connection = Arc::clone(connection);
        if link.inputs.send(AgentInput::Attach { connection, done }).await.is_ok() {
            resumed.push(result);
        }
    }
    let due = Instant::now() + context.settings.resume_within;
    for result in resumed {
        match tokio::time::timeout_at(due, result).await {
            Ok(Ok(Err(error))) => {
                tracing::warn!(agent = %context.agent.cli_type, %error, "a session was not resumed");
            }
            Ok(_) => {}
            Err(_) => tracing::warn!(agent = %context.agent.cli_type, "a session is not resumed yet"),
        }
    }
}

async fn started(
    starting: &mut Option<oneshot::Receiver<Result<Arc<Connection>, ProviderError>>>,
) -> Result<Arc<Connection>, ProviderError> {
    match starting {
        Some(starting) => match starting.await {
            Ok(result) => result,
            // The task ended without a result: its own end is reported.
            Err(_) => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
