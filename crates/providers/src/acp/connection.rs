//! One running agent process: the handshake, and its stdout read line by line and sent where it belongs.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1 as acp;
use agent_process::{
    AgentCommand, AgentProcess, LineError, LineReader, NoAnswer, OutputLine, ProcessHandle, SpawnError,
};
use serde_json::value::RawValue;

use super::agent::AcpAgent;
use super::requests::Requests;
use super::router::{AgentInput, PermissionRequest, Router};
use super::rpc_client::{CallError, ResponseWaiter, RpcClient};
use super::settings::AcpSettings;
use super::terminals::Terminals;
use super::translate::Quirks;
use super::wire::{self, RpcMessage, UpdateEnvelope};
use crate::error::ProviderError;
use crate::json::{self, Glimpse};

/// Lines that are no messages are logged, the first ones; an agent that chatters must not fill the log.
const NOISE_LOGGED_MAX: u64 = 20;
/// What is passed on of a line that cannot be read: more than a report quotes.
const UNREADABLE_CHARACTERS_MAX: usize = 256;
/// After the agent's end its last lines are in the pipe and need no waiting; whoever else holds the pipe open, silent
/// or flooding it, does not delay the report of the end.
const EXIT_LINE_TIMEOUT: Duration = Duration::from_millis(100);
const EXIT_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// From the end of its output to its own end, so that the loss can be reported with the reason. One that lives on is
/// lost all the same.
const EXIT_WITHIN: Duration = Duration::from_millis(400);

/// The agent behind a process, as it described itself.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) rpc: RpcClient,
    pub(crate) handle: ProcessHandle,
    pub(crate) terminals: Arc<Terminals>,
    /// How the agent was started; commands it runs through us have the same guardian.
    pub(crate) command: AgentCommand,
    capabilities: OnceLock<AgentCapabilities>,
}

/// What the agent can do, as the handshake reported it.
#[derive(Debug, Default)]
pub(crate) struct AgentCapabilities {
    pub(crate) quirks: Quirks,
    pub(crate) version: Option<String>,
    pub(crate) can_load: bool,
    pub(crate) can_resume: bool,
    pub(crate) can_close: bool,
    pub(crate) can_list: bool,
    pub(crate) can_delete: bool,
    /// As the agent wrote them: what makes one usable is in fields the published types lack.
    pub(crate) auth_methods: Vec<serde_json::Value>,
}

impl Connection {
    /// Starts the process. The handshake needs its stdout to be read: see [`run`].
    pub(crate) async fn start(agent: &AcpAgent) -> Result<(Arc<Self>, LineReader), ProviderError> {
        let process = AgentProcess::spawn(agent.command.clone()).await.map_err(|error| not_started(agent, &error))?;
        let (reader, writer, handle) = process.split();
        let connection = Self {
            rpc: RpcClient::new(writer),
            handle,
            terminals: Arc::default(),
            command: agent.command.clone(),
            capabilities: OnceLock::new(),
        };
        Ok((Arc::new(connection), reader))
    }

    /// What the agent can do; nothing before the handshake.
    pub(crate) fn capabilities(&self) -> &AgentCapabilities {
        static UNKNOWN: OnceLock<AgentCapabilities> = OnceLock::new();
        self.capabilities.get().unwrap_or_else(|| UNKNOWN.get_or_init(AgentCapabilities::default))
    }

    /// Closes a session that is not needed any more, or with `delete` deletes it, which is only for one without a
    /// message: the user's conversations are never deleted here.
    pub(crate) async fn close_session(&self, session: &str, delete: bool, within: Duration) {
        let AgentCapabilities { can_close, can_delete, .. } = *self.capabilities();
        let answer = if delete && can_delete {
            let request = acp::DeleteSessionRequest::new(session.to_owned());
            self.rpc.call::<serde_json::Value>("session/delete", &request, within).await
        } else if can_close {
            let request = acp::CloseSessionRequest::new(session.to_owned());
            self.rpc.call::<serde_json::Value>("session/close", &request, within).await
        } else {
            return;
        };
        if let Err(error) = answer {
            tracing::debug!(session, %error, "the agent did not close a session");
        }
    }

