//! A turn that brings more than a turn may: it ends with an error, its agent is cancelled, and what is sent meanwhile waits
//! for the agent's own end of it.

use protocol::{ClientMessage, ErrorCode, ServerFrame, ServerMessage, SessionId, TurnEvent, TurnStatus, UpsertStatus};
use sessions::HubLimits;

use crate::puppet::{Seat, Stage, open, send};

const TURN_BYTES_MAX: usize = 64 * 1024;

/// A session whose turn was just stopped. Its agent has not ended it.
async fn flooded() -> (Stage, Seat, SessionId) {
    let stage = Stage::with_limits(HubLimits { turn_bytes_max: TURN_BYTES_MAX }).await;
    let mut seat = stage.seat();
    let session = stage.create(&mut seat).await;
    seat.call(open(&session, None)).await;
    seat.ask(send(&session)).await;
    stage.puppet.until_called("send", 1).await;
    stage.puppet.start_turn(&session).await;
    stage.puppet.text(&session, "first", "shown", UpsertStatus::Complete).await;
    stage.puppet.text(&session, "second", &"x".repeat(TURN_BYTES_MAX), UpsertStatus::Update).await;
    let end = seat.until("the end", is_end).await;
    let ServerMessage::SessionTurn { payload: TurnEvent::TurnError { error_code, .. }, .. } = end.message else {
        panic!("{end:?}")
    };
    assert_eq!(error_code, "AGENT_PROTOCOL_ERROR");
    stage.puppet.until_called("cancel", 1).await;
    (stage, seat, session)
}

fn is_end(frame: &ServerFrame) -> bool {
    matches!(&frame.message, ServerMessage::SessionTurn { payload, .. } if payload.is_end())
}

#[tokio::test]
async fn a_message_sent_after_a_flood_waits_until_the_agent_has_ended_that_turn() {
    let (stage, mut seat, session) = flooded().await;
    let sent = seat.ask(send(&session)).await;
    let refused = seat.call(send(&session)).await;
    assert!(matches!(&refused, ServerMessage::Error(error) if error.code == ErrorCode::TurnInProgress), "{refused:?}");
    stage.puppet.text(&session, "third", "late", UpsertStatus::Complete).await;
    assert_eq!(stage.puppet.count("send"), 1, "the agent is still in the turn that was stopped");
    stage.puppet.end_turn(&session, TurnStatus::Cancelled).await;
    stage.puppet.until_called("send", 2).await;
    stage.puppet.start_turn(&session).await;
    let started = seat.until("the turn", |frame| frame.request_id.as_ref() == Some(&sent)).await;
    assert!(matches!(started.message, ServerMessage::SessionTurn { payload: TurnEvent::TurnStarted { .. }, .. }));
    stage.puppet.end_turn(&session, TurnStatus::Completed).await;
    seat.until("the end", is_end).await;
    let ServerMessage::SessionHistory { entries, turns, .. } = seat.call(open(&session, None)).await else { panic!() };
    assert_eq!(entries.len(), 1, "what came before the limit is kept, and no more");
    assert_eq!((turns.len(), stage.puppet.count("cancel")), (2, 1));
}

#[tokio::test]
async fn a_message_that_waits_for_the_end_of_a_flood_can_be_cancelled() {
    let (stage, mut seat, session) = flooded().await;
    let sent = seat.ask(send(&session)).await;
    let cancelled = seat.ask(ClientMessage::SessionCancel { session_id: session.clone() }).await;
    let refused = seat.until("the refusal", |frame| frame.request_id.as_ref() == Some(&sent)).await;
    assert!(matches!(&refused.message, ServerMessage::Error(error) if error.code == ErrorCode::TurnInProgress));
    let answer = seat.until("the answer", |frame| frame.request_id.as_ref() == Some(&cancelled)).await;
    assert!(matches!(answer.message, ServerMessage::Ack {}), "{answer:?}");
    stage.puppet.end_turn(&session, TurnStatus::Cancelled).await;
    stage.hub.send(&session, "again".into()).await.unwrap();
    assert_eq!(stage.puppet.count("send"), 2);
}

#[tokio::test]
async fn a_message_whose_agent_is_lost_in_a_flood_is_answered() {
    let (stage, mut seat, session) = flooded().await;
    let sent = seat.ask(send(&session)).await;
    // Refused because the first one waits: that one has reached the session.
    seat.call(send(&session)).await;
    stage.puppet.fall_silent(&session);
    let answer = seat.until("the answer", |frame| frame.request_id.as_ref() == Some(&sent)).await;
    assert!(matches!(answer.message, ServerMessage::Error(_)), "{answer:?}");
    stage.hub.send(&session, "again".into()).await.unwrap();
    assert_eq!((stage.puppet.count("load"), stage.puppet.count("send")), (1, 2));
}
