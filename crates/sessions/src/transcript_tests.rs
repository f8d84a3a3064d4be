//! What a transcript gives out: the newest, what is older, what was missed, and what it drops.

use protocol::{SessionId, Timestamp};

use super::*;

const MEBIBYTE: usize = 1024 * 1024;

fn turn_id(number: usize) -> TurnId {
    TurnId::parse(format!("turn-{number}")).unwrap()
}

/// One turn with one message. All share one text, which is counted for each.
fn turn(transcript: &mut Transcript, number: usize, text: &Text) {
    let session_id = SessionId::parse("codex:s").unwrap();
    let (turn_id, at) = (turn_id(number), Timestamp::default());
    transcript.turn(&TurnEvent::TurnStarted {
        turn_id: turn_id.clone(),
        session_id: session_id.clone(),
        model_id: String::new(),
        provider_id: "codex".into(),
        at,
    });
    transcript.upsert(ItemUpdate {
        turn_id: turn_id.clone(),
        session_id: session_id.clone(),
        item_id: ItemId::from_foreign(&format!("item-{number}")),
        parent_item_id: None,
        source_timestamp: at,
        emitted_at: at,
        status: UpsertStatus::Complete,
        error: None,
        body: ItemBody::Message { text: text.clone(), origin: Origin::Agent },
    });
    transcript.turn(&TurnEvent::TurnComplete { turn_id, session_id, status: TurnStatus::Completed, usage: None, at });
}

fn shown(transcript: &Transcript) -> Vec<String> {
    transcript.newest(usize::MAX).0.iter().map(|cell| cell.id().to_string()).collect()
}

#[test]
fn a_session_that_sends_ever_more_keeps_the_newest_and_reports_that_there_was_more() {
    let text = Text::from("x".repeat(16 * MEBIBYTE));
    let mut transcript = Transcript::default();
    for number in 0..1000 {
        turn(&mut transcript, number, &text);
        let shown = shown(&transcript);
        assert!(shown.len() <= TRANSCRIPT_BYTES_MAX / (16 * MEBIBYTE) + 1, "{shown:?}");
        assert_eq!(*shown.last().unwrap(), format!("item-{number}"), "the newest is there");
        assert_eq!(shown.iter().filter(|id| *id == EVICTED_ID).count(), usize::from(number >= 7), "{shown:?}");
        assert!(number < 7 || shown[0] == EVICTED_ID, "{shown:?}");
        assert!(transcript.turns().len() <= shown.len() && transcript.by_id.len() == shown.len());
    }
    let first = transcript.newest(usize::MAX).0[0].update();
    assert_eq!(first.turn_id, transcript.turns()[0].turn_id, "the notice is in the oldest turn that is left");
    assert!(!transcript.newest(usize::MAX).1, "there is nothing to page back to");
}

#[test]
fn who_has_not_seen_all_that_was_dropped_is_shown_the_session_again() {
    let text = Text::from("x".repeat(16 * MEBIBYTE));
    let mut transcript = Transcript::default();
    turn(&mut transcript, 0, &text);
    let early = transcript.seq();
    assert!(transcript.can_go_on_from(early));
    (1..20).for_each(|number| turn(&mut transcript, number, &text));
    assert!(!transcript.can_go_on_from(early), "what came next is gone");
    let late = transcript.seq();
    turn(&mut transcript, 20, &Text::from("small"));
    assert!(transcript.can_go_on_from(late));
    assert_eq!(transcript.evicted_notice().unwrap().id().as_str(), EVICTED_ID);
}

#[test]
fn the_turn_that_just_ended_stays_whole_however_long_it_is() {
    let text = Text::from("x".repeat(2 * TRANSCRIPT_BYTES_MAX));
    let mut transcript = Transcript::default();
    turn(&mut transcript, 0, &text);
    assert_eq!(shown(&transcript), ["item-0"]);
    turn(&mut transcript, 1, &text);
    assert_eq!(shown(&transcript), [EVICTED_ID, "item-1"]);
    let small = Text::from("small");
    turn(&mut transcript, 2, &small);
    assert_eq!(shown(&transcript), [EVICTED_ID, "item-2"]);
    turn(&mut transcript, 3, &small);
    assert_eq!(shown(&transcript), [EVICTED_ID, "item-2", "item-3"]);
}

#[test]
fn what_is_fetched_again_is_weighed_too() {
    let text = Text::from("x".repeat(40 * MEBIBYTE));
    let (mut transcript, mut older) = (Transcript::default(), Transcript::default());
    turn(&mut transcript, 10, &Text::from("new"));
    (0..4).for_each(|number| {
        let history = HistoryPage {
            items: {
                older = Transcript::default();
                turn(&mut older, number, &text);
                older.newest(1).0.iter().map(|cell| cell.update()).collect()
            },
            turns: older.turns().to_vec(),
            ..HistoryPage::default()
        };
        transcript.prepend(history);
    });
    assert_eq!(shown(&transcript).len(), 5, "a page that was asked for is shown");
    turn(&mut transcript, 11, &Text::from("newer"));
    let shown = shown(&transcript);
    assert_eq!((shown[0].as_str(), shown.len()), (EVICTED_ID, 4), "{shown:?}");
}
