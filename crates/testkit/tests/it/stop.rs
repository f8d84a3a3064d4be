//! Stop with agents that do not stop, as a window sees it: the turn is settled in time, the messages stay, the next
//! message is answered or the session says why not, and other sessions of the same agent go on.

use std::time::{Duration, Instant};

use protocol::{
    Attention, ClientMessage, Continuity, ServerMessage, SessionId, SessionState, TurnEvent, TurnRecordStatus,
    TurnStatus,
};
use testkit::{Screen, TestSetup, Window, programs, within};

/// The user is promised five seconds. The rest is for a machine that has much else to do; without the promise it takes ten
/// and more, or for ever.
const PROMISED: Duration = Duration::from_secs(9);

fn agent(args: &str) -> String {
    format!("'{}' acp {args}", programs::scripted_agent().display())
}

/// Stops the turn that runs, and shows everything up to its end.
async fn stop(window: &mut Window, screen: &mut Screen) {
    let asked = Instant::now();
    window.ask(&ClientMessage::SessionCancel { session_id: screen.session.clone() }).await;
    let end = screen.until_turn_end(window).await;
    assert!(asked.elapsed() < PROMISED, "it took {:?}", asked.elapsed());
    assert!(matches!(end, TurnEvent::TurnComplete { status: TurnStatus::Cancelled, .. }), "{end:?}");
    assert!(screen.is_settled(), "{screen:?}");
}

/// The state that the list of sessions shows.
async fn state(setup: &TestSetup, window: &mut Window, session: &SessionId) -> SessionState {
    let sessions = setup.sessions(window).await;
    let found = sessions.iter().find(|summary| summary.id == *session).cloned();
    let found = found.unwrap_or_else(|| panic!("{session} is not among {sessions:?}"));
    found.state
}

#[tokio::test]
async fn an_agent_that_ignores_a_cancel_is_stopped_and_its_session_is_resumed_beside_a_turn_that_runs() {
    let setup = TestSetup::start().await;
    let (mut window, _, mut screen) = setup.begin("codex").await;
    let (mut beside, _, mut other) = setup.begin("codex").await;
    screen.converse(&mut window, "say:before").await;
    other.send_until_answer(&mut beside, "say:one\nhold:go\nsay: two", "one").await;
    let content = "say:so far\ncall:c1 make\ndeaf:late\nsay: too late".to_owned();
    window.ask(&ClientMessage::SessionSend { session_id: screen.session.clone(), content }).await;
    screen.until(&mut window, "the call", |screen| screen.items.len() == 5).await;
    stop(&mut window, &mut screen).await;
    setup.open_gate("late");
    let end = screen.converse(&mut window, "say:next").await;
    assert!(matches!(end, TurnEvent::TurnComplete { status: TurnStatus::Completed, .. }), "{end:?}");
    assert_eq!(screen.answers(), ["before", "so far", "next"]);
    setup.open_gate("go");
    let end = other.until_turn_end(&mut beside).await;
    assert!(matches!(end, TurnEvent::TurnComplete { status: TurnStatus::Completed, .. }), "{end:?}");
    assert_eq!(other.answers(), ["one two"]);
    assert_eq!(setup.agent_log().matches("start ").count(), 1, "{}", setup.agent_log());
}

#[tokio::test]
async fn an_agent_that_hangs_is_named_in_its_session_and_a_restart_goes_on() {
    let setup = TestSetup::start_with(|builder| builder.env("CODEX_ACP_CMD", agent("no-close"))).await;
    let (mut window, session, mut screen) = setup.begin("codex").await;
    let (mut beside, _, mut other) = setup.begin("codex").await;
    screen.converse(&mut window, "say:before").await;
    other.send_until_answer(&mut beside, "say:one\nhold:go\nsay: two", "one").await;
    let content = "say:so far\ndeaf:never".to_owned();
    window.ask(&ClientMessage::SessionSend { session_id: session.clone(), content }).await;
    screen.until(&mut window, "the text", |screen| screen.answers() == ["before", "so far"]).await;
    stop(&mut window, &mut screen).await;
    within("word of it", async {
        loop {
            let state = state(&setup, &mut window, &session).await;
            if state.attention == Attention::Disconnected {
                return assert!(state.hangs && state.reason.unwrap().contains("hangs. Restart it"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let content = "say:x".to_owned();
    let refused =
        window.try_call(&ClientMessage::SessionSend { session_id: session.clone(), content }).await.unwrap_err();
    assert!(refused.message.contains("Restart it to go on."), "{refused:?}");
    setup.open_gate("go");
    other.until_turn_end(&mut beside).await;
    assert_eq!(other.answers(), ["one two"], "its other sessions were not touched");
    let cli_type = session.cli_type();
    window.call(&ClientMessage::SessionReconnect { cli_type, session_id: Some(session.clone()) }).await;
    assert!(!state(&setup, &mut window, &session).await.hangs);
    let end = screen.converse(&mut window, "say:next").await;
    assert!(matches!(end, TurnEvent::TurnComplete { status: TurnStatus::Completed, .. }), "{end:?}");
    assert_eq!(screen.answers(), ["before", "so far", "next"]);
}

#[tokio::test]
async fn a_claude_code_that_ignores_an_interrupt_is_stopped_and_the_next_message_is_answered() {
    let setup = TestSetup::start().await;
    let (mut window, _, mut screen) = setup.begin("claude-code").await;
    screen.send_until_answer(&mut window, "say:so far\nstall", "so far").await;
    stop(&mut window, &mut screen).await;
    let end = screen.converse(&mut window, "say:next").await;
    assert!(matches!(end, TurnEvent::TurnComplete { status: TurnStatus::Completed, .. }), "{end:?}");
    assert_eq!(screen.answers(), ["so far", "next"]);
}

#[tokio::test]
async fn a_session_whose_agent_reports_nothing_of_it_is_a_copy_and_shows_the_message_that_was_interrupted() {
    // A server that stops in order cancels its turns.
    for (is_killed, end) in [(true, TurnRecordStatus::Error), (false, TurnRecordStatus::Cancelled)] {
        let mut setup = TestSetup::start().await;
        let (mut window, session, mut screen) = setup.begin("codex").await;
        screen.send_until_answer(&mut window, "say:so far\nhold:never", "so far").await;
        setup.until_kept("say:so far hold:never").await;
        setup.until_recorded("so far").await;
        if is_killed {
            setup.app.kill().await;
        } else {
            setup.app.interrupt();
            assert!(setup.app.ended().await.success());
        }

        let setup = setup.again_with(|builder| builder.env("CODEX_ACP_CMD", agent("empty-load no-resume"))).await;
        let mut window = setup.app.window().await;
        let mut screen = Screen::open(&mut window, &session).await;
        assert_eq!(screen.asked(), ["say:so far\nhold:never"], "killed: {is_killed}");
        assert_eq!(screen.answers(), ["so far"], "killed: {is_killed}");
        assert_eq!(screen.records.last().map(|turn| turn.status), Some(end), "killed: {is_killed}");
        assert_eq!(state(&setup, &mut window, &session).await.continuity, Continuity::Dormant, "no agent was asked");
        let answer = window
            .call(&ClientMessage::SessionOpen {
                session_id: session.clone(),
                since: None,
                epoch: None,
                journal_id: None,
            })
            .await;
        assert!(matches!(answer, ServerMessage::SessionHistory { .. }));
        screen.converse(&mut window, "say:next").await;
        assert_eq!(screen.answers(), ["so far", "next"]);
        assert_eq!(state(&setup, &mut window, &session).await.continuity, Continuity::Copy, "killed: {is_killed}");
    }
}
