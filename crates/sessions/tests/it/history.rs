//! Long histories and long outputs: read in pages, rendered beside the session, and nobody is left waiting.

use protocol::{ClientMessage, ErrorCode, ItemId, ServerMessage, SessionId};
use sessions::WindowKind;

use crate::puppet::{Seat, Stage, open, send};

/// A session that has been put down and has so many items behind it.
async fn with_history(stage: &Stage, seat: &mut Seat, items: u64) -> SessionId {
    let session = stage.create(seat).await;
    stage.puppet.has_history(items);
    seat.call(ClientMessage::SessionArchive { session_id: session.clone() }).await;
    stage.puppet.until_called("kill", 1).await;
    seat.call(ClientMessage::SessionRestore { session_id: session.clone() }).await;
    session
}

#[tokio::test]
async fn a_window_of_the_plain_contract_gets_all_of_a_long_history_read_in_pages() {
    let stage = Stage::set().await;
    let mut plain = stage.seat_of(WindowKind::Plain);
    let session = with_history(&stage, &mut plain, 7_000).await;
    let ServerMessage::SessionHistory { entries, more, seq, .. } = plain.call(open(&session, None)).await else {
        panic!()
    };
    assert_eq!((entries.len(), more), (7_000, false));
    assert_eq!(entries.first().map(|entry| entry.item_id.as_str()), Some("item-0"));
    assert_eq!(entries.last().map(|entry| entry.item_id.as_str()), Some("item-6999"));
    assert!(stage.puppet.asked_for().iter().all(|limit| *limit <= 2_000), "{:?}", stage.puppet.asked_for());
    let ServerMessage::SessionHistory { entries, since, .. } = plain.call(open(&session, Some(seq))).await else {
        panic!()
    };
    assert_eq!((entries.len(), since), (0, Some(seq)));
}

#[tokio::test]
async fn a_history_beyond_the_limit_is_cut_and_reports_it() {
    let stage = Stage::set().await;
    let mut plain = stage.seat_of(WindowKind::Plain);
    let session = with_history(&stage, &mut plain, 60_000).await;
    let ServerMessage::SessionHistory { entries, more, .. } = plain.call(open(&session, None)).await else { panic!() };
    assert_eq!((entries.len(), more), (50_000, true));
    let before = entries[0].item_id.clone();
    let page = plain.call(ClientMessage::SessionPage { session_id: session, before, limit: 100 }).await;
    let ServerMessage::SessionPage { entries, more, .. } = page else { panic!("{page:?}") };
    assert_eq!((entries.len(), more), (100, true));
}

#[tokio::test]
async fn older_items_that_cannot_be_read_are_an_error_for_everyone_who_waits_for_them_and_for_nobody_else() {
    let stage = Stage::set().await;
    let mut seats = [stage.seat_of(WindowKind::Plain), stage.seat_of(WindowKind::Plain), stage.seat()];
    let session = with_history(&stage, &mut seats[2], 1_000).await;
    seats[2].call(open(&session, None)).await;
    stage.puppet.fail("older");
    // While it is read the agent is gone, so that a message waits for it to be there again.
    stage.puppet.fall_silent(&session);
    let mut asked = Vec::new();
    for seat in &mut seats[..2] {
        asked.push(seat.ask(open(&session, None)).await);
    }
    let (before, session_id) = (ItemId::parse("item-600").unwrap(), session.clone());
    asked.push(seats[2].ask(ClientMessage::SessionPage { session_id, before, limit: 100 }).await);
    let sent = seats[2].ask(send(&session)).await;
    for (seat, id) in seats.iter_mut().zip(&asked) {
        let answer = seat.until("an answer", |frame| frame.request_id.as_ref() == Some(id)).await;
        let ServerMessage::Error(error) = answer.message else { panic!("{answer:?}") };
        assert_eq!((error.code, error.session_id.as_ref()), (ErrorCode::SessionLoadFailed, Some(&session)));
    }
    stage.puppet.until_called("send", 1).await;
    stage.puppet.start_turn(&session).await;
    seats[2].until("the turn", |frame| frame.request_id.as_ref() == Some(&sent)).await;
    stage.puppet.heal();
    let ServerMessage::SessionHistory { entries, .. } = seats[0].call(open(&session, None)).await else { panic!() };
    assert_eq!(entries.len(), 1_000, "it is asked for again");
}

#[tokio::test]
async fn a_huge_output_is_made_beside_the_session_which_answers_meanwhile() {
    let stage = Stage::set().await;
    let mut seat = stage.seat();
    let session = stage.create(&mut seat).await;
    let output: String = (0..60_000).map(|line| format!("\u{1b}[31m{line}\u{1b}[0m and more of it\n")).collect();
    stage.puppet.start_turn(&session).await;
    stage.puppet.tool_output(&session, "item", &output).await;
    seat.call(open(&session, None)).await;
    let (session_id, item_id) = (session.clone(), ItemId::parse("item").unwrap());
    let whole = seat.ask(ClientMessage::SessionOutput { session_id: session_id.clone(), item_id }).await;
    let nothing = ItemId::parse("nothing").unwrap();
    let refused = seat.ask(ClientMessage::SessionOutput { session_id: session_id.clone(), item_id: nothing }).await;
    let paged =
        seat.ask(ClientMessage::SessionPage { session_id, before: ItemId::parse("item").unwrap(), limit: 10 }).await;
    let mut answers = Vec::new();
    while answers.len() < 3 {
        let frame = seat.next().await;
        if let Some(id) = frame.request_id {
            if id == refused {
                assert!(matches!(&frame.message, ServerMessage::Error(e) if e.field.as_deref() == Some("itemId")));
            }
            if id == whole {
                let ServerMessage::SessionOutput { html, .. } = &frame.message else { panic!("{:?}", frame.message) };
                assert!(html.concat().contains("59999"));
            }
            answers.push(id);
        }
    }
    assert_eq!(answers.last(), Some(&whole), "{answers:?} of {whole}, {refused}, {paged}");
}
