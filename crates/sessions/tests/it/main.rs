//! The hub by its own door, with an agent that fails where no real one can be made to.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a failure here is a failed test")]

mod cancels;
mod faults;
mod past;
mod puppet;
mod renamed;
mod rest;
