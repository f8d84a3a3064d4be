//! What was said outlives the server, and memory holds only the newest of it.

use protocol::{
    Attention, ClientMessage, Continuity, ItemId, ServerFrame, ServerMessage, SessionId, TurnStatus, Upsert,
    UpsertStatus,
};
use sessions::WindowKind;

use crate::puppet::{Seat, Stage, open};

fn is_end(frame: &ServerFrame) -> bool {
    matches!(&frame.message, ServerMessage::SessionTurn { payload, .. } if payload.is_end())
}

/// What a window has seen of the session.
#[derive(Clone, Debug)]
struct Cursor {
    journal_id: String,
    epoch: u64,
    seq: u64,
}

impl Cursor {
    fn open(&self, session: &SessionId) -> ClientMessage {
        ClientMessage::SessionOpen {
            session_id: session.clone(),
            since: Some(self.seq),
            epoch: Some(self.epoch),
            journal_id: Some(self.journal_id.clone()),
        }
    }
}

struct Opened {
    entries: Vec<Upsert>,
    more: bool,
    since: Option<u64>,
    turns: usize,
    continuity: Continuity,
    cursor: Cursor,
}

async fn opened(seat: &mut Seat, message: ClientMessage) -> Opened {
    let answer = seat.call(message).await;
    let ServerMessage::SessionHistory { entries, more, since, turns, journal_id, epoch, seq, session, .. } = answer
    else {
        panic!("{answer:?}")
    };
    let cursor = Cursor { journal_id, epoch, seq };
    Opened { entries, more, since, turns: turns.len(), continuity: session.state.continuity, cursor }
}

fn ids(entries: &[Upsert]) -> Vec<String> {
    entries.iter().map(|entry| entry.item_id.to_string()).collect()
}

/// One turn with so many messages of the agent.
async fn converse(stage: &Stage, seat: &mut Seat, session: &SessionId, items: std::ops::Range<usize>) {
    stage.puppet.start_turn(session).await;
    for number in items {
        let text = format!("text {number}");
        stage.puppet.text(session, &format!("item-{number}"), &text, UpsertStatus::Complete).await;
    }
    stage.puppet.end_turn(session, TurnStatus::Completed).await;
    seat.until("the end", is_end).await;
}

#[tokio::test]
async fn a_conversation_is_there_after_a_restart_and_no_agent_is_asked_for_it() {
    let (stage, mut seat, session) = Stage::begin().await;
    converse(&stage, &mut seat, &session, 0..3).await;
    drop(seat);
    let stage = stage.restart().await;
    let mut seat = stage.seat();
    let shown = opened(&mut seat, open(&session, None)).await;
    assert_eq!(ids(&shown.entries), ["item-0", "item-1", "item-2"]);
    assert_eq!((shown.turns, shown.more, shown.continuity), (1, false, Continuity::Dormant));
    assert_eq!(stage.puppet.count("load"), 0, "the agent was not needed");
}

#[tokio::test]
async fn a_window_that_was_open_over_a_restart_is_sent_what_it_missed_and_nothing_else() {
    let (stage, mut seat, session) = Stage::begin().await;
    converse(&stage, &mut seat, &session, 0..2).await;
    let seen = opened(&mut seat, open(&session, None)).await.cursor;
    converse(&stage, &mut seat, &session, 2..4).await;
    drop(seat);
    let stage = stage.restart().await;
    let mut seat = stage.seat();
    let missed = opened(&mut seat, seen.open(&session)).await;
    assert_eq!((missed.since, ids(&missed.entries)), (Some(seen.seq), vec!["item-2".into(), "item-3".into()]));
    assert!(missed.cursor.epoch > seen.epoch && missed.cursor.seq > seen.seq, "{:?}", missed.cursor);
    let nothing = opened(&mut seat, missed.cursor.open(&session)).await;
    assert_eq!((nothing.since, nothing.entries.len(), nothing.turns), (Some(missed.cursor.seq), 0, 0));
}

