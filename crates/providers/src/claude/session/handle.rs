//! The handle to one session: what the hub calls, and what the provider needs of every session it has open.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use protocol::{AgentSessionId, AgentStatus, Prompt, SessionId, TurnId};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::claude::{ClaudeShared, read_history};
use crate::error::ProviderError;
use crate::provider::{AgentSession, History, HistoryCursor, StatusReport};

pub(in crate::claude) type ReplySender<T> = oneshot::Sender<Result<T, ProviderError>>;

/// What a session's actor is asked to do.
#[derive(Debug)]
pub(in crate::claude) enum ClaudeCommand {
    /// Starts the process and answers when it is up.
    Start {
        reply: ReplySender<()>,
    },
    Send {
        prompt: Prompt,
        reply: ReplySender<TurnId>,
    },
    Cancel {
        reply: ReplySender<()>,
    },
    SetOption {
        option: String,
        value: String,
        reply: ReplySender<()>,
    },
    Reconnect {
        reply: ReplySender<()>,
    },
}

/// What the actor, its handle and the provider share of one session. The actor lives until `stop` is cancelled or
/// nobody receives the session's events.
#[derive(Debug)]
pub(in crate::claude) struct SessionControl {
    commands: mpsc::Sender<ClaudeCommand>,
    pub(super) stop: CancellationToken,
    pub(super) status: watch::Sender<StatusReport>,
    pub(super) has_process: AtomicBool,
    agent_id: Mutex<AgentSessionId>,
}

impl SessionControl {
    pub(in crate::claude) fn new(commands: mpsc::Sender<ClaudeCommand>, agent_id: AgentSessionId) -> Self {
        Self {
            commands,
            stop: CancellationToken::new(),
            status: watch::Sender::new(StatusReport::default()),
            has_process: AtomicBool::new(false),
            agent_id: Mutex::new(agent_id),
        }
    }

    /// The program's present id for it.
    pub(in crate::claude) fn agent_id(&self) -> AgentSessionId {
        self.agent_id.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(in crate::claude) fn set_agent_id(&self, id: AgentSessionId) {
        *self.agent_id.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }

    pub(in crate::claude) fn status(&self) -> StatusReport {
        self.status.borrow().clone()
    }

    pub(in crate::claude) fn is_lost(&self) -> bool {
        matches!(self.status.borrow().status, AgentStatus::Disconnected | AgentStatus::Reconnecting)
    }

    pub(in crate::claude) fn stop(&self) {
        self.stop.cancel();
    }

    /// Resolves when the actor has ended, and its process with it.
    pub(in crate::claude) async fn ended(&self) {
        self.commands.closed().await;
    }

    /// Asks the actor and waits for its answer.
    pub(in crate::claude) async fn ask<T>(
        &self,
        command: impl FnOnce(ReplySender<T>) -> ClaudeCommand,
    ) -> Result<T, ProviderError> {
        let (reply, answer) = oneshot::channel();
        let not_found = || ProviderError::SessionNotFound(self.agent_id());
        self.commands.send(command(reply)).await.map_err(|_| not_found())?;
        answer.await.map_err(|_| not_found())?
    }
}

/// The hub's handle to one session.
#[derive(Debug)]
pub(in crate::claude) struct ClaudeSessionHandle {
    pub(in crate::claude) shared: Arc<ClaudeShared>,
    pub(in crate::claude) control: Arc<SessionControl>,
    pub(in crate::claude) session_id: SessionId,
    pub(in crate::claude) project_dir: PathBuf,
    /// The program's id when the session was opened. Pages of its history are of that file, also after `/clear`.
    pub(in crate::claude) recorded_as: AgentSessionId,
}

#[async_trait]
impl AgentSession for ClaudeSessionHandle {
    fn is_alive(&self) -> bool {
        self.control.has_process.load(Ordering::Relaxed)
    }

    async fn send(&self, prompt: Prompt) -> Result<TurnId, ProviderError> {
        self.control.ask(|reply| ClaudeCommand::Send { prompt, reply }).await
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        self.control.ask(|reply| ClaudeCommand::Cancel { reply }).await
    }

    async fn set_option(&self, option: &str, value: &str) -> Result<(), ProviderError> {
        let (option, value) = (option.to_owned(), value.to_owned());
        self.control.ask(|reply| ClaudeCommand::SetOption { option, value, reply }).await
    }

    async fn reconnect(&self) -> Result<(), ProviderError> {
        self.control.ask(|reply| ClaudeCommand::Reconnect { reply }).await
    }

    async fn older_history(&self, before: &HistoryCursor, limit: usize) -> Result<History, ProviderError> {
        let file = self.shared.session_file(&self.project_dir, &self.session_id, &self.recorded_as);
        let file = file.ok_or_else(|| ProviderError::LoadFailed { detail: "its session file is gone".into() })?;
        read_history(file, Some(before.clone()), limit).await
    }

    async fn close(&self) -> Result<(), ProviderError> {
        if self.control.commands.is_closed() {
            return Err(ProviderError::SessionNotFound(self.control.agent_id()));
        }
        self.control.stop();
        self.control.ended().await;
        Ok(())
    }
}
