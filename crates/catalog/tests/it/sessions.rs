//! Session records: listing, archiving, names, times.

use catalog::{Catalog, CatalogError, SessionRecord, TurnEnd, Unseen, UnseenKind};
use protocol::{AgentSessionId, ErrorCode, Project};
use serde_json::Map;

use crate::support::{Home, at, eventually, project_id, session_id};

async fn project(home: &Home, catalog: &Catalog) -> Project {
    catalog.add_project(&home.directory("code")).await.unwrap()
}

async fn add(catalog: &Catalog, project: &Project, id: &str, ms: i64) {
    catalog.add_session(SessionRecord::new(session_id(id), project.id.clone(), at(ms))).await.unwrap();
}

fn listed(catalog: &Catalog, project: &Project) -> Vec<String> {
    catalog.sessions(&project.id).into_iter().map(|session| session.id.to_string()).collect()
}

#[tokio::test]
async fn a_session_is_in_the_file_with_every_field_when_it_is_confirmed() {
    let home = Home::new();
    let catalog = home.open();
    let project = project(&home, &catalog).await;
    add(&catalog, &project, "codex:0193", 1_794_777_356_000).await;
    let time = "2026-11-15T21:15:56.000Z";
    assert_eq!(
        home.json("sessions.json"),
        serde_json::json!({"version": 1, "sessions": [{
            "id": "codex:0193", "projectId": project.id, "cliType": "codex", "archived": false, "title": "New Session",
            "lastActiveAt": time, "createdAt": time, "prompted": false,
        }]})
    );
}

#[tokio::test]
async fn tc_2_1b_the_most_recent_activity_comes_first() {
    let home = Home::new();
    let catalog = home.open();
    let project = project(&home, &catalog).await;
    for (id, ms) in [("codex:a", 2000), ("claude-code:b", 3000), ("codex:c", 1000)] {
        add(&catalog, &project, id, ms).await;
    }
    assert_eq!(listed(&catalog, &project), ["claude-code:b", "codex:a", "codex:c"]);
    catalog.turn_ended(&session_id("codex:c"), at(4000));
    assert_eq!(listed(&catalog, &project), ["codex:c", "claude-code:b", "codex:a"]);
}

#[tokio::test]
async fn tc_2_1c_a_project_without_sessions_lists_none() {
    let home = Home::new();
    let catalog = home.open();
    let project = project(&home, &catalog).await;
    assert!(listed(&catalog, &project).is_empty());
}

#[tokio::test]
async fn tc_2_4a_and_2_5a_an_archived_session_leaves_the_list_and_stays_away_after_a_restart() {
    let home = Home::new();
    let catalog = home.open();
    let project = project(&home, &catalog).await;
    for (id, ms) in [("codex:a", 1), ("codex:b", 2), ("codex:c", 3)] {
        add(&catalog, &project, id, ms).await;
    }
    catalog.archive(&session_id("codex:b")).await.unwrap();
    catalog.archive(&session_id("codex:b")).await.unwrap();
    assert_eq!(listed(&catalog, &project), ["codex:c", "codex:a"]);
    drop(catalog);
    let catalog = home.open();
    assert_eq!(listed(&catalog, &project), ["codex:c", "codex:a"]);
    assert!(catalog.session(&session_id("codex:b")).unwrap().archived);
    assert_eq!(catalog.all_sessions().len(), 3);
    catalog.restore(&session_id("codex:b")).await.unwrap();
    assert_eq!(listed(&catalog, &project), ["codex:c", "codex:b", "codex:a"]);
}

#[tokio::test]
async fn tc_1_3a_a_removed_project_keeps_its_sessions_and_they_are_back_when_it_is_added_again() {
    let home = Home::new();
    let path = home.directory("code");
    let catalog = home.open();
    let project = project(&home, &catalog).await;
    add(&catalog, &project, "codex:a", 1).await;
    let sessions_file = home.read("sessions.json");
    catalog.remove_project(&project.id).await.unwrap();
    assert!(catalog.projects().is_empty());
    assert_eq!(home.json("projects.json")["projects"], serde_json::json!([]));
    assert_eq!(home.read("sessions.json"), sessions_file);
    assert!(std::fs::exists(&path).unwrap());
    drop(catalog);
    let catalog = home.open();
    let again = catalog.add_project(&path).await.unwrap();
    assert_eq!(again.id, project.id);
    assert_eq!(listed(&catalog, &again), ["codex:a"]);
}

