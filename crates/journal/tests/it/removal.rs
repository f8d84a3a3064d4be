//! What is deleted is gone, also from the bytes of the files.

use std::fs;
use std::path::Path;
use std::process::Command;

use journal::{FailureKind, Journal, JournalError, Read, RowId, SqliteJournal};
use protocol::{Timestamp, TurnRecordStatus, UpsertStatus};
use rusqlite::Connection;

use crate::samples::{NOON_MS, Recording, ids, item_id, open};

/// Turns with prompts, tool calls and messages that grew piece by piece, some of them longer than a page.
async fn speak(s: &mut Recording, name: &str, marker: &str, turns: std::ops::Range<usize>, random: &mut fastrand::Rng) {
    for turn in turns {
        let turn = format!("{name}-{turn}");
        let record = s.turn(&turn, TurnRecordStatus::Completed);
        let prompt = s.change(s.prompt(&turn, &format!("{turn}-prompt"), &format!("{marker} please")));
        s.record(vec![prompt], vec![record]).await;
        for part in 0..3 {
            let item = format!("{turn}-{part}");
            let mut text = String::new();
            s.position += journal::POSITION_GAP;
            let position = s.position;
            for _ in 0..random.usize(1..8) {
                let from = text.len();
                let added = format!("{marker} {}", "x".repeat(random.usize(0..700)));
                text.push_str(&added);
                let piece = s.change_at(s.message(&turn, &item, &added, UpsertStatus::Update), position, from);
                s.record(vec![piece], vec![]).await;
            }
            let output = format!("{marker} {}", "y".repeat(random.usize(0..9000)));
            let tool = s.change(s.tool(&turn, &format!("{item}-tool"), Some(&output), UpsertStatus::Complete));
            let done = s.change_at(s.message(&turn, &item, &text, UpsertStatus::Complete), position, 0);
            s.record(vec![tool, done], vec![]).await;
        }
    }
}

fn holds(directory: &Path, marker: &str) -> bool {
    ["journal.db", "journal.db-wal"].iter().any(|name| {
        let bytes = fs::read(directory.join(name)).unwrap_or_default();
        bytes.windows(marker.len()).any(|window| window == marker.as_bytes())
    })
}

/// A copy, since closing the file would clear its log. Made by another process: SQLite loses its locks when its own one
/// opens and closes the file.
fn copy_of(directory: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let copied = Command::new("cp").arg("-r").arg(directory.join(".")).arg(copy.path()).status().unwrap();
    assert!(copied.success());
    copy
}

#[tokio::test]
async fn no_byte_of_a_deleted_session_stays_in_the_files() {
    // With seed 141 a row leaves its bytes behind in a page that it had to leave.
    for seed in [1, 2, 3, 141] {
        let directory = tempfile::tempdir().unwrap();
        let journal = open(directory.path());
        let mut random = fastrand::Rng::with_seed(seed);
        let mut kept = Recording::begin(&journal, "kept").await;
        let mut gone = Recording::begin(&journal, "gone").await;
        for round in 0..6 {
            speak(&mut kept, "k", "LOUD", round * 5..round * 5 + 5, &mut random).await;
            speak(&mut gone, "g", "QUIET", round * 5..round * 5 + 5, &mut random).await;
        }
        let open_item = gone.change(gone.message("g-0", "open", "QUIET and open", UpsertStatus::Create));
        gone.record(vec![open_item], vec![]).await;
        let before = kept.read(Read::Newest { limit: 1000 }).await;
        journal.delete(&gone.session).await.unwrap();
        assert_eq!(journal.find(&gone.session).await.unwrap(), None);
        assert_eq!(gone.read(Read::Newest { limit: 5 }).await.items, []);
        assert!(gone.journal.append(gone.batch(vec![], vec![])).await.unwrap().is_err());
        assert_eq!(kept.read(Read::Newest { limit: 1000 }).await, before);
        let report = journal.check().await.unwrap();
        assert_eq!((report.damage, report.contradictions), (vec![], vec![]));
        let copy = copy_of(directory.path());
        assert!(holds(copy.path(), "LOUD"));
        assert!(!holds(copy.path(), "QUIET"), "seed {seed}");
        journal.delete(&kept.session).await.unwrap();
        assert!(!holds(copy_of(directory.path()).path(), "LOUD"), "seed {seed}");
        journal.close().await;
    }
}

#[tokio::test]
async fn a_deletion_that_was_interrupted_is_finished_by_the_next_server() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path());
    let mut gone = Recording::begin(&journal, "gone").await;
    speak(&mut gone, "g", "QUIET", 0..20, &mut fastrand::Rng::with_seed(3)).await;
    journal.close().await;
    let connection = Connection::open(directory.path().join("journal.db")).unwrap();
    connection.execute_batch("UPDATE session SET name = NULL").unwrap();
    drop(connection);
    let journal = open(directory.path());
    assert_eq!(journal.settled_after(RowId(0), 9).await.unwrap(), []);
    // The writer answers when it has finished what was left.
    Recording::begin(&journal, "kept").await;
    journal.close().await;
    assert!(!holds(directory.path(), "QUIET"));
    let found = journal::inspect(directory.path()).unwrap().stats.unwrap();
    assert_eq!((found.sessions.len(), found.items), (1, 0));
}

