//! Accepts connections and serves HTTP/1 on each until it is told to stop.
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

use crate::lobby::Lobby;

/// From the first byte a client may send, or the end of the answer before, to the end of a request's head. Loopback
/// and a local network need milliseconds.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// A request's head: a cookie or two and what browsers add.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// HTTP connections in all, those being served included. Half of the usual limit of 1024 open files: the other half is
/// for WebSockets, agents and data files.
const OPEN_MAX: usize = 512;
/// After a failed accept, most likely for want of file descriptors, to let some come free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// For requests under way when the server stops. Who is slower than this is not going to be quicker.
const FINISH_TIME_MAX: Duration = Duration::from_secs(3);

/// Serves until `stop`, then lets every request under way finish.
pub(crate) async fn serve(listener: TcpListener, router: Router, stop: &CancellationToken) {
    let connections = TaskTracker::new();
    let open = Arc::new(Semaphore::new(OPEN_MAX));
    let lobby = Lobby::default();
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
        let Ok(permit) = Arc::clone(&open).try_acquire_owned() else {
            tracing::warn!(%peer, "{OPEN_MAX} connections are open: one more is turned away");
            continue;
        };
        connections.spawn(serve_connection(stream, router.clone(), lobby.clone(), stop.clone(), permit));
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

/// The next connection, ready for small frames.
async fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = listener.accept().await?;
    // Without it a frame waits for the acknowledgement of the one before, which the other side delays by 40 ms.
    stream.set_nodelay(true)?;
    Ok((stream, peer))
}

async fn serve_connection(
    stream: TcpStream,
    router: Router,
    lobby: Lobby,
    stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
) {
    let guest = Arc::new(lobby.enter());
    let waiting = Arc::clone(&guest);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (router, guest) = (router.clone(), Arc::clone(&guest));
        async move {
            guest.serve();
            let request: Request = request.map(Body::new);
            let response = router.oneshot(request).await;
            guest.wait();
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
        () = waiting.shown_out() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    if let Ok(ended) = tokio::time::timeout(FINISH_TIME_MAX, connection).await {
        log_end(ended);
    }
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
