//! A WebSocket to the server: what a page has, without the page.

use futures_util::{SinkExt, StreamExt};
use protocol::{ClientMessage, ServerFrame, ServerMessage};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, HeaderValue};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::Server;
use crate::commands::Failure;

/// The history of a session comes in one message.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// How growing texts are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The whole text each time: the contract that is documented for scripts.
    Plain,
    /// Only what was added.
    View,
}

#[derive(Debug)]
pub(crate) struct Window {
    socket: WebSocketStream<TcpStream>,
    address: String,
    requests: u64,
}

/// A frame, as text and parsed.
#[derive(Debug)]
pub(crate) struct ReceivedFrame {
    pub(crate) text: Utf8Bytes,
    pub(crate) frame: ServerFrame,
}

impl Server {
    pub(crate) async fn window(&self, kind: Kind) -> Result<Window, Failure> {
        let path = match kind {
            Kind::Plain => "/ws",
            Kind::View => "/ws?view=1",
        };
        let mut request =
            format!("ws://{}{path}", self.authority()).into_client_request().map_err(|error| self.lost(&error))?;
        if let Some(token) = &self.token {
            let bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|error| self.lost(&error))?;
            request.headers_mut().insert(AUTHORIZATION, bearer);
        }
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        match client_async_with_config(request, self.connect().await?, Some(config)).await {
            Ok((socket, _)) => Ok(Window { socket, address: self.address.clone(), requests: 0 }),
            Err(Error::Http(response)) if response.status().as_u16() == 403 => Err(self.refused()),
            Err(Error::Http(response)) => Err(self.lost(&format!("it answered with status {}", response.status()))),
            Err(error) => Err(self.lost(&error)),
        }
    }
}

impl Window {
    /// Sends a request without waiting. Returns the `requestId` that the answer will repeat.
    pub(crate) async fn ask(&mut self, message: &ClientMessage) -> Result<String, Failure> {
        self.requests += 1;
        let id = format!("c{}", self.requests);
        let mut json = serde_json::to_value(message).map_err(|error| self.lost(&error.to_string()))?;
        json["requestId"] = Value::from(id.as_str());
        match self.socket.send(Message::text(json.to_string())).await {
            Ok(()) => Ok(id),
            Err(error) => Err(self.lost(&error.to_string())),
        }
    }

    /// Sends a request and waits for the answer; frames before it are skipped.
    pub(crate) async fn call(&mut self, message: &ClientMessage) -> Result<ReceivedFrame, Failure> {
        let id = self.ask(message).await?;
        loop {
            let received = self.next().await?;
            if received.frame.request_id.as_deref() != Some(&id) {
                continue;
            }
            return match received.frame.message {
                ServerMessage::Error(error) => Err(error.into()),
                _ => Ok(received),
            };
        }
    }

    /// The next frame we understand. A newer server may send others. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<ReceivedFrame, Failure> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    if let Ok(frame) = serde_json::from_str(&text) {
                        return Ok(ReceivedFrame { text, frame });
                    }
                }
                Some(Ok(Message::Close(frame))) => {
                    let reason = frame.map(|frame| frame.reason.to_string()).unwrap_or_default();
                    return Err(self.lost(if reason.is_empty() { "it closed the connection" } else { &reason }));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(self.lost(&error.to_string())),
                None => return Err(self.lost("it closed the connection")),
            }
        }
    }

    fn lost(&self, reason: &str) -> Failure {
        Failure::new("CONNECTION_LOST", format!("The connection to Liminal Builder at {} is lost.", self.address))
            .with_detail(reason)
            .with_exit(crate::commands::Exit::NoServer)
    }
}
