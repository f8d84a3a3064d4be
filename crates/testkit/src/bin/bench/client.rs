//! The two ends that are compared: a window of the product, and a client of the bare relay. Both answer the same calls.

use std::collections::HashMap;

use anyhow::{Context, bail, ensure};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::clock::nanoseconds;
use crate::server::{Relay, Server};

/// What was read while turns ran.
#[derive(Debug, Default)]
pub(crate) struct ReceivedFrame {
    /// Every frame, with the time at which it was there.
    frames: Vec<(u64, Utf8Bytes)>,
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    pub(crate) bytes: usize,
}

impl ReceivedFrame {
    pub(crate) fn seconds(&self) -> f64 {
        (self.ended - self.begun) as f64 / 1e9
    }
}

/// A window of the product, as our own page opens it.
#[derive(Debug)]
pub(crate) struct Window {
    socket: WebSocketStream<TcpStream>,
    project: String,
    asked: u64,
}

impl Window {
    pub(crate) async fn open(server: &Server) -> anyhow::Result<Self> {
        let mut request = format!("ws://{}/ws?view=1", server.address).into_client_request()?;
        request.headers_mut().insert("authorization", format!("Bearer {}", server.token).parse()?);
        let socket = connect(request, &server.address).await?;
        let mut window = Self { socket, project: String::new(), asked: 0 };
        let listed = window.call(json!({"type": "project:list"})).await?;
        let project = match &listed["projects"][0]["id"] {
            Value::Null => {
                let added = window.call(json!({"type": "project:add", "path": server.home.path()})).await?;
                added["project"]["id"].clone()
            }
            known => known.clone(),
        };
        window.project = project.as_str().context("no project")?.to_owned();
        Ok(window)
    }

    pub(crate) async fn create(&mut self) -> anyhow::Result<String> {
        let create = json!({"type": "session:create", "projectId": self.project, "cliType": "codex"});
        let created = self.call(create).await?;
        let session = created["sessionId"].as_str().context("no session")?.to_owned();
        self.call(json!({"type": "session:open", "sessionId": session})).await?;
        Ok(session)
    }

    /// Sends the same to every session at once and reads until every turn is over.
    pub(crate) async fn converse(&mut self, sessions: &[String], content: &str) -> anyhow::Result<ReceivedFrame> {
        let mut received = ReceivedFrame { begun: nanoseconds(), ..ReceivedFrame::default() };
        for session in sessions {
            let send = json!({"type": "session:send", "sessionId": session, "content": content});
            self.socket.feed(Message::text(send.to_string())).await?;
        }
        self.socket.flush().await?;
        let mut running = sessions.len();
        while running > 0 {
            let (at, text) = next(&mut self.socket).await?;
            received.bytes += text.len();
            ensure!(!text.contains(r#""turn_error""#) && !text.starts_with(r#"{"type":"error""#), "{text}");
            if text.contains(r#""turn_complete""#) {
                running -= 1;
            }
            received.frames.push((at, text));
        }
        received.ended = nanoseconds();
        Ok(received)
    }

    pub(crate) async fn call(&mut self, message: Value) -> anyhow::Result<Value> {
        Ok(self.timed_call(message).await?.0)
    }

    /// The answer, and the milliseconds from the request to the answer at the socket.
    pub(crate) async fn timed_call(&mut self, mut message: Value) -> anyhow::Result<(Value, f64)> {
        self.asked += 1;
        let id = format!("b{}", self.asked);
        message["requestId"] = id.as_str().into();
        let begun = nanoseconds();
        self.socket.send(Message::text(message.to_string())).await?;
        loop {
            let (at, text) = next(&mut self.socket).await?;
            if !text.contains(&id) {
                continue;
            }
            let answer: Value = serde_json::from_str(&text)?;
            if answer["requestId"] == id.as_str() {
                ensure!(answer["type"] != "error", "{text}");
                return Ok((answer, at.saturating_sub(begun) as f64 / 1e6));
            }
        }
    }
}

/// A client of the bare relay: it speaks to the agent itself.
#[derive(Debug)]
pub(crate) struct Bare {
    socket: WebSocketStream<TcpStream>,
    asked: u64,
}

impl Bare {
    pub(crate) async fn open(relay: &Relay) -> anyhow::Result<Self> {
        let request = format!("ws://{}/", relay.address).into_client_request()?;
        let mut bare = Self { socket: connect(request, &relay.address).await?, asked: 0 };
        bare.call("initialize", json!({"protocolVersion": 1})).await?;
        Ok(bare)
    }

    pub(crate) async fn create(&mut self) -> anyhow::Result<String> {
        let created = self.call("session/new", json!({"cwd": "/", "mcpServers": []})).await?;
        Ok(created["result"]["sessionId"].as_str().context("no session")?.to_owned())
    }

    pub(crate) async fn converse(&mut self, sessions: &[String], content: &str) -> anyhow::Result<ReceivedFrame> {
        let mut received = ReceivedFrame { begun: nanoseconds(), ..ReceivedFrame::default() };
        for session in sessions {
            let prompt = json!([{"type": "text", "text": content}]);
            let line = self.request("session/prompt", json!({"sessionId": session, "prompt": prompt}));
            self.socket.feed(Message::text(line)).await?;
        }
        self.socket.flush().await?;
        let mut running = sessions.len();
        while running > 0 {
            let (at, text) = next(&mut self.socket).await?;
            received.bytes += text.len();
            if text.contains(r#""stopReason""#) {
                running -= 1;
            }
            received.frames.push((at, text));
        }
        received.ended = nanoseconds();
        Ok(received)
    }

    async fn call(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        let line = self.request(method, params);
        self.socket.send(Message::text(line)).await?;
        Ok(serde_json::from_str(&next(&mut self.socket).await?.1)?)
    }

    fn request(&mut self, method: &str, params: Value) -> String {
        self.asked += 1;
        json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}).to_string()
    }
}

