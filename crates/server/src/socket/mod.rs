//! `/ws`: one window of one browser.
//!
//! Comes in: an upgrade request and then text frames, each parsed here. Goes out: the hub's frames for this window, in
//! order. Reading and writing run concurrently, so that a cancel is received while a long answer is being written. Kept
//! out: the meaning of a message, and the queue for a slow window: both belong to the hub.

mod flow;
mod frame_limit;
mod progress;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt, SinkExt, StreamExt};
use hyper_util::rt::TokioIo;
use protocol::{ClientFrame, ErrorCode, InvalidMessage};
use sessions::{Frame, Frames, Window, WindowKind};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame as RawFrame};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_util::bytes::Bytes;

use crate::access::Client;
use crate::browsers::BrowserAccess;
use crate::error::Failure;
use crate::{App, Patience};
use flow::Flow;
use frame_limit::{FrameLimit, NOTICE};
use progress::{Progress, Written};

/// The longest message a client may send; a longer one is answered with an error.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// The time for the client to read the remaining frames when the server ends.
const LAST_FRAMES_TIME_MAX: Duration = Duration::from_millis(500);
/// The time for the client to answer our close.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(1);
/// Frames written with one flush when that many are ready.
const BATCH_FRAMES_MAX: usize = 64;
/// A longer message is sent in fragments of this size. The library copies each frame into a buffer of the window, so a
/// single frame would cost every slow window a copy of the whole message; this way its bytes are shared.
const FRAGMENT_BYTES: usize = 64 * 1024;
/// Client messages are small; the read buffer is allocated at once for each window.
const READ_BUFFER_BYTES: usize = 8 * 1024;

type Socket = WebSocketStream<FrameLimit<Progress<TokioIo<hyper::upgrade::Upgraded>>>>;

pub(crate) async fn upgrade(State(app): State<App>, mut request: Request) -> Response {
    let accept = match accept_key(request.method(), request.headers()) {
        Ok(accept) => accept,
        Err(failure) => return ([(header::UPGRADE, "websocket")], failure).into_response(),
    };
    if app.sockets.is_closed() || app.stop.is_cancelled() || app.sockets.len() >= app.limits.windows {
        return Failure::new(ErrorCode::InternalError, "Too many windows are open, or the server is stopping.")
            .with_status(StatusCode::SERVICE_UNAVAILABLE)
            .into_response();
    }
    let kind = if has_view(request.uri().query()) { WindowKind::View } else { WindowKind::Plain };
    let access = match request.extensions().get::<Client>() {
        Some(Client::Browser(access)) => Some(Arc::clone(access)),
        _ => None,
    };
    let upgraded = hyper::upgrade::on(&mut request);
    let (hub, patience) = (app.hub, app.patience);
    app.sockets.spawn(async move {
        match upgraded.await {
            Ok(upgraded) => {
                let written = Written::default();
                let io = Progress::new(TokioIo::new(upgraded), Arc::clone(&written));
                let io = FrameLimit::new(io, MESSAGE_BYTES_MAX);
                let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config())).await;
                let (window, frames) = hub.connect(kind);
                let end = revoked(access.as_deref());
                serve_window(socket, written, window, frames, patience, end).await;
            }
            Err(error) => tracing::debug!("a WebSocket failed before it was open: {error}"),
        }
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    response
}

/// The answer to the client's key, if this is the handshake of RFC 6455.
fn accept_key(method: &Method, headers: &HeaderMap) -> Result<HeaderValue, Failure> {
    let has = |name: header::HeaderName, token: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(token))
    };
    let refuse = |reason: &str| Failure::no_such(reason, StatusCode::UPGRADE_REQUIRED);
    if method != Method::GET || !has(header::CONNECTION, "upgrade") || !has(header::UPGRADE, "websocket") {
        return Err(refuse("This path takes WebSocket connections only."));
    }
    if !has(header::SEC_WEBSOCKET_VERSION, "13") {
        return Err(refuse("The WebSocket version must be 13."));
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).ok_or_else(|| refuse("Sec-WebSocket-Key is missing."))?;
    HeaderValue::from_str(&derive_accept_key(key.as_bytes())).map_err(|_| refuse("Sec-WebSocket-Key is not text."))
}

