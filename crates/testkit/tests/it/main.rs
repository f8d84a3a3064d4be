//! End to end, over real sockets and processes.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a failure here is a failed test")]

mod access;
mod api;
mod crash;
mod flood;
mod lifecycle;
mod pages;
mod real;
mod sessions;
mod stress;
mod windows;
