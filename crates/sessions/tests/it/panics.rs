//! A panic in one session is caught, shown in that session, and the others go on.

use protocol::{
    Attention, ClientMessage, ErrorCode, ServerMessage, TurnEvent, TurnRecordStatus, TurnStatus, UpsertStatus,
};

use crate::puppet::{Stage, open, send};

fn is_internal(message: &ServerMessage) -> bool {
    matches!(message, ServerMessage::Error(error) if error.code == ErrorCode::InternalError)
}

#[tokio::test]
async fn a_panic_in_mid_turn_settles_that_session_and_the_others_go_on() {
    let stage = Stage::set().await;
    let mut seat = stage.seat();
    let (broken, whole) = (stage.create(&mut seat).await, stage.create(&mut seat).await);
    for session in [&broken, &whole] {
        seat.call(open(session, None)).await;
        seat.ask(send(session)).await;
        stage.puppet.start_turn(session).await;
        stage.puppet.text(session, "item", "half a word", UpsertStatus::Update).await;
    }
    stage.puppet.until_called("send", 2).await;
    stage.puppet.panic("option");
    let option =
        ClientMessage::SessionSetOption { session_id: broken.clone(), option_id: "mode".into(), value: "fast".into() };
    let request = seat.ask(option).await;
    let mut settled = (false, false, false, false);
    while settled != (true, true, true, true) {
        let frame = seat.next().await;
        match &frame.message {
            ServerMessage::SessionUpsert { session_id, payload, .. } if *session_id == broken => {
                settled.0 |= payload.status == UpsertStatus::Error;
            }
            ServerMessage::SessionTurn { session_id, payload: TurnEvent::TurnError { error_code, .. }, .. } => {
                assert_eq!((session_id, error_code.as_str()), (&broken, "INTERNAL_ERROR"));
                settled.1 = true;
            }
            ServerMessage::SessionState { session_id, state, .. } if *session_id == broken => {
                settled.2 |= state.attention == Attention::Error;
            }
            message if frame.request_id.as_ref() == Some(&request) => {
                assert!(is_internal(message), "{message:?}");
                settled.3 = true;
            }
            _ => {}
        }
    }
    // The other one ends its turn as if nothing had been.
    stage.puppet.heal();
    stage.puppet.text(&whole, "item", "half a word and the rest", UpsertStatus::Complete).await;
    stage.puppet.end_turn(&whole, TurnStatus::Completed).await;
    seat.until("the end of the other turn", |frame| {
        matches!(&frame.message, ServerMessage::SessionTurn { session_id, payload: TurnEvent::TurnComplete { .. }, .. }
            if *session_id == whole)
    })
    .await;
    // And the other one shows its items, and works again.
    let ServerMessage::SessionHistory { entries, turns, .. } = seat.call(open(&broken, None)).await else { panic!() };
    assert_eq!((entries.len(), entries[0].status), (1, UpsertStatus::Error));
    assert_eq!(turns[0].status, TurnRecordStatus::Error);
    assert!(stage.puppet.count("kill") >= 1, "its agent does not work on unseen");
    seat.ask(send(&broken)).await;
    stage.puppet.until_called("send", 3).await;
    assert_eq!(stage.puppet.count("load"), 1);
}

#[tokio::test]
async fn a_panic_while_a_session_is_made_or_loaded_is_an_answer_and_the_next_try_works() {
    let stage = Stage::set().await;
    let mut seat = stage.seat();
    let session = stage.create(&mut seat).await;
    stage.puppet.panic("create");
    let (project_id, cli_type) = (stage.project.clone(), session.cli_type());
    assert!(is_internal(&seat.call(ClientMessage::SessionCreate { project_id, cli_type }).await));
    let http = stage.hub.create_session(&session.cli_type(), Some(&stage.project), None).await.unwrap_err();
    assert_eq!(http.code(), ErrorCode::InternalError);
    stage.puppet.heal();
    stage.create(&mut seat).await;

    stage.hub.kill(&session).await.unwrap();
    stage.puppet.panic("load");
    assert!(is_internal(&seat.call(send(&session)).await), "nobody waits for ever");
    stage.puppet.heal();
    seat.ask(send(&session)).await;
    stage.puppet.until_called("send", 1).await;
}

