//! The hub by its own door, with an agent that fails where no real one can be made to.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a failure here is a failed test")]

mod agent_ids;
mod cancels;
mod closing;
mod flood;
mod history;
mod idle;
mod joining;
mod order;
mod panics;
mod puppet;
mod races;
mod recorded;
mod saved;
