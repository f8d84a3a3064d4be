//! JSON-RPC with one agent process: requests of ours and their answers.
//!
//! Kept out: what methods mean, and reading the agent's stdout. When the agent goes, every request that waits is
//! answered with the reason.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_process::{LineWriter, SendError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::router::{AttachRequest, RequestKind, SessionLink};
use super::wire::{self, RpcError};

/// Why a request of ours has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("{}", .0.text())]
    Refused(RpcError),
    /// The agent is gone; the text is the reason.
    #[error("{0}")]
    Gone(String),
    #[error("it does not read its input")]
    Stalled,
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("its answer to {method} could not be read: {reason}")]
    Unreadable { method: &'static str, reason: String },
}

pub(crate) type RpcReply = Result<String, CallError>;

/// Who waits for an answer.
#[derive(Debug)]
pub(crate) enum ResponseWaiter {
    Caller(oneshot::Sender<RpcReply>),
    /// The answer takes its place in the session's queue, behind every update that came before it.
    Session {
        link: SessionLink,
        kind: RequestKind,
        /// Dropped with the answer to `session/load`: the replay is over.
        replayed: Option<DropGuard>,
    },
}

#[derive(Debug)]
pub(crate) struct RpcClient {
    writer: LineWriter,
    next_id: AtomicU64,
    waiting: Mutex<ResponseWaiters>,
    /// The replays that are under way, by session; cancelled when they are over or the agent is gone.
    replays: Mutex<HashMap<String, CancellationToken>>,
}

#[derive(Debug)]
enum ResponseWaiters {
    Open(HashMap<u64, ResponseWaiter>),
    Closed(String),
}

impl RpcClient {
    pub(crate) fn new(writer: LineWriter) -> Self {
        let waiting = Mutex::new(ResponseWaiters::Open(HashMap::new()));
        Self { writer, next_id: AtomicU64::new(1), waiting, replays: Mutex::default() }
    }

