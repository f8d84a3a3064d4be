//! A model server on loopback for real agent programs: the text of the prompt decides the answer.
//!
//! Comes in: the model API calls of an agent. Goes out: the answer its last prompt asks for, step by step (see
//! [`Script`]). One module per API turns steps into that API's events; waiting, gates and broken connections are
//! here. Kept out: any understanding of language.

mod anthropic;
mod openai;
mod script;

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use script::{Script, Step, ToolStep};

/// The text before a cut has to be sent first.
const BEFORE_CUT: Duration = Duration::from_millis(100);

/// A running server. It stops when this is dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    stage: ModelState,
    _server: JoinSet<()>,
}

impl ScriptedModel {
    /// Listens on a free port of 127.0.0.1.
    pub async fn start() -> anyhow::Result<Self> {
        Self::listen(0).await
    }

    pub async fn listen(port: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.context("could not listen on loopback")?;
        let address = listener.local_addr()?;
        let stage = ModelState::default();
        let routes = router(stage.clone());
        let mut server = JoinSet::new();
        server.spawn(async move {
            let Err(error) = axum::serve(listener, routes).await else { return };
            eprintln!("scripted-model stopped: {error}");
        });
        Ok(Self { address, stage, _server: server })
    }

    /// What an agent takes as the base address of its model API.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets every answer go on that holds at this gate, now or later.
    pub fn release(&self, gate: &str) {
        self.stage.release(gate);
    }

    /// Waits until an answer has come to this gate.
    pub async fn held(&self, gate: &str) {
        self.stage.held(gate).await;
    }

    /// How many model calls were answered so far.
    pub fn calls(&self) -> usize {
        self.stage.lock().calls
    }

    /// Never ends, unless the server does.
    pub async fn run(mut self) {
        self._server.join_next().await;
    }
}

fn router(stage: ModelState) -> Router {
    Router::new()
        .route("/", get(|| async { "scripted-model" }))
        .route("/gates/{gate}/release", post(release))
        .merge(anthropic::routes())
        .merge(openai::routes())
        .with_state(stage)
}

async fn release(State(stage): State<ModelState>, Path(gate): Path<String>) -> StatusCode {
    stage.release(&gate);
    StatusCode::NO_CONTENT
}

/// What all answers share: gates and counters.
#[derive(Clone, Debug, Default)]
struct ModelState(Arc<Mutex<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    gates: HashMap<String, Gate>,
    /// How often each failing prompt has failed.
    failures: HashMap<String, u32>,
    calls: usize,
}

#[derive(Debug)]
struct Gate {
    open: watch::Sender<bool>,
    reached: watch::Sender<bool>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { open: watch::Sender::new(false), reached: watch::Sender::new(false) }
    }
}

impl ModelState {
    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self, gate: &str) {
        self.lock().gates.entry(gate.into()).or_default().open.send_replace(true);
    }

    async fn held(&self, gate: &str) {
        let mut reached = self.lock().gates.entry(gate.into()).or_default().reached.subscribe();
        // The sender lives in the map as long as the server does.
        let _ = reached.wait_for(|reached| *reached).await;
    }

    async fn hold(&self, gate: &str) {
        let mut open = {
            let mut shared = self.lock();
            let gate = shared.gates.entry(gate.into()).or_default();
            gate.reached.send_replace(true);
            gate.open.subscribe()
        };
        let _ = open.wait_for(|open| *open).await;
    }

    /// Whether a prompt that fails `times` times (for ever if none) should fail once more.
    fn fails(&self, prompt: &str, times: Option<u32>) -> bool {
        let mut shared = self.lock();
        let failed = shared.failures.entry(prompt.into()).or_default();
        *failed += 1;
        times.is_none_or(|times| *failed <= times)
    }

    fn count_call(&self) {
        self.lock().calls += 1;
    }
}

/// One piece of a streamed answer, ready to be sent.
#[derive(Debug)]
enum Piece {
    Data(String),
    Wait(Duration),
    Hold(String),
    /// The connection breaks here, without a proper end.
    Cut,
}

/// Sends the pieces in order as one response body.
fn body(stage: ModelState, pieces: Vec<Piece>) -> Body {
    let steps = futures_util::stream::unfold((stage, pieces.into_iter()), |(stage, mut pieces)| async move {
        loop {
            match pieces.next()? {
                Piece::Data(text) => return Some((Ok(Bytes::from(text)), (stage, pieces))),
                Piece::Wait(time) => tokio::time::sleep(time).await,
                Piece::Hold(gate) => stage.hold(&gate).await,
                Piece::Cut => return Some((Err(std::io::Error::other("cut on purpose")), (stage, pieces))),
            }
        }
    });
    Body::from_stream(steps)
}

/// One server-sent event.
fn event(name: &str, data: &serde_json::Value) -> Piece {
    Piece::Data(format!("event: {name}\ndata: {data}\n\n"))
}

/// Splits a text into the pieces a model would stream: words with the white space before them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let word = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        let end = rest[word..].find(char::is_whitespace).map_or(rest.len(), |at| word + at);
        let (token, after) = rest.split_at(end);
        rest = after;
        (!token.is_empty()).then_some(token)
    })
}
