//! Exported files as whole files: what is in them, and what must not be.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod documents;
mod masking;
mod safety;
mod session;
