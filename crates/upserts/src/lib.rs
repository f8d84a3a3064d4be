//! Stream events in, upserts and turn events out.
//!
//! A pure state machine, one per turn, for live turns and for history alike: no clock, no I/O, no tasks.

mod batch;
mod config;
mod events;
mod item;
mod processor;
mod text;
mod tool;
mod update;

pub use config::{Pacing, UpsertConfig, estimate_tokens};
pub use processor::UpsertProcessor;
pub use text::Text;
pub use update::{Emission, ItemBody, ItemUpdate, Moment};
