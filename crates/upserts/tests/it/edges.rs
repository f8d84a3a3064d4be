//! Ends of every kind: errors, cancels, nothing at all.

use std::sync::Arc;

use protocol::stream::{ItemDelta, ResponseDone};
use protocol::{ResponseStatus, StreamPayload, ToolContent, ToolDetail, TurnEvent, UpsertStatus, Usage};
use upserts::{Emission, UpsertConfig};

use crate::turn::*;

/// TC-5.4a.
#[test]
fn what_is_buffered_when_the_turn_is_torn_down_goes_out_as_an_error() {
    let mut turn = Turn::batched();
    turn.send([started(), message("m"), delta("m", "half a sen")]);
    assert_eq!(turn.news(), ["turn started"]);
    turn.abort("PROCESS_CRASH", "Codex stopped unexpectedly");
    let upsert = turn.last("m").to_upsert();
    assert_eq!(upsert.error_code.as_deref(), Some("PROCESS_CRASH"));
    assert_eq!(upsert.error_message.as_deref(), Some("Codex stopped unexpectedly"));
    assert_eq!(turn.news(), ["m error half a sen", "turn error PROCESS_CRASH Codex stopped unexpectedly"]);
    assert!(turn.processor.is_finished());
}

#[test]
fn a_turn_that_fails_by_itself_settles_its_open_items_as_errors_and_leaves_the_rest() {
    let mut turn = Turn::live();
    turn.send([message("m"), delta("m", "fine"), message_done("m", "fine"), message("n"), delta("n", "cut of")]);
    turn.send([failed("OVERLOADED", "Try later")]);
    assert_eq!(
        turn.emitted()[1..],
        ["m complete fine", "n create cut of", "n error cut of", "turn error OVERLOADED Try later"]
    );
}

/// TC-5.4c.
#[test]
fn an_empty_item_is_one_complete_with_no_text() {
    for mut turn in [Turn::batched(), Turn::live()] {
        turn.send([message("m"), message_done("m", "")]).wait(5000);
        assert_eq!(turn.emitted(), ["m complete"]);
    }
}

/// TC-5.4d.
#[test]
fn a_cancelled_item_that_nobody_saw_is_never_shown() {
    let mut turn = Turn::batched();
    turn.send([message("m"), delta("m", "never mind"), item_cancelled("m"), delta("m", "!"), message_done("m", "?")]);
    turn.send([invoke("c", "c", "Bash")]).taken.clear();
    turn.send([completed()]).wait(5000);
    assert_eq!(turn.emitted(), ["c complete", "turn completed"]);
    assert!(turn.processor.is_finished());
}

/// TC-5.4e.
#[test]
fn a_cancelled_turn_says_so_itself_and_labels_no_cancelled_item() {
    let mut turn = Turn::batched();
    turn.send([started(), message("m"), delta("m", "one"), item_cancelled("m"), message("n"), item_cancelled("n")]);
    turn.send([cancelled()]);
    assert_eq!(turn.emitted(), ["turn started", "turn cancelled"]);
}

#[test]
fn a_cancelled_turn_keeps_the_text_that_was_received() {
    let mut turn = Turn::batched();
    turn.send([message("m"), delta("m", &tokens(11)), delta("m", "and a bit"), cancelled()]);
    assert_eq!(turn.emitted()[1..], [format!("m complete {}and a bit", tokens(11)), "turn cancelled".into()]);
}

#[test]
fn a_cancelled_item_that_was_shown_ends_with_what_was_shown() {
    let mut turn = Turn::live();
    turn.send([message("m"), delta("m", "shown"), delta("m", " not shown"), item_cancelled("m")]);
    turn.send([delta("m", "!"), message_done("m", "?")]);
    turn.send([invoke("c", "c", "Bash"), item_cancelled("c"), result("o", "c", "void", false)]).wait(4);
    assert_eq!(turn.emitted(), ["m create shown", "m complete shown", "c create", "c complete"]);
    assert!(call(turn.last("c")).3);
}

/// TC-5.4f.
#[test]
fn a_failed_turn_is_a_turn_error_and_never_a_turn_complete() {
    let ends = |events: Vec<StreamPayload>| {
        let mut turn = Turn::batched();
        turn.send(events);
        turn.emitted()
    };
    let error_done = |reason: Option<&str>, detail: Option<(&str, &str)>| {
        StreamPayload::ResponseDone(ResponseDone {
            status: ResponseStatus::Error,
            finish_reason: reason.map(Into::into),
            error: detail.map(|(code, message)| error(code, message)),
            usage: None,
        })
    };
    assert_eq!(ends(vec![failed("A", "first"), error_done(Some("b"), Some(("B", "b")))]), ["turn error A first"]);
    assert_eq!(ends(vec![failed("A", "first"), completed()]), ["turn error A first"]);
    assert_eq!(ends(vec![error_done(Some("c"), Some(("B", "second")))]), ["turn error B second"]);
    assert_eq!(
        ends(vec![error_done(Some("max_tokens"), None)]),
        ["turn error AGENT_PROTOCOL_ERROR The agent stopped: max_tokens"]
    );
    assert_eq!(
        ends(vec![error_done(None, None)]),
        ["turn error AGENT_PROTOCOL_ERROR The agent ended the turn with an error and gave no reason."]
    );
}

