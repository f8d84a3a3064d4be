//! What is asked of a session while it closes: it waits for the next actor of that session, and none of it is lost.

use protocol::{ClientMessage, ErrorCode, ServerFrame, ServerMessage, SessionId, TurnEvent, UpsertStatus};
use sessions::WindowKind;
use tokio::sync::watch;

use crate::puppet::{Seat, Stage, open, send};

fn archive(session: &SessionId) -> ClientMessage {
    ClientMessage::SessionArchive { session_id: session.clone() }
}

fn restore(session: &SessionId) -> ClientMessage {
    ClientMessage::SessionRestore { session_id: session.clone() }
}

/// The next message of this session that is an item, an event of a turn, or the answer to a request.
async fn next_of(seat: &mut Seat, session: &SessionId) -> ServerFrame {
    seat.until("a message of the session", |frame| match &frame.message {
        ServerMessage::SessionUpsert { session_id, .. } | ServerMessage::SessionTurn { session_id, .. } => {
            session_id == session
        }
        _ => frame.request_id.is_some(),
    })
    .await
}

/// The window receives what the agent sends.
async fn receives(stage: &Stage, seat: &mut Seat, session: &SessionId, item: &str) {
    stage.puppet.text(session, item, "text", UpsertStatus::Complete).await;
    let received = next_of(seat, session).await;
    assert!(
        matches!(&received.message, ServerMessage::SessionUpsert { payload, .. } if payload.item_id.as_str() == item),
        "{received:?}"
    );
}

/// A session with an item in it, whose agent is being ended and does not come to its end before the gate opens.
async fn closing() -> (Stage, Seat, SessionId, watch::Sender<bool>) {
    let (stage, mut seat, session) = Stage::begin().await;
    receives(&stage, &mut seat, &session, "first").await;
    let gate = stage.puppet.hold_kills();
    seat.call(archive(&session)).await;
    stage.puppet.until_called("kill", 1).await;
    (stage, seat, session, gate)
}

#[tokio::test]
async fn a_session_that_is_archived_restored_and_opened_while_it_closes_is_received_from() {
    let (stage, mut seat, session, gate) = closing().await;
    seat.call(restore(&session)).await;
    let opened = seat.ask(open(&session, None)).await;
    let mut other = stage.seat_of(WindowKind::Plain);
    let opened_by_other = other.ask(open(&session, None)).await;
    assert_eq!(stage.puppet.count("load"), 0, "its agent has not ended yet");
    gate.send(true).unwrap();
    for (seat, request) in [(&mut seat, opened), (&mut other, opened_by_other)] {
        let history = next_of(seat, &session).await;
        assert_eq!(history.request_id.as_ref(), Some(&request));
        assert!(matches!(history.message, ServerMessage::SessionHistory { .. }), "{history:?}");
    }
    // Opening starts no agent; a message would.
    assert_eq!(stage.puppet.count("load"), 0);
    stage.hub.load_session(&session).await.unwrap();
    stage.puppet.text(&session, "second", "text", UpsertStatus::Complete).await;
    for seat in [&mut seat, &mut other] {
        let received = next_of(seat, &session).await;
        assert!(matches!(received.message, ServerMessage::SessionUpsert { .. }), "{received:?}");
    }
    assert_eq!((stage.puppet.count("load"), stage.puppet.overlaps()), (1, 0));
}

