//! The real server, started for a test, and clients to talk to it.
//!
//! Comes in: flags and environment of one test. Goes out: a running `liminal-builder` on a free port with a data
//! directory of its own, and what its clients saw. Nothing is simulated: processes, sockets and files are real.
//! A test waits for what can be seen, under one generous deadline.

mod app;
mod binary;
mod http;
mod window;

use std::time::Duration;

pub use app::{Builder, TestApp};
pub use binary::{binary, run_to_end};
pub use http::{Response, exchange};
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
