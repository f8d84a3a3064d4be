//! Claude Code: the `claude` program in its bidirectional stream-json mode, one process per live session.
//!
//! `wire` reads lines, `translate` gives them their meaning (with `tools`, `texts` and `facts`), `history` reads the
//! program's own session files through the same translation.

mod facts;
pub mod history;
mod texts;
mod tools;
pub mod translate;
pub mod wire;

/// How thoughts and turns name who made them.
pub const PROVIDER_ID: &str = "claude-code";