#[tokio::test]
async fn a_cursor_beyond_what_was_recorded_or_of_another_journal_gets_a_snapshot() {
    let (stage, mut seat, session) = Stage::begin().await;
    converse(&stage, &mut seat, &session, 0..2).await;
    let seen = opened(&mut seat, open(&session, None)).await.cursor;
    drop(seat);
    let stage = stage.restart().await;
    let mut seat = stage.seat();
    // The next epoch gives the same numbers to other things.
    stage.hub.load_session(&session).await.unwrap();
    seat.call(open(&session, None)).await;
    converse(&stage, &mut seat, &session, 2..6).await;
    for cursor in [
        Cursor { seq: seen.seq + 2, ..seen.clone() },
        Cursor { journal_id: "another".into(), ..seen.clone() },
        Cursor { epoch: 77, ..seen.clone() },
        Cursor { epoch: seen.epoch + 1, seq: u64::MAX, ..seen.clone() },
    ] {
        let shown = opened(&mut seat, cursor.open(&session)).await;
        assert_eq!((shown.since, shown.entries.len()), (None, 6), "{cursor:?}");
    }
    let shown = opened(&mut seat, seen.open(&session)).await;
    assert_eq!((shown.since, shown.entries.len()), (Some(seen.seq), 4));
}

#[tokio::test]
async fn a_page_can_go_back_to_the_first_item_of_a_long_session() {
    const ITEMS: usize = 3_000;
    let (stage, mut seat, session) = Stage::begin().await;
    for turn in 0..10 {
        converse(&stage, &mut seat, &session, turn * ITEMS / 10..(turn + 1) * ITEMS / 10).await;
    }
    let shown = opened(&mut seat, open(&session, None)).await;
    assert_eq!((shown.entries.len(), shown.more), (200, true));
    let mut all = shown.entries;
    loop {
        let before = all[0].item_id.clone();
        let answer = seat.call(ClientMessage::SessionPage { session_id: session.clone(), before, limit: 170 }).await;
        let ServerMessage::SessionPage { mut entries, more, turns, .. } = answer else { panic!("{answer:?}") };
        assert!(!entries.is_empty() && !turns.is_empty());
        entries.append(&mut all);
        all = entries;
        if !more {
            break;
        }
    }
    let expected: Vec<_> = (0..ITEMS).map(|number| format!("item-{number}")).collect();
    assert!(ids(&all) == expected, "each once, in order");
    let mut plain = stage.seat_of(WindowKind::Plain);
    let shown = opened(&mut plain, open(&session, None)).await;
    assert!(ids(&shown.entries) == expected && !shown.more, "a plain window gets all at once");
}

#[tokio::test]
async fn an_item_that_was_open_all_the_time_keeps_its_place_in_front_of_what_was_evicted() {
    const ITEMS: usize = 1_500;
    let (stage, mut seat, session) = Stage::begin().await;
    stage.puppet.start_turn(&session).await;
    stage.puppet.tool_call(&session, "slow").await;
    for number in 0..ITEMS {
        stage.puppet.text(&session, &format!("item-{number}"), "text", UpsertStatus::Complete).await;
    }
    stage.puppet.tool_result(&session, "slow", "done").await;
    stage.puppet.end_turn(&session, TurnStatus::Completed).await;
    seat.until("the end", is_end).await;
    let mut plain = stage.seat_of(WindowKind::Plain);
    let shown = opened(&mut plain, open(&session, None)).await;
    assert_eq!((shown.entries.len(), shown.entries[0].item_id.as_str()), (ITEMS + 1, "slow"));
    assert_eq!(shown.entries[0].status, UpsertStatus::Complete);
    drop((seat, plain));
    let stage = stage.restart().await;
    let mut plain = stage.seat_of(WindowKind::Plain);
    let again = opened(&mut plain, open(&session, None)).await;
    assert!(again.entries == shown.entries, "the journal has what was shown");
}

