//! The documented gradient: how many tokens make an emission, and what happens when none come.

use upserts::{Pacing, UpsertConfig, estimate_tokens};

use crate::turn::*;

/// Lengths in tokens at which a message of single tokens is emitted.
fn emitted_at(count: usize) -> Vec<usize> {
    let mut turn = Turn::batched();
    turn.send([message("m")]);
    for _ in 0..count {
        turn.send([delta("m", &tokens(1))]);
    }
    turn.items().into_iter().map(|update| estimate_tokens(text(update).len())).collect()
}

/// TC-5.2a.
#[test]
fn the_first_emission_comes_after_the_first_small_batch() {
    assert_eq!(emitted_at(10), [0; 0]);
    assert_eq!(emitted_at(11), [11]);
}

/// TC-5.2b.
#[test]
fn later_emissions_are_further_apart() {
    let at = emitted_at(300);
    let gaps: Vec<usize> = std::iter::once(&0).chain(&at).zip(&at).map(|(from, to)| to - from).collect();
    assert_eq!(gaps, [11, 21, 41, 81, 121]);
}

/// TC-5.2c.
#[test]
fn a_threshold_that_is_only_reached_emits_nothing() {
    let mut turn = Turn::batched();
    turn.send([message("m"), delta("m", &tokens(10))]);
    assert_eq!(turn.emitted(), [""; 0]);
    turn.send([delta("m", "abc")]);
    assert_eq!(turn.emitted(), [""; 0], "three bytes are not yet a token");
    turn.send([delta("m", " ")]);
    assert_eq!(turn.emitted().len(), 1);
}

/// TC-5.2d.
#[test]
fn one_big_delta_emits_once_and_moves_past_every_threshold_it_crossed() {
    let mut turn = Turn::batched();
    turn.send([message("m"), delta("m", &tokens(41))]);
    assert_eq!(turn.emitted().len(), 1);
    turn.send([delta("m", &tokens(80))]);
    assert_eq!(turn.emitted().len(), 1, "10, 20 and 40 are behind; 80 is the threshold now");
    turn.send([delta("m", &tokens(1))]);
    assert_eq!(turn.emitted().len(), 2);
}

/// TC-5.2e.
#[test]
fn the_last_threshold_repeats_for_ever() {
    let at = emitted_at(2000);
    assert!(at.len() > 15);
    assert!(at[4..].windows(2).all(|pair| pair[1] - pair[0] == 121), "{at:?}");
}

/// TC-5.2f.
#[test]
fn the_default_gradient_is_10_20_40_80_120_with_a_timeout_of_a_second() {
    let Pacing::Gradient { thresholds_tokens, timeout } = UpsertConfig::default().pacing else { panic!() };
    assert_eq!(thresholds_tokens, [10, 20, 40, 80, 120]);
    assert_eq!(timeout.as_millis(), 1000);
}

/// TC-5.4b.
#[test]
fn text_that_stays_below_the_threshold_goes_out_after_the_timeout() {
    let mut turn = Turn::batched();
    turn.send([message("m")]);
    assert_eq!(turn.processor.deadline(), None);
    turn.wait(200).send([delta("m", "hello")]);
    assert_eq!(turn.processor.deadline().unwrap().as_millis(), 1200);
    assert_eq!(turn.wait(999).emitted(), [""; 0]);
    assert_eq!(turn.wait(1).emitted(), ["m create hello"]);
    assert_eq!(turn.processor.deadline(), None);
    assert_eq!(turn.wait(5000).emitted(), ["m create hello"], "nothing new, nothing emitted");
}

#[test]
fn a_trickle_of_text_does_not_put_the_timeout_off() {
    let mut turn = Turn::batched();
    turn.send([message("m"), delta("m", "a")]).wait(600).send([delta("m", "b")]);
    assert_eq!(turn.wait(400).emitted(), ["m create ab"]);
}

#[test]
fn a_flush_by_timeout_restarts_the_count_at_the_same_threshold() {
    let mut turn = Turn::batched();
    turn.send([message("m"), delta("m", &tokens(5))]).wait(1000);
    turn.send([delta("m", &tokens(10))]);
    assert_eq!(turn.emitted().len(), 1);
    turn.send([delta("m", &tokens(1))]);
    assert_eq!(turn.emitted().len(), 2);
}
