//! The base of the tests: the real server and its clients, and scripted agents and models.
//!
//! A test starts a real `liminal-builder` on a free port with a data directory of its own: processes, sockets and files
//! are real. It waits for what can be seen, under one generous deadline.
//! Kept out: anything a product crate depends on. Tests depend on this crate, never the other way round.

mod app;
mod http;
pub mod journal_faults;
pub mod load;
pub mod programs;
mod real_agents;
pub mod scripted_model;
pub mod soak;
mod test_setup;
mod window;

use std::time::Duration;

pub use app::{Builder, TestApp, command_at, make_private};
pub use http::{Response, exchange};
pub use programs::run_to_end;
pub use test_setup::{Screen, Shown, TestSetup, merge};
pub use window::{HandshakeRefused, Window, connect};

/// How long a test waits for anything. Never an assertion about speed: a busy machine must not fail a test.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Waits for something that must come.
///
/// # Panics
/// When it does not come within [`DEADLINE`].
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {} s for {what}", DEADLINE.as_secs()),
    }
}