fn has_view(query: Option<&str>) -> bool {
    query.is_some_and(|query| query.split('&').any(|pair| pair == "view=1"))
}

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX))
}

/// Why a window's connection ends.
#[derive(Debug)]
enum End {
    /// Everything for this window has been written, or it did not read it in time.
    ServerStops,
    ClientLeft,
    ClientSilent,
    /// Its browser was revoked.
    Revoked,
    /// The hub has dropped the window; it may reconnect and gets a fresh snapshot.
    WindowDropped,
    Broken(Box<Error>),
}

async fn serve_window(
    socket: Socket,
    written: Written,
    window: Window,
    mut frames: Frames,
    patience: Patience,
    revoked: impl Future<Output = ()>,
) {
    let (mut sink, mut stream) = socket.split();
    let flow = Flow::new(written);
    let end = tokio::select! {
        () = revoked => End::Revoked,
        end = read(&mut stream, &window, &flow) => end,
        end = write(&mut sink, &window, &mut frames, &flow, patience.ping_every) => end,
        () = overdue(&window) => End::ServerStops,
        // A write that does not end must not keep a dropped window open.
        () = window.gone().cancelled() => End::WindowDropped,
        () = flow.silent_for(patience.silence_max) => End::ClientSilent,
    };
    drop(window);
    tracing::debug!(?end, "a window closed");
    let Some(farewell) = end.close_frame() else { return };
    let goodbye = async {
        sink.send(Message::Close(Some(farewell))).await?;
        while stream.next().await.transpose()?.is_some() {}
        Ok::<(), Error>(())
    };
    if let Ok(Err(error)) = tokio::time::timeout(CLOSE_TIME_MAX, goodbye).await {
        tracing::debug!("the client did not wait for the end: {error}");
    }
}

/// Never completes for a window that belongs to no browser.
async fn revoked(access: Option<&BrowserAccess>) {
    match access {
        Some(access) => access.revoked.cancelled().await,
        None => std::future::pending().await,
    }
}

/// The server ends, and the client had its time to read the remaining frames.
async fn overdue(window: &Window) {
    window.over().cancelled().await;
    tokio::time::sleep(LAST_FRAMES_TIME_MAX).await;
}

impl End {
    fn close_frame(&self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::ServerStops => (CloseCode::Away, "Liminal Builder is stopping"),
            Self::WindowDropped => (CloseCode::Again, "this window fell too far behind"),
            Self::Revoked => (CloseCode::Policy, "this browser was revoked"),
            Self::ClientSilent => (CloseCode::Policy, "no answer to pings"),
            Self::Broken(error) if matches!(**error, Error::Utf8(_)) => (CloseCode::Invalid, "text must be UTF-8"),
            Self::Broken(error) if matches!(**error, Error::Protocol(_) | Error::Capacity(_)) => {
                (CloseCode::Protocol, "not RFC 6455")
            }
            Self::Broken(_) | Self::ClientLeft => return None,
        };
        Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) })
    }
}

async fn read(stream: &mut SplitStream<Socket>, window: &Window, flow: &Flow) -> End {
    let mut was_too_big = false;
    loop {
        flow.may_read().await;
        let message = match stream.next().await {
            None => return End::ClientLeft,
            Some(Err(error)) => return End::Broken(Box::new(error)),
            Some(Ok(message)) => message,
        };
        flow.received();
        let parsed = match message {
            Message::Close(_) => return End::ClientLeft,
            Message::Pong(payload) => {
                was_too_big |= payload == NOTICE;
                continue;
            }
            Message::Ping(_) | Message::Frame(_) => continue, // The library has answered the ping.
            _ if std::mem::take(&mut was_too_big) => Err(whole(format!("longer than {MESSAGE_BYTES_MAX} bytes"))),
            Message::Binary(_) => Err(whole("binary frames are not read; send JSON as text".into())),
            Message::Text(text) => ClientFrame::parse(&text),
        };
        flow.request_read();
        match parsed {
            Ok(frame) => window.request(frame).await,
            Err(invalid) => window.reject(invalid),
        }
    }
}