async fn connect(
    request: tokio_tungstenite::tungstenite::http::Request<()>,
    address: &str,
) -> anyhow::Result<WebSocketStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(client_async(request, stream).await?.0)
}

async fn next(socket: &mut WebSocketStream<TcpStream>) -> anyhow::Result<(u64, Utf8Bytes)> {
    loop {
        match socket.next().await.context("the socket was closed")?? {
            Message::Text(text) => return Ok((nanoseconds(), text)),
            Message::Close(frame) => bail!("the socket was closed: {frame:?}"),
            _ => {}
        }
    }
}

/// The way of every piece from its line to its frame, in milliseconds. Fails unless each session's pieces came in order,
/// each once.
pub(crate) fn latencies(received: &ReceivedFrame, sessions: usize, pieces: usize) -> anyhow::Result<Vec<f64>> {
    let mut next_piece: HashMap<String, usize> = HashMap::new();
    let mut latencies = Vec::with_capacity(sessions * pieces);
    for (at, text) in received.frames.iter().filter(|(_, text)| text.contains('@')) {
        let frame: Value = serde_json::from_str(text)?;
        // The product's frame, or else the agent's own line.
        let (session, content) = match frame["payload"]["content"].as_str() {
            Some(content) => (&frame["sessionId"], content),
            None => {
                let params = &frame["params"];
                (&params["sessionId"], params["update"]["content"]["text"].as_str().unwrap_or_default())
            }
        };
        let expected = next_piece.entry(session.as_str().unwrap_or_default().to_owned()).or_default();
        for piece in content.split_ascii_whitespace() {
            let Some((number, stamp)) = piece.split_once('@') else { continue };
            let (number, stamp): (usize, u64) = (number.parse()?, u64::from_str_radix(stamp, 16)?);
            ensure!(number == *expected, "piece {number} came when {expected} was due");
            *expected += 1;
            latencies.push(at.saturating_sub(stamp) as f64 / 1e6);
        }
    }
    ensure!(next_piece.len() == sessions, "{} of {sessions} sessions spoke", next_piece.len());
    ensure!(latencies.len() == sessions * pieces, "{} of {} pieces came", latencies.len(), sessions * pieces);
    Ok(latencies)
}
