//! The way to the running server, for the command line.
//!
//! Comes in: a data directory. Goes out: the server that holds it, asked over the same HTTP and WebSocket API that pages
//! and scripts use. Kept out: what is asked, and how it looks.

mod http;
mod window;

use catalog::{DirectoryState, Inspection};
use tokio::net::TcpStream;

use crate::commands::{Exit, Failure};

pub(crate) use window::{Kind, ReceivedFrame, Window};

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Server {
    /// As in `http://127.0.0.1:3000`.
    pub(crate) address: String,
    pub(crate) token: Option<String>,
}

impl Server {
    /// The server that holds this data directory. Only it may get the secret: the lock proves that it wrote the
    /// address, so a program that took the port of a dead server never gets the secret.
    pub(crate) fn find(visit: &Inspection) -> Result<Self, Failure> {
        // A file that others could write may point anywhere.
        if let Ok(DirectoryState::Refused(error)) = visit.directory_state() {
            let advice = error.advice().unwrap_or_default();
            return Err(Failure::new("STORAGE_FAILED", error.to_string()).with_detail(advice));
        }
        let holder = visit.server().map_err(|error| Failure::new("STORAGE_FAILED", error.to_string()))?;
        let none = |message: String, advice: &str| {
            Err(Failure::new("NO_SERVER", message).with_detail(advice).with_exit(Exit::NoServer))
        };
        let Some(holder) = holder else {
            let message = format!("No Liminal Builder is running with its data in {}.", visit.dir().display());
            return none(message, "Start one with `liminal-builder`, or name its data directory with --data-dir.");
        };
        let Some(address) = holder.address else {
            return none("Liminal Builder is starting; it does not listen yet.".into(), "Try again in a moment.");
        };
        let token = visit.token().map_err(|error| Failure::new("STORAGE_FAILED", error.to_string()))?;
        Ok(Self { address, token })
    }

    /// `127.0.0.1:3000`, as the `Host` header has it.
    fn authority(&self) -> &str {
        self.address.strip_prefix("http://").unwrap_or(&self.address)
    }

    async fn connect(&self) -> Result<TcpStream, Failure> {
        TcpStream::connect(self.authority()).await.map_err(|error| self.lost(&error))
    }

    fn lost(&self, error: &dyn std::fmt::Display) -> Failure {
        Failure::new("CONNECTION_LOST", format!("Liminal Builder at {} does not answer.", self.address))
            .with_detail(error.to_string())
            .with_exit(Exit::NoServer)
    }

    pub(crate) fn refused(&self) -> Failure {
        Failure::new("UNAUTHORIZED", format!("Liminal Builder at {} does not take our secret.", self.address))
            .with_detail("Its token file was changed after it started. Restart it.")
            .with_exit(Exit::Refused)
    }
}