#[tokio::test]
async fn what_was_asked_without_waiting_for_answers_is_done_in_its_order() {
    let (stage, mut seat, session) = Stage::begin().await;
    receives(&stage, &mut seat, &session, "first").await;
    let gate = stage.puppet.hold_kills();
    let mut asked = Vec::new();
    for message in [archive(&session), restore(&session), open(&session, None), send(&session)] {
        asked.push(seat.ask(message).await);
    }
    stage.puppet.until_called("kill", 1).await;
    gate.send(true).unwrap();
    stage.puppet.until_called("send", 1).await;
    stage.puppet.start_turn(&session).await;
    let mut answers = Vec::new();
    while answers.len() < asked.len() {
        answers.push(next_of(&mut seat, &session).await);
    }
    let order: Vec<_> = answers.iter().map(|frame| frame.request_id.clone().unwrap_or_default()).collect();
    assert_eq!(order, asked);
    assert!(matches!(answers[0].message, ServerMessage::SessionArchived { .. }));
    assert!(matches!(answers[1].message, ServerMessage::SessionRestored { .. }));
    assert!(matches!(answers[2].message, ServerMessage::SessionHistory { .. }));
    assert!(matches!(answers[3].message, ServerMessage::SessionTurn { .. }));
    receives(&stage, &mut seat, &session, "second").await;
}

#[tokio::test]
async fn a_message_sent_while_its_session_closes_is_given_to_the_agent_that_comes_next_and_can_be_cancelled() {
    let (stage, mut seat, session, gate) = closing().await;
    seat.call(restore(&session)).await;
    seat.ask(send(&session)).await;
    let cancelled = seat.ask(ClientMessage::SessionCancel { session_id: session.clone() }).await;
    assert_eq!(stage.puppet.count("send"), 0, "the agent that is being ended gets no message");
    gate.send(true).unwrap();
    stage.puppet.until_called("send", 1).await;
    // The cancel came behind the message: it concerns its turn. One was called by the archive.
    stage.puppet.until_called("cancel", 2).await;
    stage.puppet.start_turn(&session).await;
    stage.puppet.end_turn(&session, protocol::TurnStatus::Cancelled).await;
    let end = seat.until("the answer", |frame| frame.request_id.as_ref() == Some(&cancelled)).await;
    assert!(matches!(end.message, ServerMessage::SessionTurn { payload: TurnEvent::TurnComplete { .. }, .. }));
    assert_eq!(stage.puppet.overlaps(), 0);
}

#[tokio::test]
async fn a_message_sent_before_its_session_was_closed_again_is_refused_and_no_turn_runs_unseen() {
    let (stage, mut seat, session, gate) = closing().await;
    seat.call(restore(&session)).await;
    let sent = seat.ask(send(&session)).await;
    seat.ask(archive(&session)).await;
    let refused = seat.until("the refusal", |frame| frame.request_id.as_ref() == Some(&sent)).await;
    assert!(matches!(&refused.message, ServerMessage::Error(error) if error.message.contains("closed before")));
    gate.send(true).unwrap();
    seat.call(restore(&session)).await;
    seat.call(open(&session, None)).await;
    stage.hub.load_session(&session).await.unwrap();
    receives(&stage, &mut seat, &session, "second").await;
    assert_eq!(stage.puppet.count("send"), 0);
}

#[tokio::test]
async fn a_window_that_leaves_while_its_request_waits_is_answered_and_not_joined() {
    let (stage, mut seat, session, gate) = closing().await;
    seat.call(restore(&session)).await;
    let opened = seat.ask(open(&session, None)).await;
    seat.call(ClientMessage::SessionLeave { session_id: session.clone() }).await;
    gate.send(true).unwrap();
    let history = next_of(&mut seat, &session).await;
    assert_eq!(history.request_id, Some(opened));
    stage.hub.load_session(&session).await.unwrap();
    stage.puppet.text(&session, "second", "text", UpsertStatus::Complete).await;
    let mut other = stage.seat();
    let ServerMessage::SessionHistory { .. } = other.call(open(&session, None)).await else { panic!() };
    // All that was sent before this answer would have come before it.
    let after = seat.ask(ClientMessage::ProjectList {}).await;
    assert_eq!(next_of(&mut seat, &session).await.request_id, Some(after));
}

