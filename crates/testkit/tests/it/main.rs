//! End to end, over real sockets and processes.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a failure here is a failed test")]

mod access;
mod api;
mod claude;
mod command_line;
mod crash;
mod doctor;
mod ending;
mod first_message;
mod flood;
mod lifecycle;
mod load;
mod pages;
mod real;
mod security;
mod service;
mod sessions;
mod soak;
mod stress;
mod upgrade;
mod windows;
