//! The journal by its public door: real files, real processes.

#![expect(clippy::unwrap_used, reason = "a test that fails should stop")]

mod child;
mod samples;

mod damage;
mod disk;
mod killed;
mod pages;
mod removal;
mod round_trip;
mod size;
