//! The crate by its public door.

mod diff;
mod live;
mod reader;
mod terminal;
