//! Idle sessions: what is evicted, and that it comes back.

use protocol::{AgentStatus, Attention, ClientMessage, ServerMessage, TurnStatus, UpsertStatus};
use providers::{ProviderEvent, StatusReport};

use crate::puppet::{Stage, open, pass_time};

/// Sends a text in the session and returns the number of the last message.
async fn speak(stage: &Stage, session: &protocol::SessionId) {
    stage.puppet.start_turn(session).await;
    stage.puppet.text(session, "item", "text", UpsertStatus::Complete).await;
    stage.puppet.end_turn(session, TurnStatus::Completed).await;
}

#[tokio::test]
async fn a_session_nobody_looks_at_is_evicted_and_comes_back_with_numbers_that_go_on() {
    let stage = Stage::set().await;
    let mut seat = stage.seat();
    let session = stage.create(&mut seat).await;
    let ServerMessage::SessionHistory { .. } = seat.call(open(&session, None)).await else { panic!() };
    speak(&stage, &session).await;
    let end = seat.until(
        "the end",
        |frame| matches!(&frame.message, ServerMessage::SessionTurn { payload, .. } if payload.is_end()),
    );
    let ServerMessage::SessionTurn { seq: seen, .. } = end.await.message else { panic!() };
    seat.call(ClientMessage::SessionLeave { session_id: session.clone() }).await;
    pass_time().await;
    stage.puppet.until_dropped(&session).await;
    let ServerMessage::SessionHistory { since, seq, .. } = seat.call(open(&session, Some(seen))).await else {
        panic!()
    };
    assert_eq!(stage.puppet.count("load"), 0, "the journal has it");
    assert_eq!((since, seq), (Some(seen), seen), "a window that comes back is sent what it missed, which is nothing");
}

#[tokio::test]
async fn a_session_that_is_looked_at_or_works_or_lives_stays() {
    for reason in ["looked at", "works", "alive"] {
        let (stage, mut seat, session) = Stage::begin().await;
        speak(&stage, &session).await;
        match reason {
            "alive" => stage.puppet.fail(reason),
            "works" => stage.puppet.start_turn(&session).await,
            _ => {}
        }
        if reason != "looked at" {
            seat.call(ClientMessage::SessionLeave { session_id: session.clone() }).await;
        }
        pass_time().await;
        let ServerMessage::SessionHistory { entries, .. } = seat.call(open(&session, None)).await else { panic!() };
        assert_eq!((entries.len(), stage.puppet.count("load")), (1, 0), "{reason}");
    }
}

#[tokio::test]
async fn a_panic_in_a_sessions_own_loop_is_shown_and_loses_nothing() {
    let stage = Stage::set().await;
    let (mut seat, mut other) = (stage.seat(), stage.seat());
    let session = stage.create(&mut seat).await;
    seat.call(open(&session, None)).await;
    speak(&stage, &session).await;
    seat.until("the text", |frame| matches!(frame.message, ServerMessage::SessionUpsert { .. })).await;
    seat.call(ClientMessage::SessionSeen { session_id: session.clone() }).await;
    stage.puppet.panic("alive");
    drop(seat);
    other.call(ClientMessage::ProjectList {}).await;
    pass_time().await;
    let broken = other
        .until("the panic to be shown", |frame| {
            matches!(&frame.message, ServerMessage::SessionState { state, .. } if state.attention == Attention::Error)
        })
        .await;
    let ServerMessage::SessionState { state, .. } = broken.message else { panic!() };
    assert_eq!(state.reason.as_deref(), Some("Unexpected server error."));
    stage.puppet.heal();
    let ServerMessage::SessionHistory { entries, .. } = other.call(open(&session, None)).await else { panic!() };
    assert_eq!(entries.len(), 1);
}

#[tokio::test]
async fn a_session_whose_agent_is_lost_says_why() {
    let stage = Stage::set().await;
    let mut seat = stage.seat();
    let session = stage.create(&mut seat).await;
    let lost = StatusReport {
        status: AgentStatus::Disconnected,
        detail: Some("exit code 3: out of memory\nmore".into()),
        ..StatusReport::default()
    };
    stage.puppet.emit(&session, ProviderEvent::Status(lost)).await;
    let state = seat
        .until("the state", |frame| {
            matches!(&frame.message, ServerMessage::SessionState { state, .. } if state.attention == Attention::Disconnected)
        })
        .await;
    let ServerMessage::SessionState { state, .. } = state.message else { panic!() };
    assert_eq!(state.reason.as_deref(), Some("exit code 3: out of memory"));
}
