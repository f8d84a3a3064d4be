//! The processor as its callers see it: events in, emissions out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop, in its helpers too")]

mod batching;
mod edges;
mod live;
mod messages;
mod odd_events;
mod properties;
mod release;
mod sub_agents;
mod tools;
mod turn;
