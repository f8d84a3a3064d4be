//! What an agent requests besides permission: files and terminals. Each request runs in a task of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol_schema::v1 as acp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

use super::connection::{Connection, refuse};
use super::router::{Router, SessionLink};
use super::wire::{self, RpcError};
use super::{files, terminals};

/// What one agent may have us do at once; a terminal counts as long as its command runs.
const RUNNING_MAX: usize = 256;
/// Long answers in hand at once, a file or a command's output, each until it is on its way to the agent.
const LONG_ANSWERS_MAX: usize = 4;
/// What files to be written may weigh in all. While there is no room the agent is not read.
const WRITES_BYTES_MAX: usize = 32 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Requests {
    connection: Arc<Connection>,
    tasks: JoinSet<()>,
    /// Requests that have no answer yet, by the id as the agent wrote it.
    open: Arc<Mutex<HashMap<String, AbortHandle>>>,
    long_answers: Arc<Semaphore>,
    writes: Arc<Semaphore>,
}

/// The duty to answer one request, once.
struct PendingAnswer {
    connection: Arc<Connection>,
    id: Box<RawValue>,
    open: Arc<Mutex<HashMap<String, AbortHandle>>>,
}

impl Requests {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self {
            connection,
            tasks: JoinSet::new(),
            open: Arc::default(),
            long_answers: Arc::new(Semaphore::new(LONG_ANSWERS_MAX)),
            writes: Arc::new(Semaphore::new(WRITES_BYTES_MAX)),
        }
    }

    /// Waits for a task to end and forgets it. Without any it waits for ever. Cancel safe.
    pub(crate) async fn reap(&mut self) {
        match self.tasks.join_next().await {
            Some(Err(error)) if error.is_panic() => tracing::error!(%error, "a request of the agent failed"),
            Some(_) => {}
            None => std::future::pending().await,
        }
    }

    /// The agent no longer wants an answer.
    pub(crate) fn cancel(&mut self, params: &str) {
        #[derive(serde::Deserialize)]
        struct Cancel<'a> {
            #[serde(rename = "requestId", borrow)]
            request_id: &'a RawValue,
        }
        let Ok(cancel) = serde_json::from_str::<Cancel<'_>>(params) else { return };
        let task = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(cancel.request_id.get());
        if let Some(task) = task {
            task.abort();
            self.connection.rpc.answer(cancel.request_id, &refuse(wire::REQUEST_CANCELLED, "cancelled"));
        }
    }

    pub(crate) async fn handle(&mut self, id: &RawValue, method: &str, params: &str, router: &Router) {
        if self.tasks.len() >= RUNNING_MAX {
            return self.connection.rpc.answer(id, &refuse(wire::INTERNAL_ERROR, "too many requests at once"));
        }
        let (id, params) = (id.to_owned(), params.to_owned());
        let long_answers = Arc::clone(&self.long_answers);
        match method {
            "fs/read_text_file" => self.run(id, &params, router, |request: acp::ReadTextFileRequest, link, reply| {
                let work = move || files::read(&request, &link.directory).map(acp::ReadTextFileResponse::new);
                file(reply, long_answers.acquire_owned(), work)
            }),
            "fs/write_text_file" => {
                let share = u32::try_from(params.len().min(WRITES_BYTES_MAX)).unwrap_or(u32::MAX);
                let room = Arc::clone(&self.writes).acquire_many_owned(share).await;
                self.run(id, &params, router, |request: acp::WriteTextFileRequest, link, reply| {
                    let work =
                        move || files::write(&request, &link.directory).map(|()| acp::WriteTextFileResponse::new());
                    file(reply, std::future::ready(room), work)
                });
            }
            "terminal/create" => self.run(id, &params, router, create),
            "terminal/output" => {
                self.run(id, &params, router, |request: acp::TerminalOutputRequest, _, reply| async move {
                    let _room = long_answers.acquire_owned().await;
                    match reply.connection.terminals.get(&request.session_id.0, &request.terminal_id.0) {
                        Some(terminal) => reply.give(Ok(terminal.output())).await,
                        None => reply.no_such_terminal().await,
                    }
                })
            }
            "terminal/wait_for_exit" => {
                self.run(id, &params, router, |request: acp::WaitForTerminalExitRequest, _, reply| async move {
                    match reply.connection.terminals.get(&request.session_id.0, &request.terminal_id.0) {
                        Some(terminal) => {
                            reply.give(Ok(acp::WaitForTerminalExitResponse::new(terminal.wait().await))).await;
                        }
                        None => reply.no_such_terminal().await,
                    }
                });
            }
            "terminal/kill" => {
                self.run(id, &params, router, |request: acp::KillTerminalRequest, _, reply| async move {
                    match reply.connection.terminals.get(&request.session_id.0, &request.terminal_id.0) {
                        Some(terminal) => {
                            terminal.kill().await;
                            reply.give(Ok(acp::KillTerminalResponse::new())).await;
                        }
                        None => reply.no_such_terminal().await,
                    }
                })
            }
            "terminal/release" => {
                self.run(id, &params, router, |request: acp::ReleaseTerminalRequest, _, reply| async move {
                    match reply.connection.terminals.release(&request.session_id.0, &request.terminal_id.0) {
                        Some(terminal) => {
                            terminal.kill().await;
                            reply.give(Ok(acp::ReleaseTerminalResponse::new())).await;
                        }
                        None => reply.no_such_terminal().await,
                    }
                })
            }
            _ => {
                tracing::debug!(method, "request for something we do not offer");
                let error = RpcError {
                    data: Some(serde_json::json!({ "method": method })),
                    ..RpcError::new(wire::METHOD_NOT_FOUND, format!("Method not found: {method}"))
                };
                self.connection.rpc.answer(&id, &Err::<(), _>(error));
            }
        }
    }

    fn run<P, F, W>(&mut self, id: Box<RawValue>, params: &str, router: &Router, work: W)
    where
        P: DeserializeOwned,
        F: Future<Output = ()> + Send + 'static,
        W: FnOnce(P, SessionLink, PendingAnswer) -> F,
    {
        #[derive(serde::Deserialize)]
        struct Address {
            #[serde(rename = "sessionId")]
            session_id: String,
        }
        let rpc = &self.connection.rpc;
        let request = match serde_json::from_str::<P>(params) {
            Ok(request) => request,
            Err(error) => return rpc.answer(&id, &refuse(wire::INVALID_PARAMS, &error.to_string())),
        };
        let address = serde_json::from_str::<Address>(params).ok();
        let Some(link) = address.and_then(|address| router.get(&address.session_id)) else {
            return rpc.answer(&id, &refuse(wire::INVALID_PARAMS, "unknown session"));
        };
        let key = id.get().to_owned();
        let reply = PendingAnswer { connection: Arc::clone(&self.connection), id, open: Arc::clone(&self.open) };
        // Held until the task is entered: one that answers at once must find itself there.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let task = self.tasks.spawn(work(request, link, reply));
        open.insert(key, task);
    }
}

