//! One session service behind two doors: what is asked by WebSocket or by HTTP, and what an agent is offered.

use std::path::Path;

use protocol::{CliType, ClientMessage, ServerMessage, SessionId, TurnEvent, TurnRecordStatus};
use serde_json::{Value, json};
use testkit::{Screen, TestApp, TestSetup, Window};

fn send(session: &SessionId, content: &str) -> ClientMessage {
    ClientMessage::SessionSend { session_id: session.clone(), content: content.into() }
}

fn directory(home: &Path, name: &str) -> String {
    let directory = home.join(name);
    std::fs::create_dir(&directory).unwrap();
    directory.to_str().unwrap().to_owned()
}

async fn listed(app: &TestApp, project: &str) -> Vec<Value> {
    let answer = app.request("GET", &format!("/api/session/list?projectId={project}"), None).await;
    assert_eq!(answer.status, 200);
    answer.json()["sessions"].as_array().unwrap().clone()
}

/// TC-6.1c.
#[tokio::test]
async fn the_list_holds_the_sessions_of_its_project_with_what_is_known_of_each() {
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let path = directory(setup.app.home(), "other");
    let ServerMessage::ProjectAdded { project: other } = window.call(&ClientMessage::ProjectAdd { path }).await else {
        panic!("no project was added")
    };
    let ours = [setup.create(&mut window, "codex").await.id, setup.create(&mut window, "claude-code").await.id];
    let archived = setup.create(&mut window, "codex").await.id;
    window.call(&ClientMessage::SessionArchive { session_id: archived }).await;
    let (project_id, cli_type) = (other.id.clone(), CliType::parse("codex").unwrap());
    let ServerMessage::SessionCreated { session: theirs, .. } =
        window.call(&ClientMessage::SessionCreate { project_id, cli_type }).await
    else {
        panic!("no session was created")
    };
    let mut screen = Screen::open(&mut window, &ours[0]).await;
    window.ask(&send(&ours[0], "say:so far\nhold:never")).await;
    screen.until(&mut window, "the first text", |screen| screen.answers() == ["so far"]).await;

    let list = listed(&setup.app, setup.project.as_str()).await;
    assert_eq!(
        list.iter().map(|session| session["id"].as_str().unwrap()).collect::<Vec<_>>(),
        [ours[0].as_str(), ours[1].as_str()]
    );
    for (session, (cli_type, attention)) in list.iter().zip([("codex", "working"), ("claude-code", "idle")]) {
        assert_eq!((&session["cliType"], &session["projectId"]), (&cli_type.into(), &json!(setup.project)));
        assert_eq!(session["attention"], attention, "{session}");
    }
    let list = listed(&setup.app, other.id.as_str()).await;
    assert_eq!(list.iter().map(|session| &session["id"]).collect::<Vec<_>>(), [&json!(theirs.id)]);
}

/// TC-6.2a.
#[tokio::test]
async fn a_message_sent_by_http_reaches_claude_code_and_its_answer_streams_under_the_turn_that_was_named() {
    let setup = TestSetup::start().await;
    let (mut window, session, mut screen) = setup.begin("claude-code").await;
    let body = json!({"content": "say:by http"});
    let sent = setup.app.request("POST", &format!("/api/session/{session}/send"), Some(&body)).await;
    assert_eq!(sent.status, 202);
    let turn = sent.json()["turnId"].as_str().unwrap().to_owned();
    let end = screen.until_turn_end(&mut window).await;
    assert!(matches!(end, TurnEvent::TurnComplete { .. }), "{end:?}");
    assert_eq!((screen.asked(), screen.answers()), (vec!["say:by http"], vec!["by http"]));
    assert!(screen.turns.iter().all(|event| event.turn_id().as_str() == turn), "{:?}", screen.turns);
    assert!(screen.items.iter().all(|item| item.last.turn_id.as_str() == turn));
}

async fn answers(window: &mut Window, session: &SessionId) {
    let mut screen = Screen::open(window, session).await;
    screen.converse(window, "say:ready").await;
    assert_eq!(screen.answers(), ["ready"]);
}

#[tokio::test]
async fn a_session_created_immediately_after_its_project_was_added_works() {
    let setup = TestSetup::start().await;
    let (mut one, mut two) = (setup.app.window().await, setup.app.window().await);
    // In the window that added it, as soon as it is confirmed.
    let path = directory(setup.app.home(), "first");
    let ServerMessage::ProjectAdded { project } = one.call(&ClientMessage::ProjectAdd { path }).await else { panic!() };
    let codex = || CliType::parse("codex").unwrap();
    let create = ClientMessage::SessionCreate { project_id: project.id, cli_type: codex() };
    let ServerMessage::SessionCreated { session_id, .. } = one.call(&create).await else { panic!() };
    answers(&mut one, &session_id).await;

    // In another window and by HTTP, as soon as they are notified.
    let path = directory(setup.app.home(), "second");
    one.ask(&ClientMessage::ProjectAdd { path }).await;
    let is_it = |frame: &protocol::ServerFrame| matches!(&frame.message, ServerMessage::ProjectAdded { project } if project.path.ends_with("/second"));
    let ServerMessage::ProjectAdded { project } = two.until("the news", is_it).await.message else { panic!() };
    let create = ClientMessage::SessionCreate { project_id: project.id.clone(), cli_type: codex() };
    let ServerMessage::SessionCreated { session_id, .. } = two.call(&create).await else { panic!() };
    let body = json!({"cliType": "claude-code", "projectId": project.id});
    let created = setup.app.request("POST", "/api/session/create", Some(&body)).await;
    assert_eq!(created.status, 201);
    answers(&mut two, &session_id).await;
    answers(&mut two, &SessionId::parse(created.json()["sessionId"].as_str().unwrap()).unwrap()).await;

    // Both in one request.
    let body = json!({"cliType": "codex", "projectDir": directory(setup.app.home(), "third")});
    let created = setup.app.request("POST", "/api/session/create", Some(&body)).await;
    assert_eq!(created.status, 201);
    answers(&mut two, &SessionId::parse(created.json()["sessionId"].as_str().unwrap()).unwrap()).await;
}