#[test]
fn what_a_turn_cost_is_passed_on() {
    let usage = Usage { input_tokens: 3, output_tokens: 5, ..Usage::default() };
    let mut turn = Turn::batched();
    turn.send([StreamPayload::ResponseDone(ResponseDone {
        status: ResponseStatus::Completed,
        finish_reason: None,
        error: None,
        usage: Some(usage),
    })]);
    let Emission::Turn(TurnEvent::TurnComplete { usage: emitted, .. }) = &turn.taken[0] else { panic!() };
    assert_eq!(*emitted, Some(usage));
}

#[test]
fn an_item_that_fails_alone_is_an_error_and_the_turn_goes_on() {
    let mut turn = Turn::live();
    turn.send([message("m"), delta("m", "some"), item_failed("m", "REFUSED", "no")]);
    turn.send([invoke("c", "c", "Bash"), item_failed("c", "TOOL", "bad"), item_failed("x", "LOST", "who?")]);
    turn.send([message("n"), delta("n", "on"), completed()]);
    assert_eq!(
        turn.emitted(),
        [
            "m create some",
            "m error some",
            "c create",
            "c error",
            "x error",
            "n create on",
            "n complete on",
            "turn completed"
        ]
    );
    assert!(!call(turn.last("c")).3, "it failed; nobody interrupted it");
}

#[test]
fn a_flood_ends_the_turn_with_an_error_and_keeps_what_came_before() {
    let mut turn = Turn::new(UpsertConfig { turn_bytes_max: 1024 * 1024, ..UpsertConfig::live() });
    turn.send([started(), message("m"), delta("m", "kept")]);
    for _ in 0..20 {
        turn.hold([delta("m", &"x".repeat(100_000))]);
    }
    turn.take();
    let text_bytes = text(turn.last("m")).len();
    assert!((900_000..=1024 * 1024).contains(&text_bytes), "{text_bytes}");
    assert_eq!(turn.last("m").status, UpsertStatus::Error);
    let emitted = turn.emitted();
    assert_eq!(
        emitted.last().unwrap(),
        "turn error AGENT_PROTOCOL_ERROR The agent sent more than 1 MiB in one turn and was stopped. The rest is not shown."
    );
    assert!(turn.processor.is_finished());
}

/// A turn that may bring little, sent the same kind of event again and again.
fn flooded_by(event: impl Fn(usize) -> StreamPayload) -> bool {
    let mut turn = Turn::new(UpsertConfig { turn_bytes_max: 1024 * 1024, ..UpsertConfig::live() });
    for number in 0..2000 {
        turn.hold([event(number)]);
    }
    turn.take();
    turn.emitted().iter().any(|line| line.starts_with("turn error AGENT_PROTOCOL_ERROR The agent sent more"))
}

fn showing(id: &str, text: String) -> StreamPayload {
    let tool = ToolDetail { content: vec![ToolContent::Text { text }], ..ToolDetail::default() };
    StreamPayload::ItemDelta(ItemDelta {
        item_id: item_id(id),
        delta_content: String::new(),
        tool: Some(Arc::new(tool)),
    })
}

#[test]
fn a_flood_is_stopped_by_whatever_it_fills_the_memory_with() {
    assert!(flooded_by(|number| delta(&format!("m{number}"), "")), "items nobody started");
    assert!(flooded_by(|number| delta(["a", "b"][number % 2], "x")), "texts that keep closing each other");
    assert!(flooded_by(|number| {
        let arguments = format!(r#"{{"text": "{}"}}"#, "x".repeat(1000));
        invoked(&format!("c{number}"), &format!("c{number}"), "Write", &arguments)
    }));
    assert!(flooded_by(|number| showing(&format!("c{number}"), "x".repeat(1000))));
    assert!(flooded_by(|_| item_failed("m", "X", &"x".repeat(1000))));
}

#[test]
fn facts_that_are_only_replaced_are_no_flood() {
    assert!(!flooded_by(|number| showing("c", format!("{number:04}{}", "x".repeat(100_000)))));
    assert!(!flooded_by(|_| delta("m", "word ")));
}