    /// The agent is lost: its commands end, and every request that waits has its answer.
    pub(crate) async fn close(&self, detail: &str) {
        self.terminals.release_all();
        for waiter in self.rpc.close(detail) {
            give(waiter, Err(CallError::Gone(detail.to_owned()))).await;
        }
    }

    /// Asks who it is. A process that exits instead is reported with its standard error, not as a timeout.
    pub(crate) async fn handshake(&self, agent: &AcpAgent, settings: &AcpSettings) -> Result<(), ProviderError> {
        let failed = |detail: String| ProviderError::Handshake { name: agent.name.clone(), detail };
        let request =
            acp::InitializeRequest::new(ProtocolVersion::V1).client_capabilities(client_capabilities()).client_info(
                acp::Implementation::new("liminal-builder", env!("CARGO_PKG_VERSION"))
                    .title("Liminal Builder".to_owned()),
            );
        let answer = self.rpc.call::<serde_json::Value>("initialize", &request, settings.start_timeout);
        let mut response = match self.handle.answer(settings.start_timeout, answer).await {
            Ok(Ok(response)) => response,
            Ok(Err(CallError::Gone(detail))) => return Err(failed(detail)),
            Ok(Err(error)) => return Err(failed(with_stderr(error.to_string(), &self.handle.stderr_tail()))),
            Err(NoAnswer::Exited(report)) => return Err(failed(report.to_string())),
            Err(NoAnswer::Silent { within, stderr_tail }) => {
                let silence = format!("no answer within {} s", within.as_secs());
                return Err(failed(with_stderr(silence, &stderr_tail)));
            }
        };
        // Whatever it answered: only an object has fields to take.
        let auth_methods = response.get_mut("authMethods").map(serde_json::Value::take).unwrap_or_default();
        let response: acp::InitializeResponse = serde_json::from_value(response)
            .map_err(|error| failed(format!("its answer could not be read: {error}")))?;
        if response.protocol_version != ProtocolVersion::V1 {
            let version = response.protocol_version;
            return Err(failed(format!("it uses version {version} of the protocol, not version 1")));
        }
        let able = &response.agent_capabilities;
        let capabilities = AgentCapabilities {
            quirks: Quirks::of(response.agent_info.as_ref()),
            version: response.agent_info.as_ref().map(|info| info.version.clone()),
            can_load: able.load_session,
            can_resume: able.session_capabilities.resume.is_some(),
            can_close: able.session_capabilities.close.is_some(),
            can_list: able.session_capabilities.list.is_some(),
            can_delete: able.session_capabilities.delete.is_some(),
            auth_methods: auth_methods.as_array().cloned().unwrap_or_default(),
        };
        let (version, pid) = (capabilities.version.as_deref(), self.handle.pid());
        tracing::info!(agent = %agent.cli_type, version, pid, "agent connected");
        // It is asked once; a second answer would be the same.
        let _ = self.capabilities.set(capabilities);
        Ok(())
    }
}

/// How an agent was lost.
#[derive(Debug)]
pub(crate) struct ConnectionLoss {
    pub(crate) detail: String,
    /// It exited by itself and without an error.
    pub(crate) clean: bool,
}

/// Reads the agent's stdout to its end, or for as long as the agent runs and reads its input, and sends each line
/// where it belongs. Gives how the agent was lost, as soon as that is known: ending what is left of it is for the
/// caller, and nobody has to wait for that. Every request that waited has its answer then.
pub(crate) async fn run(connection: Arc<Connection>, mut reader: LineReader, router: &Router) -> ConnectionLoss {
    let mut requests = Requests::new(Arc::clone(&connection));
    let mut noise = 0;
    let mut closed_input = false;
    let ended = async {
        tokio::select! {
            biased;
            _ = connection.handle.exited() => false,
            () = connection.rpc.input_closed() => true,
        }
    };
    tokio::pin!(ended);
    let broken = loop {
        tokio::select! {
            line = reader.next_line() => match line {
                Ok(Some(line)) => on_line(&line, &connection, router, &mut requests, &mut noise).await,
                Ok(None) => break None,
                Err(LineError::TooLong(error)) => report_left_out(router, error).await,
                Err(LineError::Io(error)) => break Some(error.to_string()),
            },
            () = requests.reap() => {}
            lives_on = &mut ended => {
                closed_input = lives_on;
                let draining = drain(&mut reader, &connection, router, &mut requests, &mut noise);
                // A descendant of the agent may write for ever.
                let _ = tokio::time::timeout(EXIT_DRAIN_TIMEOUT, draining).await;
                break None;
            }
        }
    };
    if noise > NOISE_LOGGED_MAX {
        tracing::warn!(lines = noise, "the agent wrote lines that are no messages");
    }
    let exit = tokio::time::timeout(EXIT_WITHIN, connection.handle.exited()).await.ok();
    let detail = match (broken, &exit) {
        (Some(error), _) => error,
        (None, Some(report)) => report.to_string(),
        (None, None) if closed_input => with_stderr("it closed its input".to_owned(), &connection.handle.stderr_tail()),
        (None, None) => with_stderr("it closed its output".to_owned(), &connection.handle.stderr_tail()),
    };
    connection.close(&detail).await;
    ConnectionLoss { detail, clean: exit.is_some_and(|report| report.is_success()) }
}