/// TC-2.2b and TC-2.2c as far as the server has part in them.
#[tokio::test]
async fn agents_are_offered_by_name_and_looking_at_them_creates_and_starts_nothing() {
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let unasked =
        window.until("the list, unasked", |frame| matches!(frame.message, ServerMessage::AgentList { .. })).await;
    let asked = window.call(&ClientMessage::AgentList {}).await;
    assert_eq!(unasked.message, asked);
    let ServerMessage::AgentList { agents } = asked else { panic!() };
    let offered: Vec<_> = agents.iter().map(|agent| (agent.cli_type.as_str(), agent.name.as_str())).collect();
    assert_eq!(offered, [("claude-code", "Claude Code"), ("codex", "Codex"), ("demo", "Demo agent")]);
    assert!(agents.iter().all(|agent| agent.installed), "{agents:?}");
    // And then the user picks none of them.
    assert!(setup.sessions(&mut window).await.is_empty());
    assert!(!setup.agent_log().contains("session/new"), "{}", setup.agent_log());
}

/// TC-2.3b as far as the server has part in it: who opens what is open sees it once, and disturbs nothing.
#[tokio::test]
async fn opening_what_is_open_already_brings_it_again_and_nothing_twice() {
    let setup = TestSetup::start().await;
    let (mut window, _, mut screen) = setup.begin("codex").await;
    screen.send_until_answer(&mut window, "say:one \nhold:go\nsay:two", "one ").await;
    screen.seqs.clear();
    for _ in 0..3 {
        screen.reopen(&mut window, None).await;
        assert_eq!(screen.answers(), ["one "]);
    }
    setup.open_gate("go");
    screen.until_turn_end(&mut window).await;
    assert_eq!(screen.answers(), ["one two"]);
    let mut once = screen.seqs.clone();
    once.dedup();
    assert_eq!(screen.seqs, once, "each message comes once");
    assert_eq!(setup.agent_log().matches("session/load").count(), 0, "{}", setup.agent_log());
}

/// TC-2.4c: neither what Claude Code keeps of a session from a terminal nor what an ACP agent lists.
#[tokio::test]
async fn sessions_made_outside_are_not_listed() {
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let ours = [setup.create(&mut window, "claude-code").await.id, setup.create(&mut window, "codex").await.id];
    answers(&mut window, &ours[1]).await;
    let project = setup.app.home().join("project").canonicalize().unwrap();
    let kept: String =
        project.to_str().unwrap().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let outside = setup.app.home().join(".claude/projects").join(kept);
    std::fs::create_dir_all(&outside).unwrap();
    let id = "7b1f4c1e-0000-4000-8000-000000000001";
    let line = json!({"type": "user", "uuid": id, "sessionId": id, "cwd": project, "timestamp": "2026-11-01T00:00:00.000Z",
        "message": {"role": "user", "content": "from a terminal"}});
    std::fs::write(outside.join(format!("{id}.jsonl")), format!("{line}\n")).unwrap();
    let foreign = json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "hello"}});
    std::fs::write(setup.app.home().join("agent-state").join("session-foreign"), format!("{foreign}\n")).unwrap();

    let mut ids: Vec<_> = setup.sessions(&mut window).await.into_iter().map(|session| session.id).collect();
    ids.sort_by_key(|id| id.to_string());
    assert_eq!(ids, ours);
    for outside in [format!("claude-code:{id}"), "codex:foreign".to_owned()] {
        let session_id = SessionId::parse(outside).unwrap();
        let refused = window
            .try_call(&ClientMessage::SessionOpen { session_id, since: None, epoch: None, journal_id: None })
            .await
            .unwrap_err();
        assert_eq!(refused.code, protocol::ErrorCode::SessionNotFound);
    }
}

#[tokio::test]
async fn a_turn_that_was_cut_short_with_its_server_is_not_shown_as_finished() {
    let mut setup = TestSetup::start().await;
    let (mut window, session, mut screen) = setup.begin("codex").await;
    screen.converse(&mut window, "say:the first").await;
    window.ask(&send(&session, "say:so far\nhold:never")).await;
    screen.until(&mut window, "the text", |screen| screen.answers() == ["the first", "so far"]).await;
    setup.until_kept("say:so far hold:never").await;
    setup.app.kill().await;

    let mut setup = setup.again().await;
    let mut window = setup.app.window().await;
    let mut screen = Screen::open(&mut window, &session).await;
    let ends: Vec<_> = screen.records.iter().map(|turn| turn.status).collect();
    assert_eq!(ends, [TurnRecordStatus::Completed, TurnRecordStatus::Error]);
    let message = screen.records[1].error_message.clone();
    assert_eq!(message.as_deref(), Some("Liminal Builder stopped in the middle of this turn"));
    // The next one that comes to its end is shown as what it is.
    screen.converse(&mut window, "say:and on").await;
    setup.app.interrupt();
    setup.app.ended().await;
    let setup = setup.again().await;
    let screen = Screen::open(&mut setup.app.window().await, &session).await;
    assert_eq!(screen.records.last().map(|turn| turn.status), Some(TurnRecordStatus::Completed));
}
