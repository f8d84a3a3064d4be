//! The journal: what was said in every session, in order, on the disk.
//!
//! Comes in: changes of items and turns, each with its number (`seq`) and its place (`position`). Goes out: pages of
//! items, what changed after a number, and news of what was recorded. Kept out: providers, HTTP, rendering, and how a
//! session makes items of an agent's events.
//!
//! A session numbers its changes 1, 2, 3 … A row covers the numbers `first..=last` of its item. An item that still grows
//! has several rows; when it is settled they are folded into one.

mod append;
mod check;
mod detail;
mod error;
mod failure;
mod inspect;
mod item_row;
mod maintenance;
mod open;
mod outline;
mod page;
mod readers;
mod record;
mod schema;
mod session_row;
mod sqlite;
mod stats;
mod traces;
mod turn_row;
mod writer;

use std::fmt;

use async_trait::async_trait;
use protocol::{ItemId, SessionId, Timestamp};
use tokio::sync::{oneshot, watch};

pub use check::Depth;
pub use error::{FailureKind, JournalError};
pub use inspect::{Inspection, check_file, inspect, set_aside};
pub use record::{
    Batch, CheckReport, Cursor, Health, ItemChange, Page, Pruned, Read, RowId, SessionHead, SessionKey, SessionStats,
    SettledItem, Stats, StoredItem, StoredTurn, TurnChange, TurnMark, TurnOrigin, TurnOutline,
};
pub use sqlite::{OpenedJournal, SqliteJournal};

/// Between the positions of two items that follow each other: room to insert turns that the agent had and we did not.
pub const POSITION_GAP: i64 = 1 << 32;

/// Where everything said is recorded. One engine writes a file; with `--journal off` it holds the same in memory.
#[async_trait]
pub trait Journal: Send + Sync + fmt::Debug {
    /// Random, made with the file: a cursor of another journal means nothing here.
    fn id(&self) -> &str;

    /// Whether what is recorded outlives the process.
    fn is_durable(&self) -> bool;

    /// This server continues the session: its epoch rises, and that is synced before this returns. Creates the session if
    /// it is not known. Called once per session and server.
    async fn take_over(&self, session: &SessionId) -> Result<SessionHead, JournalError>;

    /// The session as it is recorded, without taking it over.
    async fn find(&self, session: &SessionId) -> Result<Option<SessionHead>, JournalError>;

    /// Records a batch, all of it or nothing. The answer comes when it is committed and, for a batch that is `confirmed`,
    /// synced. Batches of one session are recorded in the order of the calls. Never blocks.
    fn append(&self, batch: Batch) -> oneshot::Receiver<Result<(), JournalError>>;

    /// Items of a session, in display order.
    async fn read(&self, session: SessionKey, read: Read) -> Result<Page, JournalError>;

    /// One item in its recorded state.
    async fn item(&self, session: SessionKey, item: &ItemId) -> Result<Option<StoredItem>, JournalError>;

    /// All turns of a session in display order, as far as needed to compare them with the agent's own history.
    async fn outline(&self, session: SessionKey) -> Result<Vec<TurnOutline>, JournalError>;

    /// The row that was settled last, and news of later ones: whoever follows reads on from its own mark with
    /// [`Journal::settled_after`].
    fn follow(&self) -> watch::Receiver<RowId>;

    /// Items that were settled after a row, of all sessions, in the order in which they were settled.
    async fn settled_after(&self, row: RowId, limit: usize) -> Result<Vec<SettledItem>, JournalError>;

    /// Whether it can write now.
    fn health(&self) -> watch::Receiver<Health>;

    /// Deletes a session. No row and no free page holds its text afterwards.
    async fn delete(&self, session: &SessionId) -> Result<(), JournalError>;

    /// Deletes turns that ended before a moment, with their items, and gives the space back to the disk.
    async fn prune(&self, before: Timestamp) -> Result<Pruned, JournalError>;

    async fn stats(&self) -> Result<Stats, JournalError>;

    /// Reads the whole file and reports what is damaged. May take long; nothing is changed.
    async fn check(&self) -> Result<CheckReport, JournalError>;

    /// Commits and syncs what was appended, and ends the writer. Later appends fail.
    async fn close(&self);
}