#[tokio::test]
async fn what_is_asked_while_a_session_is_killed_waits_until_its_agent_has_ended() {
    let (stage, mut seat, session) = Stage::begin().await;
    receives(&stage, &mut seat, &session, "first").await;
    let gate = stage.puppet.hold_kills();
    let mut other = stage.seat();
    let (hub, id) = (stage.hub.clone(), session.clone());
    let mut kill = tokio::task::JoinSet::new();
    kill.spawn(async move { hub.kill(&id).await });
    stage.puppet.until_called("kill", 1).await;
    // What is known is shown at once, to a window that has it from then on.
    let ServerMessage::SessionHistory { entries, .. } = other.call(open(&session, None)).await else { panic!() };
    assert_eq!(entries.len(), 1);
    seat.ask(send(&session)).await;
    seat.call(ClientMessage::SessionSeen { session_id: session.clone() }).await;
    assert_eq!((stage.puppet.count("send"), stage.puppet.count("load")), (0, 0));
    gate.send(true).unwrap();
    kill.join_next().await.unwrap().unwrap().unwrap();
    stage.puppet.until_called("send", 1).await;
    receives(&stage, &mut other, &session, "second").await;
    assert_eq!((stage.puppet.count("load"), stage.puppet.overlaps()), (1, 0));
}

#[tokio::test]
async fn what_is_asked_after_a_session_was_killed_in_loading_is_served_when_that_has_ended() {
    let (stage, mut seat, session) = Stage::begin().await;
    stage.hub.kill(&session).await.unwrap();
    let (loads, kills) = (stage.puppet.hold_loads(), stage.puppet.hold_kills());
    let before = seat.ask(send(&session)).await;
    stage.puppet.until_called("load", 1).await;
    stage.hub.kill(&session).await.unwrap();
    let refused = seat.until("the refusal", |frame| frame.request_id.as_ref() == Some(&before)).await;
    assert!(matches!(refused.message, ServerMessage::Error(_)), "it was asked before the kill");
    loads.send(true).unwrap();
    // What was loaded is being closed, and that takes its time.
    stage.puppet.until_called("kill", 2).await;
    let opened = seat.ask(open(&session, None)).await;
    seat.ask(send(&session)).await;
    assert_eq!(stage.puppet.count("load"), 1);
    kills.send(true).unwrap();
    let history = seat.until("the history", |frame| frame.request_id.as_ref() == Some(&opened)).await;
    assert!(matches!(history.message, ServerMessage::SessionHistory { .. }), "{history:?}");
    stage.puppet.until_called("send", 1).await;
    receives(&stage, &mut seat, &session, "item").await;
    assert_eq!((stage.puppet.count("load"), stage.puppet.overlaps()), (2, 0));
}

#[tokio::test]
async fn a_window_stays_joined_when_its_session_cannot_be_loaded_again() {
    let (stage, mut seat, session) = Stage::begin().await;
    stage.hub.kill(&session).await.unwrap();
    stage.puppet.fail("load");
    assert!(matches!(seat.call(send(&session)).await, ServerMessage::Error(_)));
    stage.puppet.heal();
    // Another one brings it back, by HTTP.
    stage.hub.load_session(&session).await.unwrap();
    receives(&stage, &mut seat, &session, "item").await;
}