    /// Asks and waits for the answer.
    pub(crate) async fn call<R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &impl Serialize,
        within: Duration,
    ) -> Result<R, CallError> {
        let (sender, receiver) = oneshot::channel();
        let id = self.wait(ResponseWaiter::Caller(sender))?;
        // However this ends, nobody waits for the answer any more.
        let _forget = ForgetOnDrop { rpc: self, id };
        let line = wire::request(id, method, params).map_err(|error| unreadable(method, &error))?;
        let answer = async {
            self.writer.send(line).await.map_err(|error| self.not_sent(error))?;
            receiver.await.unwrap_or_else(|_| Err(self.gone()))
        };
        let Ok(reply) = tokio::time::timeout(within, answer).await else {
            self.notify("$/cancel_request", &serde_json::json!({ "requestId": id }));
            return Err(CallError::TimedOut(within));
        };
        serde_json::from_str(&reply?).map_err(|error| unreadable(method, &error))
    }

    /// Asks without waiting: the answer comes through the session's queue. Never blocks.
    pub(crate) fn ask(
        &self,
        method: &'static str,
        params: &impl Serialize,
        link: SessionLink,
        kind: RequestKind,
    ) -> Result<(), CallError> {
        self.ask_for(method, params, ResponseWaiter::Session { link, kind, replayed: None })
    }

    /// The same for the history of a session, which [`Self::history_sent`] can wait for, whoever asked.
    pub(crate) fn ask_for_history(
        &self,
        session: &str,
        params: &impl Serialize,
        link: SessionLink,
    ) -> Result<(), CallError> {
        let replayed = CancellationToken::new();
        let mut replays = self.replays.lock().unwrap_or_else(PoisonError::into_inner);
        replays.retain(|_, replayed| !replayed.is_cancelled());
        replays.insert(session.to_owned(), replayed.clone());
        drop(replays);
        let waiter = ResponseWaiter::Session {
            link,
            kind: RequestKind::Attach(AttachRequest::Load),
            replayed: Some(replayed.drop_guard()),
        };
        self.ask_for("session/load", params, waiter)
    }

    /// Waits until the agent replays this session no more. The rest of a replay that nobody wants any more would
    /// look like a part of the next.
    pub(crate) async fn history_sent(&self, session: &str, within: Duration) {
        let replayed = self.replays.lock().unwrap_or_else(PoisonError::into_inner).get(session).cloned();
        if let Some(replayed) = replayed {
            let _ = tokio::time::timeout(within, replayed.cancelled()).await;
        }
    }

    fn ask_for(&self, method: &'static str, params: &impl Serialize, waiter: ResponseWaiter) -> Result<(), CallError> {
        let id = self.wait(waiter)?;
        let line = wire::request(id, method, params).map_err(|error| unreadable(method, &error));
        let sent = line.and_then(|line| self.writer.try_send(line).map_err(|error| self.not_sent(error)));
        if sent.is_err() {
            self.take(id);
        }
        sent
    }

    /// Sends a notification. An agent that does not read its input misses it.
    pub(crate) fn notify(&self, method: &str, params: &impl Serialize) {
        match wire::notification(method, params).map(|line| self.writer.try_send(line)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, method, "a notification was not sent"),
            Err(error) => tracing::error!(%error, method, "could not be written"),
        }
    }

    /// Answers a request of the agent, under the id it gave, as soon as there is room: an answer may be a whole file,
    /// and an agent that asked for two of them reads one after the other.
    pub(crate) async fn answer_in_time(&self, id: &RawValue, outcome: &Result<impl Serialize, RpcError>) {
        let line = match wire::response(id, outcome) {
            Ok(line) => line,
            Err(error) => return tracing::error!(%error, "an answer could not be written"),
        };
        if let Err(error) = self.writer.send(line).await {
            tracing::debug!(%error, "an answer did not reach the agent");
        }
    }

    /// Answers a request of the agent with a short answer and without waiting.
    pub(crate) fn answer(&self, id: &RawValue, outcome: &Result<impl Serialize, RpcError>) {
        match wire::response(id, outcome).map(|line| self.writer.try_send(line)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "an answer did not reach the agent"),
            Err(error) => tracing::error!(%error, "an answer could not be written"),
        }
    }

    /// Who waits for this answer; each is found once.
    pub(crate) fn take(&self, id: u64) -> Option<ResponseWaiter> {
        match &mut *self.lock() {
            ResponseWaiters::Open(waiters) => waiters.remove(&id),
            ResponseWaiters::Closed(_) => None,
        }
    }

    /// The agent is gone. Gives back all who wait; who asks from now on gets the reason at once.
    pub(crate) fn close(&self, reason: &str) -> Vec<ResponseWaiter> {
        self.writer.close();
        match std::mem::replace(&mut *self.lock(), ResponseWaiters::Closed(reason.to_owned())) {
            ResponseWaiters::Open(waiters) => waiters.into_values().collect(),
            ResponseWaiters::Closed(_) => Vec::new(),
        }
    }

    /// Until the agent takes no more input.
    pub(crate) async fn input_closed(&self) {
        self.writer.closed().await;
    }

    /// Why the agent is gone, if it is.
    pub(crate) fn closed(&self) -> Option<String> {
        match &*self.lock() {
            ResponseWaiters::Closed(reason) => Some(reason.clone()),
            ResponseWaiters::Open(_) => None,
        }
    }

    fn wait(&self, waiter: ResponseWaiter) -> Result<u64, CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        match &mut *self.lock() {
            ResponseWaiters::Open(waiters) => {
                waiters.insert(id, waiter);
                Ok(id)
            }
            ResponseWaiters::Closed(reason) => Err(CallError::Gone(reason.clone())),
        }
    }

    fn gone(&self) -> CallError {
        match &*self.lock() {
            ResponseWaiters::Closed(reason) => CallError::Gone(reason.clone()),
            ResponseWaiters::Open(_) => CallError::Gone("it takes no more input".into()),
        }
    }

    fn not_sent(&self, error: SendError) -> CallError {
        match error {
            SendError::Closed => self.gone(),
            _ => CallError::Stalled,
        }
    }

    fn lock(&self) -> MutexGuard<'_, ResponseWaiters> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct ForgetOnDrop<'a> {
    rpc: &'a RpcClient,
    id: u64,
}

impl Drop for ForgetOnDrop<'_> {
    fn drop(&mut self) {
        self.rpc.take(self.id);
    }
}

fn unreadable(method: &'static str, reason: &serde_json::Error) -> CallError {
    CallError::Unreadable { method, reason: reason.to_string() }
}
