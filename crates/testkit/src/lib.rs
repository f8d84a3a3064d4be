//! What the tests stand on: scripted agents and models that do as they are told, and the finding of the real ones.
//!
//! Kept out: anything a product crate depends on. Tests depend on this crate, never the other way round.

pub mod scripted_model;
