//! A disk that refuses: full, read-only, gone. The change fails, the old file stays, and all is well once it is back.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

use protocol::ErrorCode;
use serde_json::json;

use crate::support::{Fixture, Home, fixture_program};

/// Somebody who is not root, whom permissions bind.
const NOBODY: u32 = 65534;

fn count(answer: &serde_json::Value) -> usize {
    answer.as_array().unwrap().len()
}

#[test]
fn a_full_disk_fails_the_change_and_nothing_else() {
    let home = Home::new();
    let (first, second) = (home.directory("first"), home.directory("second"));
    // A process over its file-size limit sees what it would see on a full disk: half a write, then an error. The signal
    // that comes with it is ignored, as a disk sends none.
    let mut command = Command::new("sh");
    command.args(["-c", r#"trap "" XFSZ; exec "$0" "$@""#]).arg(fixture_program()).arg(home.data()).arg("serve");
    let mut fixture = Fixture::start(command);
    let project = fixture.ask(&format!("add {first}"))["ok"]["id"].as_str().unwrap().to_owned();
    assert_eq!(fixture.ask(&format!("session codex:a {project}")), json!({"ok": null}));
    let files = || (home.read("projects.json"), home.read("sessions.json"));
    let (names, before) = (home.names(), files());

    fixture.ask("disk-full 20");
    let refused = fixture.ask(&format!("add {second}"));
    assert_eq!(refused["error"], "STORAGE_FAILED");
    assert!(refused["message"].as_str().unwrap().contains("projects.json"), "{refused}");
    assert_eq!(fixture.ask(&format!("remove {project}"))["error"], "STORAGE_FAILED");
    assert_eq!(fixture.ask(&format!("session codex:b {project}"))["error"], "STORAGE_FAILED");
    fixture.ask("touch codex:a 5000");
    assert_eq!(fixture.ask("flush")["error"], "STORAGE_FAILED");
    assert_eq!(fixture.ask("flush")["error"], "STORAGE_FAILED", "not saved is not forgotten");
    assert_eq!((count(&fixture.ask("projects")), count(&fixture.ask("sessions"))), (1, 1));
    assert_eq!((home.names(), files()), (names, before), "old files whole, nothing left lying about");

    fixture.ask("disk-free");
    assert_eq!(fixture.ask("flush"), json!({"ok": null}));
    assert_eq!(home.json("sessions.json")["sessions"][0]["lastActiveAt"], "1970-01-01T00:00:05.000Z");
    assert_eq!(fixture.ask(&format!("add {second}"))["ok"]["path"], second);
    assert_eq!(fixture.ask(&format!("session codex:b {project}")), json!({"ok": null}));
    fixture.kill();
    let catalog = home.open();
    assert_eq!((catalog.projects().len(), catalog.all_sessions().len()), (2, 2));
}

/// TC-1.2b.
#[test]
fn a_directory_that_may_not_be_read_is_not_added() {
    let home = Home::new();
    let (data, secret) = (home.directory("data"), home.directory("secret"));
    let mut fixture = Fixture::start(as_nobody(&home, &data));
    fs::set_permissions(&secret, Permissions::from_mode(0o100)).unwrap();
    assert_eq!(fixture.ask(&format!("add {secret}"))["error"], "PROJECT_PATH_INVALID");
    assert_eq!(count(&fixture.ask("projects")), 0);
    fs::set_permissions(&secret, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(fixture.ask(&format!("add {secret}"))["ok"]["path"], secret);
}

/// The fixture on this data directory, run by somebody whom permissions bind.
fn as_nobody(home: &Home, data: &str) -> Command {
    let program = home.root().join("fixture");
    // By another process: what this one has open for writing, a test beside it may hand to a child, and no such file can be run.
    assert!(Command::new("cp").arg(fixture_program()).arg(&program).status().unwrap().success());
    let mut command = Command::new(&program);
    command.args([data, "serve"]);
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(home.root(), Permissions::from_mode(0o755)).unwrap();
        chown(data, Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

#[test]
fn a_read_only_directory_fails_the_change_and_nothing_else() {
    let home = Home::new();
    let (first, second, data) = (home.directory("first"), home.directory("second"), home.directory("data"));
    let mut fixture = Fixture::start(as_nobody(&home, &data));
    assert!(fixture.ask(&format!("add {first}"))["ok"].is_object());
    let before = home.read("projects.json");

    fs::set_permissions(&data, Permissions::from_mode(0o500)).unwrap();
    assert_eq!(fixture.ask(&format!("add {second}"))["error"], "STORAGE_FAILED");
    assert_eq!(count(&fixture.ask("projects")), 1);
    assert_eq!(home.read("projects.json"), before);

    fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
    assert!(fixture.ask(&format!("add {second}"))["ok"].is_object());
    assert_eq!(home.json("projects.json")["projects"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_data_directory_that_goes_away_and_comes_back_loses_nothing() {
    let home = Home::new();
    let catalog = home.open();
    let first = catalog.add_project(&home.directory("first")).await.unwrap();
    let away = home.root().join("away");
    fs::rename(home.data(), &away).unwrap();
    let error = catalog.add_project(&home.directory("second")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StorageFailed);
    assert_eq!(catalog.projects(), [first]);
    fs::rename(&away, home.data()).unwrap();
    catalog.add_project(&home.directory("second")).await.unwrap();
    assert_eq!(home.json("projects.json")["projects"].as_array().unwrap().len(), 2);
}
