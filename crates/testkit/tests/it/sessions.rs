//! Sessions at the socket: created, listed, spoken to, cancelled, archived, and what every window sees of it.

use protocol::{
    Attention, CliType, ClientMessage, Continuity, ErrorCode, ServerMessage, TurnEvent, TurnStatus, UpsertStatus,
};
use testkit::{Screen, TestSetup};

fn send(session: &protocol::SessionId, content: &str) -> ClientMessage {
    ClientMessage::SessionSend { session_id: session.clone(), content: content.into() }
}

/// TC-2.2a, TC-2.1a, TC-2.1c.
#[tokio::test]
async fn a_new_session_is_listed_and_every_window_is_notified() {
    let setup = TestSetup::start().await;
    let (mut one, mut two) = (setup.app.window().await, setup.app.window().await);
    assert!(setup.sessions(&mut one).await.is_empty());
    let session = setup.create(&mut one, "codex").await;
    assert_eq!(session.title, "New Session");
    assert_eq!(session.state.continuity, Continuity::Live);
    let news = two.until("the news", |frame| matches!(frame.message, ServerMessage::SessionCreated { .. })).await;
    assert_eq!(news.request_id, None);
    let listed = setup.sessions(&mut two).await;
    assert_eq!(listed.iter().map(|session| &session.id).collect::<Vec<_>>(), [&session.id]);
}

/// TC-2.2f, TC-5.5a: nothing is left behind.
#[tokio::test]
async fn an_agent_that_is_not_installed_gives_an_error_with_what_to_do_and_no_session() {
    let setup = TestSetup::start_with(|builder| builder.env("CODEX_ACP_CMD", "no-such-program-anywhere")).await;
    let mut window = setup.app.window().await;
    let (project_id, cli_type) = (setup.project.clone(), CliType::parse("codex").unwrap());
    let error = window.try_call(&ClientMessage::SessionCreate { project_id, cli_type }).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::AgentNotInstalled);
    assert_eq!(error.message, "Could not start Codex. Check that it's installed.");
    assert!(error.install_hint.is_some());
    assert!(setup.sessions(&mut window).await.is_empty());
}

/// TC-5.5b.
#[tokio::test]
async fn an_agent_that_dies_in_its_handshake_says_why() {
    let agent = testkit::programs::scripted_agent().display().to_string();
    let setup =
        TestSetup::start_with(|builder| builder.env("CODEX_ACP_CMD", format!("'{agent}' acp 'refuse:bad flag'"))).await;
    let mut window = setup.app.window().await;
    let (project_id, cli_type) = (setup.project.clone(), CliType::parse("codex").unwrap());
    let error = window.try_call(&ClientMessage::SessionCreate { project_id, cli_type }).await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::AgentHandshakeFailed, "Could not connect to Codex"));
    assert!(error.detail.as_deref().unwrap_or_default().contains("bad flag"), "{error:?}");
}

/// TC-7.1b, TC-3.1a, TC-3.2a, and the title rule.
#[tokio::test]
async fn a_turn_is_sent_from_the_users_message_to_its_end_and_gives_the_session_its_title() {
    let setup = TestSetup::start().await;
    let (mut one, mut two) = (setup.app.window().await, setup.app.window().await);
    let session = setup.create(&mut one, "codex").await.id;
    let mut first = Screen::open(&mut one, &session).await;
    let mut second = Screen::open(&mut two, &session).await;
    let request = one.ask(&send(&session, "say:Hello\nsay:, world")).await;
    let started = one
        .until("the turn to start", |frame| {
            first_is_turn_start(&frame.message) && frame.request_id.as_deref() == Some(&request)
        })
        .await;
    first.take(&started);
    assert!(matches!(
        first.until_turn_end(&mut one).await,
        TurnEvent::TurnComplete { status: TurnStatus::Completed, usage: Some(_), .. }
    ));
    second.until_turn_end(&mut two).await;
    assert_eq!(second.asked(), ["say:Hello\nsay:, world"]);
    assert_eq!(second.answers(), ["Hello, world"]);
    assert!(second.is_settled());
    // The start of the turn, the message, the answer, the end. A state of the answer that a newer one replaced in the
    // queue is not sent, and its number with it.
    assert_eq!((second.seqs.first(), second.seqs.last()), (Some(&1), Some(&second.seq)));
    assert!(second.seqs.is_sorted_by(|one, next| one < next), "{:?}", second.seqs);
    // The title is saved beside the turn, which does not wait for it.
    let listed = testkit::within("the title", async {
        loop {
            let listed = setup.sessions(&mut two).await.remove(0);
            if listed.title == "say:Hello say:, world" {
                return listed;
            }
        }
    })
    .await;
    assert_eq!(listed.state.attention, Attention::Finished);
    one.call(&ClientMessage::SessionSeen { session_id: session.clone() }).await;
    two.until("it to be seen", |frame| {
        matches!(&frame.message, ServerMessage::SessionState { state, .. } if state.attention == Attention::Idle)
    })
    .await;
}

