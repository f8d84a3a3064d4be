use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn agent(name: &str, command: &str, args: &[&str], env: &[(&str, &str)]) -> AgentDefinition {
    AgentDefinition {
        name: name.into(),
        command: command.into(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: env.iter().map(|(name, value)| EnvVariable { name: (*name).into(), value: (*value).into() }).collect(),
    }
}

fn text(text: &str) -> AgentsText {
    AgentsText::new(Some(text.into()))
}

fn save(replaces: Option<&str>, definition: AgentDefinition) -> AgentsChange {
    AgentsChange::Save { replaces: replaces.map(ToOwned::to_owned), definition }
}

#[test]
fn the_first_agent_makes_the_file_in_the_shape_that_is_documented() {
    let added = save(None, agent(" Gemini ", "gemini", &["--acp"], &[("KEY", "a \"b\"")]));
    let expected = r#"{
  "agent_servers": {
    "Gemini": {
      "command": "gemini",
      "args": ["--acp"],
      "env": {
        "KEY": "a \"b\""
      }
    }
  }
}
"#;
    for before in [AgentsText::default(), text(""), text(" \n"), text("{}")] {
        assert_eq!(before.with(&added).unwrap().as_deref(), Some(expected), "{before:?}");
    }
}

#[test]
fn what_nobody_here_knows_stays_at_every_level_and_in_its_order() {
    let before = text(
        r#"{"theme": {"mode":  "dark"}, "agent_servers": {
            "Zed": {"command": "zed", "extra": 1.00000000000000000001},
            "Mine": {"type": "custom", "args": ["old"], "command": "old", "favorite": {"a": [1,2]}},
            "Broken": {"args": 7}, "Last": {"command": "last", "env": {"A": "1"}}}, "after": 1e400}"#,
    );
    let after = before.with(&save(Some("Mine"), agent("Mine", "new", &[], &[("B", "2")]))).unwrap();
    let after = after.as_deref().unwrap();
    let order = ["theme", "agent_servers", "Zed", "Mine", "type", "favorite", "env", "Broken", "Last", "after"];
    let places: Vec<_> = order.iter().map(|name| after.find(&format!("\"{name}\":")).unwrap()).collect();
    assert!(places.is_sorted(), "{after}");
    for kept in [
        r#""theme": {"mode":  "dark"}"#,
        r#"{"command": "zed", "extra": 1.00000000000000000001}"#,
        r#""type": "custom""#,
        r#""args": []"#,
        r#""command": "new""#,
        r#""favorite": {"a": [1,2]}"#,
        r#""Broken": {"args": 7}"#,
        r#"{"command": "last", "env": {"A": "1"}}"#,
        r#""after": 1e400"#,
    ] {
        assert!(after.contains(kept), "{kept} is not in {after}");
    }
    assert!(!after.contains("\"old\""), "{after}");
}

#[test]
fn the_entries_are_given_as_they_are_written() {
    let file = text(
        r#"{"agent_servers": {" A ": {"command": "a", "args": ["x y"], "env": {"Z": "1", "B": "2"}, "more": 1},
            "B": {"command": "b", "args": 7}, "C": "c", "D": {"command": "d"}}}"#,
    );
    let expected = [
        (" A ".to_owned(), Some(agent(" A ", "a", &["x y"], &[("Z", "1"), ("B", "2")]))),
        ("B".to_owned(), None),
        ("C".to_owned(), None),
        ("D".to_owned(), Some(agent("D", "d", &[], &[]))),
    ];
    assert_eq!(file.entries().unwrap(), expected);
    assert_eq!(AgentsText::default().entries().unwrap(), []);
}

