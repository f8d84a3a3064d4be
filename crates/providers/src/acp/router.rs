//! Which session a line of the agent belongs to.
//!
//! The reader of the agent's stdout sends through here; sessions outlive the process that serves them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use protocol::{AgentSessionId, Prompt, TurnId};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::connection::Connection;
use super::rpc_client::RpcReply;
use crate::error::ProviderError;

/// How many lines may wait for one session. When it is full the agent's pipe fills: a session that cannot follow slows
/// its agent down, and costs no memory.
const INPUT_QUEUE_MAX: usize = 256;
/// How much text may wait for one session, for lines may be long. One beyond it still goes, alone.
const INPUT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// A line up to this is not weighed: the number of lines is bound enough.
const LIGHT_BYTES_MAX: usize = 16 * 1024;
/// Calls of the hub that may wait; it makes one at a time.
const COMMAND_QUEUE_MAX: usize = 16;
/// Updates for a session whose creation has not been answered yet; a handful is seen in practice.
const EARLY_UPDATES_MAX: usize = 64;
const EARLY_UPDATE_BYTES_MAX: usize = 256 * 1024;

/// What comes to a session from its agent, in the agent's order.
#[derive(Debug)]
pub(crate) enum AgentInput {
    Update {
        text: String,
        /// Given back when the session has taken it in.
        room: Option<OwnedSemaphorePermit>,
    },
    Permission {
        id: Box<RawValue>,
        request: Box<PermissionRequest>,
    },
    Answer {
        kind: RequestKind,
        reply: RpcReply,
    },
    /// A terminal of ours printed something.
    Terminal {
        id: String,
        text: String,
        room: Option<OwnedSemaphorePermit>,
    },
    /// A message for the user about the agent.
    Notice(String),
    /// A line that could not be read. Without a name in it, it concerns whoever the agent works for just now.
    Unreadable {
        line: String,
        is_named: bool,
    },
    /// The process is gone. Everything it wrote came before.
    Lost {
        detail: String,
        was_requested: bool,
    },
    /// Another process runs. `done` resolves when the session is attached to it or cannot be.
    Attach {
        connection: Arc<Connection>,
        done: oneshot::Sender<Result<(), ProviderError>>,
    },
}

/// How the agent is asked for a session that exists here: `session/new`, `session/resume` or `session/load`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttachRequest {
    Create,
    Resume,
    Load,
}

/// What an answer in the session's queue answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Prompt(TurnId),
    Attach(AttachRequest),
    Close,
    /// `session/set_mode` or `set_config_option`, by the number under which somebody waits for it.
    Option(u64),
}

/// What the hub asks of a session. Goes ahead of the agent's lines: a cancel must not wait behind a flood.
#[derive(Debug)]
pub(crate) enum AcpCommand {
    Send {
        prompt: Prompt,
        reply: oneshot::Sender<Result<TurnId, ProviderError>>,
    },
    Cancel {
        reply: oneshot::Sender<()>,
    },
    SetOption {
        option: String,
        value: String,
        reply: oneshot::Sender<Result<(), ProviderError>>,
    },
    /// Closes the session at the agent and attaches it again.
    Reattach {
        reply: oneshot::Sender<Result<(), ProviderError>>,
    },
    /// Settles what runs and ends the session, with `at_agent` at the agent as well.
    Close {
        at_agent: bool,
        reply: oneshot::Sender<()>,
    },
}

/// Our own reading of `session/request_permission`: an option of an unknown kind must not lose the question.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionRequest {
    pub(crate) tool_call: acp::ToolCallUpdate,
    #[serde(default)]
    pub(crate) options: Vec<OfferedOption>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfferedOption {
    pub(crate) option_id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) kind: String,
}

/// The way to a session.
#[derive(Clone, Debug)]
pub(crate) struct SessionLink {
    pub(crate) inputs: mpsc::Sender<AgentInput>,
    pub(crate) commands: mpsc::Sender<AcpCommand>,
    /// Where the agent may read and write through us, symlinks resolved.
    pub(crate) directory: Arc<PathBuf>,
    attached: Arc<AtomicBool>,
    room: Arc<Semaphore>,
}

/// The session's own ends of its link.
#[derive(Debug)]
pub(crate) struct SessionMailbox {
    pub(crate) inputs: mpsc::Receiver<AgentInput>,
    pub(crate) commands: mpsc::Receiver<AcpCommand>,
    pub(crate) link: SessionLink,
}

impl SessionLink {
    pub(crate) fn open(directory: PathBuf) -> SessionMailbox {
        let (inputs, inputs_end) = mpsc::channel(INPUT_QUEUE_MAX);
        let (commands, commands_end) = mpsc::channel(COMMAND_QUEUE_MAX);
        let room = Arc::new(Semaphore::new(INPUT_BYTES_MAX));
        let link = Self { inputs, commands, directory: Arc::new(directory), attached: Arc::default(), room };
        SessionMailbox { inputs: inputs_end, commands: commands_end, link }
    }

