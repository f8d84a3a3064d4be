//! A disk that refuses: full, read-only, locked.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use journal::{FailureKind, Health, Journal, JournalError, Read, SqliteJournal};
use protocol::UpsertStatus;
use rusqlite::Connection;

use crate::child::{Fixture, fixture_program};
use crate::samples::{Recording, ids, open, session};

/// Somebody who is not root, whom permissions bind.
const NOBODY: u32 = 65534;

#[tokio::test]
async fn a_full_disk_fails_the_batch_and_is_caught_up_when_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    // A process over its file-size limit sees what it would see on a full disk: half a write, then an error. The signal
    // that comes with it is ignored, as a disk sends none.
    let mut command = Command::new("sh");
    command.args(["-c", r#"trap "" XFSZ; exec "$0" "$@""#]).arg(fixture_program()).arg(directory.path()).arg("serve");
    let mut fixture = Fixture::start(command);
    let small = "x".repeat(100);
    assert_eq!(fixture.ask(&format!("confirm {small}"))["seq"], 1);
    for limit in ["4096", "100000", "300000"] {
        fixture.ask(&format!("disk-full {limit}"));
        let large = "y".repeat(400_000);
        for _ in 0..2 {
            let refused = fixture.ask(&format!("confirm {large}"));
            assert_eq!(refused["error"], "DiskFull", "{refused}");
            assert_eq!(fixture.ask("health"), "DiskFull");
        }
        fixture.ask("disk-free");
        assert!(fixture.ask(&format!("confirm {small}"))["seq"].is_u64());
        assert_eq!(fixture.ask("health"), "writing");
    }
    drop(fixture);
    let journal = open(directory.path());
    assert_eq!(journal.find(&session("0")).await.unwrap().unwrap().seq, 4);
    let report = journal.check().await.unwrap();
    assert_eq!((report.damage, report.contradictions), (vec![], vec![]));
}

/// The fixture on a data directory, run by somebody whom permissions bind.
fn as_nobody(root: &Path, data: &Path) -> Command {
    let program = root.join("fixture");
    // By another process: what this one has open for writing, a test beside it may hand to a child, and no such file
    // can be run.
    assert!(Command::new("cp").arg(fixture_program()).arg(&program).status().unwrap().success());
    let mut command = Command::new(&program);
    command.arg(data).arg("serve");
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(root, Permissions::from_mode(0o755)).unwrap();
        for entry in [data.to_owned()].into_iter().chain(fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path()))
        {
            chown(entry, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

#[test]
fn a_read_only_file_or_directory_is_refused_and_left_as_it_is() {
    for (file_mode, directory_mode) in [(0o400, 0o700), (0o600, 0o500), (0o400, 0o500)] {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        fs::create_dir(&data).unwrap();
        let mut fixture = Fixture::start(as_nobody(root.path(), &data));
        assert_eq!(fixture.ask("confirm hello")["seq"], 1);
        drop(fixture);
        // A server that was ended leaves a log; one that stopped does not.
        let connection = Connection::open(data.join("journal.db")).unwrap();
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        drop(connection);
        let file = data.join("journal.db");
        let before = fs::read(&file).unwrap();
        let command = as_nobody(root.path(), &data);
        fs::set_permissions(&file, Permissions::from_mode(file_mode)).unwrap();
        fs::set_permissions(&data, Permissions::from_mode(directory_mode)).unwrap();
        let fixture = Fixture::start(command);
        assert_eq!(fixture.greeting["error"], "ReadOnly", "{}", fixture.greeting);
        assert!(fixture.greeting["message"].as_str().unwrap().contains("read-only"), "{}", fixture.greeting);
        drop(fixture);
        assert!(fs::read(&file).unwrap() == before);
        assert_eq!(journal::set_aside(&data), Vec::<std::path::PathBuf>::new());
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
        let greeting = Fixture::start(as_nobody(root.path(), &data)).greeting.clone();
        assert_eq!(greeting["seq"], 1, "{greeting}");
    }
}

#[tokio::test]
async fn only_its_owner_may_read_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path());
    Recording::begin(&journal, "a").await;
    for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        let mode = fs::metadata(directory.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_file_that_another_program_holds_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    open(directory.path()).close().await;
    let file = directory.path().join("journal.db");
    let before = fs::read(&file).unwrap();
    let other = Connection::open(&file).unwrap();
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    let error = SqliteJournal::open(directory.path()).unwrap_err();
    assert_eq!(error.kind(), FailureKind::Locked, "{error}");
    assert!(error.to_string().contains("another program holds the file"), "{error}");
    drop(other);
    assert!(fs::read(&file).unwrap() == before);
    open(directory.path());
}

#[tokio::test]
async fn a_lock_that_goes_away_fails_what_was_written_meanwhile_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path());
    let mut s = Recording::begin(&journal, "a").await;
    let other = Connection::open(directory.path().join("journal.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let item = s.change(s.message("t", "i", "text", UpsertStatus::Complete));
    let error = journal.append(s.batch(vec![item.clone()], vec![])).await.unwrap().unwrap_err();
    assert!(matches!(error, JournalError::Write { kind: FailureKind::Locked, .. }), "{error:?}");
    assert!(matches!(*journal.health().borrow(), Health::Failing { kind: FailureKind::Locked, .. }));
    assert_eq!(ids(&s.read(Read::Newest { limit: 5 }).await), Vec::<&str>::new());
    other.execute_batch("ROLLBACK").unwrap();
    s.record(vec![item], vec![]).await;
    assert_eq!(*journal.health().borrow(), Health::Writing);
    assert_eq!(ids(&s.read(Read::Newest { limit: 5 }).await), ["i"]);
}

#[tokio::test]
async fn one_bad_batch_does_not_fail_those_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path());
    let mut s = Recording::begin(&journal, "a").await;
    let mut other = Recording::begin(&journal, "b").await;
    let mut answers = Vec::new();
    for number in 0..40 {
        let good = s.change(s.message("t", &format!("i{number}"), "text", UpsertStatus::Complete));
        answers.push((true, journal.append(s.batch(vec![good], vec![]))));
        let bad = other.change_at(other.message("t", "open", "text", UpsertStatus::Update), 1, 99);
        answers.push((false, journal.append(other.batch(vec![bad], vec![]))));
    }
    for (is_good, answer) in answers {
        assert_eq!(answer.await.unwrap().is_ok(), is_good);
    }
    assert_eq!(s.read(Read::Newest { limit: 99 }).await.items.len(), 40);
    assert_eq!(journal.find(&other.session).await.unwrap().unwrap().seq, 0);
}