#[tokio::test]
async fn title_first_prompt_options_and_the_agents_new_id_are_on_the_disk_when_they_are_confirmed() {
    let home = Home::new();
    let catalog = home.open();
    let project = project(&home, &catalog).await;
    add(&catalog, &project, "codex:a", 1).await;
    let (id, new) = (session_id("codex:a"), AgentSessionId::parse("z").unwrap());
    catalog.set_title(&id, "Fix auth bug").await.unwrap();
    catalog.mark_prompted(&id).await.unwrap();
    catalog.set_options(&id, [("mode".into(), "plan".into())].into()).await.unwrap();
    catalog.turn_ended(&id, at(7000));
    let saved = home.json("sessions.json");
    assert_eq!(saved["sessions"][0]["prompted"], true);
    assert_eq!(saved["sessions"][0].get("agentSessionId"), None, "absent: it is the id's own part");
    catalog.set_agent_session_id(&id, &new).await.unwrap();
    let saved = &home.json("sessions.json")["sessions"][0];
    assert_eq!((&saved["id"], &saved["agentSessionId"]), (&"codex:a".into(), &"z".into()), "our id stays");
    assert_eq!((&saved["title"], &saved["chosenOptions"]["mode"]), (&"Fix auth bug".into(), &"plan".into()));
    assert_eq!(saved["prompted"], false, "the agent was given no message under its new id yet");
    assert_eq!(saved["lastActiveAt"], "1970-01-01T00:00:07.000Z");
    assert_eq!(catalog.session(&id).unwrap().last_active_at, at(7000));
    assert_eq!(catalog.session(&id).unwrap().current_agent_id(), new);
    assert_eq!(listed(&catalog, &project), ["codex:a"]);
    catalog.mark_prompted(&id).await.unwrap();
    catalog.set_agent_session_id(&id, &new).await.unwrap();
    assert!(catalog.session(&id).unwrap().prompted, "the same id again changes nothing");
    catalog.set_agent_session_id(&id, &id.agent_session_id()).await.unwrap();
    assert_eq!(home.json("sessions.json")["sessions"][0].get("agentSessionId"), None);
}

#[tokio::test]
async fn an_id_of_the_agent_belongs_to_one_session() {
    let home = Home::new();
    let catalog = home.open();
    let project = project(&home, &catalog).await;
    for (id, at) in [("codex:a", 1), ("codex:b", 2), ("other:c", 3)] {
        add(&catalog, &project, id, at).await;
    }
    let (a, b, other) = (session_id("codex:a"), session_id("codex:b"), session_id("other:c"));
    let refused = catalog.set_agent_session_id(&b, &a.agent_session_id()).await;
    assert!(matches!(refused, Err(CatalogError::SessionExists(taken)) if taken == a));
    let shared = AgentSessionId::parse("z").unwrap();
    catalog.set_agent_session_id(&a, &shared).await.unwrap();
    assert!(catalog.set_agent_session_id(&b, &shared).await.is_err());
    assert_eq!(catalog.session(&b).unwrap().current_agent_id(), b.agent_session_id());
    // Another agent has ids of its own, and an id that is no longer used is free.
    catalog.set_agent_session_id(&other, &shared).await.unwrap();
    catalog.set_agent_session_id(&b, &a.agent_session_id()).await.unwrap();
}

#[tokio::test]
async fn a_change_to_a_session_nobody_knows_is_refused() {
    let home = Home::new();
    let catalog = home.open();
    let nobody = session_id("codex:nobody");
    let results = [
        catalog.archive(&nobody).await,
        catalog.restore(&nobody).await,
        catalog.set_title(&nobody, "x").await,
        catalog.mark_prompted(&nobody).await,
        catalog.set_options(&nobody, Default::default()).await,
        catalog.set_agent_session_id(&nobody, &AgentSessionId::parse("new").unwrap()).await,
    ];
    for result in results {
        assert_eq!(result.unwrap_err().code(), ErrorCode::SessionNotFound);
    }
    catalog.turn_ended(&nobody, at(1));
    catalog.flush().await.unwrap();
    assert_eq!(home.names(), ["lock"]);
}

