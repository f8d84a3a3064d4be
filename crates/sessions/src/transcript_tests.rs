//! What a transcript gives out from memory, and what it leaves to the journal.

use protocol::{Origin, Timestamp, UpsertStatus};
use upserts::{ItemBody, Text};

use super::*;

fn session() -> SessionId {
    SessionId::parse("codex:s").unwrap()
}

fn turn_id(number: usize) -> TurnId {
    TurnId::parse(format!("turn-{number}")).unwrap()
}

fn item(turn: usize, id: &str, text: &str, status: UpsertStatus) -> ItemUpdate {
    let at = Timestamp::default();
    ItemUpdate {
        turn_id: turn_id(turn),
        session_id: session(),
        item_id: ItemId::from_foreign(id),
        parent_item_id: None,
        source_timestamp: at,
        emitted_at: at,
        status,
        error: None,
        body: ItemBody::Message { text: Text::from(text), origin: Origin::Agent },
    }
}

fn start(transcript: &mut Transcript, number: usize) {
    transcript.turn(&TurnEvent::TurnStarted {
        turn_id: turn_id(number),
        session_id: session(),
        model_id: String::new(),
        provider_id: "codex".into(),
        at: Timestamp::default(),
    });
}

fn end(transcript: &mut Transcript, number: usize) {
    let (turn_id, at) = (turn_id(number), Timestamp::default());
    let status = TurnStatus::Completed;
    transcript.turn(&TurnEvent::TurnComplete { turn_id, session_id: session(), status, usage: None, at });
}

/// One turn with one message.
fn turn(transcript: &mut Transcript, number: usize, text: &str) {
    start(transcript, number);
    transcript.upsert(item(number, &format!("item-{number}"), text, UpsertStatus::Complete));
    end(transcript, number);
}

fn evict(transcript: &mut Transcript) {
    transcript.evict(|_| true, |_| true);
}

fn ids(span: &Span) -> Vec<String> {
    span.cells.iter().map(|cell| cell.id().to_string()).collect()
}

#[test]
fn a_session_that_sends_ever_more_holds_the_newest_and_knows_where_the_journal_goes_on() {
    let mut transcript = Transcript::default();
    for number in 0..5_000 {
        turn(&mut transcript, number, "text");
        evict(&mut transcript);
        assert!(transcript.cells.len() <= ITEMS_MAX && transcript.by_id.len() == transcript.cells.len());
        assert!(transcript.turns.len() <= ITEMS_MAX + 1, "{} turns", transcript.turns.len());
    }
    let span = transcript.newest(100);
    assert_eq!((ids(&span).len(), ids(&span)[99].as_str()), (100, "item-4999"));
    assert!(span.more && span.read_before.is_none());
    let span = transcript.newest(10_000);
    assert_eq!(span.read_before, Some(span.cells[0].position()), "the journal has what is in front of the first one");
}

#[test]
fn large_items_are_evicted_by_their_weight_and_the_newest_stays() {
    let text = "x".repeat(BYTES_MAX);
    let mut transcript = Transcript::default();
    for number in 0..10 {
        turn(&mut transcript, number, &text);
        evict(&mut transcript);
        assert_eq!(ids(&transcript.newest(9)).last().unwrap(), &format!("item-{number}"));
    }
    // Those that may still change stay, in front of the edge.
    assert_eq!(transcript.newest(9).cells.len(), 1);
    assert!(transcript.get(&ItemId::from_foreign("item-3")).is_some());
}

#[test]
fn what_is_open_or_not_recorded_is_never_evicted() {
    let mut transcript = Transcript::default();
    start(&mut transcript, 0);
    transcript.upsert(item(0, "open", "grows", UpsertStatus::Update));
    for number in 0..2_000 {
        transcript.upsert(item(0, &format!("i-{number}"), "text", UpsertStatus::Complete));
        evict(&mut transcript);
    }
    let (running, open) = transcript.unfinished();
    assert_eq!((running, open.len()), (Some(turn_id(0)), 1));
    let before = transcript.cells.len();
    assert!(before <= ITEMS_MAX + 1, "{before}");
    for number in 2_000..3_000 {
        transcript.upsert(item(0, &format!("i-{number}"), "text", UpsertStatus::Complete));
        transcript.evict(|_| false, |_| false);
    }
    assert_eq!(transcript.cells.len(), before + 1_000, "a disk that refuses everything loses nothing");
}

#[test]
fn a_settled_item_that_may_still_change_keeps_its_place() {
    let mut transcript = Transcript::default();
    start(&mut transcript, 0);
    let (_, first) = transcript.upsert(item(0, "slow", "", UpsertStatus::Create));
    for number in 0..1_000 {
        transcript.upsert(item(0, &format!("i-{number}"), "text", UpsertStatus::Complete));
        evict(&mut transcript);
    }
    transcript.upsert(item(0, "slow", "done", UpsertStatus::Complete));
    evict(&mut transcript);
    let (_, again) = transcript.upsert(item(0, "slow", "corrected", UpsertStatus::Complete));
    assert!(Arc::ptr_eq(&first, &again), "it is the same item, in its old place");
    assert!(!ids(&transcript.newest(200)).contains(&"slow".to_owned()));
}

#[test]
fn who_has_seen_all_that_was_evicted_is_sent_what_follows_from_memory() {
    let mut transcript = Transcript::default();
    turn(&mut transcript, 0, "first");
    let early = transcript.seq();
    assert!(transcript.covers(early));
    (1..1_000).for_each(|number| turn(&mut transcript, number, "text"));
    evict(&mut transcript);
    assert!(!transcript.covers(early), "the journal has to be asked");
    let late = transcript.seq();
    turn(&mut transcript, 1_000, "last");
    assert!(transcript.covers(late));
    assert_eq!(transcript.since(late).len(), 1);
    assert_eq!(transcript.turns_since(late).len(), 1);
}

fn foreign(number: usize) -> ForeignTurn {
    let record = TurnRecord {
        turn_id: turn_id(number),
        status: TurnRecordStatus::Completed,
        started_at: Timestamp::default(),
        ended_at: None,
        model_id: None,
        usage: None,
        error_code: None,
        error_message: None,
        forgotten: false,
    };
    let items = vec![item(number, &format!("item-{number}"), "text", UpsertStatus::Complete)];
    ForeignTurn { record: Some(record), items }
}

#[test]
fn turns_of_the_agent_go_to_their_place() {
    let mut transcript = Transcript::default();
    turn(&mut transcript, 1, "one");
    turn(&mut transcript, 4, "four");
    let (one, four) = (transcript.cells[0].position(), transcript.turns[1].position);
    transcript.insert(vec![foreign(2), foreign(3)], Some(one), Some(four));
    transcript.insert(vec![foreign(5)], Some(transcript.last_position()), None);
    transcript.insert(vec![foreign(0)], None, Some(transcript.first_position()));
    let expected: Vec<_> = (0..=5).map(|number| format!("item-{number}")).collect();
    assert_eq!(ids(&transcript.newest(10)), expected);
    let turns: Vec<_> = transcript.turns().into_iter().map(|turn| turn.turn_id).collect();
    assert_eq!(turns, (0..=5).map(turn_id).collect::<Vec<_>>());
    let numbers: HashSet<_> = transcript.cells.iter().map(|cell| cell.seq()).collect();
    assert_eq!(numbers.len(), 6, "each has a number of its own");
}
