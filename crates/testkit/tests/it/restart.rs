//! A restart of the server in every state of a session: nothing but a real turn changes state, age or order.

use protocol::{
    Attention, ClientMessage, Continuity, ServerMessage, SessionId, SessionSummary, TurnEvent, TurnRecordStatus,
};
use serde_json::Value;
use testkit::scripted_model::ScriptedModel;
use testkit::{Screen, TestSetup, Window};

fn send(session: &SessionId, content: &str) -> ClientMessage {
    ClientMessage::SessionSend { session_id: session.clone(), content: content.into() }
}

async fn look_at(window: &mut Window, session: &SessionId) {
    window.call(&ClientMessage::SessionSeen { session_id: session.clone() }).await;
}

fn of<'a>(sessions: &'a [SessionSummary], id: &SessionId) -> &'a SessionSummary {
    sessions.iter().find(|session| session.id == *id).unwrap()
}

/// Waits until the file of sessions has this many unseen ends and nothing that is worked on, which it may a moment later.
async fn until_kept(setup: &TestSetup, count: usize) {
    let file = setup.app.data_dir().join("sessions.json");
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
    testkit::within("the unseen ends on the disk", async {
        loop {
            let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap_or_default()).unwrap_or_default();
            let sessions = kept["sessions"].as_array().into_iter().flatten();
            // A message that is not in the file yet may still be written there before its answer is.
            let is_answered = |one: &Value| one["unanswered"].is_null() && !one["lastTurn"].is_null();
            if sessions.clone().all(is_answered) && sessions.filter(|one| !one["unseen"].is_null()).count() == count {
                break;
            }
            looks.tick().await;
        }
    })
    .await;
}

/// Issue 17: 24 unread marks became none.
#[tokio::test]
async fn what_nobody_has_seen_is_still_unseen_after_a_restart() {
    for is_killed in [false, true] {
        let mut setup = TestSetup::start().await;
        let (mut window, finished, mut screen) = setup.begin("codex").await;
        screen.converse(&mut window, "say:one").await;
        let (_, failed, mut screen) = setup.begin("codex").await;
        let mut window = setup.app.window().await;
        screen.reopen(&mut window, None).await;
        screen.converse(&mut window, "error:out of luck").await;
        let (mut other, seen, mut screen) = setup.begin("claude-code").await;
        screen.converse(&mut other, "say:three").await;
        look_at(&mut other, &seen).await;
        let before = testkit::within("that it was looked at", async {
            loop {
                let listed = setup.sessions(&mut window).await;
                if of(&listed, &seen).state.attention == Attention::Idle {
                    return listed;
                }
            }
        })
        .await;
        assert_eq!(of(&before, &finished).state.attention, Attention::Finished);
        assert_eq!(of(&before, &failed).state.attention, Attention::Error);
        until_kept(&setup, 2).await;
        match is_killed {
            true => drop(setup.app.kill().await),
            false => {
                setup.app.interrupt();
                setup.app.ended().await;
            }
        }

        let mut setup = setup.again().await;
        let mut window = setup.app.window().await;
        let after = setup.sessions(&mut window).await;
        let ids = |sessions: &[SessionSummary]| sessions.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&after), ids(&before), "in the same order");
        for session in &before {
            let (then, now) = (session, of(&after, &session.id));
            assert_eq!(now.state.attention, then.state.attention, "{now:?}, killed: {is_killed}");
            assert_eq!((&now.state.reason, now.last_active_at), (&then.state.reason, then.last_active_at));
            if then.state.attention != Attention::Idle {
                let apart = now.state.since.unwrap().unix_ms() - then.state.since.unwrap().unix_ms();
                assert!(apart.abs() < 1000, "it is as old as it was: {apart} ms");
            }
        }
        assert!(!setup.agent_log().contains("session/load"), "no agent is asked for it");
        // To open it is not to look at it: the window says when it is looked at.
        Screen::open(&mut window, &failed).await;
        let listed = setup.sessions(&mut window).await;
        assert_eq!(of(&listed, &failed).state.attention, Attention::Error);
        look_at(&mut window, &finished).await;
        look_at(&mut window, &failed).await;
        until_kept(&setup, 0).await;
        setup.app.kill().await;
        let setup = setup.again().await;
        let listed = setup.sessions(&mut setup.app.window().await).await;
        assert!(listed.iter().all(|session| session.state.attention == Attention::Idle), "{listed:?}");
    }
}

