//! The first message of a session whose agent has nothing of it any more: such an agent creates it again, under another id
//! of its own. The session keeps its id.

use protocol::{SessionId, TurnEvent, TurnRecord, TurnRecordStatus, TurnStatus};
use serde_json::{Value, json};
use testkit::{Screen, TestSetup, Window};

async fn created(setup: &TestSetup) -> String {
    let body = json!({"cliType": "codex", "projectId": setup.project});
    let created = setup.app.request("POST", "/api/session/create", Some(&body)).await;
    assert_eq!(created.status, 201);
    created.json()["sessionId"].as_str().unwrap().to_owned()
}

/// Asks this of the session and gives the answer, which is no error.
async fn asked(setup: &TestSetup, method: &str, session: &str, what: &str, body: Option<&Value>) -> Value {
    let answer = setup.app.request(method, &format!("/api/session/{session}/{what}"), body).await;
    assert!((200..300).contains(&answer.status), "{what}: {} {}", answer.status, answer.text());
    answer.json()
}

/// Sends by HTTP, and waits for the end of that turn in a window.
async fn converses(setup: &TestSetup, window: &mut Window, session: &str, content: &str) {
    let sent = asked(setup, "POST", session, "send", Some(&json!({"content": content}))).await;
    let turn = sent["turnId"].as_str().unwrap();
    let id = SessionId::parse(session).unwrap();
    let mut screen = Screen::open(window, &id).await;
    // It may have ended before the window looked.
    let is_completed = |screen: &Screen| {
        let is_completed = |event: &TurnEvent| matches!(event, TurnEvent::TurnComplete { turn_id, status: TurnStatus::Completed, .. } if turn_id.as_str() == turn);
        let kept =
            |record: &TurnRecord| (record.turn_id.as_str(), record.status) == (turn, TurnRecordStatus::Completed);
        screen.turns.iter().any(is_completed) || screen.records.iter().any(kept)
    };
    screen.until(window, "the turn to be completed", is_completed).await;
    assert_eq!(screen.asked().last(), Some(&content));
}

/// The one session there is.
async fn listed(setup: &TestSetup) -> Value {
    let list = setup.app.request("GET", &format!("/api/session/list?projectId={}", setup.project), None).await.json();
    let sessions = list["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 1, "{list}");
    sessions[0].clone()
}

/// The agent's id in the record of the one session there is.
fn agent_session_id(setup: &TestSetup) -> Option<String> {
    let saved = std::fs::read(setup.app.data_dir().join("sessions.json")).unwrap();
    let saved: Value = serde_json::from_slice(&saved).unwrap();
    saved["sessions"][0]["agentSessionId"].as_str().map(ToOwned::to_owned)
}

#[tokio::test]
async fn a_session_that_was_ended_before_its_first_message_takes_it_by_the_id_it_was_created_with() {
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let id = created(&setup).await;
    asked(&setup, "POST", &id, "kill", None).await;
    converses(&setup, &mut window, &id, "say:the first").await;
    let session = listed(&setup).await;
    assert_eq!(session["title"], "say:the first");
    assert_eq!(session["id"], id.as_str(), "the agent created it again, and our id stays");
    assert!(agent_session_id(&setup).is_some_and(|agent_id| !id.ends_with(&agent_id)), "the record has the agent's");

    assert_eq!(asked(&setup, "POST", &id, "load", None).await["sessionId"], session["id"]);
    let status = asked(&setup, "GET", &id, "status", None).await;
    assert_eq!((&status["sessionId"], &status["isAlive"]), (&session["id"], &json!(true)));
    converses(&setup, &mut window, &id, "say:the second").await;
    asked(&setup, "POST", &id, "cancel", None).await;
    asked(&setup, "POST", &id, "kill", None).await;
    let status = asked(&setup, "GET", &id, "status", None).await;
    assert_eq!(status["isAlive"], false);
    converses(&setup, &mut window, &id, "say:the third").await;
    assert_eq!(listed(&setup).await["title"], "say:the first");
}

#[tokio::test]
async fn loading_a_session_that_the_agent_creates_again_keeps_its_id() {
    let setup = TestSetup::start().await;
    let id = created(&setup).await;
    asked(&setup, "POST", &id, "kill", None).await;
    let loaded = asked(&setup, "POST", &id, "load", None).await;
    assert_eq!(loaded["sessionId"], listed(&setup).await["id"]);
    assert_eq!(loaded["sessionId"], id.as_str());
    let mut window = setup.app.window().await;
    converses(&setup, &mut window, loaded["sessionId"].as_str().unwrap(), "say:hello").await;
}

#[tokio::test]
async fn a_session_without_a_message_takes_its_first_one_after_a_restart_and_keeps_it_over_the_next() {
    let mut setup = TestSetup::start().await;
    let id = created(&setup).await;
    setup.app.interrupt();
    setup.app.ended().await;

    let mut setup = setup.again().await;
    converses(&setup, &mut setup.app.window().await, &id, "say:the first").await;
    let session = listed(&setup).await;
    assert_eq!(session["title"], "say:the first");
    setup.app.interrupt();
    setup.app.ended().await;

    let setup = setup.again().await;
    assert_eq!(session["id"], id.as_str());
    let id = SessionId::parse(id).unwrap();
    let screen = Screen::open(&mut setup.app.window().await, &id).await;
    assert_eq!((&screen.session, screen.answers()), (&id, vec!["the first"]));
}

#[tokio::test]
async fn windows_and_commands_reach_it_as_well() {
    let mut setup = TestSetup::start().await;
    let id = created(&setup).await;
    setup.app.interrupt();
    setup.app.ended().await;

    let setup = setup.again().await;
    let mut watcher = setup.app.window().await;
    for message in ["say:the first", "say:the second"] {
        let output = setup.app.run(&["send", &id, message]).await;
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n", message.strip_prefix("say:").unwrap()));
    }
    let session = listed(&setup).await;
    assert_eq!((&session["id"], &session["title"]), (&json!(id), &json!("say:the first")));
    let session_id = SessionId::parse(id.as_str()).unwrap();
    let output = setup.app.run(&["attach", "--wait", &id]).await;
    assert!(String::from_utf8_lossy(&output.stdout).contains("the second"), "{output:?}");
    assert_eq!(Screen::open(&mut watcher, &session_id).await.answers(), ["the first", "the second"]);
}
