//! The edge alone, over real sockets, with less patience than the binary gives it.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod changes;
mod pings;
