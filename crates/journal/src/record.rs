//! What goes into the journal and comes out of it.

use protocol::{ItemId, SessionFacts, SessionId, Timestamp, TurnId, TurnRecord, Upsert};

use crate::error::FailureKind;

/// A session's number in this journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub i64);

/// A settled row. Rows are never renumbered, so this orders the settled items of all sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowId(pub i64);

/// What a window has seen of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub journal_id: String,
    pub epoch: u64,
    pub seq: u64,
}

/// Where a session continues.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionHead {
    pub key: SessionKey,
    /// The present epoch.
    pub epoch: u64,
    /// The last recorded number; the next change is `seq + 1`.
    pub seq: u64,
    /// The highest position of an item or a turn; 0 when there is none.
    pub position: i64,
    pub items: u64,
    /// The last number of each earlier epoch, oldest first.
    pub epoch_ends: Vec<(u64, u64)>,
    pub facts: SessionFacts,
    /// The agent's own history was read to its beginning, or there was none when the session began here.
    pub is_complete: bool,
}

/// Changes of one session, recorded together.
#[derive(Clone, Debug)]
pub struct Batch {
    pub session: SessionKey,
    /// Somebody is waiting to hear that it is on the disk.
    pub confirmed: bool,
    pub items: Vec<ItemChange>,
    pub turns: Vec<TurnChange>,
    pub marks: Vec<TurnMark>,
    /// All facts, if any of them changed.
    pub facts: Option<SessionFacts>,
    /// The agent's own history is here from its beginning.
    pub completes: bool,
}

/// An item's newest state. One with a final status is settled: its rows are folded into one.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemChange {
    /// As the plain contract has it, without the first `text_from` bytes of its text (content or tool output).
    pub upsert: Upsert,
    /// How much of the text earlier rows hold; 0 replaces it. Always 0 for a settled item.
    pub text_from: usize,
    pub position: i64,
    /// The numbers of the changes that this row covers. Joined with those of the item's earlier rows.
    pub first: u64,
    pub last: u64,
}

/// A turn's newest state; replaces what was recorded of it.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnChange {
    pub record: TurnRecord,
    pub origin: TurnOrigin,
    /// In front of its first item.
    pub position: i64,
    pub first: u64,
    pub last: u64,
}

/// Whether the agent still remembers a recorded turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnMark {
    pub turn_id: TurnId,
    pub forgotten: bool,
    /// The number of this change.
    pub seq: u64,
}

/// How we know of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnOrigin {
    /// It ran here.
    Live,
    /// It was read from the agent's own history.
    Agent,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Read {
    /// The newest items.
    Newest { limit: usize },
    /// Those in front of a position.
    Before { position: i64, limit: usize },
    /// Those in front of an item. An unknown item gives [`crate::JournalError::UnknownItem`].
    BeforeItem { item: ItemId, limit: usize },
    /// Those that changed after a number, with the turns that did. If there are more than `limit`, `more` is set and the
    /// items are not to be used.
    Since { seq: u64, limit: usize },
    /// Items that are not settled and turns that have not ended.
    Open,
}

/// Items in display order, and the turns they belong to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    pub items: Vec<StoredItem>,
    pub turns: Vec<StoredTurn>,
    /// There are items in front of these (for [`Read::Since`]: more changed than `limit`).
    pub more: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StoredItem {
    /// With its whole text.
    pub upsert: Upsert,
    pub position: i64,
    pub first: u64,
    pub last: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StoredTurn {
    pub record: TurnRecord,
    pub origin: TurnOrigin,
    pub position: i64,
    pub last: u64,
}

/// What a turn is recognised by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnOutline {
    pub turn_id: TurnId,
    pub origin: TurnOrigin,
    pub position: i64,
    pub started_at: Timestamp,
    pub has_ended: bool,
    pub is_forgotten: bool,
    /// The text of the user's message that began it.
    pub prompt: Option<String>,
    /// The beginning of the agent's first message in it.
    pub answer: Option<String>,
    /// The ids of its items, in display order.
    pub items: Vec<ItemId>,
    /// The highest position of its items, or its own.
    pub last_position: i64,
}

/// A settled item with the session it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct SettledItem {
    pub row: RowId,
    pub session: SessionId,
    pub item: StoredItem,
}

/// Whether the journal can write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    #[default]
    Writing,
    Failing {
        kind: FailureKind,
        detail: String,
    },
}

/// What the journal holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// None for one in memory.
    pub path: Option<std::path::PathBuf>,
    /// With its write-ahead log.
    pub file_bytes: u64,
    /// Free pages inside the file.
    pub free_bytes: u64,
    /// Left on the disk that the file is on.
    pub disk_free_bytes: Option<u64>,
    pub format: i64,
    pub items: u64,
    pub turns: u64,
    /// Those with the most bytes first.
    pub sessions: Vec<SessionStats>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStats {
    pub session: SessionId,
    pub items: u64,
    pub turns: u64,
    /// Of text, arguments and outputs.
    pub said_bytes: u64,
    pub first_at: Option<Timestamp>,
    pub last_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    pub turns: u64,
    pub items: u64,
    pub freed_bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Damage of the file, as the engine reports it.
    pub damage: Vec<String>,
    /// What the rows say that cannot be true, such as a gap in a session's numbers.
    pub contradictions: Vec<String>,
    pub items: u64,
}
