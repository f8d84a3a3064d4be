//! Items, turns and batches to record, and short ways to record them.

use std::path::Path;
use std::sync::Arc;

use journal::{
    Batch, ItemChange, Journal, POSITION_GAP, Page, Read, SessionHead, SessionKey, SqliteJournal, TurnChange,
    TurnOrigin,
};
use protocol::{
    CallId, ItemId, Origin, SessionId, Timestamp, ToolDetail, TurnId, TurnRecord, TurnRecordStatus, Upsert, UpsertBody,
    UpsertStatus,
};

/// 15 November 2026.
pub(crate) const NOON_MS: i64 = 1_794_744_000_000;

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::parse(format!("demo:{name}")).unwrap()
}

pub(crate) fn item_id(name: &str) -> ItemId {
    ItemId::parse(name).unwrap()
}

pub(crate) fn turn_id(name: &str) -> TurnId {
    TurnId::parse(name).unwrap()
}

pub(crate) fn open(directory: &Path) -> SqliteJournal {
    let opened = SqliteJournal::open(directory).unwrap();
    assert_eq!(opened.notices, Vec::<String>::new());
    opened.journal
}

/// One session that is being recorded: gives numbers and positions as a session does.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) journal: SqliteJournal,
    pub(crate) session: SessionId,
    pub(crate) key: SessionKey,
    pub(crate) seq: u64,
    pub(crate) position: i64,
}

impl Recording {
    pub(crate) async fn begin(journal: &SqliteJournal, name: &str) -> Self {
        let session = session(name);
        let SessionHead { key, seq, position, .. } = journal.take_over(&session).await.unwrap();
        Self { journal: journal.clone(), session, key, seq, position }
    }

    pub(crate) fn message(&self, turn: &str, item: &str, text: &str, status: UpsertStatus) -> Upsert {
        let body = UpsertBody::Message { content: text.into(), origin: Origin::Agent };
        self.upsert(turn, item, body, status)
    }

    pub(crate) fn prompt(&self, turn: &str, item: &str, text: &str) -> Upsert {
        let body = UpsertBody::Message { content: text.into(), origin: Origin::User };
        self.upsert(turn, item, body, UpsertStatus::Complete)
    }

    pub(crate) fn tool(&self, turn: &str, item: &str, output: Option<&str>, status: UpsertStatus) -> Upsert {
        let body = UpsertBody::ToolCall {
            tool_name: "Read".into(),
            tool_arguments: Arc::new([("path".to_owned(), "/a/b".into())].into_iter().collect()),
            call_id: CallId::parse(format!("call-{item}")).unwrap(),
            tool_output: output.map(Into::into),
            tool_output_is_error: output.map(|_| false),
            tool: Some(Arc::new(ToolDetail::default())),
        };
        self.upsert(turn, item, body, status)
    }

    pub(crate) fn upsert(&self, turn: &str, item: &str, body: UpsertBody, status: UpsertStatus) -> Upsert {
        Upsert {
            turn_id: turn_id(turn),
            session_id: Some(self.session.clone()),
            item_id: item_id(item),
            source_timestamp: Timestamp::from_unix_ms(NOON_MS),
            emitted_at: Timestamp::from_unix_ms(NOON_MS + 5),
            status,
            error_code: None,
            error_message: None,
            parent_item_id: None,
            body,
            view: Default::default(),
        }
    }

    /// The next change, behind everything that is there.
    pub(crate) fn change(&mut self, upsert: Upsert) -> ItemChange {
        self.position += POSITION_GAP;
        self.change_at(upsert, self.position, 0)
    }

    pub(crate) fn change_at(&mut self, upsert: Upsert, position: i64, text_from: usize) -> ItemChange {
        self.seq += 1;
        ItemChange { upsert, text_from, position, first: self.seq, last: self.seq }
    }

    pub(crate) fn turn(&mut self, turn: &str, status: TurnRecordStatus) -> TurnChange {
        self.position += POSITION_GAP;
        self.seq += 1;
        let has_ended = status != TurnRecordStatus::Running;
        let record = TurnRecord {
            turn_id: turn_id(turn),
            status,
            started_at: Timestamp::from_unix_ms(NOON_MS),
            ended_at: has_ended.then(|| Timestamp::from_unix_ms(NOON_MS + 1000)),
            model_id: Some("demo-1".into()),
            usage: None,
            error_code: None,
            error_message: None,
            forgotten: false,
        };
        TurnChange { record, origin: TurnOrigin::Live, position: self.position, first: self.seq, last: self.seq }
    }

    pub(crate) fn batch(&self, items: Vec<ItemChange>, turns: Vec<TurnChange>) -> Batch {
        Batch { session: self.key, confirmed: false, items, turns, marks: Vec::new(), facts: None, completes: false }
    }

    pub(crate) async fn record(&self, items: Vec<ItemChange>, turns: Vec<TurnChange>) {
        self.journal.append(self.batch(items, turns)).await.unwrap().unwrap();
    }

    pub(crate) async fn read(&self, read: Read) -> Page {
        self.journal.read(self.key, read).await.unwrap()
    }
}

pub(crate) fn ids(page: &Page) -> Vec<&str> {
    page.items.iter().map(|item| item.upsert.item_id.as_str()).collect()
}
