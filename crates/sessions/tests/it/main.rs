//! The hub by its own door, with an agent that fails where no real one can be made to.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a failure here is a failed test")]

mod cancels;
mod closing;
mod faults;
mod joining;
mod past;
mod puppet;
mod races;
mod renamed;
mod rest;
