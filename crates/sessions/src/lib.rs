//! The hub: one actor per live session, the fold of its stream events, fan-out to every window, outboxes, titles and attention; what runs.
//!
//! Comes in: requests of windows and of the HTTP API, events of providers. Goes out: ordered frames, per window.
//! Kept out: sockets, HTTP, files, wires. Only this crate orders events and decides who receives them.

mod align;
mod attention;
mod error;
mod frame;
mod hub;
mod item;
mod opener;
mod outbox;
mod renderers;
mod session;
mod snapshot;
mod supervisor;
mod transcript;
mod view;
mod window;

pub use error::ServiceError;
pub use frame::Frame;
pub use hub::{AgentSet, AgentSetup, Hub, HubLimits, ProbeTarget, ServerFacts};
pub use outbox::{Frames, WindowKind};
pub use session::SentMessage;
pub use window::Window;