/// The lines that are there when the agent is not.
async fn drain(
    reader: &mut LineReader,
    connection: &Arc<Connection>,
    router: &Router,
    requests: &mut Requests,
    noise: &mut u64,
) {
    while let Ok(line) = tokio::time::timeout(EXIT_LINE_TIMEOUT, reader.next_line()).await {
        match line {
            Ok(Some(line)) => on_line(&line, connection, router, requests, noise).await,
            Err(LineError::TooLong(error)) => report_left_out(router, error).await,
            Ok(None) | Err(LineError::Io(_)) => return,
        }
    }
}

async fn on_line(
    line: &OutputLine,
    connection: &Connection,
    router: &Router,
    requests: &mut Requests,
    noise: &mut u64,
) {
    if !line.is_blank() {
        receive(&line.to_str_lossy(), connection, router, requests, noise).await;
    }
}

async fn receive(line: &str, connection: &Connection, router: &Router, requests: &mut Requests, noise: &mut u64) {
    if let Some(envelope) = wire::read_update(line) {
        return update(envelope, router).await;
    }
    // Nearly every line has been dealt with; the others are looked through for what JSON forbids.
    let repaired = json::repaired(line);
    if let Some(envelope) = repaired.as_deref().and_then(wire::read_update) {
        return update(envelope, router).await;
    }
    let line = repaired.as_deref().unwrap_or(line);
    match wire::read(line) {
        Ok(RpcMessage::Notification { method, params }) => match method.as_ref() {
            "$/cancel_request" => requests.cancel(params),
            _ => tracing::debug!(%method, "notification passed over"),
        },
        Ok(RpcMessage::Request { id, method, params }) => match method.as_ref() {
            "session/request_permission" => permission(id, params, connection, router).await,
            _ => requests.handle(id, &method, params, router).await,
        },
        Ok(RpcMessage::Response { id, outcome }) => {
            let waiter = id.and_then(|id| connection.rpc.take(id));
            let Some(waiter) = waiter else {
                tracing::debug!(?id, ?outcome, "an answer nobody waits for");
                return;
            };
            give(waiter, outcome.map(str::to_owned).map_err(CallError::Refused)).await;
        }
        Err(error) => {
            *noise += 1;
            if *noise <= NOISE_LOGGED_MAX {
                let start: String = line.chars().take(200).collect();
                tracing::info!(%error, line = start, "not a message");
            }
            unreadable(line, &error.to_string(), connection, router).await;
        }
    }
}

/// Who waits for an answer gets one, also where it cannot be read. Any other line is reported.
async fn unreadable(line: &str, reason: &str, connection: &Connection, router: &Router) {
    let seen = Glimpse::of(line);
    if let Some(waiter) = seen.answered().and_then(|id| connection.rpc.take(id)) {
        let error = CallError::Unreadable { method: "a request", reason: reason.to_owned() };
        return give(waiter, Err(error)).await;
    }
    let line: String = line.chars().take(UNREADABLE_CHARACTERS_MAX).collect();
    let named = seen.session.and_then(|session| router.get(&session));
    let is_named = named.is_some();
    for link in named.map_or_else(|| router.all(), |link| vec![link]) {
        drop(link.inputs.send(AgentInput::Unreadable { line: line.clone(), is_named }).await);
    }
}

