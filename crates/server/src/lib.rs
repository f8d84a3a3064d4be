//! The edge of Liminal Builder: HTTP, WebSockets, the embedded web UI, and access control.
//!
//! Comes in: bytes from browsers and scripts, all of them hostile until proven otherwise. Goes out: typed requests to
//! the session hub, and its answers. Kept out: session state and every decision about sessions; WebSocket and HTTP
//! call the same hub and neither has logic of its own.

mod access;
mod assets;
mod browser_label;
mod browsers;
mod connection_owner;
mod error;
mod headers;
mod hosts;
mod idle_connections;
mod limits;
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

pub use access::{Access, Keys, OneTimeLink};
pub use browsers::Browsers;
pub use hosts::{HostName, Hosts};
pub use limits::Limits;
pub use secret::Secret;

/// What every route may use.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) access: Access,
    pub(crate) hub: Hub,
    /// axum detaches a socket once it is upgraded, so they are tracked here.
    pub(crate) sockets: TaskTracker,
    /// Requests that change something. They continue when their connection is lost.
    pub(crate) changes: TaskTracker,
    pub(crate) stop: CancellationToken,
    pub(crate) started: Instant,
    pub(crate) patience: Patience,
    pub(crate) limits: Limits,
}

/// How long a window may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The interval between two pings.
    pub ping_every: Duration,
    /// A client that was silent for so long counts as gone. Two pings may get lost.
    pub silence_max: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { ping_every: Duration::from_secs(20), silence_max: Duration::from_secs(60) }
    }
}

/// Serves until `stop`. When it returns nothing listens, every request has been answered and every socket is closed. A
/// socket closes when the hub has nothing more for its window, so the caller has to drain the hub at the same time.
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
    tokio::join!(serve::accept_connections(listener, routes::router(app), limits, &stop), tending);
    changes.close();
    // Requests whose connection is lost have the same time to finish as the others.
    if tokio::time::timeout(serve::FINISH_TIME_MAX, changes.wait()).await.is_err() {
        tracing::warn!("{} requests are abandoned", changes.len());
    }
    sockets.close();
    sockets.wait().await;
}
