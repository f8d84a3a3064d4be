//! The crate by its public door.

mod live;
mod reader;