#[tokio::test]
async fn an_id_belongs_to_one_session_and_a_session_to_a_known_project() {
    let home = Home::new();
    let catalog = home.open();
    let project = project(&home, &catalog).await;
    add(&catalog, &project, "codex:a", 1).await;
    add(&catalog, &project, "codex:b", 2).await;
    let twin = SessionRecord::new(session_id("codex:a"), project.id.clone(), at(3));
    assert!(matches!(catalog.add_session(twin).await, Err(CatalogError::SessionExists(_))));
    let stray = SessionRecord::new(session_id("codex:c"), project_id("unknown"), at(3));
    assert!(matches!(catalog.add_session(stray).await, Err(CatalogError::ProjectNotFound(_))));
    assert_eq!(listed(&catalog, &project), ["codex:b", "codex:a"]);
}

#[tokio::test]
async fn a_touch_never_moves_a_session_back_in_time() {
    let home = Home::new();
    let catalog = home.open();
    let project = project(&home, &catalog).await;
    add(&catalog, &project, "codex:a", 5000).await;
    catalog.turn_ended(&session_id("codex:a"), at(4000));
    assert_eq!(catalog.session(&session_id("codex:a")).unwrap().last_active_at, at(5000));
}

#[tokio::test]
async fn a_touch_reaches_the_disk_by_itself_by_a_flush_and_by_a_close() {
    let home = Home::new();
    let catalog = home.open();
    let project = project(&home, &catalog).await;
    add(&catalog, &project, "codex:a", 0).await;
    let id = session_id("codex:a");
    let on_disk = || home.json("sessions.json")["sessions"][0]["lastActiveAt"].as_str().unwrap().to_owned();

    catalog.turn_ended(&id, at(1000));
    eventually("the touch in the file", || on_disk() == "1970-01-01T00:00:01.000Z");
    catalog.turn_ended(&id, at(2000));
    catalog.flush().await.unwrap();
    assert_eq!(on_disk(), "1970-01-01T00:00:02.000Z");
    catalog.turn_ended(&id, at(3000));
    drop(catalog);
    assert_eq!(on_disk(), "1970-01-01T00:00:03.000Z");
}

#[tokio::test]
async fn what_a_session_works_on_is_kept_until_it_is_answered() {
    let home = Home::new();
    let catalog = home.open();
    let project = project(&home, &catalog).await;
    add(&catalog, &project, "codex:a", 0).await;
    let id = session_id("codex:a");
    catalog.turn_begins(&id, at(1000), "Fix  the\ntests, please");
    catalog.flush().await.unwrap();
    drop(catalog);
    let catalog = home.open();
    let record = catalog.session(&id).unwrap();
    assert_eq!((record.unanswered.as_deref(), record.last_active_at), (Some("Fix the tests, please"), at(1000)));
    catalog.turn_ended(&id, at(500));
    catalog.flush().await.unwrap();
    let saved = &home.json("sessions.json")["sessions"][0];
    assert_eq!(saved.get("unanswered"), None);
    assert_eq!(saved["lastActiveAt"], "1970-01-01T00:00:01.000Z", "never back");
}