#[tokio::test]
async fn a_message_that_breaks_its_session_leaves_it_ready_for_the_next() {
    let (stage, mut seat, session) = Stage::begin().await;
    stage.puppet.panic("send");
    assert!(is_internal(&seat.call(send(&session)).await));
    stage.puppet.heal();
    assert_eq!(stage.hub.send(&session, "again".into()).await.unwrap().turn_id.as_str(), "turn");
}

#[tokio::test]
async fn an_agent_that_cannot_be_described_keeps_no_window_from_opening() {
    let stage = Stage::set().await;
    stage.puppet.panic("describe");
    let mut seat = stage.seat();
    let ServerMessage::AgentList { agents } = seat.call(ClientMessage::AgentList {}).await else { panic!() };
    assert!(agents.is_empty());
}

#[tokio::test]
async fn a_turn_whose_provider_falls_silent_for_ever_ends_with_an_error_and_the_next_message_works() {
    let (stage, mut seat, session) = Stage::begin().await;
    seat.ask(send(&session)).await;
    stage.puppet.start_turn(&session).await;
    stage.puppet.text(&session, "item", "half a word", UpsertStatus::Update).await;
    stage.puppet.until_called("send", 1).await;
    stage.puppet.fall_silent(&session);
    let settled = seat
        .until(
            "the item to be settled",
            |frame| matches!(&frame.message, ServerMessage::SessionUpsert { payload, .. } if payload.status.is_final()),
        )
        .await;
    let ServerMessage::SessionUpsert { payload, .. } = settled.message else { panic!() };
    assert_eq!((payload.status, payload.error_code.as_deref()), (UpsertStatus::Error, Some("PROCESS_CRASH")));
    let end = seat.until("the end", |frame| matches!(frame.message, ServerMessage::SessionTurn { .. })).await;
    let ServerMessage::SessionTurn { payload: TurnEvent::TurnError { error_code, error_message, .. }, .. } =
        end.message
    else {
        panic!("{end:?}")
    };
    assert_eq!((error_code.as_str(), error_message.as_str()), ("PROCESS_CRASH", "Puppet stopped unexpectedly"));
    let state = seat.until("the state", |frame| matches!(frame.message, ServerMessage::SessionState { .. })).await;
    let ServerMessage::SessionState { state, .. } = state.message else { panic!() };
    assert_eq!(state.attention, Attention::Error);

    let ServerMessage::SessionHistory { entries, turns, .. } = seat.call(open(&session, None)).await else { panic!() };
    assert_eq!((entries.len(), turns[0].status), (1, TurnRecordStatus::Error), "the transcript stays");
    seat.ask(send(&session)).await;
    stage.puppet.until_called("send", 2).await;
    assert_eq!(stage.puppet.count("load"), 1);
}

#[tokio::test]
async fn a_turn_of_a_session_that_is_killed_ends_as_cancelled_also_when_its_provider_does_not_say_so() {
    let (stage, mut seat, session) = Stage::begin().await;
    stage.puppet.start_turn(&session).await;
    // More than the session handles in one round: none of it is lost.
    for number in 0..200 {
        let item = format!("item-{number}");
        stage.puppet.text(&session, &item, "half a word", UpsertStatus::Update).await;
        tokio::task::yield_now().await;
    }
    stage.hub.kill(&session).await.unwrap();
    let ServerMessage::SessionHistory { entries, turns, .. } = seat.call(open(&session, None)).await else { panic!() };
    assert_eq!((entries.len(), turns[0].status), (200, TurnRecordStatus::Cancelled));
    assert!(entries.iter().all(|entry| entry.status == UpsertStatus::Complete));
}

