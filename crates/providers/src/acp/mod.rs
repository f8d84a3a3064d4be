//! Agents that speak the Agent Client Protocol.

mod content;
mod options;
mod step;
mod tool;
#[cfg(test)]
mod transcript_tests;
mod translate;
mod wire;