fn first_is_turn_start(message: &ServerMessage) -> bool {
    matches!(message, ServerMessage::SessionTurn { payload: TurnEvent::TurnStarted { .. }, .. })
}

#[tokio::test]
async fn the_title_reaches_every_window_at_once_and_never_changes_by_itself() {
    let setup = TestSetup::start().await;
    let (mut one, mut two) = (setup.app.window().await, setup.app.window().await);
    let session = setup.create(&mut one, "claude-code").await.id;
    let mut screen = Screen::open(&mut one, &session).await;
    screen.converse(&mut one, "say:first").await;
    let updated =
        two.until("the title", |frame| matches!(frame.message, ServerMessage::SessionTitleUpdated { .. })).await;
    assert!(matches!(updated.message, ServerMessage::SessionTitleUpdated { title, .. } if title == "say:first"));
    screen.converse(&mut one, "say:second").await;
    assert_eq!(setup.sessions(&mut one).await[0].title, "say:first");
}

#[tokio::test]
async fn a_send_while_a_turn_runs_is_refused_and_harms_nothing() {
    let setup = TestSetup::start().await;
    let (mut window, session, mut screen) = setup.begin("codex").await;
    screen.send_until_answer(&mut window, "say:one \nhold:go\nsay:two", "one ").await;
    let mut other = setup.app.window().await;
    let error = other.try_call(&send(&session, "say:three")).await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::TurnInProgress, "The agent is still working"));
    setup.open_gate("go");
    screen.until_turn_end(&mut window).await;
    assert_eq!(screen.answers(), ["one two"]);
}

/// TC-3.7b, TC-3.7c.
#[tokio::test]
async fn a_cancelled_turn_keeps_its_text_and_the_session_goes_on() {
    let setup = TestSetup::start().await;
    let (mut window, session, mut screen) = setup.begin("codex").await;
    screen.send_until_answer(&mut window, "say:so far\nhold:never", "so far").await;
    let cancel = ClientMessage::SessionCancel { session_id: session.clone() };
    let answer = window.call(&cancel).await;
    let ServerMessage::SessionTurn { payload: TurnEvent::TurnComplete { status, .. }, .. } = &answer else {
        panic!("{answer:?}")
    };
    assert_eq!(*status, TurnStatus::Cancelled);
    screen.reopen(&mut window, None).await;
    assert_eq!(screen.answers(), ["so far"]);
    assert!(screen.is_settled());
    assert_eq!(window.call(&cancel).await, ServerMessage::Ack {}, "with nothing running a cancel is ignored");
    screen.converse(&mut window, "say:again").await;
    assert_eq!(screen.answers(), ["so far", "again"]);
}

/// TC-5.6a and TC-5.6b as far as the server has part in them, TC-2.3a.
#[tokio::test]
async fn a_window_that_joins_in_mid_turn_sees_every_item_once() {
    let setup = TestSetup::start().await;
    let (mut window, session, mut screen) = setup.begin("codex").await;
    screen.send_until_answer(&mut window, "say:one \nhold:go\nsay:two", "one ").await;
    let seq = screen.seq;
    drop(window);
    let mut late = setup.app.view_window().await;
    let mut fresh = Screen::open(&mut late, &session).await;
    assert_eq!(fresh.answers(), ["one "]);
    setup.open_gate("go");
    fresh.until_turn_end(&mut late).await;
    assert_eq!(fresh.answers(), ["one two"]);
    // The window that left comes back and asks only for what it missed.
    let mut back = setup.app.window().await;
    screen.reopen(&mut back, Some(seq)).await;
    assert_eq!(screen.texts(), fresh.texts());
    assert_eq!(setup.agent_log().matches("start ").count(), 1, "the same process all along");
}