    /// Waits until so much text may join what waits for the session. None for little, and for a session that is gone.
    pub(crate) async fn room_for(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        if bytes <= LIGHT_BYTES_MAX {
            return None;
        }
        let share = u32::try_from(bytes.min(INPUT_BYTES_MAX)).unwrap_or(u32::MAX);
        tokio::select! {
            room = self.room.clone().acquire_many_owned(share) => room.ok(),
            () = self.inputs.closed() => None,
        }
    }

    pub(crate) fn is_attached(&self) -> bool {
        self.attached.load(Ordering::Relaxed)
    }

    pub(crate) fn set_attached(&self, attached: bool) {
        self.attached.store(attached, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
pub(crate) struct Router(Mutex<Routes>);

#[derive(Debug, Default)]
struct Routes {
    sessions: HashMap<AgentSessionId, SessionLink>,
    /// Updates that came before their session was known here.
    early: Vec<(String, String)>,
    /// Sessions being created.
    expected: usize,
    /// Sessions that have no queue any more and may still be closed at the agent.
    closing: HashMap<AgentSessionId, CancellationToken>,
}

impl Router {
    /// False when the session is there already.
    pub(crate) fn add(&self, id: AgentSessionId, link: SessionLink) -> bool {
        let mut routes = self.lock();
        let is_new = !routes.sessions.contains_key(&id);
        if is_new {
            routes.sessions.insert(id, link);
        }
        is_new
    }

    pub(crate) fn remove(&self, id: &AgentSessionId) {
        self.lock().sessions.remove(id);
    }

    /// Removes a session that is closed at the agent from now until the guard is dropped.
    pub(crate) fn begin_close(&self, id: &AgentSessionId) -> DropGuard {
        let mut routes = self.lock();
        routes.sessions.remove(id);
        routes.closing.retain(|_, closed| !closed.is_cancelled());
        let closed = CancellationToken::new();
        routes.closing.insert(id.clone(), closed.clone());
        closed.drop_guard()
    }

    /// Waits until nobody has the session open and it is closed at the agent: a close that comes late would end the
    /// session that was loaded meanwhile.
    pub(crate) async fn released(&self, id: &AgentSessionId, within: Duration) {
        let released = async {
            let open = self.lock().sessions.get(id).cloned();
            if let Some(link) = open {
                link.inputs.closed().await;
            }
            let closing = self.lock().closing.get(id).cloned();
            if let Some(closed) = closing {
                closed.cancelled().await;
            }
        };
        let _ = tokio::time::timeout(within, released).await;
    }

    pub(crate) fn get(&self, id: &str) -> Option<SessionLink> {
        let id = AgentSessionId::parse(id).ok()?;
        self.lock().sessions.get(&id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<SessionLink> {
        self.lock().sessions.values().cloned().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().sessions.is_empty()
    }

    /// A session is being created: what comes for an unknown one may be meant for it. Ends with [`Self::adopt`] or
    /// [`Self::give_up`].
    pub(crate) fn expect(&self) {
        self.lock().expected += 1;
    }

    /// The session that was expected is there. What came for it too early is in its queue before anything newer.
    /// False when a session of that id is there already.
    pub(crate) fn adopt(&self, id: AgentSessionId, link: SessionLink) -> bool {
        let mut routes = self.lock();
        if routes.sessions.contains_key(&id) {
            routes.end_expectation();
            return false;
        }
        routes.early.retain(|(session, update)| {
            let is_ours = session == id.as_str();
            let update = AgentInput::Update { text: update.clone(), room: None };
            if is_ours && link.inputs.try_send(update).is_err() {
                tracing::warn!(session, "an early update was lost");
            }
            !is_ours
        });
        routes.sessions.insert(id, link);
        routes.end_expectation();
        true
    }

    pub(crate) fn give_up(&self) {
        self.lock().end_expectation();
    }

    /// Keeps an update of an unknown session if it may be meant for one that is being created.
    pub(crate) fn keep_early(&self, session: &str, update: &str) -> bool {
        let mut routes = self.lock();
        let has_room = routes.early.len() < EARLY_UPDATES_MAX && update.len() <= EARLY_UPDATE_BYTES_MAX;
        let keep = routes.expected > 0 && has_room;
        if keep {
            routes.early.push((session.to_owned(), update.to_owned()));
        }
        keep
    }

    fn lock(&self) -> MutexGuard<'_, Routes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Routes {
    fn end_expectation(&mut self) {
        self.expected = self.expected.saturating_sub(1);
        if self.expected == 0 {
            self.early.clear();
        }
    }
}
