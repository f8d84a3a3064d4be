//! Items that belong to a tool call, sent by agents that run at the same time, some of them after the turn.

use protocol::stream::ItemStart;
use protocol::{ItemType, StreamPayload};

use crate::turn::*;

fn child(id: &str, parent: &str, item_type: ItemType) -> StreamPayload {
    StreamPayload::ItemStart(ItemStart { parent_item_id: Some(item_id(parent)), ..item_start(id, item_type) })
}

#[test]
fn sub_agents_do_not_close_each_others_text() {
    let mut turn = Turn::live();
    turn.send([invoke("a", "a", "Task"), invoke("b", "b", "Task")]);
    turn.send([child("a1", "a", ItemType::Message), delta("a1", "one "), child("b1", "b", ItemType::Message)]);
    turn.wait(4).send([delta("b1", "two "), message("m"), delta("m", "main"), delta("a1", "more")]);
    turn.wait(4).send([child("a2", "a", ItemType::Reasoning), delta("b1", "more")]);
    assert_eq!(
        turn.emitted()[2..],
        [
            "a1 create one",
            "b1 create two",
            "m create main",
            "a1 update one more",
            "a1 complete one more",
            "b1 update two more"
        ]
    );
    assert_eq!(turn.last("a1").parent_item_id, Some(item_id("a")));
    assert_eq!(turn.last("m").parent_item_id, None);
}

#[test]
fn the_first_emission_of_a_later_item_takes_the_unseen_ones_before_it_along() {
    let mut turn = Turn::batched();
    turn.send([message("m"), delta("m", "short"), child("a1", "a", ItemType::Message), delta("a1", &tokens(11))]);
    let order: Vec<_> = turn.items().iter().map(|update| update.item_id.to_string()).collect();
    assert_eq!(order, ["m", "a1"]);
}

#[test]
fn what_a_sub_agent_sends_after_the_turn_is_shown_and_settled() {
    let mut turn = Turn::live();
    turn.send([child("a1", "a", ItemType::Message), delta("a1", "early"), completed()]);
    assert!(turn.processor.is_finished());
    turn.send([delta("a1", " late"), child("c", "a", ItemType::FunctionCall)]);
    assert_eq!(
        turn.emitted(),
        [
            "a1 create early",
            "a1 complete early",
            "turn completed",
            "a1~2 create  late",
            "a1~2 complete  late",
            "c create"
        ]
    );
    assert!(!turn.processor.is_finished(), "a late call is still open");
    assert_eq!(turn.last("a1~2").parent_item_id, Some(item_id("a")));
    turn.taken.clear();
    turn.send([completed(), failed("X", "x")]);
    assert_eq!(turn.news(), ["c complete"], "a turn ends once; a second end settles what came late");
}

#[test]
fn late_items_are_settled_when_the_agent_is_gone() {
    let mut turn = Turn::batched();
    turn.send([completed(), child("a1", "a", ItemType::Message), delta("a1", "unfinished")]);
    turn.abort("PROCESS_CRASH", "gone");
    assert_eq!(turn.emitted(), ["turn completed", "a1 error unfinished"]);
    assert!(turn.processor.is_finished());
}
