//! What a turn holds of items that were settled and taken.

use protocol::StreamPayload;
use upserts::UpsertConfig;

use crate::turn::*;

/// Three messages, of which the last one is held.
fn released() -> Turn {
    let mut turn = Turn::live();
    turn.send([started(), message_done("a", "one"), message_done("b", "two"), message_done("c", "three")]);
    turn.processor.release_settled(1);
    turn.news();
    turn
}

#[test]
fn a_later_change_of_a_released_item_is_ignored_and_of_a_held_one_is_not() {
    let mut turn = released();
    turn.send([
        message_done("a", "one, corrected"),
        item_failed("b", "X", "late"),
        message_done("c", "three, corrected"),
    ]);
    assert_eq!(turn.wait(10).news(), ["c complete three, corrected"]);
}

#[test]
fn text_that_continues_a_released_item_is_a_new_one_and_loses_nothing() {
    let mut turn = Turn::live();
    turn.send([
        started(),
        message("m"),
        delta("m", "before "),
        invoked("t", "t", "Bash", "{}"),
        result("o", "t", "x", false),
    ]);
    turn.processor.release_settled(0);
    turn.news();
    turn.send([delta("m", "after")]).wait(10).send([message_done("m", "before after")]);
    assert_eq!(
        turn.news().last().unwrap(),
        "m~2 complete after",
        "the final text is known to begin with the earlier part"
    );
}

#[test]
fn what_was_not_taken_yet_is_not_released() {
    let mut turn = Turn::live();
    turn.hold([started(), message_done("a", "one")]);
    turn.processor.release_settled(0);
    assert_eq!(turn.take().emitted(), ["turn started", "a complete one"]);
}

#[test]
fn a_turn_may_bring_any_number_of_items_as_long_as_few_are_held() {
    let call = |number: usize| -> [StreamPayload; 2] {
        let id = format!("c{number}");
        [invoked(&id, &id, "Bash", "{}"), result(&format!("{id}-o"), &id, &"x".repeat(10_000), false)]
    };
    let mut turn = Turn::new(UpsertConfig { turn_bytes_max: 4 * 1024 * 1024, ..UpsertConfig::live() });
    for number in 0..2_000 {
        turn.send(call(number));
        turn.processor.release_settled(64);
    }
    assert!(!turn.processor.is_full(), "20 MB were brought and 640 KB are held");
    let mut turn = Turn::new(UpsertConfig { turn_bytes_max: 4 * 1024 * 1024, ..UpsertConfig::live() });
    for number in 0..2_000 {
        turn.send(call(number));
    }
    assert!(turn.processor.is_full());
}
