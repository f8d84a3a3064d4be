//! Tool calls: one item from invocation to result.

use std::sync::Arc;

use protocol::stream::{ItemDelta, ItemStart};
use protocol::{FinalItem, ItemType, StreamPayload, Timestamp, ToolDetail, ToolKind};
use upserts::ItemBody;

use crate::turn::*;

fn detail_of(turn: &Turn, id: &str) -> ToolDetail {
    let ItemBody::ToolCall { tool, .. } = &turn.last(id).body else { panic!("not a tool call") };
    ToolDetail::clone(tool.as_ref().unwrap())
}

fn progress(id: &str, title: &str) -> StreamPayload {
    let tool = ToolDetail { kind: ToolKind::Execute, title: Some(title.into()), ..ToolDetail::default() };
    StreamPayload::ItemDelta(ItemDelta {
        item_id: item_id(id),
        delta_content: String::new(),
        tool: Some(Arc::new(tool)),
    })
}

/// TC-5.1c.
#[test]
fn a_call_is_emitted_at_its_invocation_and_with_its_result_and_not_in_between() {
    let mut turn = Turn::batched();
    turn.send([
        invoke("c", "call", "Bash"),
        delta("c", r#"{"command""#),
        delta("c", r#": "ls"}"#),
        invoked("c", "call", "Bash", r#"{"command": "ls"}"#),
        result("o", "call", "a.txt", false),
    ]);
    assert_eq!(turn.emitted(), ["c create", "c complete a.txt"]);
    assert_eq!(call(turn.items()[0]), ("Bash".into(), "{}".into(), None, false));
    assert_eq!(call(turn.items()[1]), ("Bash".into(), r#"{"command":"ls"}"#.into(), Some(false), false));
}

#[test]
fn arguments_filled_in_later_are_an_update_when_the_result_takes_its_time() {
    let fill = || [invoke("c", "call", "Bash"), invoked("c", "call", "Bash", r#"{"command": "ls"}"#)];
    let mut batched = Turn::batched();
    batched.send(fill()).wait(1000);
    let mut live = Turn::live();
    live.send(fill()).wait(4);
    for turn in [batched, live] {
        assert_eq!(turn.emitted(), ["c create", "c update"]);
        assert_eq!(call(turn.last("c")).1, r#"{"command":"ls"}"#);
    }
}

#[test]
fn arguments_that_only_stream_are_read_when_they_are_whole() {
    let mut turn = Turn::live();
    turn.send([invoke("c", "call", "Bash"), delta("c", r#"{"command": "#), delta("c", r#""ls"}"#)]).wait(100);
    assert_eq!(turn.emitted(), ["c create"], "pieces of arguments are not progress");
    turn.send([result("o", "call", "", false)]);
    assert_eq!(call(turn.last("c")), ("Bash".into(), r#"{"command":"ls"}"#.into(), Some(false), false));
}

#[test]
fn arguments_cut_off_by_a_cancel_are_kept_as_they_came() {
    let mut turn = Turn::live();
    turn.send([invoke("c", "call", "Bash"), delta("c", r#"{"command": "rm"#), cancelled()]);
    assert_eq!(call(turn.last("c")).1, r#"{"partialArguments":"{\"command\": \"rm"}"#);
}

#[test]
fn arguments_given_at_the_invocation_are_there_at_once() {
    let mut turn = Turn::batched();
    turn.send([StreamPayload::ItemStart(ItemStart {
        name: Some("Read".into()),
        call_id: Some(call_id("call")),
        initial_content: Some(r#"{"path":"a"}"#.into()),
        ..item_start("c", ItemType::FunctionCall)
    })]);
    assert_eq!(call(turn.last("c")), ("Read".into(), r#"{"path":"a"}"#.into(), None, false));
    turn.send([invoked("c", "call", "Read", r#"{"path":"a"}"#)]).wait(5000);
    assert_eq!(turn.emitted(), ["c create"], "the same arguments again are no news");
}

/// TC-5.3a.
#[test]
fn a_result_completes_the_item_of_its_call() {
    let mut turn = Turn::batched();
    turn.send([invoke("c", "call", "Read"), output("o", "call"), result("o", "call", "text", true)]);
    assert_eq!(turn.emitted(), ["c create", "c complete text"]);
    assert_eq!(call(turn.last("c")).2, Some(true));
}

/// TC-5.3b.
#[test]
fn several_calls_at_once_are_kept_apart() {
    let mut turn = Turn::batched();
    turn.send([invoke("c1", "one", "Read"), invoke("c2", "two", "Bash"), invoke("c3", "three", "Read")]);
    turn.send([result("o2", "two", "second", false), result("o3", "three", "third", true)]);
    turn.send([result("o1", "one", "first", false)]);
    assert_eq!(
        turn.emitted(),
        ["c1 create", "c2 create", "c3 create", "c2 complete second", "c3 complete third", "c1 complete first"]
    );
}

/// TC-3.3g.
#[test]
fn a_result_for_an_unknown_call_is_shown_as_a_call_of_its_own() {
    let mut turn = Turn::batched();
    turn.send([result("o", "nobody", "surprise", true)]);
    assert_eq!(turn.emitted(), ["o complete surprise"]);
    let ItemBody::ToolCall { call_id: id, is_error, .. } = &turn.last("o").body else { panic!() };
    assert_eq!((id.as_str(), *is_error), ("nobody", Some(true)));
    turn.send([invoke("c", "nobody", "Bash")]).wait(1000);
    assert_eq!(turn.emitted()[1..], ["o complete surprise"], "the invocation came after all");
    assert_eq!(call(turn.last("o")).0, "Bash");
}

#[test]
fn live_output_comes_as_updates_and_the_result_continues_it() {
    let mut turn = Turn::live();
    turn.send([invoke("c", "call", "Bash"), output("o", "call")]);
    turn.wait(4).send([delta("o", "one\n")]).wait(4).send([delta("o", "two\n")]);
    turn.send([result("o", "call", "one\ntwo\nthree\n", false)]);
    assert_eq!(turn.emitted(), ["c create", "c update one", "c update one\ntwo", "c complete one\ntwo\nthree"]);
    let items = turn.items();
    assert!(items[3].body.text().unwrap().continues(items[1].body.text().unwrap()));
}

#[test]
fn a_result_that_is_not_what_was_streamed_replaces_it_and_an_empty_one_keeps_it() {
    let mut turn = Turn::live();
    for (id, last) in [("c", "[cut] nine"), ("d", "")] {
        let out = format!("o{id}");
        turn.send([invoke(id, id, "Bash"), output(&out, id)]).wait(4).send([delta(&out, "one")]);
        turn.send([result(&out, id, last, false)]);
    }
    assert_eq!(text(turn.last("c")), "[cut] nine");
    assert_eq!(text(turn.last("d")), "one");
    let items = turn.items();
    assert!(!items[2].body.text().unwrap().continues(items[1].body.text().unwrap()));
}

#[test]
fn progress_reported_by_the_source_is_an_update_and_replaces_what_was_known() {
    let mut turn = Turn::batched();
    turn.send([
        invoke("c", "call", "Bash"),
        progress("c", "Running"),
        progress("c", "Running"),
        progress("c", "Linking"),
    ]);
    assert_eq!(turn.emitted(), ["c create", "c update", "c update"]);
    assert_eq!(detail_of(&turn, "c").title.as_deref(), Some("Linking"));
}

#[test]
fn a_call_knows_when_it_began_and_ended_even_if_its_source_does_not_say() {
    let mut turn = Turn::batched();
    turn.send([invoke("c", "call", "Bash"), progress("c", "Running"), result("o", "call", "", false)]);
    let detail = detail_of(&turn, "c");
    assert_eq!(detail.started_at, Some(Timestamp::from_unix_ms(1)));
    assert_eq!(detail.ended_at, Some(Timestamp::from_unix_ms(3)));
    assert_eq!(detail.title.as_deref(), Some("Running"));

    let own = ToolDetail {
        started_at: Some(Timestamp::from_unix_ms(70)),
        ended_at: Some(Timestamp::from_unix_ms(80)),
        ..ToolDetail::default()
    };
    let final_item = FinalItem::FunctionCallOutput {
        call_id: call_id("d"),
        output: String::new(),
        is_error: false,
        tool: Some(Arc::new(own.clone())),
    };
    turn.send([invoke("d", "d", "Bash"), done("x", final_item)]);
    assert_eq!(detail_of(&turn, "d"), own);
}

#[test]
fn a_call_without_result_does_not_outlive_its_turn() {
    for end in [completed(), cancelled()] {
        let mut turn = Turn::live();
        turn.send([invoke("c", "call", "Bash"), end]);
        assert_eq!(turn.emitted()[1], "c complete");
        assert_eq!(call(turn.last("c")), ("Bash".into(), "{}".into(), None, true));
        assert!(turn.processor.is_finished());
    }
    let mut turn = Turn::live();
    turn.send([invoke("c", "call", "Bash"), failed("X", "broke")]);
    assert_eq!(turn.emitted(), ["c create", "c error", "turn error X broke"]);
    assert!(call(turn.last("c")).3);
}

#[test]
fn a_result_that_comes_after_the_turn_still_reaches_its_call() {
    let mut turn = Turn::live();
    turn.send([invoke("c", "call", "Bash"), completed(), result("o", "call", "done at last", false)]).wait(4);
    assert_eq!(turn.emitted(), ["c create", "c complete", "turn completed", "c complete done at last"]);
    assert!(!call(turn.last("c")).3, "it was not interrupted after all");
    assert_eq!(detail_of(&turn, "c").ended_at, Some(Timestamp::from_unix_ms(3)));
}