impl PendingAnswer {
    async fn give(&self, outcome: Result<impl Serialize, RpcError>) {
        let was_open = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(self.id.get()).is_some();
        if was_open {
            self.connection.rpc.answer_in_time(&self.id, &outcome).await;
        }
    }

    async fn refuse(&self, code: i64, message: &str) {
        self.give(refuse(code, message)).await;
    }

    async fn no_such_terminal(&self) {
        self.refuse(wire::INVALID_PARAMS, "no such terminal").await;
    }
}

/// File work blocks, so it is done where that is allowed, once there is room for it and until the answer is on its way.
async fn file<R: Serialize + Send + 'static, P>(
    reply: PendingAnswer,
    room: impl Future<Output = P>,
    work: impl FnOnce() -> Result<R, files::FileError> + Send + 'static,
) {
    let _room = room.await;
    let outcome = match tokio::task::spawn_blocking(work).await {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => Err(RpcError::new(wire::INVALID_PARAMS, error.to_string())),
        Err(error) => Err(RpcError::new(wire::INTERNAL_ERROR, error.to_string())),
    };
    reply.give(outcome).await;
}

/// Starts a command and stays with it until it ends. Its place is taken before anything else of the agent is read: the
/// end of its turn may be the next line.
fn create(
    request: acp::CreateTerminalRequest,
    link: SessionLink,
    reply: PendingAnswer,
) -> impl Future<Output = ()> + Send {
    let connection = Arc::clone(&reply.connection);
    let starting = connection.terminals.reserve(&request.session_id.0);
    async move {
        let started = match starting {
            Ok(starting) => starting.start(request, &link, &connection.command).await,
            Err(full) => Err(full),
        };
        match started {
            Ok((id, terminal, reader)) => {
                reply.give(Ok(acp::CreateTerminalResponse::new(id.clone()))).await;
                drop((reply, connection));
                terminals::pump(id, terminal, reader, link).await;
            }
            Err(message) => reply.refuse(wire::INTERNAL_ERROR, &message).await,
        }
    }
}
