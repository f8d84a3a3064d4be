//! The edge of Liminal Builder: HTTP, WebSockets, the embedded web UI, and the rules of who may come in.
//!
//! Comes in: bytes from browsers and scripts, all of them hostile until proven otherwise. Goes out: typed requests to
//! the session hub, and its answers. Kept out: session state and every decision about sessions; WebSocket and HTTP
//! call the same hub and neither has logic of its own.

mod access;
mod assets;
mod error;
mod headers;
mod hosts;
mod lobby;
mod routes;
mod secret;
mod serve;
mod sign_in;
mod socket;

use std::time::{Duration, Instant};

use sessions::Hub;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use access::Access;
pub use hosts::{HostName, Hosts};
pub use secret::{Secret, Ticket};

/// What every route may use.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) access: Access,
    pub(crate) hub: Hub,
    /// axum lets go of a socket once it is upgraded, so they are tracked here.
    pub(crate) sockets: TaskTracker,
    pub(crate) stop: CancellationToken,
    pub(crate) started: Instant,
    pub(crate) patience: Patience,
}

/// How long a window may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How often a peer is asked whether it is still there.
    pub ping_every: Duration,
    /// A peer that has said nothing for so long is taken for dead. Two pings may get lost.
    pub silence_max: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { ping_every: Duration::from_secs(20), silence_max: Duration::from_secs(60) }
    }
}

/// Serves until `stop`. When it returns nothing listens, every request has been answered and every socket is closed. A
/// socket closes when the hub has nothing more for its window: whoever stops this drains the hub beside it.
pub async fn run(listener: TcpListener, access: Access, patience: Patience, hub: Hub, stop: CancellationToken) {
    let (sockets, started) = (TaskTracker::new(), Instant::now());
    let app = App { access, hub, sockets, stop: stop.clone(), started, patience };
    let sockets = app.sockets.clone();
    serve::serve(listener, routes::router(app), &stop).await;
    sockets.close();
    sockets.wait().await;
}