#[tokio::test]
async fn no_more_requests_wait_than_there_is_room_for_and_the_next_is_refused() {
    for closes in [false, true] {
        let (stage, mut seat, session) = Stage::begin().await;
        receives(&stage, &mut seat, &session, "first").await;
        let gate = if closes {
            let gate = stage.puppet.hold_kills();
            seat.call(archive(&session)).await;
            seat.call(restore(&session)).await;
            gate
        } else {
            stage.hub.kill(&session).await.unwrap();
            let gate = stage.puppet.hold_loads();
            seat.ask(send(&session)).await;
            stage.puppet.until_called("load", 1).await;
            gate
        };
        let mut refused = 0;
        let mut windows = Vec::new();
        // Far more than the bound; each window may have a few under way.
        for _ in 0..40 {
            let mut window = stage.seat();
            for _ in 0..20 {
                window
                    .ask(ClientMessage::SessionReconnect {
                        cli_type: session.cli_type(),
                        session_id: Some(session.clone()),
                    })
                    .await;
            }
            windows.push(window);
        }
        // By now each was taken or refused: the answer to this one comes behind those of the refused.
        for window in &mut windows {
            let marker = window.ask(ClientMessage::SessionSeen { session_id: session.clone() }).await;
            loop {
                let frame = window.next().await;
                if frame.request_id.as_ref() == Some(&marker) {
                    break;
                }
                if let (ServerMessage::Error(error), Some(_)) = (&frame.message, &frame.request_id) {
                    assert_eq!(error.code, ErrorCode::AgentUnavailable, "{error:?}");
                    assert!(error.message.contains("Too many requests"), "{error:?}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 0, "closes: {closes}");
        gate.send(true).unwrap();
        // Those that waited are served.
        stage.puppet.until_called("reconnect", 100).await;
    }
}

#[tokio::test]
async fn removing_a_project_stops_its_turns_and_taking_that_back_brings_its_sessions_back_without_them() {
    let (stage, mut seat, session) = Stage::begin().await;
    let idle = stage.create(&mut seat).await;
    seat.ask(send(&session)).await;
    stage.puppet.until_called("send", 1).await;
    stage.puppet.start_turn(&session).await;
    stage.puppet.text(&session, "item", "half a word", UpsertStatus::Update).await;
    seat.until("the text", |frame| matches!(frame.message, ServerMessage::SessionUpsert { .. })).await;
    let project_id = stage.project.clone();
    seat.ask(ClientMessage::ProjectRemove { project_id: project_id.clone() }).await;
    let end = seat
        .until(
            "the end of the turn",
            |frame| matches!(&frame.message, ServerMessage::SessionTurn { payload, .. } if payload.is_end()),
        )
        .await;
    assert!(
        matches!(
            end.message,
            ServerMessage::SessionTurn {
                payload: TurnEvent::TurnComplete { status: protocol::TurnStatus::Cancelled, .. },
                ..
            }
        ),
        "{end:?}"
    );
    stage.puppet.until_called("kill", 2).await;
    for session in [&session, &idle] {
        let refused = seat.call(open(session, None)).await;
        assert!(
            matches!(&refused, ServerMessage::Error(error) if error.code == ErrorCode::ProjectNotFound),
            "{refused:?}"
        );
    }
    seat.call(ClientMessage::ProjectRestore { project_id: project_id.clone() }).await;
    let listed = stage.hub.list_sessions(&project_id).unwrap();
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|session| session.state.attention == protocol::Attention::Idle), "{listed:?}");
    seat.call(open(&session, None)).await;
    receives(&stage, &mut seat, &session, "second").await;
    assert_eq!(stage.puppet.count("send"), 1, "the turn stays stopped");
}

#[tokio::test]
async fn a_session_that_is_being_created_when_its_project_is_removed_does_not_run_unseen() {
    let stage = Stage::set().await;
    let (mut seat, mut other) = (stage.seat(), stage.seat());
    let gate = stage.puppet.hold_creations();
    let cli_type = protocol::CliType::parse("puppet").unwrap();
    let created = seat.ask(ClientMessage::SessionCreate { project_id: stage.project.clone(), cli_type }).await;
    stage.puppet.until_called("create", 1).await;
    other.call(ClientMessage::ProjectRemove { project_id: stage.project.clone() }).await;
    gate.send(true).unwrap();
    let refused = seat.until("the answer", |frame| frame.request_id.as_ref() == Some(&created)).await;
    assert!(matches!(refused.message, ServerMessage::Error(_)), "{refused:?}");
    assert_eq!(stage.puppet.count("kill"), 1, "its agent's session is closed");
}
