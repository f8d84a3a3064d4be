//! The catalog by its public door: real directories, real files, real processes.

#![expect(clippy::unwrap_used, reason = "a test that fails should stop")]

mod browsers;
mod completion;
mod disk;
mod files;
mod inspect;
mod killed;
mod locked;
mod projects;
mod sessions;
mod support;
mod token;
mod upgrade;
