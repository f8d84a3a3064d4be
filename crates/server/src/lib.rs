//! The edge of Liminal Builder: HTTP, WebSockets, the embedded web UI, and the rules of who may come in.
//!
//! Comes in: bytes from browsers and scripts, all of them hostile until proven otherwise. Goes out: typed requests to
//! the session hub, and its answers. Kept out: session state and every decision about sessions; WebSocket and HTTP
//! call the same hub and neither has logic of its own.

mod access;
mod assets;
mod browser_label;
mod browsers;
mod error;
mod headers;
mod hosts;
mod limits;
mod lobby;
mod peer;
mod routes;
mod secret;
mod serve;
mod service_worker;
mod sign_in;
mod socket;
mod tickets;

use std::time::{Duration, Instant};

use sessions::Hub;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use access::{Access, Keys, Opening};
pub use browsers::Browsers;
pub use hosts::{HostName, Hosts};
pub use limits::Limits;
pub use secret::Secret;

/// What every route may use.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) access: Access,
    pub(crate) hub: Hub,
    /// axum lets go of a socket once it is upgraded, so they are tracked here.
    pub(crate) sockets: TaskTracker,
    /// Requests that change something. They go on when their connection is lost.
    pub(crate) changes: TaskTracker,
    pub(crate) stop: CancellationToken,
    pub(crate) started: Instant,
    pub(crate) patience: Patience,
    pub(crate) limits: Limits,
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
pub async fn run(
    listener: TcpListener,
    access: Access,
    patience: Patience,
    limits: Limits,
    hub: Hub,
    stop: CancellationToken,
) {
    let (sockets, changes, started) = (TaskTracker::new(), TaskTracker::new(), Instant::now());
    let app = App { access, hub, sockets, changes, stop: stop.clone(), started, patience, limits };
    let (sockets, changes, keys) = (app.sockets.clone(), app.changes.clone(), app.access.keys.clone());
    let tending = async {
        if let Some(keys) = keys {
            tokio::join!(keys.browsers.keep_saved(&stop), keys.tickets.expire(&stop));
        }
    };
    tokio::join!(serve::serve(listener, routes::router(app), limits, &stop), tending);
    changes.close();
    // Those whose connection is lost have the same time to finish as the others.
    if tokio::time::timeout(serve::FINISH_TIME_MAX, changes.wait()).await.is_err() {
        tracing::warn!("{} requests are given up", changes.len());
    }
    sockets.close();
    sockets.wait().await;
}
