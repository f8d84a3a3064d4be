//! Creating a session, or sending to it, joins it.

use protocol::{ClientMessage, ServerFrame, ServerMessage, SessionId, TurnEvent};
use sessions::WindowKind;

use crate::puppet::{Seat, Stage, open, send};

/// The items and events of turns of a session, with their numbers, up to the end of the turn.
async fn one_turn(seat: &mut Seat, session: &SessionId) -> Vec<u64> {
    let mut numbers = Vec::new();
    loop {
        let frame = seat.until("a message", |frame| seq_of(frame, session).is_some()).await;
        numbers.extend(seq_of(&frame, session));
        if matches!(&frame.message, ServerMessage::SessionTurn { payload: TurnEvent::TurnComplete { .. }, .. }) {
            return numbers;
        }
    }
}

fn seq_of(frame: &ServerFrame, session: &SessionId) -> Option<u64> {
    match &frame.message {
        ServerMessage::SessionUpsert { session_id, seq, .. } | ServerMessage::SessionTurn { session_id, seq, .. } => {
            (session_id == session).then_some(*seq)
        }
        _ => None,
    }
}

#[tokio::test]
async fn a_window_that_creates_a_session_and_sends_to_it_gets_all_of_it_once_without_opening_it() {
    for kind in [WindowKind::Plain, WindowKind::View] {
        let stage = Stage::set().await;
        stage.puppet.answers();
        let mut seat = stage.seat_of(kind);
        let session = stage.create(&mut seat).await;
        let sent = seat.ask(send(&session)).await;
        let started = seat.until("the turn", |frame| seq_of(frame, &session).is_some()).await;
        assert_eq!((seq_of(&started, &session), started.request_id), (Some(1), Some(sent)));
        assert_eq!(one_turn(&mut seat, &session).await, [2, 3], "{kind:?}");
        // Opening it later gives the history, and the stream goes on behind it, once.
        let ServerMessage::SessionHistory { seq, entries, .. } = seat.call(open(&session, None)).await else {
            panic!()
        };
        assert_eq!((seq, entries.len()), (3, 1));
        stage.hub.send(&session, "more".into()).await.unwrap();
        assert_eq!(one_turn(&mut seat, &session).await, [4, 5, 6], "{kind:?}");
    }
}

#[tokio::test]
async fn a_window_that_only_created_a_session_gets_what_others_send_to_it() {
    let stage = Stage::set().await;
    stage.puppet.answers();
    let (mut seat, mut other) = (stage.seat_of(WindowKind::Plain), stage.seat());
    let session = stage.create(&mut seat).await;
    other.ask(send(&session)).await;
    assert_eq!(one_turn(&mut seat, &session).await, [1, 2, 3]);
    assert_eq!(one_turn(&mut other, &session).await, [1, 2, 3], "who sends joins, too");
}

#[tokio::test]
async fn a_window_that_did_neither_gets_nothing_and_one_that_left_nothing_more() {
    let stage = Stage::set().await;
    stage.puppet.answers();
    let (mut seat, mut bystander) = (stage.seat(), stage.seat());
    let session = stage.create(&mut seat).await;
    seat.call(ClientMessage::SessionLeave { session_id: session.clone() }).await;
    let mut witness = stage.seat();
    witness.ask(send(&session)).await;
    one_turn(&mut witness, &session).await;
    for seat in [&mut seat, &mut bystander] {
        let marker = seat.ask(ClientMessage::ProjectList {}).await;
        let next = seat
            .until("nothing of the session", |frame| {
                seq_of(frame, &session).is_some() || frame.request_id.as_ref() == Some(&marker)
            })
            .await;
        assert_eq!(next.request_id, Some(marker), "{next:?}");
    }
}

#[tokio::test]
async fn who_sends_after_the_agents_id_has_changed_joins_the_same_session() {
    let stage = Stage::set().await;
    stage.puppet.answers();
    let mut seat = stage.seat();
    let session = stage.create(&mut seat).await;
    stage.hub.kill(&session).await.unwrap();
    stage.puppet.continues_as(Some("new"));
    stage.hub.load_session(&session).await.unwrap();
    let mut other = stage.seat_of(WindowKind::Plain);
    other.ask(send(&session)).await;
    let received = one_turn(&mut other, &session).await;
    assert_eq!(received.len(), 3, "{received:?}");
}

#[tokio::test]
async fn a_message_that_is_refused_joins_nobody() {
    let stage = Stage::set().await;
    let (mut seat, mut other) = (stage.seat(), stage.seat());
    let session = stage.create(&mut seat).await;
    seat.ask(send(&session)).await;
    stage.puppet.until_called("send", 1).await;
    assert!(matches!(other.call(send(&session)).await, ServerMessage::Error(_)));
    stage.puppet.start_turn(&session).await;
    seat.until("the turn", |frame| seq_of(frame, &session).is_some()).await;
    let marker = other.ask(ClientMessage::ProjectList {}).await;
    let next = other
        .until("nothing", |frame| seq_of(frame, &session).is_some() || frame.request_id.as_ref() == Some(&marker))
        .await;
    assert_eq!(next.request_id, Some(marker));
}
