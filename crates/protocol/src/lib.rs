//! Ids and messages that cross a boundary: agent to server, server to browser, server to file.
//!
//! Serde and nothing else: no I/O, no clock, no state. What enters is checked here and is typed from then on.
//! Every message variant has a golden file in `goldens/` that Rust writes and JavaScript reads; see CONTRIBUTING.md
//! for how to write them again.

pub mod agents;
pub mod client;
pub mod error;
pub mod facts;
pub mod http;
pub mod ids;
pub mod model;
pub mod prompt;
pub mod server;
pub mod stream;
pub mod timestamp;
pub mod tool;
pub mod upsert;

pub use agents::{AgentConfig, AgentDefinition, AgentEntry, EnvVariable, ProbeLogin, ProbeOutcome};
pub use client::{ClientFrame, ClientMessage, InvalidMessage};
pub use error::{ErrorCode, ErrorDetail};
pub use facts::SessionFacts;
pub use ids::{AgentSessionId, CallId, CliType, EventId, IdError, ItemId, ProjectId, SessionId, TurnId};
pub use model::{
    AgentInfo, AgentStatus, Attention, Continuity, OpenTarget, OpenerSetting, PathCompletion, Project, ProjectDefaults,
    RecentDirectory, RecentSource, ServerSettings, SessionState, SessionSummary, TurnRecord, TurnRecordStatus,
};
pub use prompt::{Prompt, PromptPart};
pub use server::{ErrorMessage, ServerFrame, ServerMessage};
pub use stream::{FinalItem, ItemType, Origin, ResponseStatus, StreamEvent, StreamPayload, Usage};
pub use timestamp::Timestamp;
pub use tool::{Permission, PermissionDecision, ToolContent, ToolDetail, ToolKind, ToolLocation};
pub use upsert::{
    BlockPatch, SectionKind, ToolSection, TurnEvent, TurnStatus, Upsert, UpsertBody, UpsertStatus, UpsertView,
};

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod http_golden_tests;
#[cfg(test)]
mod typescript_tests;
