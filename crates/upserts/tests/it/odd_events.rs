//! Events that do not fit: each has one outcome, none loses text.

use protocol::FinalItem;

use crate::turn::*;

#[test]
fn a_repeated_start_is_the_same_item() {
    let mut turn = Turn::live();
    turn.send([message("m"), delta("m", "one"), message("m"), delta("m", " two"), message_done("m", "")]);
    turn.send([invoke("c", "c", "Bash"), invoke("c", "c", "Bash"), result("o", "c", "x", false)]);
    assert_eq!(turn.emitted(), ["m create one", "m complete one two", "c create", "c complete x"]);
}

#[test]
fn a_start_under_a_used_id_is_a_new_item() {
    let mut turn = Turn::live();
    turn.send([message_done("m", "one"), message("m"), delta("m", "two"), message_done("m", "two")]);
    turn.send([invoke("m", "c", "Bash"), result("m", "c", "x", false)]);
    assert_eq!(
        turn.emitted(),
        ["m complete one", "m~2 create two", "m~2 complete two", "m~3 create", "m~3 complete x"]
    );
}

#[test]
fn a_delta_for_an_unknown_item_is_a_message() {
    let mut turn = Turn::live();
    turn.send([delta("m", "hello"), completed()]);
    assert_eq!(turn.emitted(), ["m create hello", "m complete hello", "turn completed"]);
}

#[test]
fn a_done_without_a_start_is_the_whole_item() {
    let mut turn = Turn::live();
    turn.send([
        message_done("m", "hello"),
        thought_done("r", "hm"),
        invoked("c", "c", "Bash", r#"{"a":1}"#),
        completed(),
    ]);
    assert_eq!(turn.emitted(), ["m complete hello", "r complete hm", "c create", "c complete", "turn completed"]);
    assert_eq!(call(turn.last("c")).1, r#"{"a":1}"#);
}

#[test]
fn a_done_for_a_text_that_was_closed_corrects_it() {
    let mut turn = Turn::live();
    turn.send([message("m"), delta("m", "Hel"), invoke("c", "c", "Bash"), message_done("m", "Hello")]).wait(4);
    turn.send([message_done("m", "Hello")]).wait(4);
    assert_eq!(turn.emitted(), ["m create Hel", "m complete Hel", "c create", "m complete Hello"]);
}

#[test]
fn a_done_of_another_kind_is_an_item_of_its_own() {
    let mut turn = Turn::live();
    turn.send([message("m"), delta("m", "text"), invoked("m", "c", "Bash", "{}"), message_done("c2", "")]);
    turn.send([invoke("d", "d", "Read"), message_done("d", "words"), completed()]);
    assert_eq!(
        turn.emitted(),
        [
            "m create text",
            "m complete text",
            "m~2 create",
            "c2 complete",
            "d create",
            "d~2 complete words",
            "m~2 complete",
            "d complete",
            "turn completed"
        ]
    );
}

#[test]
fn text_goes_on_after_its_done_as_a_new_item() {
    let mut turn = Turn::live();
    turn.send([message("m"), delta("m", "one"), message_done("m", "one"), delta("m", "two"), delta("m", "")]);
    assert_eq!(turn.emitted(), ["m create one", "m complete one", "m~2 create two"]);
}

#[test]
fn two_texts_that_take_turns_are_shown_in_the_order_in_which_they_were_sent() {
    let mut turn = Turn::live();
    turn.send([message("a"), message("b"), delta("a", "1"), delta("b", "2"), delta("a", "3"), completed()]);
    let finals: Vec<_> = turn.emitted().into_iter().filter(|line| line.contains("complete")).collect();
    assert_eq!(
        finals,
        ["a complete", "b complete", "a~2 complete 1", "b~2 complete 2", "a~3 complete 3", "turn completed"]
    );
}

#[test]
fn a_second_result_has_the_last_word_and_the_same_one_is_no_news() {
    let mut turn = Turn::batched();
    turn.send([invoke("c", "c", "Bash"), result("o", "c", "one", false), result("o", "c", "one", false)]);
    assert_eq!(turn.news(), ["c create", "c complete one"]);
    turn.send([result("o", "c", "two", true)]);
    assert_eq!(turn.emitted(), ["c complete two"]);
    assert_eq!(call(turn.last("c")).2, Some(true));
}

#[test]
fn a_call_that_learns_its_call_id_late_still_gets_its_result() {
    let mut turn = Turn::batched();
    let start = item_start("c", protocol::ItemType::FunctionCall);
    turn.send([protocol::StreamPayload::ItemStart(start), invoked("c", "call", "Bash", "{}")]);
    turn.send([result("o", "call", "out", false)]);
    assert_eq!(turn.emitted(), ["c create", "c complete out"]);
    assert_eq!(call(turn.last("c")).0, "Bash");
}

#[test]
fn a_call_id_used_twice_belongs_to_the_newer_call() {
    let mut turn = Turn::batched();
    turn.send([invoke("c", "x", "Bash"), invoke("d", "x", "Read"), result("o", "x", "out", false), completed()]);
    assert_eq!(turn.emitted(), ["c create", "d create", "d complete out", "c complete", "turn completed"]);
}

#[test]
fn a_turn_begins_and_ends_once() {
    let mut turn = Turn::batched();
    turn.send([started(), started(), completed(), cancelled(), failed("X", "x"), completed(), started()]);
    turn.abort("Y", "y");
    assert_eq!(turn.emitted(), ["turn started", "turn completed"]);
}

#[test]
fn a_message_whose_final_item_says_reasoning_stays_a_message() {
    let mut turn = Turn::batched();
    let reasoning = FinalItem::Reasoning { content: "text".into(), provider_id: "p".into() };
    turn.send([message("m"), done("m", reasoning)]);
    assert!(matches!(turn.last("m").body, upserts::ItemBody::Message { .. }));
    assert_eq!(turn.emitted(), ["m complete text"]);
}
