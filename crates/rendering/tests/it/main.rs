//! The crate by its public door.

mod conformance;
mod cost;
mod diff;
mod hostile;
mod live;
mod markup;
mod reader;
mod safety;
mod strict;
mod terminal;
