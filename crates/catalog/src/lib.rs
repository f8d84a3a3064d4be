//! What exists: projects and session records, their rules, and the files they are kept in.
//!
//! Comes in: what users and the hub want changed. Goes out: lists from memory, and two JSON files that a person can read.
//! Kept out: agents, sockets, what runs. Nobody else opens a file in the data directory, so the access token, the lock
//! and `agents.json` are asked for here too. Only the demo agent, a process of its own, has a directory in it.

mod books;
mod catalog;
mod completion;
mod directory;
mod error;
pub mod files;
mod lock;
mod opening;
mod paths;
mod record;
mod titles;
mod token;
mod visit;
mod writer;

pub use catalog::{Catalog, Opened};
pub use error::{CatalogError, LockHolder};
pub use record::{NEW_SESSION_TITLE, ProjectRecord, SessionRecord};
pub use titles::title_from;
pub use visit::{DirectoryState, DiskState, ListState, TokenState, Visit};
