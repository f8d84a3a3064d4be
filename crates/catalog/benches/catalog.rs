//! A hundred projects of five hundred sessions: how long a start, a change and a list take.

#![expect(clippy::unwrap_used, reason = "a benchmark that fails should stop")]

use std::path::Path;

use catalog::{Catalog, SessionRecord};
use divan::Bencher;
use protocol::{ProjectId, SessionId, Timestamp};
use serde_json::json;

const PROJECTS: usize = 100;
const SESSIONS_PER_PROJECT: usize = 500;

fn main() {
    divan::main();
}

/// Files as the catalog writes them.
fn fill(directory: &Path) -> ProjectId {
    let time = "2026-11-15T21:15:56.123Z";
    let id = |project: usize| format!("00000000-0000-5000-8000-{project:012}");
    let projects: Vec<_> = (0..PROJECTS)
        .map(|project| json!({"id": id(project), "path": format!("/home/user/code/{project}"), "name": project.to_string(), "addedAt": time}))
        .collect();
    let sessions: Vec<_> = (0..PROJECTS * SESSIONS_PER_PROJECT)
        .map(|session| SessionRecord {
            title: format!("Refactor the session manager, part {session}"),
            last_active_at: Timestamp::from_unix_ms(1_794_777_356_000 + session as i64),
            ..SessionRecord::new(
                SessionId::parse(format!("claude-code:01938d2e-0000-7000-8000-{session:012}")).unwrap(),
                ProjectId::parse(id(session % PROJECTS)).unwrap(),
                Timestamp::from_unix_ms(1_794_777_356_000),
            )
        })
        .collect();
    let write = |name: &str, value: serde_json::Value| {
        std::fs::write(directory.join(name), serde_json::to_vec_pretty(&value).unwrap()).unwrap();
    };
    write("projects.json", json!({"version": 1, "projects": projects}));
    write("sessions.json", json!({"version": 1, "sessions": sessions}));
    ProjectId::parse(id(0)).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

#[divan::bench(sample_count = 20)]
fn open_50_000_sessions(bencher: Bencher) {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path());
    bencher.bench_local(|| Catalog::open(directory.path()).unwrap());
}

#[divan::bench(sample_count = 20)]
fn one_change_among_50_000_sessions(bencher: Bencher) {
    let directory = tempfile::tempdir().unwrap();
    let project = fill(directory.path());
    let catalog = Catalog::open(directory.path()).unwrap().catalog;
    let id = catalog.sessions(&project)[0].id.clone();
    let (runtime, mut count) = (runtime(), 0);
    bencher.bench_local(|| {
        count += 1;
        runtime.block_on(catalog.set_title(&id, &format!("title {count}"))).unwrap();
    });
}

#[divan::bench(sample_count = 20)]
fn a_hundred_changes_at_once_among_50_000_sessions(bencher: Bencher) {
    let directory = tempfile::tempdir().unwrap();
    let project = fill(directory.path());
    let catalog = Catalog::open(directory.path()).unwrap().catalog;
    let sessions: Vec<_> = catalog.sessions(&project).into_iter().take(100).map(|session| session.id).collect();
    let (runtime, mut count) = (runtime(), 0);
    bencher.bench_local(|| {
        count += 1;
        runtime.block_on(async {
            let mut changes = tokio::task::JoinSet::new();
            for id in &sessions {
                let (catalog, id, title) = (catalog.clone(), id.clone(), format!("title {count}"));
                changes.spawn(async move { catalog.set_title(&id, &title).await.unwrap() });
            }
            changes.join_all().await;
        });
    });
}

#[divan::bench]
fn list_one_project_of_500(bencher: Bencher) {
    let directory = tempfile::tempdir().unwrap();
    let project = fill(directory.path());
    let catalog = Catalog::open(directory.path()).unwrap().catalog;
    bencher.bench_local(|| catalog.sessions(&project));
}

/// While the writer is at work all the time.
#[divan::bench]
fn touch_and_read_back_during_writes(bencher: Bencher) {
    let directory = tempfile::tempdir().unwrap();
    let project = fill(directory.path());
    let catalog = Catalog::open(directory.path()).unwrap().catalog;
    let id = catalog.sessions(&project)[0].id.clone();
    let (writing, id_renamed) = (catalog.clone(), catalog.sessions(&project)[1].id.clone());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = runtime();
            for count in 0.. {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                runtime.block_on(writing.set_title(&id_renamed, &format!("title {count}"))).unwrap();
            }
        });
        let mut at = 1_900_000_000_000;
        bencher.bench_local(|| {
            at += 1;
            catalog.turn_ended(&id, Timestamp::from_unix_ms(at));
            catalog.session(&id)
        });
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
