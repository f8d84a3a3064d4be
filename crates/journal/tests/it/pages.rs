//! What was recorded comes back, by page.

use journal::{Journal, JournalError, Read, RowId, SqliteJournal};
use protocol::{TurnRecordStatus, UpsertStatus};

use crate::samples::{Recording, ids, item_id, open, session};

/// A turn with a prompt, three settled items and one that still grows.
async fn recorded(journal: &SqliteJournal) -> Recording {
    let mut s = Recording::begin(journal, "a").await;
    let turn = s.turn("t1", TurnRecordStatus::Running);
    let prompt = s.change(s.prompt("t1", "i1", "Hello"));
    let answer = s.change(s.message("t1", "i2", "Good day", UpsertStatus::Complete));
    let tool = s.change(s.tool("t1", "i3", Some(""), UpsertStatus::Complete));
    let open = s.change(s.message("t1", "i4", "I am", UpsertStatus::Create));
    let position = open.position;
    s.record(vec![prompt, answer, tool, open], vec![turn]).await;
    let more = s.change_at(s.message("t1", "i4", " thinking", UpsertStatus::Update), position, 4);
    s.record(vec![more], vec![]).await;
    s
}

async fn both(check: impl AsyncFn(SqliteJournal)) {
    let directory = tempfile::tempdir().unwrap();
    check(open(directory.path())).await;
    check(SqliteJournal::in_memory().unwrap()).await;
}

#[tokio::test]
async fn the_newest_page_is_in_display_order_with_open_items_and_their_turn() {
    both(async |journal| {
        let s = recorded(&journal).await;
        let page = s.read(Read::Newest { limit: 3 }).await;
        assert_eq!(ids(&page), ["i2", "i3", "i4"]);
        assert!(page.more);
        assert_eq!(page.items[2].upsert, s.message("t1", "i4", "I am thinking", UpsertStatus::Update));
        assert_eq!((page.items[2].first, page.items[2].last), (5, 6));
        assert_eq!(page.items[1].upsert, s.tool("t1", "i3", Some(""), UpsertStatus::Complete));
        assert_eq!(page.turns.len(), 1);
        let older = s.read(Read::Before { position: page.items[0].position, limit: 3 }).await;
        assert_eq!((ids(&older), older.more), (vec!["i1"], false));
        let same = s.read(Read::BeforeItem { item: item_id("i2"), limit: 3 }).await;
        assert_eq!(same, older);
    })
    .await;
}

#[tokio::test]
async fn an_item_that_is_settled_covers_all_its_numbers_and_keeps_its_place() {
    both(async |journal| {
        let mut s = recorded(&journal).await;
        let done = s.change_at(s.message("t1", "i4", "I am done", UpsertStatus::Complete), 0, 0);
        s.record(vec![done], vec![]).await;
        let item = journal.item(s.key, &item_id("i4")).await.unwrap().unwrap();
        assert_eq!((item.first, item.last), (5, 7));
        assert_eq!(item.upsert, s.message("t1", "i4", "I am done", UpsertStatus::Complete));
        assert_eq!(ids(&s.read(Read::Newest { limit: 9 }).await), ["i1", "i2", "i3", "i4"]);
        assert_eq!(ids(&s.read(Read::Open).await), Vec::<&str>::new());
    })
    .await;
}

#[tokio::test]
async fn since_gives_what_changed_and_nothing_else() {
    both(async |journal| {
        let s = recorded(&journal).await;
        let page = s.read(Read::Since { seq: 3, limit: 9 }).await;
        assert_eq!((ids(&page), page.turns.len(), page.more), (vec!["i3", "i4"], 0, false));
        assert_eq!(s.read(Read::Since { seq: 0, limit: 9 }).await.turns.len(), 1);
        assert!(s.read(Read::Since { seq: 0, limit: 3 }).await.more);
        assert_eq!(ids(&s.read(Read::Since { seq: 6, limit: 9 }).await), Vec::<&str>::new());
    })
    .await;
}

#[tokio::test]
async fn an_unknown_item_is_an_error_and_a_page_in_front_of_it_too() {
    both(async |journal| {
        let s = recorded(&journal).await;
        assert_eq!(journal.item(s.key, &item_id("none")).await.unwrap(), None);
        let read = Read::BeforeItem { item: item_id("none"), limit: 9 };
        let error = journal.read(s.key, read).await.unwrap_err();
        assert!(matches!(error, JournalError::UnknownItem(_)), "{error}");
    })
    .await;
}

#[tokio::test]
async fn text_that_does_not_continue_what_is_recorded_is_refused_and_nothing_of_its_batch_is_written() {
    both(async |journal| {
        let mut s = recorded(&journal).await;
        let before = s.read(Read::Newest { limit: 9 }).await;
        let fine = s.change(s.message("t1", "i5", "fine", UpsertStatus::Complete));
        let wrong = s.change_at(s.message("t1", "i4", "!", UpsertStatus::Update), 0, 12);
        let refused = journal.append(s.batch(vec![fine.clone(), wrong], vec![])).await.unwrap();
        assert!(matches!(refused, Err(JournalError::Write { .. })), "{refused:?}");
        assert_eq!(s.read(Read::Newest { limit: 9 }).await, before);
        assert_eq!(*journal.health().borrow(), journal::Health::Writing);
        s.record(vec![fine], vec![]).await;
    })
    .await;
}