#[tokio::test]
async fn a_session_that_is_killed_while_it_is_being_loaded_stays_so() {
    let (stage, mut seat, session) = Stage::begin().await;
    stage.hub.kill(&session).await.unwrap();
    let gate = stage.puppet.hold_loads();
    seat.ask(send(&session)).await;
    stage.puppet.until_called("load", 1).await;
    stage.hub.kill(&session).await.unwrap();
    gate.send(true).unwrap();
    // What was loaded is closed, and who waited for it is answered. A session that loads has no agent to be closed.
    stage.puppet.until_called("kill", 2).await;
    seat.until("an answer", |frame| matches!(frame.message, ServerMessage::Error(_))).await;
    assert_eq!(stage.puppet.count("send"), 0);
    stage.hub.send(&session, "again".into()).await.unwrap();
    assert_eq!((stage.puppet.count("load"), stage.puppet.count("send")), (2, 1));
}

#[tokio::test]
async fn an_archived_session_that_breaks_while_it_ends_leaves_no_task_behind() {
    let (stage, mut seat, session) = Stage::begin().await;
    stage.puppet.start_turn(&session).await;
    stage.puppet.text(&session, "item", "text", UpsertStatus::Complete).await;
    seat.until("the text", |frame| matches!(frame.message, ServerMessage::SessionUpsert { .. })).await;
    stage.puppet.panic("cancel");
    seat.call(ClientMessage::SessionArchive { session_id: session.clone() }).await;
    stage.puppet.until_called("kill", 1).await;
    stage.puppet.heal();
    seat.call(ClientMessage::SessionRestore { session_id: session.clone() }).await;
    seat.call(open(&session, None)).await;
    stage.hub.load_session(&session).await.unwrap();
    assert_eq!(stage.puppet.count("load"), 1, "another task has taken its place");
}

#[tokio::test]
async fn a_server_that_ends_settles_every_turn_and_notifies_each_window_before_it_disconnects_it() {
    let stage = Stage::set().await;
    let mut seat = stage.seat();
    let (settling, stubborn) = (stage.create(&mut seat).await, stage.create(&mut seat).await);
    for session in [&settling, &stubborn] {
        seat.call(open(session, None)).await;
        stage.puppet.start_turn(session).await;
        stage.puppet.text(session, "item", "half a word", UpsertStatus::Update).await;
        seat.until("the text", |frame| matches!(frame.message, ServerMessage::SessionUpsert { .. })).await;
    }
    let ended = tokio::join!(stage.hub.drain(tokio::time::Instant::now()), async {
        stage.puppet.until_called("cancel", 2).await;
        stage.puppet.text(&settling, "item", "half a word, cut", UpsertStatus::Complete).await;
        stage.puppet.end_turn(&settling, TurnStatus::Cancelled).await;
    });
    assert!(!ended.0, "one of them took no notice");
    let (mut texts, mut ends) = (Vec::new(), Vec::new());
    while let Some(frame) = seat.next_or_end().await {
        match frame.message {
            ServerMessage::SessionUpsert { session_id, payload, .. } => texts.push((session_id, payload.status)),
            ServerMessage::SessionTurn { session_id, payload: TurnEvent::TurnComplete { status, .. }, .. } => {
                assert_eq!(status, TurnStatus::Cancelled);
                ends.push(session_id);
            }
            _ => {}
        }
    }
    // Of each session in order; which of the two comes first is nobody's business.
    let order = vec![settling, stubborn];
    texts.sort_by_key(|(session, _)| session != &order[0]);
    ends.sort_by_key(|session| session != &order[0]);
    assert_eq!(texts, order.iter().map(|session| (session.clone(), UpsertStatus::Complete)).collect::<Vec<_>>());
    assert_eq!(ends, order);
    let late = stage.hub.create_session(&order[0].cli_type(), Some(&stage.project), None).await.unwrap_err();
    assert!(late.to_string().contains("shutting down"), "{late}");
}