async fn update(envelope: UpdateEnvelope<'_>, router: &Router) {
    let (session, update) = (envelope.session_id.as_ref(), envelope.update.get());
    match router.get(session) {
        // A session that has ended drops what still comes for it.
        Some(link) => {
            let room = link.room_for(update.len()).await;
            drop(link.inputs.send(AgentInput::Update { text: update.to_owned(), room }).await);
        }
        None if router.keep_early(session, update) => {}
        None => tracing::debug!(session, "an update of an unknown session"),
    }
}

async fn permission(id: &RawValue, params: &str, connection: &Connection, router: &Router) {
    #[derive(serde::Deserialize)]
    struct Address {
        #[serde(rename = "sessionId")]
        session_id: String,
    }
    let link = serde_json::from_str::<Address>(params).ok().and_then(|address| router.get(&address.session_id));
    let request = serde_json::from_str::<PermissionRequest>(params);
    match (link, request) {
        (Some(link), Ok(request)) => {
            let input = AgentInput::Permission { id: id.to_owned(), request: Box::new(request) };
            drop(link.inputs.send(input).await);
        }
        (None, _) => connection.rpc.answer(id, &refuse(wire::INVALID_PARAMS, "unknown session")),
        (_, Err(error)) => connection.rpc.answer(id, &refuse(wire::INVALID_PARAMS, &error.to_string())),
    }
}

pub(crate) fn refuse(code: i64, message: &str) -> Result<(), wire::RpcError> {
    Err(wire::RpcError::new(code, message))
}

async fn give(waiter: ResponseWaiter, reply: super::rpc_client::RpcReply) {
    match waiter {
        ResponseWaiter::Caller(caller) => drop(caller.send(reply)),
        ResponseWaiter::Session { link, kind, replayed: _replayed } => {
            drop(link.inputs.send(AgentInput::Answer { kind, reply }).await);
        }
    }
}

/// Nobody knows whose line it was.
async fn report_left_out(router: &Router, error: impl std::fmt::Display) {
    let text = format!("Some output of the agent was left out: {error}.");
    tracing::warn!("{text}");
    for link in router.all() {
        drop(link.inputs.send(AgentInput::Notice(text.clone())).await);
    }
}

/// What we can do for an agent, and nothing else. The `_meta` entry is what makes adapters send a command's output.
fn client_capabilities() -> acp::ClientCapabilities {
    let session = acp::ClientSessionCapabilities::new()
        .notices(acp::NoticeCapabilities::new())
        .compaction(acp::CompactionCapabilities::new())
        .config_options(
            acp::SessionConfigOptionsCapabilities::new().boolean(acp::BooleanConfigOptionCapabilities::new()),
        );
    let meta = serde_json::Map::from_iter([("terminal_output_delta".to_owned(), true.into())]);
    acp::ClientCapabilities::new()
        .fs(acp::FileSystemCapabilities::new().read_text_file(true).write_text_file(true))
        .terminal(true)
        .session(session)
        .meta(meta)
}

fn not_started(agent: &AcpAgent, error: &SpawnError) -> ProviderError {
    let name = agent.name.clone();
    match error {
        SpawnError::NotFound { .. } | SpawnError::NotExecutable { .. } | SpawnError::Failed { .. } => {
            let detail = match std::error::Error::source(error) {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            };
            ProviderError::NotInstalled { name, install_hint: agent.install_hint.clone(), detail }
        }
        SpawnError::TooMany => ProviderError::CreateFailed { detail: error.to_string() },
        SpawnError::NoDirectory { .. } | SpawnError::Guardian { .. } => ProviderError::Internal(error.to_string()),
    }
}

fn with_stderr(message: String, stderr_tail: &str) -> String {
    match stderr_tail.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        Some(line) => format!("{message}: {line}"),
        None => message,
    }
}

/// What a session may reach through us: its own directory, as it really is.
pub(crate) fn real_directory(directory: &Path) -> Result<std::path::PathBuf, ProviderError> {
    std::fs::canonicalize(directory)
        .map_err(|error| ProviderError::CreateFailed { detail: format!("{}: {error}", directory.display()) })
}
