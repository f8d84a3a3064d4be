//! Long histories and long outputs: read in pages, rendered beside the session, and nobody is left waiting.

use catalog::SessionRecord;
use protocol::{ClientMessage, ErrorCode, ItemId, ServerMessage, SessionId};
use sessions::WindowKind;

use crate::puppet::{Stage, open};

/// A session from before the journal that has so many items behind it.
async fn with_history(stage: &Stage, items: u64) -> SessionId {
    let session = SessionId::parse("puppet:old").unwrap();
    stage.puppet.has_history(items);
    let mut record = SessionRecord::new(session.clone(), stage.project.clone(), protocol::Timestamp::default());
    record.prompted = true;
    stage.hub.catalog().add_session(record).await.unwrap();
    session
}

#[tokio::test]
async fn a_window_of_the_plain_contract_gets_all_of_a_long_history_read_in_pages() {
    let stage = Stage::set().await;
    let mut plain = stage.seat_of(WindowKind::Plain);
    let session = with_history(&stage, 7_000).await;
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
    let session = with_history(&stage, 60_000).await;
    let ServerMessage::SessionHistory { entries, more, .. } = plain.call(open(&session, None)).await else { panic!() };
    assert_eq!((entries.len(), more), (50_000, true));
    let before = entries[0].item_id.clone();
    let page = plain.call(ClientMessage::SessionPage { session_id: session, before, limit: 100 }).await;
    let ServerMessage::SessionPage { entries, more, .. } = page else { panic!("{page:?}") };
    assert_eq!((entries.len(), more), (100, true));
}

#[tokio::test]
async fn an_older_page_of_the_agent_that_cannot_be_read_is_an_error_for_who_waits_for_it_and_is_tried_again() {
    let mut stage = Stage::set().await;
    let mut seats = [stage.seat_of(WindowKind::Plain), stage.seat()];
    let session = with_history(&stage, 1_000).await;
    stage.puppet.fail("older");
    // The page gets its newest items, and that there are more. The plain window is to get all of them, and gets an error.
    let all = seats[0].ask(open(&session, None)).await;
    let answer = seats[0].until("an answer", |frame| frame.request_id.as_ref() == Some(&all)).await;
    let entries = match answer.message {
        ServerMessage::Error(error) => {
            assert_eq!((error.code, error.session_id.as_ref()), (ErrorCode::SessionLoadFailed, Some(&session)));
            Vec::new()
        }
        ServerMessage::SessionHistory { entries, .. } => entries,
        other => panic!("{other:?}"),
    };
    assert!(entries.len() < 1_000);
    let ServerMessage::SessionHistory { entries, .. } = seats[1].call(open(&session, None)).await else { panic!() };
    assert_eq!(entries.len(), 200);
    stage.puppet.heal();
    drop(seats);
    stage = stage.restart().await;
    let mut plain = stage.seat_of(WindowKind::Plain);
    plain.call(open(&session, None)).await;
    stage.hub.load_session(&session).await.unwrap();
    let ServerMessage::SessionHistory { entries, .. } = plain.call(open(&session, None)).await else { panic!() };
    let numbers: Vec<_> = entries.iter().map(|entry| entry.item_id.to_string()).collect();
    assert!(numbers.iter().eq((0..1_000).map(|number| format!("item-{number}")).collect::<Vec<_>>().iter()));
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
