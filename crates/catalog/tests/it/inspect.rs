//! A look from outside, which changes nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use catalog::{DirectoryState, Inspection, ListState, TokenState};

use crate::support::{Fixture, Home};

fn inspection(home: &Home) -> Inspection {
    Inspection::new(&home.data()).unwrap()
}

#[test]
fn a_directory_that_is_not_there_is_not_made() {
    let home = Home::new();
    let visit = inspection(&home);
    assert!(matches!(visit.directory_state().unwrap(), DirectoryState::Missing));
    assert_eq!(visit.server().unwrap(), None);
    assert_eq!(visit.token().unwrap(), None);
    assert_eq!(visit.token_state().unwrap(), TokenState::Missing);
    assert_eq!(visit.projects().unwrap(), ListState::Missing);
    assert_eq!(visit.agents_file().unwrap(), None);
    assert!(!home.data().exists());
}

#[test]
fn the_server_that_holds_the_directory_is_named_and_a_dead_one_is_not() {
    let home = Home::new();
    let mut server = Fixture::serve(&home.data());
    server.ask("announce http://127.0.0.1:3000");
    let holder = inspection(&home).server().unwrap().expect("it runs");
    assert_eq!((holder.pid, holder.address.as_deref()), (Some(server.pid()), Some("http://127.0.0.1:3000")));
    server.kill();
    assert_eq!(inspection(&home).server().unwrap(), None, "its file is still there, and names nobody");
}

#[test]
fn a_visitor_is_in_no_servers_way() {
    let home = Home::new();
    drop(home.open());
    let visit = inspection(&home);
    let visiting = std::thread::scope(|scope| {
        let visitor = scope.spawn(|| (0..20_000).filter(|_| visit.server().unwrap().is_some()).count());
        for _ in 0..20 {
            drop(home.open());
        }
        visitor.join().unwrap()
    });
    assert!(visiting <= 20_000);
}

#[test]
fn the_secret_and_its_errors_are_seen_and_left_as_they_are() {
    let home = Home::new();
    let token = home.open().token(&mut Vec::new()).unwrap();
    let visit = inspection(&home);
    assert_eq!(visit.token().unwrap(), Some(token.clone()));
    assert_eq!(visit.token_state().unwrap(), TokenState::Good);

    let file = home.data().join("token");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(visit.token_state().unwrap(), TokenState::OpenToOthers { mode: 0o644 });
    fs::write(&file, "short").unwrap();
    assert_eq!((visit.token().unwrap(), visit.token_state().unwrap()), (None, TokenState::Damaged));
    assert_eq!(fs::read_to_string(&file).unwrap(), "short");
}

#[test]
fn lists_are_judged_without_being_repaired() {
    let home = Home::new();
    drop(home.open());
    let visit = inspection(&home);
    let file = home.data().join("projects.json");
    let judged = |text: &str| {
        fs::write(&file, text).unwrap();
        let state = visit.projects().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        state
    };
    assert_eq!(judged(r#"{"version": 1, "projects": []}"#), ListState::Good { records: 0 });
    assert_eq!(judged(r#"{"version": 1, "projects": [7]}"#), ListState::PartlyUnreadable { records: 0, unreadable: 1 });
    assert_eq!(judged(r#"{"version": 2}"#), ListState::Newer { version: "2".into() });
    assert!(matches!(judged("{"), ListState::Damaged { .. }));
}
