//! Files that are not what they should be: a clear answer, never a panic, never an overwrite.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use journal::{Depth, FailureKind, Journal, JournalError, Read, SqliteJournal};
use protocol::{Timestamp, TurnRecordStatus, UpsertStatus};
use rusqlite::Connection;

use crate::child::copy;
use crate::samples::{Recording, ids, item_id, open, session};

/// Tries of the suite; more by JOURNAL_TRIES.
const TRIES: u64 = 40;

async fn sample(directory: &Path) {
    let journal = open(directory);
    for name in ["a", "b"] {
        let mut s = Recording::begin(&journal, name).await;
        for turn in 0..30 {
            let turn = format!("t{turn}");
            let record = s.turn(&turn, TurnRecordStatus::Completed);
            let prompt = s.change(s.prompt(&turn, &format!("{turn}-p"), "please"));
            let long = "long ".repeat(turn.len() * 700);
            let tool = s.change(s.tool(&turn, &format!("{turn}-c"), Some(&long), UpsertStatus::Complete));
            s.record(vec![prompt, tool], vec![record]).await;
        }
        let open = s.change(s.message("t29", "open", "not yet", UpsertStatus::Create));
        s.record(vec![open], vec![]).await;
    }
    journal.close().await;
}

/// Everything that can be asked. Errors are fine, panics are not.
async fn use_everything(journal: &SqliteJournal) {
    let mut errors = Vec::new();
    for name in ["a", "b", "c"] {
        errors.extend(journal.find(&session(name)).await.err());
        let head = match journal.take_over(&session(name)).await {
            Ok(head) => head,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        for read in [
            Read::Newest { limit: 1000 },
            Read::Since { seq: 3, limit: 1000 },
            Read::BeforeItem { item: item_id("t9-c"), limit: 10 },
            Read::Open,
        ] {
            errors.extend(journal.read(head.key, read).await.err());
        }
        errors.extend(journal.outline(head.key).await.err());
        errors.extend(journal.item(head.key, &item_id("t3-p")).await.err());
        let mut s = Recording {
            journal: journal.clone(),
            session: session(name),
            key: head.key,
            seq: head.seq,
            position: head.position.clamp(0, 1 << 50),
        };
        let settled = s.change(s.message("t29", "open", "now", UpsertStatus::Complete));
        let added = s.change(s.message("new", "new", "new", UpsertStatus::Update));
        errors.extend(journal.append(s.batch(vec![settled, added], vec![])).await.unwrap().err());
    }
    errors.extend(journal.settled_after(journal::RowId(0), 1000).await.err());
    errors.extend(journal.stats().await.err());
    errors.extend(journal.check().await.err());
    errors.extend(journal.delete(&session("b")).await.err());
    errors.extend(journal.prune(Timestamp::from_unix_ms(i64::MAX)).await.err());
    for error in errors {
        let text = error.to_string();
        assert!(!text.contains("panicked") && !text.contains("the reader stopped"), "{text}");
        assert_ne!(error.kind(), FailureKind::Locked, "{text}");
    }
    journal.close().await;
}

fn damage(file: &mut Vec<u8>, random: &mut fastrand::Rng) {
    let length = file.len();
    let at = if random.u8(0..4) == 0 { random.usize(0..200) } else { random.usize(0..length) };
    match random.u8(0..5) {
        0 => file[at] ^= 1 << random.u8(0..8),
        1 => {
            let end = (at + random.usize(1..64)).min(length);
            file[at..end].fill_with(|| random.u8(..));
        }
        2 => {
            let page = at / 8192 * 8192;
            let end = (page + 8192).min(length);
            file[page..end].fill(0);
        }
        3 => file.truncate(at),
        _ => {
            let (from, to) = (at / 8192 * 8192, random.usize(0..length / 8192) * 8192);
            file.copy_within(from..(from + 8192).min(length), to.min(length - 8192));
        }
    }
}

#[tokio::test]
async fn flipped_bytes_give_answers_or_errors_and_never_an_overwrite() {
    let tries = std::env::var("JOURNAL_TRIES").ok().and_then(|tries| tries.parse().ok()).unwrap_or(TRIES);
    let template = tempfile::tempdir().unwrap();
    sample(template.path()).await;
    for seed in 0..tries {
        let directory = tempfile::tempdir().unwrap();
        copy(template.path(), directory.path());
        let path = directory.path().join("journal.db");
        let mut bytes = fs::read(&path).unwrap();
        damage(&mut bytes, &mut fastrand::Rng::with_seed(seed));
        fs::write(&path, &bytes).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        journal::inspect(directory.path()).ok();
        journal::check_file(directory.path(), Depth::Quick).ok();
        assert!(fs::read(&path).unwrap() == bytes, "seed {seed}: looking changed it");
        match SqliteJournal::open(directory.path()) {
            Ok(opened) if opened.notices.is_empty() => {
                assert_eq!(journal::set_aside(directory.path()).len(), 0);
                use_everything(&opened.journal).await;
                assert_eq!(fs::metadata(&path).unwrap().ino(), inode, "seed {seed}: another file");
            }
            Ok(opened) => {
                let aside = journal::set_aside(directory.path());
                assert_eq!(aside.len(), 1);
                assert!(opened.notices[0].contains(&aside[0].display().to_string()), "{:?}", opened.notices);
                assert!(fs::read(&aside[0]).unwrap() == bytes, "seed {seed}: the damaged file was changed");
                use_everything(&opened.journal).await;
            }
            Err(error) => {
                assert!(matches!(error, JournalError::NewerVersion { .. }), "seed {seed}: {error}");
                assert!(fs::read(&path).unwrap() == bytes, "seed {seed}: the refused file was changed");
            }
        }
    }
}

#[tokio::test]
async fn a_damaged_log_gives_everything_in_front_of_the_damage() {
    let template = tempfile::tempdir().unwrap();
    sample(template.path()).await;
    let journal = open(template.path());
    let mut s = Recording::begin(&journal, "a").await;
    for number in 0..40 {
        let item = s.change(s.message("t", &format!("late{number}"), &"late ".repeat(300), UpsertStatus::Complete));
        s.record(vec![item], vec![]).await;
    }
    for seed in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let copied = Command::new("cp").arg("-r").arg(template.path().join(".")).arg(directory.path()).status();
        assert!(copied.unwrap().success());
        fs::remove_file(directory.path().join("journal.db-shm")).unwrap();
        let log = directory.path().join("journal.db-wal");
        let mut bytes = fs::read(&log).unwrap();
        damage(&mut bytes, &mut fastrand::Rng::with_seed(seed));
        fs::write(&log, &bytes).unwrap();
        let opened = SqliteJournal::open(directory.path()).unwrap();
        assert_eq!(opened.notices, Vec::<String>::new());
        let report = opened.journal.check().await.unwrap();
        assert_eq!((report.damage, report.contradictions), (vec![], vec![]), "seed {seed}");
        assert!(report.items >= 122);
        opened.journal.close().await;
    }
}

