//! Accepts connections and serves HTTP/1 on each until it is stopped.
//!
//! axum's own loop has no limit on half-open connections, no time limit for a request's head, and leaves Nagle on, so
//! that small frames stall for 40 ms. This one has all three, and owns every task it starts.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::connection_owner::Connection;
use crate::idle_connections::{ConnectionSlot, IdleConnections};
use crate::limits::Limits;

/// From the first byte a client may send, or the end of the previous answer, to the end of a request's head. Loopback
/// and a local network need milliseconds.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// A request's head: a cookie or two and what browsers add.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The pause after a failed accept, most likely because of missing file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The time for an evicted connection to close. It only has to be dropped.
const ROOM_TIME_MAX: Duration = Duration::from_secs(1);

/// The time for running requests to finish when the server stops.
pub(crate) const FINISH_TIME_MAX: Duration = Duration::from_secs(3);

/// Serves until `stop`, then waits for running requests.
pub(crate) async fn accept_connections(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: &CancellationToken,
) {
    let connections = TaskTracker::new();
    let open = Arc::new(Semaphore::new(limits.http));
    let idle = IdleConnections::new(limits.waiting);
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept(&listener) => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("could not accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let permit = tokio::select! {
            () = stop.cancelled() => break,
            permit = room(&open, &idle) => permit,
        };
        let Some(permit) = permit else {
            tracing::warn!(%peer, "{} connections are open: one more is turned away", limits.http);
            continue;
        };
        // Not in the task, which may run much later: the order of arrival must be known as soon as the next one comes.
        let slot = idle.enter();
        connections.spawn(serve_connection(stream, router.clone(), slot, stop.clone(), permit));
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

/// A permit for one more connection. If there is none, an idle connection is evicted; busy connections never are.
async fn room(open: &Arc<Semaphore>, idle: &IdleConnections) -> Option<OwnedSemaphorePermit> {
    if let Ok(permit) = Arc::clone(open).try_acquire_owned() {
        return Some(permit);
    }
    idle.make_room();
    tokio::time::timeout(ROOM_TIME_MAX, Arc::clone(open).acquire_owned()).await.ok()?.ok()
}

/// The next connection, ready for small frames.
async fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = listener.accept().await?;
    // Without it a frame waits for the acknowledgement of the previous one, which the other side delays by 40 ms.
    stream.set_nodelay(true)?;
    Ok((stream, peer))
}

async fn serve_connection(
    stream: TcpStream,
    router: Router,
    slot: ConnectionSlot,
    stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
) {
    let slot = Arc::new(slot);
    let waiting = Arc::clone(&slot);
    let ends = both_ends(&stream);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (router, slot) = (router.clone(), Arc::clone(&slot));
        async move {
            slot.set_busy();
            let mut request: Request = request.map(Body::new);
            if let Some(ends) = ends {
                request.extensions_mut().insert(ends);
            }
            let response = router.oneshot(request).await;
            slot.set_idle();
            response.map_err(|never: Infallible| never)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return log_end(ended),
        () = waiting.evicted() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    if let Ok(ended) = tokio::time::timeout(FINISH_TIME_MAX, connection).await {
        log_end(ended);
    }
}

fn both_ends(stream: &TcpStream) -> Option<Connection> {
    Some(Connection { peer: stream.peer_addr().ok()?, local: stream.local_addr().ok()? })
}

fn log_end(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!("a connection ended early: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn small_frames_do_not_wait_for_an_acknowledgement() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_client, accepted) = tokio::join!(TcpStream::connect(address), accept(&listener));
        assert!(accepted.unwrap().0.nodelay().unwrap());
    }
}
