//! SIGKILL in the middle of writing, and a power cut that drops what was not synced.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::child::{Churn, Fixture, expect_recorded, fixture_program};

const KILLS: u64 = 25;

/// For what must happen at some time.
const DEADLINE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn whenever_it_is_killed_every_answered_batch_is_there_without_a_gap() {
    let kills = std::env::var("JOURNAL_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let directory = tempfile::tempdir().unwrap();
    for seed in 0..kills {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut churn = Churn::start(directory.path(), None);
        churn.read_lines(random.usize(5..200));
        // Anywhere in the writes that follow, not always right after an answer.
        std::thread::park_timeout(Duration::from_micros(random.u64(0..5000)));
        let answered = churn.kill();
        expect_recorded(directory.path(), &answered.committed).await;
        if seed % 5 == 4 {
            fs::remove_dir_all(directory.path()).unwrap();
            fs::create_dir(directory.path()).unwrap();
        }
    }
}

/// Keeps a copy of each file of the journal as it was at its last sync.
fn build_shim(directory: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/power_cut.c");
    let shim = directory.join("power_cut.so");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&shim).arg(source).arg("-ldl").status();
    assert!(built.unwrap().success(), "the C compiler that builds SQLite builds this too");
    shim
}

/// What the disk holds when the power goes: the files as they were synced last.
fn cut_power(data: &Path) -> tempfile::TempDir {
    let disk = tempfile::tempdir().unwrap();
    for name in ["journal.db", "journal.db-wal"] {
        let synced = data.join(format!("{name}.synced"));
        if synced.exists() {
            fs::copy(synced, disk.path().join(name)).unwrap();
        }
    }
    disk
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[tokio::test]
async fn after_a_power_cut_everything_confirmed_is_there() {
    let shims = tempfile::tempdir().unwrap();
    let shim = build_shim(shims.path());
    for seed in 0..6 {
        let data = tempfile::tempdir().unwrap();
        let mut churn = Churn::start(data.path(), Some(&shim));
        churn.read_lines(fastrand::Rng::with_seed(seed).usize(20..2000));
        let answered = churn.kill();
        assert!(!answered.confirmed.is_empty());
        let disk = cut_power(data.path());
        expect_recorded(disk.path(), &answered.confirmed).await;
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[tokio::test]
async fn what_nobody_waits_for_is_synced_soon_all_the_same() {
    let shims = tempfile::tempdir().unwrap();
    let shim = build_shim(shims.path());
    let data = tempfile::tempdir().unwrap();
    let mut command = Command::new(fixture_program());
    command.arg(data.path()).arg("serve").env("LD_PRELOAD", &shim);
    let mut fixture = Fixture::start(command);
    let synced = data.path().join("journal.db-wal.synced");
    let before = fs::metadata(&synced).unwrap().ino();
    let seq = fixture.ask("record aside")["seq"].as_u64().unwrap();
    let begun = Instant::now();
    while fs::metadata(&synced).unwrap().ino() == before {
        assert!(begun.elapsed() < DEADLINE, "never synced");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Nothing is left to do: another sync would be a write while idle.
    let after = fs::metadata(&synced).unwrap().ino();
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(fs::metadata(&synced).unwrap().ino(), after);
    drop(fixture);
    let disk = cut_power(data.path());
    let journal = crate::samples::open(disk.path());
    let head = journal::Journal::find(&journal, &crate::samples::session("0")).await.unwrap().unwrap();
    assert_eq!(head.seq, seq);
}