#[tokio::test]
async fn an_epoch_rises_with_every_server_and_numbers_continue() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path());
    let s = recorded(&journal).await;
    let id = journal.id().to_owned();
    journal.close().await;
    let journal = open(directory.path());
    assert_eq!(journal.id(), id);
    assert_eq!(journal.find(&session("b")).await.unwrap(), None);
    let found = journal.find(&s.session).await.unwrap().unwrap();
    assert_eq!((found.epoch, found.seq, found.items, found.epoch_ends.len()), (1, 6, 4, 0));
    let head = journal.take_over(&s.session).await.unwrap();
    assert_eq!((head.epoch, head.seq, head.position), (2, 6, s.position));
    assert_eq!(head.epoch_ends, [(1, 6)]);
    let again = journal.take_over(&s.session).await.unwrap();
    assert_eq!(again.epoch_ends, [(1, 6), (2, 6)]);
}

#[tokio::test]
async fn an_outline_has_the_prompt_the_answer_and_the_items_of_every_turn() {
    both(async |journal| {
        let s = recorded(&journal).await;
        let outline = journal.outline(s.key).await.unwrap();
        assert_eq!(outline.len(), 1);
        assert_eq!(outline[0].prompt.as_deref(), Some("Hello"));
        assert_eq!(outline[0].answer.as_deref(), Some("Good day"));
        assert_eq!(outline[0].items.len(), 4);
        assert_eq!(outline[0].last_position, s.position);
        assert!(!outline[0].has_ended);
    })
    .await;
}

#[tokio::test]
async fn a_follower_reads_on_from_its_own_mark_and_sees_a_changed_item_again() {
    both(async |journal| {
        let mut s = recorded(&journal).await;
        let mut news = journal.follow();
        let mark = *news.borrow_and_update();
        let seen = journal.settled_after(RowId(0), 99).await.unwrap();
        assert_eq!(seen.iter().map(|item| item.item.upsert.item_id.as_str()).collect::<Vec<_>>(), ["i1", "i2", "i3"]);
        assert_eq!((seen[2].row, &seen[2].session), (mark, &s.session));
        let again = s.change_at(s.message("t1", "i2", "Good evening", UpsertStatus::Complete), 0, 0);
        s.record(vec![again], vec![]).await;
        assert!(news.has_changed().unwrap());
        let seen = journal.settled_after(mark, 99).await.unwrap();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].item.upsert, s.message("t1", "i2", "Good evening", UpsertStatus::Complete));
        assert_eq!((seen[0].item.first, seen[0].item.last), (3, 7));
        assert_eq!(ids(&s.read(Read::Newest { limit: 9 }).await), ["i1", "i2", "i3", "i4"], "its place stays");
        assert_eq!(journal.check().await.unwrap().contradictions, Vec::<String>::new());
    })
    .await;
}

#[tokio::test]
async fn a_journal_of_format_1_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/format-1.db");
    std::fs::copy(stored, directory.path().join("journal.db")).unwrap();
    let journal = open(directory.path());
    assert_eq!(journal.id(), "5fa5a2f5-5d6c-4c4f-9d0c-0d8a3f1c7b11");
    let head = journal.take_over(&session("a")).await.unwrap();
    assert_eq!((head.epoch, head.seq, head.items), (2, 6, 4));
    let page = journal.read(head.key, Read::Newest { limit: 9 }).await.unwrap();
    assert_eq!(ids(&page), ["i1", "i2", "i3", "i4"]);
    let sample = Recording { journal: journal.clone(), session: session("a"), key: head.key, seq: 6, position: 0 };
    assert_eq!(page.items[2].upsert, sample.tool("t1", "i3", Some(""), UpsertStatus::Complete));
    assert_eq!(page.items[3].upsert, sample.message("t1", "i4", "I am thinking", UpsertStatus::Update));
    assert_eq!(page.turns[0].record.model_id.as_deref(), Some("demo-1"));
    let report = journal.check().await.unwrap();
    assert_eq!((report.damage, report.contradictions), (vec![], vec![]));
}

/// Writes the file for the test above, once per format: `cargo test -p journal write_the_file -- --ignored`.
#[tokio::test]
#[ignore = "writes a file of this repository"]
async fn write_the_file_of_this_format() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path());
    recorded(&journal).await;
    journal.close().await;
    let path = directory.path().join("journal.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    let id = "UPDATE meta SET value = '5fa5a2f5-5d6c-4c4f-9d0c-0d8a3f1c7b11' WHERE key = 'journal_id'";
    connection.execute_batch(id).unwrap();
    drop(connection);
    std::fs::copy(path, concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/format-1.db")).unwrap();
}
