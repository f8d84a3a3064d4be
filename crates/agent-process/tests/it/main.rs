//! Agents with every kind of behaviour, under a real guardian.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a failure here is a failed test")]

mod failures;
mod harness;
mod lines;
mod orphans;
mod stdin;
mod stop;