#[test]
fn a_renamed_agent_keeps_its_place_and_a_removed_one_takes_nothing_with_it() {
    let before =
        text(r#"{"agent_servers": {"A": {"command": "a"}, "B": {"command": "b", "x": 1}, "C": {"command": "c"}}}"#);
    let renamed = before.with(&save(Some("B"), agent("Bee", "b", &[], &[]))).unwrap();
    let names: serde_json::Value = serde_json::from_str(renamed.as_deref().unwrap()).unwrap();
    let names: Vec<_> = names["agent_servers"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["A", "Bee", "C"]);
    assert!(renamed.as_deref().unwrap().contains("\"x\": 1"));
    assert!(!renamed.as_deref().unwrap().contains("args"), "an entry that never had arguments gets no empty list");

    let removed = renamed.with(&AgentsChange::Remove { name: "Bee".into() }).unwrap();
    let left: serde_json::Value = serde_json::from_str(removed.as_deref().unwrap()).unwrap();
    assert_eq!(left, serde_json::json!({"agent_servers": {"A": {"command": "a"}, "C": {"command": "c"}}}));
}

#[test]
fn a_name_stands_once_and_what_is_not_there_is_not_changed() {
    let before = text(r#"{"agent_servers": {"A": {"command": "a"}, "B": {"command": "b"}}}"#);
    let taken = AgentsChangeError::NameTaken("A".into());
    assert_eq!(before.with(&save(None, agent("A", "x", &[], &[]))), Err(taken.clone()));
    assert_eq!(before.with(&save(Some("B"), agent("A ", "x", &[], &[]))), Err(taken));
    let missing = AgentsChangeError::NotFound("C".into());
    assert_eq!(before.with(&save(Some("C"), agent("C", "x", &[], &[]))), Err(missing.clone()));
    assert_eq!(before.with(&AgentsChange::Remove { name: "C".into() }), Err(missing));
}

#[test]
fn a_file_that_is_not_in_the_expected_form_is_not_changed() {
    let added = save(None, agent("New", "new", &[], &[]));
    for damaged in [
        "{",
        "[]",
        "null",
        r#"{"agent_servers": []}"#,
        "{} // mine",
        r#"{"agent_servers": {"A": {}, "A": {}}}"#,
        r#"{"agent_servers": {}, "agent_servers": {}}"#,
    ] {
        let refused = text(damaged).with(&added).unwrap_err();
        assert!(matches!(&refused, AgentsChangeError::Form(reason) if !reason.is_empty()), "{damaged}: {refused:?}");
    }
    let entry = text(r#"{"agent_servers": {"A": "a"}}"#);
    assert!(matches!(entry.with(&save(Some("A"), agent("A", "a", &[], &[]))), Err(AgentsChangeError::Form(_))));
}

#[test]
fn the_file_is_private_and_one_that_was_changed_since_it_was_read_is_not_replaced() {
    let home = tempfile::tempdir().unwrap();
    let directory = DataDirectory::open(home.path()).unwrap();
    let path = home.path().join(AGENTS_FILE);
    let read_now = || AgentsText::new(read(&directory).unwrap());
    let added = save(None, agent("New", "new", &[], &[]));

    let before = read_now();
    replace(&directory, &before, &before.with(&added).unwrap()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    let before = read_now();
    let by_an_editor = r#"{"agent_servers": {"Edited": {"command": "e"}}}"#;
    std::fs::write(&path, by_an_editor).unwrap();
    assert_ne!(read_now().revision(), before.revision());
    let change = AgentsChange::Remove { name: "New".into() };
    let refused = replace(&directory, &before, &before.with(&change).unwrap()).unwrap_err();
    assert!(matches!(refused, CatalogError::AgentsFileChanged { .. }), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), by_an_editor);

    let before = read_now();
    std::fs::remove_file(&path).unwrap();
    let refused = replace(&directory, &before, &before.with(&added).unwrap()).unwrap_err();
    assert!(
        matches!(refused, CatalogError::AgentsFileChanged { .. }),
        "a removed file is not written again: {refused}"
    );
    assert!(!path.exists());
}

#[test]
fn a_link_stays_a_link() {
    let home = tempfile::tempdir().unwrap();
    let directory = DataDirectory::open(home.path()).unwrap();
    let kept = home.path().join("dotfiles.json");
    std::fs::write(&kept, "{}").unwrap();
    symlink(&kept, home.path().join(AGENTS_FILE)).unwrap();
    let before = AgentsText::new(read(&directory).unwrap());
    let after = before.with(&save(None, agent("New", "new", &[], &[]))).unwrap();
    let refused = replace(&directory, &before, &after).unwrap_err();
    assert!(refused.to_string().contains("dotfiles.json"), "{refused}");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "{}");
}
