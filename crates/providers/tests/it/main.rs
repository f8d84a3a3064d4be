//! Providers as the session hub meets them, and their translations as data.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod acp_bench;
mod acp_codex;
mod acp_compare;
mod acp_demo;
mod acp_faults;
mod acp_limits;
mod acp_lines;
mod acp_loss;
mod acp_modes;
mod acp_sessions;
mod acp_stop;
mod claude_faults;
mod claude_history;
mod claude_interleavings;
mod claude_lines;
mod claude_login;
mod claude_real;
mod claude_sessions;
mod claude_snapshots;
mod claude_stop;
mod listener;
mod panics;
mod registry;
