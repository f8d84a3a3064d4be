//! The live configuration: at once when the way is free, within a ceiling, together when it is not.

use crate::turn::*;

#[test]
fn text_goes_out_at_once_when_the_way_is_free() {
    let mut turn = Turn::live();
    turn.send([message("m"), delta("m", "a")]).wait(10).send([delta("m", "b")]).wait(10).send([delta("m", "c")]);
    assert_eq!(turn.emitted(), ["m create a", "m update ab", "m update abc"]);
}

#[test]
fn no_item_goes_out_twice_within_four_milliseconds() {
    let mut turn = Turn::live();
    turn.send([message("m"), delta("m", "a"), delta("m", "b")]);
    assert_eq!(turn.processor.deadline().unwrap().as_millis(), 4);
    turn.wait(3).send([delta("m", "c")]);
    assert_eq!(turn.emitted(), ["m create a"]);
    assert_eq!(turn.wait(1).emitted(), ["m create a", "m update abc"]);
    assert_eq!(turn.processor.deadline(), None);
}

#[test]
fn one_emission_that_was_taken_late_makes_none_after_it_late() {
    let mut turn = Turn::live();
    turn.send([message("m"), delta("m", "a")]).wait(3).send([delta("m", "b")]);
    // Due at 4, taken at 6: as late as a timer on a busy machine.
    assert_eq!(turn.wait(3).emitted().last().unwrap(), "m update ab");
    assert_eq!(turn.wait(2).send([delta("m", "c")]).emitted().last().unwrap(), "m update abc");
}

#[test]
fn a_pause_holds_nothing_back() {
    let mut turn = Turn::live();
    turn.send([message("m"), delta("m", "a"), delta("m", "b")]);
    let wake = turn.processor.deadline().unwrap().as_millis() as u64;
    assert_eq!(turn.wait(wake).emitted().last().unwrap(), "m update ab");
}

#[test]
fn what_comes_while_the_way_is_taken_goes_out_together_and_in_order() {
    let mut turn = Turn::live();
    turn.hold([started(), message("m"), delta("m", "a"), delta("m", "b"), invoke("c", "c", "Bash"), message("n")]);
    turn.hold([delta("n", "d"), result("o", "c", "out", false), delta("n", "e")]).take();
    assert_eq!(turn.emitted(), ["turn started", "m complete ab", "c complete out", "n create de"]);
}

#[test]
fn the_end_of_an_item_and_of_the_turn_do_not_wait_for_the_ceiling() {
    let mut turn = Turn::live();
    turn.send([message("m"), delta("m", "a"), delta("m", "b"), completed()]);
    assert_eq!(turn.emitted(), ["m create a", "m complete ab", "turn completed"]);
    assert!(turn.processor.is_finished());
}

#[test]
fn each_item_has_a_ceiling_of_its_own() {
    let mut turn = Turn::live();
    turn.send([invoke("c", "c", "A"), invoke("d", "d", "B"), output("oc", "c"), output("od", "d")]).wait(4);
    turn.send([delta("oc", "1"), delta("od", "2"), delta("oc", "3")]);
    assert_eq!(turn.news(), ["c create", "d create", "c update 1", "d update 2"]);
    assert_eq!(turn.wait(4).news(), ["c update 13"]);
}

#[test]
fn output_that_keeps_coming_for_a_call_that_is_over_keeps_to_the_ceiling_too() {
    let mut turn = Turn::live();
    turn.send([
        invoke("c", "c", "A"),
        output("o", "c"),
        result("o", "c", "1", false),
        delta("o", "2"),
        delta("o", "3"),
    ]);
    assert_eq!(turn.news(), ["c create", "c complete 1"]);
    assert_eq!(turn.wait(4).news(), ["c complete 123"]);
}

#[test]
fn a_long_message_is_stored_once_however_often_it_is_shown() {
    let mut turn = Turn::live();
    turn.send([message("m")]);
    for _ in 0..1000 {
        turn.send([delta("m", "five ")]).wait(4);
    }
    turn.send([message_done("m", &"five ".repeat(1000))]);
    let items = turn.items();
    assert_eq!(items.len(), 1001);
    for pair in items.windows(2) {
        let (earlier, later) = (pair[0].body.text().unwrap(), pair[1].body.text().unwrap());
        assert!(later.continues(earlier), "the same buffer, grown");
    }
}
