//! Who cancels is answered, once and rightly.

use protocol::{ClientMessage, ErrorCode, ServerMessage, TurnEvent, TurnStatus};

use crate::puppet::{Stage, open, send};

#[tokio::test]
async fn a_cancel_that_failed_is_not_answered_by_the_end_of_a_later_turn() {
    let (stage, mut seat, session) = Stage::begin().await;
    seat.ask(send(&session)).await;
    stage.puppet.start_turn(&session).await;
    seat.until("the turn", |frame| matches!(frame.message, ServerMessage::SessionTurn { .. })).await;
    stage.puppet.fail("cancel");
    let cancel = ClientMessage::SessionCancel { session_id: session.clone() };
    let answer = seat.call(cancel).await;
    assert!(matches!(answer, ServerMessage::Error(error) if error.code == ErrorCode::InternalError));
    stage.puppet.end_turn(&session, TurnStatus::Completed).await;
    let end = seat.until("the end", |frame| matches!(frame.message, ServerMessage::SessionTurn { .. })).await;
    assert_eq!(end.request_id, None, "it is no answer to the cancel that failed");
}

#[tokio::test]
async fn everyone_who_cancels_is_answered() {
    let stage = Stage::set().await;
    let (mut one, mut two) = (stage.seat(), stage.seat());
    let session = stage.create(&mut one).await;
    one.call(open(&session, None)).await;
    one.ask(send(&session)).await;
    stage.puppet.start_turn(&session).await;
    one.until("the turn", |frame| matches!(frame.message, ServerMessage::SessionTurn { .. })).await;
    let cancel = ClientMessage::SessionCancel { session_id: session.clone() };
    let asked = [one.ask(cancel.clone()).await, one.ask(cancel.clone()).await];
    let other = two.ask(cancel).await;
    stage.puppet.until_called("cancel", 3).await;
    stage.puppet.end_turn(&session, TurnStatus::Cancelled).await;
    let mut ends = 0;
    let mut answered = Vec::new();
    while answered.len() < 2 {
        let frame = one.next().await;
        let is_end =
            matches!(frame.message, ServerMessage::SessionTurn { payload: TurnEvent::TurnComplete { .. }, .. });
        ends += usize::from(is_end);
        answered.extend(frame.request_id.filter(|id| asked.contains(id)));
    }
    assert_eq!((answered, ends), (asked.to_vec(), 1), "each is answered, and the end is sent once");
    let end = two.until("the answer", |frame| frame.request_id.as_ref() == Some(&other)).await;
    assert!(matches!(end.message, ServerMessage::SessionTurn { .. }), "{end:?}");
}

#[tokio::test]
async fn a_cancel_of_a_message_that_never_became_a_turn_is_answered() {
    let (stage, mut seat, session) = Stage::begin().await;
    stage.puppet.fail("send");
    let sent = seat.ask(send(&session)).await;
    let cancelled = seat.ask(ClientMessage::SessionCancel { session_id: session }).await;
    let mut open = vec![sent, cancelled];
    while !open.is_empty() {
        let frame = seat.next().await;
        open.retain(|id| frame.request_id.as_ref() != Some(id));
    }
}
