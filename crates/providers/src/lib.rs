//! What drives each kind of agent program.
//!
//! Comes in: requests of the session hub (create, load, send, cancel, kill). Goes out: per session one ordered channel
//! of upserts, turns, facts and states. Kept out: HTTP, WebSockets, windows, files of ours. Nothing above this crate
//! asks which agent it has.

pub mod acp;
pub mod claude;
pub mod fault;
pub mod json;
pub mod lifecycle;
pub mod outlet;
pub mod permission;
mod provider;
mod registry;
mod unreadable;

pub use outlet::Outlet;
pub use provider::{
    EVENT_QUEUE_MAX, History, HistoryCursor, Loaded, Login, NewSession, OpenSession, Provider, ProviderError,
    ProviderEvent, ProviderSession, StatusReport, Trial,
};
pub use registry::Registry;
