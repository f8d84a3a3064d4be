//! The browsers that were admitted, as they are saved.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use catalog::{BrowserList, BrowserRecord, Catalog, CatalogError};
use protocol::Timestamp;

use crate::support::Home;

fn record(id: &str, hash: char) -> BrowserRecord {
    BrowserRecord {
        id: id.into(),
        hash: hash.to_string().repeat(64),
        label: "Firefox on Linux".into(),
        added_at: Timestamp::from_unix_ms(0),
        last_used_at: Timestamp::from_unix_ms(1),
        extra: serde_json::Map::new(),
    }
}

fn read(catalog: &Catalog) -> (BrowserList, Vec<String>) {
    let mut notices = Vec::new();
    let list = catalog.browsers(&mut notices).unwrap();
    (list, notices)
}

#[test]
fn the_list_comes_back_as_it_was_kept_with_fields_of_later_builds() {
    let home = Home::new();
    let catalog = home.open();
    assert_eq!(read(&catalog), (BrowserList::default(), Vec::new()));
    let list = BrowserList {
        secret: "f".into(),
        browsers: vec![record("aa", 'a'), record("bb", 'b')],
        ..BrowserList::default()
    };
    catalog.save_browsers(&list).unwrap();
    assert_eq!(fs::metadata(home.data().join("browsers.json")).unwrap().permissions().mode() & 0o777, 0o600);
    let mut saved = home.json("browsers.json");
    assert_eq!(saved["version"], 1);
    saved["later"] = "saved".into();
    saved["browsers"][1]["colour"] = "red".into();
    home.write("browsers.json", &saved.to_string());
    let (list, notices) = read(&catalog);
    assert_eq!((list.browsers.len(), notices.len()), (2, 0));
    catalog.save_browsers(&list).unwrap();
    assert_eq!(home.json("browsers.json"), saved);
}

#[test]
fn a_damaged_list_is_set_aside_and_lets_nobody_in() {
    for broken in [
        "",
        "{",
        "[]",
        r#"{"version": 1}"#,
        r#"{"version": 1, "browsers": []}"#,
        r#"{"version": 1, "secret": 7, "browsers": []}"#,
        &"x".repeat(2 * 1024 * 1024),
    ] {
        let home = Home::new();
        home.write("browsers.json", broken);
        let (list, notices) = read(&home.open());
        assert_eq!(list, BrowserList::default());
        let aside = home.one_named("browsers.json.damaged-");
        assert_eq!(home.read(&aside), broken);
        assert!(notices.len() == 1 && notices[0].contains(&aside), "{notices:?}");
    }
}

#[test]
fn an_entry_that_cannot_be_read_is_left_out_and_the_file_as_it_was_is_kept() {
    let home = Home::new();
    let good = serde_json::to_value(record("aa", 'a')).unwrap();
    let bad = ["id", "hash", "label", "addedAt"].map(|field| {
        let mut bad = serde_json::to_value(record("bb", 'b')).unwrap();
        bad[field] = if field == "label" { 7.into() } else { "<nonsense>".into() };
        bad
    });
    let mut long = serde_json::to_value(record("cc", 'c')).unwrap();
    long["label"] = format!("\u{1b}[2J{}", "x".repeat(500)).into();
    let browsers: Vec<_> = [&good, &good].into_iter().chain(&bad).chain([&long]).collect();
    let text = serde_json::json!({"version": 1, "secret": "f", "browsers": browsers}).to_string();
    home.write("browsers.json", &text);
    let catalog = home.open();
    let (list, notices) = read(&catalog);
    assert_eq!(list.browsers.iter().map(|record| record.id.as_str()).collect::<Vec<_>>(), ["aa", "cc"]);
    assert!(list.browsers[1].label.chars().count() == 80 && !list.browsers[1].label.contains('\u{1b}'));
    assert!(notices.len() == 1 && notices[0].contains("5 entries"), "{notices:?}");
    assert_eq!(home.read(&home.one_named("browsers.json.damaged-")), text);
    assert_eq!(read(&catalog).1, Vec::<String>::new(), "reported once");
}

#[test]
fn a_newer_list_is_refused_and_left_alone() {
    let home = Home::new();
    let newer = r#"{"version": 2, "anything": true}"#;
    home.write("browsers.json", newer);
    let refused = home.open().browsers(&mut Vec::new()).unwrap_err();
    assert!(matches!(refused, CatalogError::NewerVersion { .. }), "{refused}");
    assert_eq!(home.read("browsers.json"), newer);
}

#[test]
fn a_redirect_file_is_private_goes_when_dropped_and_does_not_outlive_a_crash() {
    let home = Home::new();
    let catalog = home.open();
    let file = catalog.redirect_file("<p>").unwrap();
    let path = file.path().to_owned();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(&path).unwrap(), "<p>");
    drop(file);
    assert!(!path.exists());
    std::mem::forget(catalog.redirect_file("<p>").unwrap());
    drop(catalog);
    home.one_named(".open-");
    home.open();
    assert!(home.names().iter().all(|name| !name.starts_with(".open-")));
}
