//! End to end, over real sockets and processes.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a failure here is a failed test")]

mod access;
mod agents;
mod api;
mod browsers;
mod claude;
mod command_line;
mod crash;
mod doctor;
mod ending;
mod first_message;
mod flood;
mod hard_code;
mod journal_commands;
mod journal_faults;
mod journal_files;
mod layers;
mod lifecycle;
mod limits;
mod load;
mod pages;
mod places;
mod private;
mod real;
mod restart;
mod security;
mod service;
mod sessions;
mod soak;
mod stop;
mod stress;
mod tickets;
mod upgrade;
mod usage;
mod windows;