/// Issue 17: unread marks were lost with the server.
#[tokio::test]
async fn an_end_that_nobody_has_seen_is_kept_until_somebody_looks() {
    let home = Home::new();
    let catalog = home.open();
    let project = project(&home, &catalog).await;
    add(&catalog, &project, "codex:a", 0).await;
    let id = session_id("codex:a");
    let unseen =
        Unseen { kind: UnseenKind::Error, reason: Some("Turn failed: x".into()), since: at(2000), extra: Map::new() };
    catalog.turn_begins(&id, at(1000), "Fix it");
    catalog.turn_ended_with(&id, at(2000), TurnEnd::error("X", "x"), Some(unseen.clone()), None);
    drop(catalog);

    let catalog = home.open();
    let record = catalog.session(&id).unwrap();
    assert_eq!((record.unseen, record.unanswered, record.last_active_at), (Some(unseen), None, at(2000)));
    let last = record.last_turn.unwrap();
    assert_eq!((last.message.as_str(), last.started_at, last.ended_at), ("Fix it", at(1000), Some(at(2000))));
    assert_eq!(last.end, TurnEnd::error("X", "x"));
    catalog.set_unseen(&id, None);
    catalog.flush().await.unwrap();
    let saved = &home.json("sessions.json")["sessions"][0];
    assert_eq!((saved.get("unseen"), saved["lastActiveAt"].as_str()), (None, Some("1970-01-01T00:00:02.000Z")));
    drop(catalog);

    // A later build may know other ends; its record is read all the same.
    let mut file = home.json("sessions.json");
    file["sessions"][0]["unseen"] = serde_json::json!({"kind": "puzzled", "since": "2026-11-15T21:15:56.000Z"});
    file["sessions"][0]["lastTurn"]["mood"] = "good".into();
    home.write("sessions.json", &file.to_string());
    let catalog = home.open();
    assert_eq!(catalog.session(&id).unwrap().unseen, None);
    catalog.turn_begins(&id, at(3000), "Again");
    catalog.turn_ended_with(&id, at(4000), TurnEnd::Completed, None, None);
    catalog.flush().await.unwrap();
    let saved = &home.json("sessions.json")["sessions"][0]["lastTurn"];
    assert_eq!((saved["mood"].as_str(), saved["end"]["status"].as_str()), (Some("good"), Some("completed")));
}

#[tokio::test]
async fn a_turn_that_ended_with_the_server_is_noted_and_moves_no_time() {
    let home = Home::new();
    let catalog = home.open();
    let project = project(&home, &catalog).await;
    add(&catalog, &project, "codex:a", 0).await;
    let id = session_id("codex:a");
    catalog.turn_begins(&id, at(1000), "Fix it");
    let unseen = Unseen { kind: UnseenKind::Error, reason: None, since: at(1000), extra: Map::new() };
    catalog.turn_was_cut_short(&id, TurnEnd::Cancelled, unseen.clone());
    let record = catalog.session(&id).unwrap();
    assert_eq!((record.unanswered, record.unseen, record.last_active_at), (None, Some(unseen.clone()), at(1000)));
    catalog.set_unseen(&id, None);
    catalog.turn_was_cut_short(&id, TurnEnd::Cancelled, unseen);
    assert_eq!(catalog.session(&id).unwrap().unseen, None, "it is noted once");
}

#[tokio::test]
async fn a_change_that_changes_nothing_leaves_the_file_alone() {
    use std::os::unix::fs::MetadataExt;
    let home = Home::new();
    let catalog = home.open();
    let project = project(&home, &catalog).await;
    add(&catalog, &project, "codex:a", 0).await;
    let inode = || std::fs::metadata(home.data().join("sessions.json")).unwrap().ino();
    let before = inode();
    catalog.set_title(&session_id("codex:a"), "New Session").await.unwrap();
    catalog.restore(&session_id("codex:a")).await.unwrap();
    catalog.flush().await.unwrap();
    assert_eq!(inode(), before);
}

#[tokio::test]
async fn a_hundred_projects_of_five_hundred_sessions_are_all_there_after_a_restart() {
    let home = Home::new();
    let time = "2026-11-15T21:15:56.000Z";
    let sessions: Vec<_> = (0..50_000)
        .map(|number| {
            serde_json::json!({"id": format!("codex:{number}"), "projectId": format!("p{}", number % 100), "cliType": "codex",
                "archived": false, "title": format!("Session {number}"), "lastActiveAt": time, "createdAt": time})
        })
        .collect();
    home.write("sessions.json", &serde_json::json!({"version": 1, "sessions": sessions}).to_string());
    let catalog = home.open();
    catalog.set_title(&session_id("codex:777"), "renamed").await.unwrap();
    drop(catalog);
    let catalog = home.open();
    assert_eq!(catalog.all_sessions().len(), 50_000);
    assert_eq!(catalog.sessions(&project_id("p42")).len(), 500);
    assert_eq!(catalog.session(&session_id("codex:777")).unwrap().title, "renamed");
}
