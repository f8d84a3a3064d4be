//! What drives each kind of agent program.
//!
//! Comes in: requests of the session hub (create, load; then send, cancel, close per session). Goes out: per session
//! one ordered channel of stream events, facts and states. Kept out: HTTP, WebSockets, windows, files of ours. Nothing
//! above this crate asks which agent it has.

pub mod acp;
pub mod catch_panic;
pub mod claude;
mod conversation;
mod emitter;
mod error;
pub mod json;
pub mod lifecycle;
pub mod permission;
mod provider;
mod registry;
mod unreadable;

pub use emitter::{Closed, Emitter};
pub use error::ProviderError;
pub use provider::{
    AgentSession, EVENT_QUEUE_MAX, History, HistoryCursor, HistoryWanted, LoadedSession, Login, NewSession,
    OpenedSession, Probe, Provider, ProviderEvent, StatusReport, StoredSession,
};
pub use registry::Registry;