#[tokio::test]
async fn the_whole_output_of_an_item_that_is_no_longer_in_memory_comes_from_the_journal() {
    let (stage, mut seat, session) = Stage::begin().await;
    stage.puppet.start_turn(&session).await;
    stage.puppet.tool_output(&session, "early", "the early output").await;
    for number in 0..1_000 {
        stage.puppet.text(&session, &format!("item-{number}"), "text", UpsertStatus::Complete).await;
    }
    stage.puppet.end_turn(&session, TurnStatus::Completed).await;
    seat.until("the end", is_end).await;
    let (session_id, item_id) = (session.clone(), ItemId::parse("early").unwrap());
    let answer = seat.call(ClientMessage::SessionOutput { session_id, item_id }).await;
    let ServerMessage::SessionOutput { html, .. } = answer else { panic!("{answer:?}") };
    assert!(html.concat().contains("the early output"));
}

#[tokio::test]
async fn a_message_is_confirmed_when_it_is_recorded() {
    let (stage, mut seat, session) = Stage::begin().await;
    stage.puppet.answers();
    for number in 0..10 {
        let sent = stage.hub.send(&session, format!("message {number}").into()).await.unwrap();
        assert!(sent.recorded);
        let head = stage.hub.journal().find(&session).await.unwrap().unwrap();
        let page = stage.hub.journal().read(head.key, journal::Read::Newest { limit: 100 }).await.unwrap();
        let said: Vec<_> = page.items.iter().filter(|item| item.upsert.turn_id == sent.turn_id).collect();
        assert_eq!(page.items.len(), number + 1, "{said:?}");
        seat.until("the end", is_end).await;
    }
}

#[tokio::test]
async fn a_disk_that_refuses_everything_stops_no_session_and_is_written_when_it_works_again() {
    let (stage, mut seat, session) = Stage::begin().await;
    stage.puppet.answers();
    stage.hub.send(&session, "before".into()).await.unwrap();
    seat.until("the end", is_end).await;
    let lock = stage.lock_journal();
    let sent = stage.hub.send(&session, "meanwhile".into()).await.unwrap();
    assert!(!sent.recorded);
    let notices = seat.until("a notice", |frame| matches!(frame.message, ServerMessage::ServerNotices { .. })).await;
    let ServerMessage::ServerNotices { notices } = notices.message else { panic!() };
    assert!(notices.iter().any(|notice| notice.contains("kept in memory")), "{notices:?}");
    let shown = opened(&mut seat, open(&session, None)).await;
    assert_eq!(shown.entries.len(), 2, "it is shown all the same");
    drop(lock);
    let notices = seat.until("no notice", |frame| matches!(frame.message, ServerMessage::ServerNotices { .. })).await;
    assert!(matches!(notices.message, ServerMessage::ServerNotices { notices } if notices.is_empty()));
    drop(seat);
    let stage = stage.restart().await;
    let mut seat = stage.seat();
    let shown = opened(&mut seat, open(&session, None)).await;
    assert_eq!((shown.entries.len(), shown.turns), (2, 2), "nothing was lost");
    let report = stage.hub.journal().check().await.unwrap();
    assert!(report.damage.is_empty() && report.contradictions.is_empty(), "{report:?}");
}

#[tokio::test]
async fn a_turn_that_ran_when_the_server_was_killed_is_shown_as_cut_short() {
    let (stage, mut seat, session) = Stage::begin().await;
    stage.puppet.start_turn(&session).await;
    stage.puppet.text(&session, "half", "half a word", UpsertStatus::Update).await;
    seat.until("the text", |frame| matches!(frame.message, ServerMessage::SessionUpsert { .. })).await;
    // What is on the disk at this moment is what a killed server leaves.
    let stage = stage.killed().await;
    let mut seat = stage.seat();
    let shown = opened(&mut seat, open(&session, None)).await;
    let [half] = &shown.entries[..] else { panic!("{:?}", shown.entries) };
    assert_eq!(half.status, UpsertStatus::Error, "nothing shows as running for ever");
    assert_ne!(stage.hub.session_status(&session).unwrap().1.attention, Attention::Working);
    let report = stage.hub.journal().check().await.unwrap();
    assert!(report.damage.is_empty() && report.contradictions.is_empty(), "{report:?}");
}