#[tokio::test]
async fn a_damaged_file_is_set_aside_with_its_log_and_a_new_one_begun() {
    for (content, log) in
        [(&b"this is no database, but a longer text than its header would be"[..], &b"log"[..]), (b"", b"x")]
    {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("journal.db"), content).unwrap();
        fs::write(directory.path().join("journal.db-wal"), log).unwrap();
        let opened = SqliteJournal::open(directory.path()).unwrap();
        let aside = journal::set_aside(directory.path());
        assert_eq!((opened.notices.len(), aside.len()), (1, 1));
        assert!(opened.notices[0].contains("Histories are read from the agents again where they keep them."));
        assert_eq!(fs::read(&aside[0]).unwrap(), content);
        assert_eq!(fs::read(format!("{}-wal", aside[0].display())).unwrap(), log);
        Recording::begin(&opened.journal, "a").await;
        opened.journal.close().await;
        // The one set aside before stays where it is.
        fs::write(directory.path().join("journal.db"), b"garbage again, and again longer than a header").unwrap();
        SqliteJournal::open(directory.path()).unwrap().journal.close().await;
        assert_eq!(journal::set_aside(directory.path()).len(), 2);
        assert_eq!(fs::read(&aside[0]).unwrap(), content);
    }
}

#[tokio::test]
async fn another_database_and_one_without_our_tables_are_set_aside() {
    for change in ["CREATE TABLE notes (text)", "PRAGMA user_version = 1; CREATE TABLE meta (key, value)"] {
        let directory = tempfile::tempdir().unwrap();
        Connection::open(directory.path().join("journal.db")).unwrap().execute_batch(change).unwrap();
        let opened = SqliteJournal::open(directory.path()).unwrap();
        assert_eq!((opened.notices.len(), journal::set_aside(directory.path()).len()), (1, 1));
        opened.journal.close().await;
    }
    let directory = tempfile::tempdir().unwrap();
    sample(directory.path()).await;
    let connection = Connection::open(directory.path().join("journal.db")).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF; DROP TABLE turn").unwrap();
    drop(connection);
    let opened = SqliteJournal::open(directory.path()).unwrap();
    assert!(opened.notices[0].contains("the table turn is missing"), "{:?}", opened.notices);
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    sample(directory.path()).await;
    let path = directory.path().join("journal.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(connection);
    let before = fs::read(&path).unwrap();
    for _ in 0..2 {
        let error = SqliteJournal::open(directory.path()).unwrap_err();
        assert!(matches!(error, JournalError::NewerVersion { found: 99, known: 1, .. }), "{error}");
    }
    assert!(matches!(journal::inspect(directory.path()), Err(JournalError::NewerVersion { .. })));
    assert!(fs::read(&path).unwrap() == before);
}

#[tokio::test]
async fn a_check_names_what_cannot_be_true() {
    for (change, finding) in [
        ("UPDATE turn SET last = first WHERE turn_id = 't4'; DELETE FROM item WHERE item_id = 't4-p'", "are missing"),
        ("DELETE FROM item WHERE item_id = 't7-c'", "items and has 60"),
        ("UPDATE item SET text = 'another text' WHERE item_id = 't7-p'", "bytes and has"),
        ("UPDATE item SET last = 5 WHERE item_id IN ('t1-c', 't1-p')", "two rows end with the number 5"),
        ("UPDATE item SET position = 7 WHERE item_id IN ('t1-c', 't1-p')", "two items have the position 7"),
        ("UPDATE session SET seq = 1000", "its last number should be 1000"),
        ("UPDATE open_text SET text = 'no'", "item open should have 7 bytes of text and has 2"),
        ("UPDATE item SET item_id = 'open' WHERE item_id = 't7-p'", "item open is settled and open"),
        ("UPDATE item SET item_id = 't7-p' WHERE item_id = 't8-p'", "item t7-p is settled twice"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        sample(directory.path()).await;
        let connection = Connection::open(directory.path().join("journal.db")).unwrap();
        connection.execute_batch(change).unwrap();
        drop(connection);
        let report = journal::check_file(directory.path(), Depth::Whole).unwrap().unwrap();
        let found = report.contradictions.iter().filter(|text| text.contains(finding)).count();
        assert_eq!(found, 2, "{change}: {:?}", report.contradictions);
        assert_eq!(report.damage, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_clock_that_is_set_back_changes_no_order() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path());
    let mut s = Recording::begin(&journal, "a").await;
    for (number, time) in [5000, 4000, 1, 3000].into_iter().enumerate() {
        let mut upsert = s.message("t", &format!("i{number}"), "text", UpsertStatus::Complete);
        upsert.source_timestamp = Timestamp::from_unix_ms(time);
        upsert.emitted_at = Timestamp::from_unix_ms(time - 10);
        let change = s.change(upsert.clone());
        s.record(vec![change], vec![]).await;
        assert_eq!(journal.item(s.key, &upsert.item_id).await.unwrap().unwrap().upsert, upsert);
    }
    assert_eq!(ids(&s.read(Read::Newest { limit: 9 }).await), ["i0", "i1", "i2", "i3"]);
    assert_eq!(ids(&s.read(Read::Since { seq: 2, limit: 9 }).await), ["i2", "i3"]);
}

#[tokio::test]
async fn looking_at_a_journal_creates_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let names = || {
        let mut names: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let nothing = journal::inspect(directory.path()).unwrap();
    assert_eq!((nothing.stats, names().len()), (None, 0));
    assert_eq!(journal::check_file(directory.path(), Depth::Whole).unwrap(), None);
    sample(directory.path()).await;
    let before = fs::read(directory.path().join("journal.db")).unwrap();
    let found = journal::inspect(directory.path()).unwrap().stats.unwrap();
    assert_eq!((found.items, found.turns, found.sessions.len(), found.format), (122, 60, 2, 1));
    for depth in [Depth::Quick, Depth::Whole] {
        let report = journal::check_file(directory.path(), depth).unwrap().unwrap();
        assert_eq!((report.items, report.damage.len(), report.contradictions.len()), (122, 0, 0));
    }
    assert_eq!(names(), ["journal.db"]);
    assert!(fs::read(directory.path().join("journal.db")).unwrap() == before);
    // While a server has it open, too.
    let journal = open(directory.path());
    Recording::begin(&journal, "c").await;
    assert_eq!(journal::inspect(directory.path()).unwrap().stats.unwrap().sessions.len(), 3);
}
