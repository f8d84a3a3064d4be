//! The real Claude Code and the real Codex, end to end: from a window to the program and back, against a scripted model.

use protocol::{CliType, ClientMessage, ServerMessage, SessionId, TurnEvent, TurnStatus, UpsertBody, UpsertStatus};
use serde_json::json;
use testkit::scripted_model::ScriptedModel;
use testkit::{Screen, TestApp, Window};

const AGENTS: [&str; 2] = ["claude-code", "codex"];

async fn create(app: &TestApp, window: &mut Window, agent: &str) -> SessionId {
    let directory = app.home().join("project");
    std::fs::create_dir_all(&directory).unwrap();
    let body = json!({"cliType": agent, "projectDir": directory});
    let created = app.request("POST", "/api/session/create", Some(&body)).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let id = SessionId::parse(created.json()["sessionId"].as_str().unwrap()).unwrap();
    assert_eq!(id.cli_type(), CliType::parse(agent).unwrap());
    window
        .until(
            "the news",
            |frame| matches!(&frame.message, ServerMessage::SessionCreated { session_id, .. } if *session_id == id),
        )
        .await;
    id
}

/// TC-2.2d, TC-2.2e, TC-7.1a, TC-7.1b, TC-7.1c, TC-8.1a, TC-8.1b, TC-8.1c, TC-8.2a, TC-8.2b: an answer, a command and its
/// output, a cancel, and the next turn.
async fn converse(app: &TestApp, window: &mut Window, model: &ScriptedModel, agent: &str) -> Screen {
    let session = create(app, window, agent).await;
    let mut screen = Screen::open(window, &session).await;
    let end = screen.converse(window, "say:hello **world**").await;
    assert!(matches!(end, TurnEvent::TurnComplete { status: TurnStatus::Completed, .. }), "{agent}: {end:?}");
    assert_eq!(screen.answers(), ["hello **world**"], "{agent}");
    screen.converse(window, "bash:echo from the shell\nsay:done").await;
    let is_call = |item: &&testkit::Shown| matches!(item.last.body, UpsertBody::ToolCall { .. });
    let call = screen.items.iter().find(is_call).unwrap_or_else(|| panic!("{agent}: no tool call in {screen:#?}"));
    assert_eq!((call.status, call.text.trim()), (UpsertStatus::Complete, "from the shell"), "{agent}");
    assert_eq!(screen.answers(), ["hello **world**", "done"], "{agent}");

    let gate = format!("never-{agent}");
    let content = format!("say:so far \nhold:{gate}");
    window.ask(&ClientMessage::SessionSend { session_id: session.clone(), content }).await;
    testkit::within("the model to be asked", model.held(&gate)).await;
    let cancelled = app.request("POST", &format!("/api/session/{session}/cancel"), Some(&json!({}))).await;
    assert_eq!(cancelled.status, 200, "{agent}");
    let end = screen.until_turn_end(window).await;
    assert!(matches!(end, TurnEvent::TurnComplete { status: TurnStatus::Cancelled, .. }), "{agent}: {end:?}");
    assert!(screen.is_settled(), "{agent}");
    screen.converse(window, "say:and on").await;
    assert_eq!(screen.answers().last(), Some(&"and on"), "{agent}");
    screen
}

/// TC-2.5a, TC-2.5b, TC-7.3a, TC-7.3b, TC-8.3a, TC-8.3b.
#[tokio::test]
async fn both_real_agents_work_side_by_side_and_are_there_after_a_restart() {
    let model = ScriptedModel::start().await.unwrap();
    let mut app = TestApp::builder().with_claude(&model).with_codex(&model).start().await;
    let mut window = app.window().await;
    let mut before = Vec::new();
    for agent in AGENTS {
        before.push(converse(&app, &mut window, &model, agent).await);
    }
    // From one to the other and back: each shows what it showed.
    for screen in &before {
        let again = Screen::open(&mut window, &screen.session).await;
        assert_eq!(again.texts(), screen.texts());
    }
    app.interrupt();
    assert!(app.ended().await.success());

    let app = app.again().with_claude(&model).with_codex(&model).start().await;
    let mut window = app.window().await;
    for screen in &before {
        let status = app.request("GET", &format!("/api/session/{}/status", screen.session), None).await.json();
        assert_eq!(status["isAlive"], false, "nothing is started before it is needed");
        let mut after = Screen::open(&mut window, &screen.session).await;
        for text in ["hello **world**", "done", "and on"] {
            assert!(
                after.answers().contains(&text),
                "{}: {text:?} is missing in {:?}",
                screen.session,
                after.answers()
            );
        }
        assert!(after.is_settled());
        // Codex may have a notice of its own first.
        let content = "say:still here".to_owned();
        window.ask(&ClientMessage::SessionSend { session_id: screen.session.clone(), content }).await;
        after.until(&mut window, "the answer", |after| after.answers().last() == Some(&"still here")).await;
    }
}

/// Waits for the list of agents to say this of Claude Code.
async fn until_login(window: &mut Window, is_it: impl Fn(Option<bool>) -> bool) {
    let of_claude = |message: &ServerMessage| match message {
        ServerMessage::AgentList { agents } => {
            agents.iter().find(|agent| agent.cli_type.as_str() == "claude-code").map(|agent| agent.logged_in)
        }
        _ => None,
    };
    window.until("what is known of the login", |frame| of_claude(&frame.message).is_some_and(&is_it)).await;
}

/// Issue 17: a Claude Code that had just answered "Not logged in" was shown as green and connected.
#[tokio::test]
async fn a_claude_code_whose_login_was_refused_is_not_logged_in_until_a_turn_succeeds() {
    let model = ScriptedModel::start().await.unwrap();
    let app = TestApp::builder().with_claude(&model).env("CLAUDE_CODE_MAX_RETRIES", "0").start().await;
    let mut window = app.window().await;
    let session = create(&app, &mut window, "claude-code").await;
    let mut screen = Screen::open(&mut window, &session).await;
    let mut other = app.window().await;
    until_login(&mut other, |_| true).await;
    let end = screen.converse(&mut window, "error:401").await;
    assert!(matches!(&end, TurnEvent::TurnError { error_message, .. } if error_message.contains("/login")), "{end:?}");
    until_login(&mut other, |login| login == Some(false)).await;
    screen.converse(&mut window, "say:welcome back").await;
    until_login(&mut other, |login| login != Some(false)).await;
}
