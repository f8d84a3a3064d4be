//! Providers as the session hub meets them, and their translations as data.

mod claude_history;
mod claude_snapshots;
