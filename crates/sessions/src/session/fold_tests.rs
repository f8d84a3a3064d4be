use protocol::stream::{ItemDone, ItemStart, ResponseStart};
use protocol::{FinalItem, ItemId, ItemType, Origin, Timestamp};

use super::*;

fn session() -> SessionId {
    SessionId::parse("codex:1").unwrap()
}

fn turn(number: usize) -> TurnId {
    TurnId::parse(format!("turn-{number}")).unwrap()
}

fn event(number: usize, payload: StreamPayload) -> StreamEvent {
    StreamEvent {
        event_id: EventId::generate(),
        timestamp: Timestamp::default(),
        turn_id: turn(number),
        session_id: session(),
        payload,
    }
}

fn start() -> StreamPayload {
    StreamPayload::ResponseStart(ResponseStart { model_id: "m".into(), provider_id: "p".into() })
}

fn done() -> StreamPayload {
    let (finish_reason, error, usage) = (None, None, None);
    StreamPayload::ResponseDone(ResponseDone { status: ResponseStatus::Completed, finish_reason, error, usage })
}

fn item_done(item: &str, content: &str) -> StreamPayload {
    let final_item = FinalItem::Message { content: content.into(), origin: Origin::System };
    StreamPayload::ItemDone(ItemDone { item_id: ItemId::parse(item).unwrap(), final_item })
}

fn item_start(item: &str, content: &str) -> StreamPayload {
    StreamPayload::ItemStart(ItemStart {
        item_id: ItemId::parse(item).unwrap(),
        item_type: ItemType::Message,
        initial_content: Some(content.into()),
        name: None,
        call_id: None,
        origin: None,
        parent_item_id: None,
        tool: None,
    })
}

/// Items by their text and whether they are settled, turn events by what they are.
fn shown(emissions: &[Emission]) -> Vec<String> {
    let show = |emission: &Emission| match emission {
        Emission::Item(item) if item.status.is_final() => format!("{}.", item.body.text().unwrap()),
        Emission::Item(item) => item.body.text().unwrap().to_string(),
        Emission::Turn(event) if event.is_end() => "end".into(),
        Emission::Turn(_) => "start".into(),
    };
    emissions.iter().map(show).collect()
}

#[test]
fn a_turn_goes_out_at_once_and_in_order() {
    let mut fold = Fold::new(session(), usize::MAX);
    fold.begin(turn(1));
    fold.push(event(1, start()));
    fold.push(event(1, item_start("a", "one")));
    assert_eq!(shown(&fold.take_due()), ["start", "one"]);
    fold.push(event(1, done()));
    assert_eq!(shown(&fold.take_due()), ["one.", "end"]);
    assert_eq!(fold.deadline(), None);
}

#[test]
fn a_turn_without_a_response_gives_items_only() {
    let mut fold = Fold::new(session(), usize::MAX);
    fold.begin(turn(1));
    fold.push(event(1, item_done("a", "a notice")));
    fold.push(event(1, item_start("b", "open")));
    assert_eq!(shown(&fold.take_due()), ["a notice.", "open"]);
    for number in 2..=TURNS_MAX + 1 {
        fold.begin(turn(number));
    }
    assert_eq!(shown(&fold.take_due()), ["open."], "what was evicted is settled, and was never a turn");
    fold.push(event(1, item_done("c", "late")));
    assert!(fold.take_due().is_empty(), "nobody knows it any more");
}

#[test]
fn a_turn_that_brings_too_much_is_reported_until_its_agent_ends_it() {
    let mut fold = Fold::new(session(), 4096);
    fold.begin(turn(1));
    fold.push(event(1, start()));
    assert_eq!(fold.flooded_turn(), None);
    fold.push(event(1, item_start("a", &"x".repeat(5000))));
    assert_eq!(shown(&fold.take_due()), ["start", "end"]);
    assert_eq!(fold.flooded_turn(), Some(&turn(1)));
    fold.push(event(1, done()));
    assert_eq!(fold.flooded_turn(), None);
}

#[test]
fn what_waits_for_its_time_is_not_lost_with_the_agent() {
    let mut fold = Fold::new(session(), usize::MAX);
    fold.begin(turn(1));
    fold.push(event(1, start()));
    fold.push(event(1, item_start("a", "one")));
    fold.take_due();
    fold.push(event(1, item_start("a", " two")));
    assert!(fold.deadline().is_some());
    assert_eq!(shown(&fold.take_all()), ["one two"]);
}