#[tokio::test]
async fn a_reader_that_does_not_end_fails_the_deletion_and_a_second_try_finishes_it() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path());
    let mut gone = Recording::begin(&journal, "gone").await;
    speak(&mut gone, "g", "QUIET", 0..3, &mut fastrand::Rng::with_seed(3)).await;
    let reader = Connection::open(directory.path().join("journal.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM item").unwrap();
    let error = journal.delete(&gone.session).await.unwrap_err();
    assert_eq!(error.kind(), FailureKind::Locked, "{error}");
    assert_eq!(journal.find(&gone.session).await.unwrap(), None, "it is gone all the same");
    reader.execute_batch("COMMIT").unwrap();
    journal.delete(&gone.session).await.unwrap();
    assert_eq!(fs::metadata(directory.path().join("journal.db-wal")).unwrap().len() / 100_000, 0);
    drop(reader);
    journal.close().await;
    assert!(!holds(directory.path(), "QUIET"));
}

#[tokio::test]
async fn a_deleted_session_begins_anew_under_another_key() {
    let journal = SqliteJournal::in_memory().unwrap();
    let first = Recording::begin(&journal, "a").await;
    journal.delete(&first.session).await.unwrap();
    journal.delete(&first.session).await.unwrap();
    let second = Recording::begin(&journal, "a").await;
    assert_ne!(first.key, second.key);
    assert_eq!(second.seq, 0);
}

#[tokio::test]
async fn old_turns_are_pruned_with_their_items_and_the_file_shrinks() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path());
    let mut s = Recording::begin(&journal, "a").await;
    speak(&mut s, "old", "QUIET", 0..40, &mut fastrand::Rng::with_seed(1)).await;
    let mut recent = s.turn("recent", TurnRecordStatus::Completed);
    recent.record.ended_at = Some(Timestamp::from_unix_ms(NOON_MS + 100_000));
    let item = s.change(s.message("recent", "kept", "LOUD", UpsertStatus::Complete));
    s.record(vec![item], vec![recent]).await;
    let seq = s.seq;
    let pruned = journal.prune(Timestamp::from_unix_ms(NOON_MS + 50_000)).await.unwrap();
    assert_eq!((pruned.turns, pruned.items), (40, 40 * 7));
    assert!(pruned.freed_bytes > 100_000, "{pruned:?}");
    assert_eq!(ids(&s.read(Read::Newest { limit: 9 }).await), ["kept"]);
    let report = journal.check().await.unwrap();
    assert_eq!((report.damage, report.contradictions), (vec![], vec![]));
    let stats = journal.stats().await.unwrap();
    assert_eq!((stats.items, stats.turns, stats.free_bytes, stats.format), (1, 1, 0, 1));
    assert!(stats.disk_free_bytes.unwrap() > 0);
    journal.prune(Timestamp::from_unix_ms(NOON_MS * 2)).await.unwrap();
    journal.close().await;
    assert!(!holds(directory.path(), "QUIET"));
    let journal = open(directory.path());
    let head = journal.take_over(&s.session).await.unwrap();
    assert_eq!((head.seq, head.items), (seq, 0), "numbers never begin again");
    assert_eq!(journal.check().await.unwrap().contradictions, Vec::<String>::new());
}

#[tokio::test]
async fn a_journal_in_memory_forgets_its_oldest_items() {
    let journal = SqliteJournal::in_memory_up_to(10_000).unwrap();
    assert!(!journal.is_durable());
    let mut s = Recording::begin(&journal, "a").await;
    for number in 0..30 {
        let item = s.change(s.message("t", &format!("i{number}"), &"x".repeat(1000), UpsertStatus::Complete));
        s.record(vec![item], vec![]).await;
    }
    let kept = journal.stats().await.unwrap();
    assert!(kept.items >= 9 && kept.items <= 10, "{kept:?}");
    let page = s.read(Read::Newest { limit: 50 }).await;
    assert_eq!(page.items.len() as u64, kept.items);
    assert_eq!(page.items.last().unwrap().upsert.item_id, item_id("i29"));
    assert_eq!(journal.check().await.unwrap().contradictions, Vec::<String>::new());
}

#[tokio::test]
async fn a_closed_journal_refuses_and_does_not_hang() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path());
    let s = Recording::begin(&journal, "a").await;
    journal.close().await;
    journal.close().await;
    assert!(matches!(journal.append(s.batch(vec![], vec![])).await.unwrap(), Err(JournalError::Closed)));
    assert!(matches!(journal.take_over(&s.session).await, Err(JournalError::Closed)));
    assert!(matches!(journal.stats().await, Err(JournalError::Closed)));
}
