//! What exists: projects and session records, their rules, and the files they are saved in.
//!
//! Comes in: what users and the hub want changed. Goes out: lists from memory, and two JSON files that a person can read.
//! Kept out: agents, sockets, what runs. Nobody else opens a file in the data directory, so the access token, the
//! admitted browsers, the lock and `agents.json` are asked for here too. Only the demo agent, a process of its own, has a directory in it.

mod agents;
mod browsers;
mod catalog;
mod completion;
mod directory;
mod error;
pub mod files;
mod git;
mod inspect;
mod last_turn;
mod lock;
mod opening;
mod owner;
mod paths;
mod recent;
mod record;
mod records;
mod redirect;
mod settings;
mod titles;
mod token;
mod usage;
mod writer;

pub use agents::{AgentsChange, AgentsChangeError, AgentsText};
pub use browsers::{BrowserList, BrowserRecord};
pub use catalog::{Catalog, Opened};
pub use error::{CatalogError, LockHolder};
pub use git::git_branch;
pub use inspect::{DirectoryState, DiskState, Inspection, ListState, TokenState};
pub use last_turn::{LastTurn, TurnEnd, Unseen, UnseenKind};
pub use owner::UserName;
pub use recent::recent_directories;
pub use record::{DefaultsRecord, NEW_SESSION_TITLE, ProjectRecord, SessionRecord};
pub use redirect::RedirectFile;
pub use settings::{CommandWords, Settings, SettingsChange};
pub use titles::title_from;
pub use token::random_secret;
pub use usage::{DayUsage, UsageByDay, day_of};
