//! Ids and messages that cross a boundary: agent to server, server to browser, server to file.
//!
//! Serde and nothing else: no I/O, no clock, no state. What enters is checked here and is typed from then on.

pub mod ids;

pub use ids::{AgentSessionId, CallId, CliType, EventId, IdError, ItemId, ProjectId, SessionId, TurnId};
