//! What the journal holds after a kill, read from a copy: the next server finds the files as the dead one left them.

use std::collections::HashMap;
use std::path::Path;

use journal::{Journal, Page, Read, SessionHead, SqliteJournal, StoredItem, StoredTurn, TurnOrigin};
use protocol::{Origin, SessionId, UpsertBody};

const PAGE_ITEMS: usize = 500;

#[derive(Debug)]
pub(super) struct Stored {
    sessions: HashMap<SessionId, StoredSession>,
    pub(super) items: u64,
}

/// All of one session.
#[derive(Debug)]
pub(super) struct StoredSession {
    pub(super) head: SessionHead,
    /// In display order.
    pub(super) items: Vec<StoredItem>,
    pub(super) turns: Vec<StoredTurn>,
}

impl Stored {
    /// # Panics
    /// When the journal cannot be opened, is damaged, or contradicts itself.
    pub(super) async fn read(data_dir: &Path, sessions: &[SessionId], round: usize) -> Self {
        let copy = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        for name in ["journal.db", "journal.db-wal"] {
            let from = data_dir.join(name);
            if from.exists() {
                std::fs::copy(&from, copy.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
        let opened = SqliteJournal::open(copy.path()).unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert!(opened.notices.is_empty(), "round {round}: {:?}", opened.notices);
        let journal = opened.journal;
        let report = journal.check().await.unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert!(report.damage.is_empty() && report.contradictions.is_empty(), "round {round}: {report:?}");
        let mut found = HashMap::new();
        for session in sessions {
            if let Some(stored) = StoredSession::read(&journal, session).await {
                found.insert(session.clone(), stored);
            }
        }
        journal.close().await;
        Self { sessions: found, items: report.items }
    }

    pub(super) fn session(&self, session: &SessionId) -> Option<&StoredSession> {
        self.sessions.get(session)
    }
}

impl StoredSession {
    /// A turn of the agent's own history was added after this number.
    pub(super) fn has_inserted_after(&self, seq: u64) -> bool {
        self.turns.iter().any(|turn| turn.origin == TurnOrigin::Agent && turn.last > seq)
    }

    /// It came from the agent's own history.
    pub(super) fn is_inserted(&self, item: &StoredItem) -> bool {
        let mut turns = self.turns.iter().filter(|turn| turn.origin == TurnOrigin::Agent);
        turns.any(|turn| turn.record.turn_id == item.upsert.turn_id)
    }

    async fn read(journal: &SqliteJournal, session: &SessionId) -> Option<Self> {
        let head = journal.find(session).await.unwrap_or_else(|error| panic!("{session}: {error}"))?;
        let (mut items, mut turns) = (Vec::new(), Vec::<StoredTurn>::new());
        let mut read = Read::Newest { limit: PAGE_ITEMS };
        loop {
            let page = journal.read(head.key, read).await.unwrap_or_else(|error| panic!("{session}: {error}"));
            let Page { items: mut older, turns: theirs, more } = page;
            turns.extend(theirs);
            let Some(first) = older.first().map(|item| item.position) else { break };
            older.append(&mut items);
            items = older;
            if !more {
                break;
            }
            read = Read::Before { position: first, limit: PAGE_ITEMS };
        }
        turns.sort_by_key(|turn| turn.position);
        turns.dedup_by(|one, other| one.record.turn_id == other.record.turn_id);
        Some(Self { head, items, turns })
    }
}

/// The text of a message, a thought or a tool's output.
pub(super) fn text(item: &StoredItem) -> &str {
    match &item.upsert.body {
        UpsertBody::Message { content, .. } | UpsertBody::Thinking { content, .. } => content,
        UpsertBody::ToolCall { tool_output, .. } => tool_output.as_deref().unwrap_or_default(),
    }
}

/// The user's message, if it is one.
pub(super) fn user_text(item: &StoredItem) -> Option<&str> {
    match &item.upsert.body {
        UpsertBody::Message { content, origin: Origin::User } => Some(content),
        _ => None,
    }
}
