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
    /// The agent is gone; the text says how.
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
        /// With the answer to `session/load` a past has been told.
        told: Option<DropGuard>,
    },
}

#[derive(Debug)]
pub(crate) struct RpcClient {
    writer: LineWriter,
    next_id: AtomicU64,
    waiting: Mutex<Waiting>,
    /// The pasts that are being told, by session; cancelled when they are, or the agent is gone.
    telling: Mutex<HashMap<String, CancellationToken>>,
}

#[derive(Debug)]
enum Waiting {
    Open(HashMap<u64, ResponseWaiter>),
    Closed(String),
}

impl RpcClient {
    pub(crate) fn new(writer: LineWriter) -> Self {
        let waiting = Mutex::new(Waiting::Open(HashMap::new()));
        Self { writer, next_id: AtomicU64::new(1), waiting, telling: Mutex::default() }
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
        let _forget = Forget { rpc: self, id };
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
        self.ask_for(method, params, ResponseWaiter::Session { link, kind, told: None })
    }

    /// The same for the past of a session, which [`Self::history_sent`] can wait for, whoever asked.
    pub(crate) fn ask_for_history(
        &self,
        session: &str,
        params: &impl Serialize,
        link: SessionLink,
    ) -> Result<(), CallError> {
        let told = CancellationToken::new();
        let mut telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        telling.retain(|_, told| !told.is_cancelled());
        telling.insert(session.to_owned(), told.clone());
        drop(telling);
        let waiter = ResponseWaiter::Session { link, kind: RequestKind::Attach(AttachRequest::Load), told: Some(told.drop_guard()) };
        self.ask_for("session/load", params, waiter)
    }

    /// Waits until the agent does not tell the past of this session any more. What it tells of one that was let go of would
    /// be taken for a part of the next.
    pub(crate) async fn history_sent(&self, session: &str, within: Duration) {
        let told = self.telling.lock().unwrap_or_else(PoisonError::into_inner).get(session).cloned();
        if let Some(told) = told {
            let _ = tokio::time::timeout(within, told.cancelled()).await;
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

    /// Says something that has no answer. What an agent that does not read misses, it misses.
    pub(crate) fn notify(&self, method: &str, params: &impl Serialize) {
        match wire::notification(method, params).map(|line| self.writer.try_send(line)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, method, "not said to the agent"),
            Err(error) => tracing::error!(%error, method, "could not be written"),
        }
    }

    /// Answers a request of the agent, under the id it gave, as soon as there is room: an answer may be a whole file, and
    /// an agent that asked for two of them reads one after the other.
    pub(crate) async fn answer_in_time(&self, id: &RawValue, outcome: &Result<impl Serialize, RpcError>) {
        let line = match wire::response(id, outcome) {
            Ok(line) => line,
            Err(error) => return tracing::error!(%error, "an answer could not be written"),
        };
        if let Err(error) = self.writer.send(line).await {
            tracing::debug!(%error, "an answer did not reach the agent");
        }
    }

    /// Answers a request of the agent with few words and without waiting.
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
            Waiting::Open(waiters) => waiters.remove(&id),
            Waiting::Closed(_) => None,
        }
    }

    /// The agent is gone. Gives back all who wait; who asks from now on hears the reason at once.
    pub(crate) fn close(&self, reason: &str) -> Vec<ResponseWaiter> {
        self.writer.close();
        match std::mem::replace(&mut *self.lock(), Waiting::Closed(reason.to_owned())) {
            Waiting::Open(waiters) => waiters.into_values().collect(),
            Waiting::Closed(_) => Vec::new(),
        }
    }

    /// Until the agent takes no more input.
    pub(crate) async fn input_closed(&self) {
        self.writer.closed().await;
    }

    /// Why the agent is gone, if it is.
    pub(crate) fn closed(&self) -> Option<String> {
        match &*self.lock() {
            Waiting::Closed(reason) => Some(reason.clone()),
            Waiting::Open(_) => None,
        }
    }

    fn wait(&self, waiter: ResponseWaiter) -> Result<u64, CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        match &mut *self.lock() {
            Waiting::Open(waiters) => {
                waiters.insert(id, waiter);
                Ok(id)
            }
            Waiting::Closed(reason) => Err(CallError::Gone(reason.clone())),
        }
    }

    fn gone(&self) -> CallError {
        match &*self.lock() {
            Waiting::Closed(reason) => CallError::Gone(reason.clone()),
            Waiting::Open(_) => CallError::Gone("it takes no more input".into()),
        }
    }

    fn not_sent(&self, error: SendError) -> CallError {
        match error {
            SendError::Closed => self.gone(),
            _ => CallError::Stalled,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Forget<'a> {
    rpc: &'a RpcClient,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.rpc.take(self.id);
    }
}

fn unreadable(method: &'static str, reason: &serde_json::Error) -> CallError {
    CallError::Unreadable { method, reason: reason.to_string() }
}