/// TC-2.4a, TC-2.4b.
#[tokio::test]
async fn archiving_a_working_session_ends_what_runs_and_can_be_taken_back() {
    let setup = TestSetup::start().await;
    let (mut one, mut two) = (setup.app.window().await, setup.app.window().await);
    let session = setup.create(&mut one, "codex").await.id;
    let mut screen = Screen::open(&mut one, &session).await;
    screen.send_until_answer(&mut one, "say:working\nhold:never", "working").await;
    one.call(&ClientMessage::SessionArchive { session_id: session.clone() }).await;
    two.until("the news", |frame| matches!(frame.message, ServerMessage::SessionArchived { .. })).await;
    assert!(setup.sessions(&mut two).await.is_empty());
    testkit::within("the agent to be notified", async {
        while !setup.agent_log().contains("session/close") {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    two.call(&ClientMessage::SessionRestore { session_id: session.clone() }).await;
    assert_eq!(setup.sessions(&mut one).await[0].id, session);
}

/// TC-2.1b.
#[tokio::test]
async fn the_session_spoken_to_last_is_listed_first() {
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let older = setup.create(&mut window, "codex").await.id;
    let newer = setup.create(&mut window, "codex").await.id;
    let ids = |sessions: Vec<protocol::SessionSummary>| sessions.into_iter().map(|s| s.id).collect::<Vec<_>>();
    let mut screen = Screen::open(&mut window, &older).await;
    screen.converse(&mut window, "say:hello").await;
    assert_eq!(ids(setup.sessions(&mut window).await), [older, newer]);
}

/// TC-2.5a, TC-2.5b.
#[tokio::test]
async fn sessions_and_their_history_are_back_after_a_restart() {
    let mut setup = TestSetup::start().await;
    let (mut window, session, mut before) = setup.begin("codex").await;
    before.converse(&mut window, "say:remember me\ncall:c1 ls\noutput:c1 a.txt\ndone:c1 0").await;
    setup.app.interrupt();
    assert!(setup.app.ended().await.success());
    let setup = setup.again().await;
    let mut window = setup.app.window().await;
    assert_eq!(setup.sessions(&mut window).await[0].title, "say:remember me call:c1 ls output:c1 a.txt done:c1…");
    assert_eq!(setup.agent_log().matches("start ").count(), 1, "listing starts no agent");
    let mut after = Screen::open(&mut window, &session).await;
    assert_eq!(after.answers(), ["remember me"]);
    assert!(after.items.iter().all(|item| item.status == UpsertStatus::Complete));
    after.converse(&mut window, "say:still here").await;
    assert_eq!(after.answers(), ["remember me", "still here"]);
}

/// TC-5.2b to d: the crash is reported, the messages stay, and the session works again.
#[tokio::test]
async fn a_crash_in_a_turn_settles_it_and_the_session_comes_back() {
    let setup = TestSetup::start().await;
    let (mut window, _, mut screen) = setup.begin("codex").await;
    let end = screen.converse(&mut window, "say:half a\ncall:c1 sleep\nexit:3").await;
    let TurnEvent::TurnError { error_code, error_message, .. } = end else { panic!("{end:?}") };
    assert_eq!((error_code.as_str(), error_message.as_str()), ("PROCESS_CRASH", "Codex stopped unexpectedly"));
    assert_eq!(screen.answers(), ["half a"]);
    assert!(screen.is_settled(), "{:?}", screen.items);
    window
        .until("the agent to be back", |frame| {
            matches!(
                &frame.message,
                ServerMessage::AgentStatus { status: protocol::AgentStatus::Connected, session_id: Some(_), .. }
            )
        })
        .await;
    screen.converse(&mut window, "say:back").await;
    assert_eq!(screen.answers(), ["half a", "back"]);
}

#[tokio::test]
async fn ten_sends_in_the_same_instant_are_ten_turns() {
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let mut screens = Vec::new();
    for number in 0..10 {
        let session = setup.create(&mut window, if number % 2 == 0 { "codex" } else { "claude-code" }).await.id;
        screens.push(Screen::open(&mut window, &session).await);
    }
    for (number, screen) in screens.iter().enumerate() {
        window.ask(&send(&screen.session, &format!("say:number {number}"))).await;
    }
    testkit::within("ten turns", async {
        while !screens.iter().all(|screen| screen.turns.last().is_some_and(TurnEvent::is_end)) {
            let frame = window.next_frame().await;
            screens.iter_mut().for_each(|screen| screen.take(&frame));
        }
    })
    .await;
    for (number, screen) in screens.iter().enumerate() {
        assert_eq!(screen.answers(), [format!("number {number}")]);
    }
}

#[tokio::test]
async fn what_is_asked_of_nothing_is_refused_by_name() {
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let unknown = protocol::SessionId::parse("codex:nobody").unwrap();
    let open = ClientMessage::SessionOpen { session_id: unknown.clone(), since: None, epoch: None, journal_id: None };
    assert_eq!(window.try_call(&open).await.unwrap_err().code, ErrorCode::SessionNotFound);
    assert_eq!(window.try_call(&send(&unknown, "hello")).await.unwrap_err().code, ErrorCode::SessionNotFound);
    let create = ClientMessage::SessionCreate {
        project_id: setup.project.clone(),
        cli_type: CliType::parse("no-such-agent").unwrap(),
    };
    let error = window.try_call(&create).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::UnsupportedCliType);
    assert_eq!(error.message, "Agent type not supported: no-such-agent");
}