/// Issue 17: "Finished in 0s" after a stop in mid-turn, and nothing showed that the work was cut short.
#[tokio::test]
async fn a_turn_that_the_server_stopped_with_is_shown_as_stopped_and_wants_the_user() {
    let mut setup = TestSetup::start().await;
    let (mut window, session, mut screen) = setup.begin("codex").await;
    window.ask(&send(&session, "say:so far\nhold:never")).await;
    screen.until(&mut window, "the text", |screen| screen.answers() == ["so far"]).await;
    setup.app.interrupt();
    assert!(setup.app.ended().await.success());

    let setup = setup.again().await;
    let mut window = setup.app.window().await;
    let listed = setup.sessions(&mut window).await.remove(0);
    assert_eq!(listed.state.attention, Attention::Error);
    assert_eq!(listed.state.reason.as_deref(), Some("Stopped with Liminal Builder"));
    let screen = Screen::open(&mut window, &session).await;
    let [record] = &screen.records[..] else { panic!("{:?}", screen.records) };
    assert_eq!(record.status, TurnRecordStatus::Cancelled);
}

#[tokio::test]
async fn a_turn_that_the_server_was_killed_in_wants_the_user_until_somebody_looks() {
    let mut setup = TestSetup::start().await;
    let (mut window, session, mut screen) = setup.begin("codex").await;
    window.ask(&send(&session, "say:so far\nhold:never")).await;
    screen.until(&mut window, "the text", |screen| screen.answers() == ["so far"]).await;
    setup.until_kept("say:so far hold:never").await;
    setup.app.kill().await;

    let mut setup = setup.again().await;
    let mut window = setup.app.window().await;
    let listed = setup.sessions(&mut window).await.remove(0);
    assert_eq!(listed.state.attention, Attention::Error);
    assert_eq!(listed.state.reason.as_deref(), Some("Liminal Builder stopped in the middle of this turn"));
    look_at(&mut window, &session).await;
    until_kept(&setup, 0).await;
    setup.app.kill().await;
    let setup = setup.again().await;
    let mut window = setup.app.window().await;
    assert_eq!(setup.sessions(&mut window).await.remove(0).state.attention, Attention::Idle);
    let screen = Screen::open(&mut window, &session).await;
    assert_eq!(screen.records[0].status, TurnRecordStatus::Error, "the conversation still says it");
}

/// Issue 17, with the real Codex: opened after a restart it has a notice of its own, and a replay without times. Neither may
/// make the session look as if something had happened in it just now.
#[tokio::test]
async fn a_codex_session_that_did_nothing_keeps_its_state_its_age_and_its_place() {
    let model = ScriptedModel::start().await.unwrap();
    let mut setup = TestSetup::start_with(|builder| builder.with_codex(&model)).await;
    let (mut window, quiet, mut screen) = setup.begin("codex").await;
    let end = screen.converse(&mut window, "think:hm\nsay:hello").await;
    let TurnEvent::TurnComplete { at: ended_at, .. } = end else { panic!("{end:?}") };
    look_at(&mut window, &quiet).await;
    let stopped = setup.create(&mut window, "codex").await.id;
    let mut screen = Screen::open(&mut window, &stopped).await;
    window.ask(&send(&stopped, "say:so far\nhold:never")).await;
    screen.until(&mut window, "the text", |screen| screen.answers().concat().contains("so far")).await;
    setup.app.interrupt();
    setup.app.ended().await;

    let setup = setup.again_with(|builder| builder.with_codex(&model)).await;
    let mut window = setup.app.window().await;
    let before = setup.sessions(&mut window).await;
    assert_eq!(of(&before, &quiet).state.attention, Attention::Idle);
    assert_eq!(of(&before, &stopped).state.reason.as_deref(), Some("Stopped with Liminal Builder"));
    let screen = Screen::open(&mut window, &quiet).await;
    assert_eq!(of(&setup.sessions(&mut window).await, &quiet).state.continuity, Continuity::Dormant, "no agent runs");
    setup.app.request("POST", &format!("/api/session/{quiet}/load"), None).await;
    let is_use = |message: &ServerMessage| matches!(message, ServerMessage::SessionFacts { facts, .. } if facts.context.is_some());
    // The last thing that Codex sends by itself; its notice comes before.
    window.until("how full its context is", |frame| is_use(&frame.message)).await;
    let after = setup.sessions(&mut window).await;
    let (then, now) = (of(&before, &quiet), of(&after, &quiet));
    assert_eq!((now.state.attention, now.last_active_at), (Attention::Idle, then.last_active_at));
    let order = |sessions: &[SessionSummary]| sessions.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
    assert_eq!(order(&after), order(&before));

    let [record] = &screen.records[..] else { panic!("{:?}", screen.records) };
    assert_eq!(record.status, TurnRecordStatus::Completed);
    assert!((record.ended_at.unwrap().unix_ms() - ended_at.unix_ms()).abs() < 1000, "{record:?} {ended_at}");
    for item in &screen.items {
        let at = item.last.source_timestamp;
        assert!(!at.is_unset() && at <= ended_at, "the journal knows when: {item:?}");
    }
    let screen = Screen::open(&mut window, &stopped).await;
    let ends: Vec<_> = screen.records.iter().map(|record| record.status).collect();
    assert_eq!(ends, [TurnRecordStatus::Cancelled], "not finished");
}