fn whole(reason: String) -> InvalidMessage {
    InvalidMessage { request_id: None, field: String::new(), reason }
}

async fn write(
    sink: &mut SplitSink<Socket, Message>,
    window: &Window,
    frames: &mut Frames,
    flow: &Flow,
    ping_every: Duration,
) -> End {
    let mut ping = tokio::time::interval_at(tokio::time::Instant::now() + ping_every, ping_every);
    ping.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let written = tokio::select! {
            frame = frames.next() => match frame {
                Some(frame) => flow.during_write(write_batch(sink, frames, frame)).await,
                None if window.over().is_cancelled() => return End::ServerStops,
                None => return End::WindowDropped,
            },
            _ = ping.tick() => flow.during_write(sink.send(Message::Ping(Default::default()))).await,
        };
        if let Err(error) = written {
            return End::Broken(Box::new(error));
        }
    }
}

/// Writes all frames that are ready with one flush.
async fn write_batch(sink: &mut SplitSink<Socket, Message>, frames: &mut Frames, first: Frame) -> Result<(), Error> {
    feed(sink, first).await?;
    for _ in 1..BATCH_FRAMES_MAX {
        match frames.next().now_or_never() {
            Some(Some(frame)) => feed(sink, frame).await?,
            // Dropped or nothing more: the next iteration of the caller finds out which.
            Some(None) | None => break,
        }
    }
    sink.flush().await
}

/// Waits for space before each fragment, so that at most one of them is in the window's own buffer.
async fn feed(sink: &mut SplitSink<Socket, Message>, frame: Frame) -> Result<(), Error> {
    let text = Utf8Bytes::try_from(frame.into_bytes()).map_err(|error| Error::Utf8(error.to_string()))?;
    if text.len() <= FRAGMENT_BYTES {
        return sink.feed(Message::Text(text)).await;
    }
    for fragment in fragments(&text) {
        sink.feed(Message::Frame(fragment)).await?;
    }
    Ok(())
}

/// A message split into fragments of RFC 6455. No character is divided, for clients that look at each fragment.
fn fragments(text: &Utf8Bytes) -> impl Iterator<Item = RawFrame> {
    let bytes = Bytes::from(text.clone());
    let mut from = 0;
    std::iter::from_fn(move || {
        if from == text.len() {
            return None;
        }
        let to = text.floor_char_boundary(text.len().min(from + FRAGMENT_BYTES));
        let opcode = if from == 0 { Data::Text } else { Data::Continue };
        let fragment = RawFrame::message(bytes.slice(from..to), OpCode::Data(opcode), to == text.len());
        from = to;
        Some(fragment)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_goes_out_in_parts_that_share_its_bytes_and_divide_no_character() {
        let text = Utf8Bytes::from("🦀é-".repeat(FRAGMENT_BYTES / 2));
        let bytes = Bytes::from(text.clone());
        let fragments: Vec<_> = fragments(&text).collect();
        let mut place = bytes.as_ptr() as usize;
        for (number, fragment) in fragments.iter().enumerate() {
            let payload = fragment.payload();
            assert_eq!(payload.as_ptr() as usize, place, "it is the same memory");
            place += payload.len();
            assert!(payload.len() <= FRAGMENT_BYTES && std::str::from_utf8(payload).is_ok());
            let header = fragment.header();
            let opcode = if number == 0 { Data::Text } else { Data::Continue };
            assert_eq!(header.opcode, OpCode::Data(opcode));
            assert_eq!(header.is_final, number + 1 == fragments.len());
        }
        assert_eq!(place, bytes.as_ptr() as usize + bytes.len(), "nothing is left out");
        assert!(fragments.len() >= 3);
    }

    #[test]
    fn only_a_whole_handshake_is_accepted() {
        let good = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let headers = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
        };
        let accept = accept_key(&Method::GET, &headers(&good)).unwrap();
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(accept_key(&Method::POST, &headers(&good)).is_err());
        for missing in 0..good.len() {
            let mut pairs = good.to_vec();
            pairs.remove(missing);
            assert!(accept_key(&Method::GET, &headers(&pairs)).is_err(), "{:?}", good[missing]);
        }
    }
}
