//! `/ws`: one window of one browser.
//!
//! Comes in: an upgrade request and then text frames, each parsed here. Goes out: what the hub has for this window, in
//! its order. Reading and writing run side by side, so that a cancel is heard while a long answer is being written.
//! Kept out: what a message means, and what waits for a slow window: both are the hub's.

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

use crate::access::Visitor;
use crate::browsers::Standing;
use crate::error::Failure;
use crate::{App, Patience};
use flow::Flow;
use frame_limit::{FrameLimit, NOTICE};
use progress::{Progress, Written};

/// The longest message a client may send; a longer one is answered with an error.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// For the peer to read what is left when the server ends.
const LAST_FRAMES_TIME_MAX: Duration = Duration::from_millis(500);
/// For the peer to answer our close.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(1);
/// Frames written with one flush when that many are ready.
const BATCH_FRAMES_MAX: usize = 64;
/// A longer message goes out in fragments of this size. The library copies each frame into a buffer of the window, so that
/// one frame would cost every window that reads slowly a copy of the whole message; this way its bytes are shared.
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
    let standing = match request.extensions().get::<Visitor>() {
        Some(Visitor::Browser(standing)) => Some(Arc::clone(standing)),
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
                let end = revoked(standing.as_deref());
                serve(socket, written, window, frames, patience, end).await;
            }
            Err(error) => tracing::debug!("a WebSocket was given up before it began: {error}"),
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
    /// All that was for this window has been written, or it did not read it in time.
    ServerStops,
    PeerLeft,
    PeerIsSilent,
    /// Its browser is no longer let in.
    Revoked,
    /// The hub has let the window go; it may come back and gets a fresh snapshot.
    WindowLetGo,
    Broken(Box<Error>),
}

async fn serve(
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
        // A write that does not end must not keep a window that was let go.
        () = window.gone().cancelled() => End::WindowLetGo,
        () = flow.silent_for(patience.silence_max) => End::PeerIsSilent,
    };
    drop(window);
    tracing::debug!(?end, "a window closed");
    let Some(farewell) = end.farewell() else { return };
    let goodbye = async {
        sink.send(Message::Close(Some(farewell))).await?;
        while stream.next().await.transpose()?.is_some() {}
        Ok::<(), Error>(())
    };
    if let Ok(Err(error)) = tokio::time::timeout(CLOSE_TIME_MAX, goodbye).await {
        tracing::debug!("the peer did not wait for the end: {error}");
    }
}

/// Never, for a window that is no browser's.
async fn revoked(standing: Option<&Standing>) {
    match standing {
        Some(standing) => standing.revoked.cancelled().await,
        None => std::future::pending().await,
    }
}

/// The server ends, and the peer had its time to read the rest.
async fn overdue(window: &Window) {
    window.over().cancelled().await;
    tokio::time::sleep(LAST_FRAMES_TIME_MAX).await;
}

impl End {
    fn farewell(&self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::ServerStops => (CloseCode::Away, "Liminal Builder is stopping"),
            Self::WindowLetGo => (CloseCode::Again, "this window fell too far behind"),
            Self::Revoked => (CloseCode::Policy, "this browser is no longer let in"),
            Self::PeerIsSilent => (CloseCode::Policy, "no answer to pings"),
            Self::Broken(error) if matches!(**error, Error::Utf8(_)) => (CloseCode::Invalid, "text must be UTF-8"),
            Self::Broken(error) if matches!(**error, Error::Protocol(_) | Error::Capacity(_)) => {
                (CloseCode::Protocol, "not RFC 6455")
            }
            Self::Broken(_) | Self::PeerLeft => return None,
        };
        Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) })
    }
}

async fn read(stream: &mut SplitStream<Socket>, window: &Window, flow: &Flow) -> End {
    let mut was_too_big = false;
    loop {
        flow.room_to_read().await;
        let message = match stream.next().await {
            None => return End::PeerLeft,
            Some(Err(error)) => return End::Broken(Box::new(error)),
            Some(Ok(message)) => message,
        };
        flow.heard();
        let parsed = match message {
            Message::Close(_) => return End::PeerLeft,
            Message::Pong(payload) => {
                was_too_big |= payload == NOTICE;
                continue;
            }
            Message::Ping(_) | Message::Frame(_) => continue, // The library has answered the ping.
            _ if std::mem::take(&mut was_too_big) => Err(whole(format!("longer than {MESSAGE_BYTES_MAX} bytes"))),
            Message::Binary(_) => Err(whole("binary frames are not read; send JSON as text".into())),
            Message::Text(text) => ClientFrame::parse(&text),
        };
        flow.asked();
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
                None => return End::WindowLetGo,
            },
            _ = ping.tick() => flow.during_write(sink.send(Message::Ping(Default::default()))).await,
        };
        if let Err(error) = written {
            return End::Broken(Box::new(error));
        }
    }
}

/// Everything that is ready goes out with one flush.
async fn write_batch(sink: &mut SplitSink<Socket, Message>, frames: &mut Frames, first: Frame) -> Result<(), Error> {
    feed(sink, first).await?;
    for _ in 1..BATCH_FRAMES_MAX {
        match frames.next().now_or_never() {
            Some(Some(frame)) => feed(sink, frame).await?,
            // Let go or nothing more: the next round of the caller finds out which.
            Some(None) | None => break,
        }
    }
    sink.flush().await
}

/// Waits for room before each fragment, so that no more than one of them is in the window's own buffer.
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

/// A message as RFC 6455 lets it be sent in parts. No character is divided, for clients that look at each part.
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
