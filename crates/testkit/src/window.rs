//! A WebSocket client that speaks the protocol's types.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use protocol::{ClientMessage, ErrorMessage, ServerFrame, ServerMessage};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::within;

/// One open window.
#[derive(Debug)]
pub struct Window {
    socket: WebSocketStream<TcpStream>,
    requests: u64,
    bytes_read: usize,
    frames_read: usize,
}

/// The server refused: with this status and body.
#[derive(Debug)]
pub struct HandshakeRefused {
    pub status: u16,
    pub body: String,
}

/// Opens a WebSocket with these headers besides its own; a `host` among them replaces the real one.
///
/// # Panics
/// When the server cannot be reached or does not speak HTTP.
pub async fn connect(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<Window, Box<HandshakeRefused>> {
    let request = format!("ws://{address}{path}").into_client_request();
    let mut request = request.unwrap_or_else(|error| panic!("{path}: {error}"));
    for (name, value) in headers {
        let name: HeaderName = name.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        request.headers_mut().insert(name, HeaderValue::from_str(value).unwrap_or_else(|error| panic!("{error}")));
    }
    let opened = within("a WebSocket to open", async {
        let stream = TcpStream::connect(address).await.map_err(Error::Io)?;
        stream.set_nodelay(true).map_err(Error::Io)?;
        // A history is as long as it is.
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        client_async_with_config(request, stream, Some(config)).await
    });
    match opened.await {
        Ok((socket, _)) => Ok(Window { socket, requests: 0, bytes_read: 0, frames_read: 0 }),
        Err(Error::Http(response)) => {
            let status = response.status().as_u16();
            let body = response.into_body().unwrap_or_default();
            Err(Box::new(HandshakeRefused { status, body: String::from_utf8_lossy(&body).into_owned() }))
        }
        Err(error) => panic!("no WebSocket at {path}: {error}"),
    }
}

impl Window {
    /// Asks and does not wait. Returns the `requestId` that the answer will repeat.
    pub async fn ask(&mut self, message: &ClientMessage) -> String {
        self.requests += 1;
        let id = format!("r{}", self.requests);
        let mut json = serde_json::to_value(message).unwrap_or_else(|error| panic!("{error}"));
        json["requestId"] = Value::from(id.clone());
        self.send(Message::text(json.to_string())).await;
        id
    }

    /// Asks a server that may be gone. None if it is.
    pub async fn try_ask(&mut self, message: &ClientMessage) -> Option<String> {
        self.requests += 1;
        let id = format!("r{}", self.requests);
        let mut json = serde_json::to_value(message).unwrap_or_else(|error| panic!("{error}"));
        json["requestId"] = Value::from(id.clone());
        let written = within("a frame to be written", self.socket.send(Message::text(json.to_string()))).await;
        written.is_ok().then_some(id)
    }

    /// Asks and waits for the answer; what comes before it is passed over.
    ///
    /// # Panics
    /// When the answer is an error.
    pub async fn call(&mut self, message: &ClientMessage) -> ServerMessage {
        match self.try_call(message).await {
            Ok(answer) => answer,
            Err(error) => panic!("{}: {error:?}", message.wire_type()),
        }
    }

    /// Asks and waits for the answer or the error; what comes before it is passed over.
    pub async fn try_call(&mut self, message: &ClientMessage) -> Result<ServerMessage, ErrorMessage> {
        let id = self.ask(message).await;
        let answer = self.until(message.wire_type(), |frame| frame.request_id.as_deref() == Some(&id)).await;
        match answer.message {
            ServerMessage::Error(error) => Err(error),
            answer => Ok(answer),
        }
    }

    /// The next frame that is the one meant by `what`; the others are passed over.
    pub async fn until(&mut self, what: &str, is_it: impl Fn(&ServerFrame) -> bool) -> ServerFrame {
        within(what, async {
            loop {
                let frame = self.next_frame().await;
                if is_it(&frame) {
                    return frame;
                }
            }
        })
        .await
    }

    /// # Panics
    /// When the server closes the window instead, or sends what is not in the protocol.
    pub async fn next_frame(&mut self) -> ServerFrame {
        self.next_or_close().await.unwrap_or_else(|close| panic!("the window was closed: {close:?}"))
    }

    /// The next frame, or the close frame that the server ends this window with.
    pub async fn next_or_close(&mut self) -> Result<ServerFrame, Option<CloseFrame>> {
        let text = within("a frame", self.next_text()).await?;
        Ok(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}")))
    }

    /// The close frame the server ends this window with, once all before it has been read.
    pub async fn closed(&mut self) -> Option<CloseFrame> {
        within("the window to be closed", async {
            loop {
                if let Err(close) = self.next_text().await {
                    return close;
                }
            }
        })
        .await
    }

    /// For frames that are in no protocol.
    pub async fn send(&mut self, message: Message) {
        within("a frame to be written", self.socket.send(message))
            .await
            .unwrap_or_else(|error| panic!("could not write: {error}"));
    }

    /// Bytes of text frames read so far.
    pub fn bytes_read(&self) -> usize {
        self.bytes_read
    }

    pub fn frames_read(&self) -> usize {
        self.frames_read
    }

    /// Gives the connection up without a word.
    pub fn into_stream(self) -> TcpStream {
        self.socket.into_inner()
    }

    async fn next_text(&mut self) -> Result<String, Option<CloseFrame>> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    self.bytes_read += text.len();
                    self.frames_read += 1;
                    return Ok(text.to_string());
                }
                Some(Ok(Message::Close(frame))) => return Err(frame),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(None),
            }
        }
    }
}
