//! Files that are not as we would have written them: damaged, newer, earlier, or with more in them.

use std::os::unix::fs::PermissionsExt;

use catalog::{Catalog, CatalogError, SessionRecord};
use protocol::ErrorCode;
use serde_json::json;

use crate::support::{Home, at, project_id, session_id};

const TIME: &str = "2026-02-05T10:00:00.000Z";

#[tokio::test]
async fn a_damaged_file_is_set_aside_and_never_overwritten() {
    for damage in
        ["", "{", "null", "[]", "\u{0}\u{0}\u{0}", r#"{"version": 1, "projects": [{"id""#, r#"{"version": 1}"#]
    {
        let home = Home::new();
        home.write("projects.json", damage);
        let opened = Catalog::open(&home.data()).unwrap();
        let aside = home.one_named("projects.json.damaged-20");
        assert_eq!(home.read(&aside), damage);
        assert_eq!(opened.notices.len(), 1);
        assert!(opened.notices[0].contains(&aside), "{:?}", opened.notices);
        opened.catalog.add_project(&home.directory("code")).await.unwrap();
        assert_eq!(home.read(&aside), damage);
        drop(opened);
        assert_eq!(home.open().projects().len(), 1);
    }
}

#[test]
fn two_files_damaged_in_the_same_second_are_both_kept() {
    let home = Home::new();
    for text in ["first", "second"] {
        home.write("sessions.json", text);
        Catalog::open(&home.data()).unwrap();
    }
    let kept: Vec<_> = home.names().into_iter().filter(|name| name.starts_with("sessions.json.damaged-")).collect();
    let mut texts: Vec<_> = kept.iter().map(|name| home.read(name)).collect();
    texts.sort();
    assert_eq!(texts, ["first", "second"]);
}

#[test]
fn one_bad_record_does_not_cost_the_others() {
    let home = Home::new();
    let good = |id: &str| {
        json!({"id": id, "projectId": "p", "cliType": "codex", "archived": false, "title": "t", "lastActiveAt": TIME,
            "createdAt": TIME})
    };
    let file =
        json!({"version": 1, "sessions": [good("codex:a"), good("--flag"), 7, good("codex:a"), good("codex:b")]});
    home.write("sessions.json", &file.to_string());
    let opened = Catalog::open(&home.data()).unwrap();
    let ids: Vec<_> = opened.catalog.all_sessions().into_iter().map(|session| session.id.to_string()).collect();
    assert_eq!(ids, ["codex:a", "codex:b"]);
    let copy = home.one_named("sessions.json.damaged-");
    assert_eq!(home.json(&copy), file);
    assert!(opened.notices[0].starts_with("3 entries of sessions.json"), "{:?}", opened.notices);
    drop(opened);
    assert_eq!(home.open().all_sessions().len(), 2);
}

#[test]
fn a_file_of_a_newer_build_is_refused_and_nothing_is_touched() {
    let huge = "9".repeat(400);
    for version in ["2", "1.5", "18446744073709551616", "1e400", &huge, r#""2""#, r#""2026-11""#, r#""1""#] {
        let home = Home::new();
        let newer = format!(r#"{{"sessions": {{"codex:a": "in another shape"}}, "version": {version}}}"#);
        home.write("sessions.json", &newer);
        home.write("projects.json", "damaged");
        let error = Catalog::open(&home.data()).unwrap_err();
        assert!(
            matches!(&error, CatalogError::NewerVersion { version: named, file, .. }
                if version.starts_with(named.as_str()) && file.ends_with("sessions.json")),
            "{version}: {error}"
        );
        assert!(error.to_string().contains("newer Liminal Builder"), "{error}");
        assert_eq!(error.code(), ErrorCode::StorageFailed);
        assert_eq!((home.read("sessions.json"), home.read("projects.json").as_str()), (newer, "damaged"));
        assert_eq!(home.names(), ["lock", "projects.json", "sessions.json"]);
    }
}

#[test]
fn a_version_that_never_was_is_damage() {
    for version in ["0", "-1", "null", "true", "[1]", "{}"] {
        let home = Home::new();
        home.write("projects.json", &format!(r#"{{"version": {version}, "projects": []}}"#));
        let opened = Catalog::open(&home.data()).unwrap();
        assert!(opened.notices[0].contains("damaged"), "{version}: {:?}", opened.notices);
        home.one_named("projects.json.damaged-");
    }
}

#[tokio::test]
async fn fields_nobody_here_knows_ride_along() {
    let home = Home::new();
    let path = home.directory("code");
    home.write(
        "projects.json",
        &json!({"version": 1, "note": ["kept"], "projects":
            [{"id": "p", "path": path, "name": "code", "addedAt": TIME, "colour": {"hue": 7}}]})
        .to_string(),
    );
    home.write(
        "sessions.json",
        &json!({"version": 1, "sessions": [{"id": "codex:a", "projectId": "p", "cliType": "codex", "archived": false,
            "title": "t", "lastActiveAt": TIME, "createdAt": TIME, "pinned": true}], "theme": "dark"})
        .to_string(),
    );
    let catalog = home.open();
    catalog.add_project(&home.directory("other")).await.unwrap();
    catalog.set_title(&session_id("codex:a"), "renamed").await.unwrap();
    let (projects, sessions) = (home.json("projects.json"), home.json("sessions.json"));
    assert_eq!((&projects["note"], &projects["projects"][0]["colour"]), (&json!(["kept"]), &json!({"hue": 7})));
    assert_eq!((&sessions["theme"], &sessions["sessions"][0]["pinned"]), (&json!("dark"), &json!(true)));
    assert_eq!(sessions["sessions"][0]["title"], "renamed");
}

/// As `JsonStore` of the TypeScript build wrote them: `data` at the top, random project ids, paths as typed.
fn earlier_home() -> (Home, serde_json::Value) {
    let home = Home::new();
    let path = home.directory("code");
    let session = |id: &str, project: &str, title: &str, archived: bool| {
        json!({"id": id, "projectId": project, "cliType": id.split(':').next().unwrap(), "archived": archived,
            "title": title, "lastActiveAt": "2026-02-05T10:00:00Z", "createdAt": "2026-02-05T09:00:00Z"})
    };
    let projects = json!({"version": 1, "data": [
        {"id": "8d8ac610-566d-4ef0-9c22-186b2a5ed793", "path": format!("{path}/"), "name": "code", "addedAt": "2026-02-05T08:00:00Z"},
        {"id": "16fd2706-8baf-433b-82eb-8c7fada847da", "path": "/gone/away", "name": "away", "addedAt": "2026-02-05T08:30:00Z"},
    ]});
    let sessions = json!({"version": 1, "data": [
        session("claude-code:session-1", "8d8ac610-566d-4ef0-9c22-186b2a5ed793", "Fix auth bug", false),
        session("codex:session-2", "8d8ac610-566d-4ef0-9c22-186b2a5ed793", "New Session", true),
        session("codex:session-3", "16fd2706-8baf-433b-82eb-8c7fada847da", "Refactor API", false),
    ]});
    home.write("projects.json", &projects.to_string());
    home.write("sessions.json", &sessions.to_string());
    (home, sessions)
}

#[tokio::test]
async fn a_home_of_the_earlier_build_is_upgraded_and_its_files_are_kept() {
    let (home, earlier_sessions) = earlier_home();
    let opened = Catalog::open(&home.data()).unwrap();
    assert_eq!(opened.notices.len(), 2);
    assert!(opened.notices.iter().all(|notice| notice.contains("earlier build")), "{:?}", opened.notices);
    let catalog = opened.catalog;
    let projects = catalog.projects();
    assert_eq!(projects[0].path, home.directory("code"));
    assert_eq!(projects[1].path, "/gone/away");
    let listed = catalog.sessions(&projects[0].id);
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].title.as_str(), listed[0].prompted), ("Fix auth bug", true));
    assert!(!catalog.session(&session_id("codex:session-2")).unwrap().prompted);
    assert_eq!(catalog.sessions(&projects[1].id)[0].title, "Refactor API");
    assert_eq!(home.json(&home.one_named("sessions.json.earlier-")), earlier_sessions);
    home.one_named("projects.json.earlier-");

    // The ids are those of the directories now, so taking one out and in again finds its sessions.
    catalog.remove_project(&projects[0].id).await.unwrap();
    assert_eq!(catalog.add_project(&home.directory("code")).await.unwrap().id, projects[0].id);
    drop(catalog);
    assert_eq!(home.open().sessions(&projects[0].id), listed);
    assert_eq!(home.json("projects.json")["projects"].as_array().unwrap().len(), 2);
}

#[test]
fn an_upgrade_that_was_cut_short_between_the_files_is_finished_by_the_next_start() {
    let (home, _) = earlier_home();
    let earlier_projects = home.read("projects.json");
    drop(Catalog::open(&home.data()).unwrap());
    home.write("projects.json", &earlier_projects);
    let catalog = Catalog::open(&home.data()).unwrap().catalog;
    assert_eq!(catalog.sessions(&catalog.projects()[0].id).len(), 1);
}

#[test]
fn what_a_crash_left_half_written_is_cleared_away_and_other_files_are_not() {
    let home = Home::new();
    home.write(".projects.json.Ab12Cd.liminal-tmp", "{\"version\": 1, \"proj");
    home.write("notes.tmp", "mine");
    home.open();
    assert_eq!(home.names(), ["lock", "notes.tmp"]);
}

#[tokio::test]
async fn files_are_for_the_user_alone_and_readable_by_a_person() {
    let home = Home::new();
    let catalog = home.open();
    let project = catalog.add_project(&home.directory("code")).await.unwrap();
    catalog.add_session(SessionRecord::new(session_id("codex:a"), project.id, at(0))).await.unwrap();
    let mode = |name: &str| std::fs::metadata(home.data().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("projects.json"), mode("sessions.json")), (0o700, 0o600, 0o600));
    assert!(home.read("sessions.json").contains("\n      \"title\": \"New Session\",\n"));
    assert!(home.read("projects.json").ends_with("}\n"));
}

#[test]
fn the_list_of_agents_is_handed_over_as_it_is() {
    let home = Home::new();
    let catalog = home.open();
    assert_eq!(catalog.agents_file().unwrap(), None);
    home.write("agents.json", "{ \"agent_servers\": ");
    assert_eq!(catalog.agents_file().unwrap().as_deref(), Some("{ \"agent_servers\": "));
    home.write("agents.json", &" ".repeat(2 * 1024 * 1024));
    assert_eq!(catalog.agents_file().unwrap_err().code(), ErrorCode::StorageFailed);
}

#[test]
fn a_project_moved_in_the_file_by_the_user_keeps_its_sessions() {
    let home = Home::new();
    home.write(
        "projects.json",
        &json!({"version": 1, "projects": [{"id": "p", "path": "/moved", "name": "m", "addedAt": TIME}]}).to_string(),
    );
    let catalog = home.open();
    assert_eq!(catalog.project(&project_id("p")).unwrap().path, "/moved");
}
