//! Messages and thoughts, from their first word to their last.

use protocol::{Origin, Timestamp, UpsertBody, UpsertStatus};
use upserts::{ItemBody, UpsertConfig};

use crate::turn::*;

/// TC-5.1a.
#[test]
fn a_message_is_created_with_its_first_text_and_completed_with_all_of_it() {
    let mut turn = Turn::batched();
    let first = tokens(11);
    turn.send([started(), message("m"), delta("m", &first), delta("m", "end"), message_done("m", ""), completed()]);
    assert_eq!(
        turn.emitted(),
        [
            "turn started".to_owned(),
            format!("m create {}", first.trim_end()),
            format!("m complete {first}end"),
            "turn completed".to_owned()
        ]
    );
}

/// TC-5.1b.
#[test]
fn every_emission_carries_the_whole_text() {
    let mut turn = Turn::batched();
    turn.send([message("m")]);
    for _ in 0..100 {
        turn.send([delta("m", &tokens(1))]);
    }
    let lengths: Vec<usize> = turn.items().into_iter().map(|update| text(update).len() / 4).collect();
    assert_eq!(lengths, [11, 32, 73], "each holds all tokens so far, not those since the one before");
}

/// TC-5.1d.
#[test]
fn reasoning_becomes_thinking_under_its_providers_name() {
    let mut turn = Turn::batched();
    turn.send([started(), thought("r"), delta("r", &tokens(11)), delta("r", "so"), thought_done("r", ""), completed()]);
    let items = turn.items();
    let ItemBody::Thinking { text, provider_id } = &items[0].body else { panic!("{items:?}") };
    assert_eq!((text.to_string(), &**provider_id), (tokens(11), "openai"));
    let ItemBody::Thinking { text, provider_id } = &items[1].body else { panic!("{items:?}") };
    assert_eq!((text.to_string(), &**provider_id), (tokens(11) + "so", "anthropic"));
}

/// TC-1.3a.
#[test]
fn ids_and_both_times_survive_to_the_upsert() {
    let mut turn = Turn::live();
    turn.wait(500).send([started(), message("m"), delta("m", "hello")]);
    let upsert = turn.last("m").to_upsert();
    assert_eq!((upsert.turn_id, upsert.session_id, upsert.item_id), (turn_id(), Some(session_id()), item_id("m")));
    assert_eq!(upsert.source_timestamp, Timestamp::from_unix_ms(3), "the time of the delta");
    assert_eq!(upsert.emitted_at, turn.now().wall);
    assert_eq!(upsert.status, UpsertStatus::Create);
    assert_eq!(upsert.body, UpsertBody::Message { content: "hello".into(), origin: Origin::Agent });
}

#[test]
fn the_users_own_message_opens_the_turn_with_its_origin() {
    let mut turn = Turn::live();
    let question = protocol::FinalItem::Message { content: "why?".into(), origin: Origin::User };
    turn.send([done("u", question), started()]);
    assert_eq!(turn.emitted(), ["u complete why?", "turn started"]);
    assert!(matches!(turn.last("u").body, ItemBody::Message { origin: Origin::User, .. }));
}

#[test]
fn whatever_begins_closes_the_text_before_it() {
    let mut turn = Turn::live();
    turn.send([thought("r"), delta("r", "hm"), message("m"), delta("m", "first"), invoke("c", "c", "Bash")]);
    turn.send([message("n"), delta("n", "second")]);
    assert_eq!(
        turn.emitted(),
        ["r create hm", "r complete hm", "m create first", "m complete first", "c create", "n create second"]
    );
}

#[test]
fn text_after_a_tool_call_is_a_new_item_even_under_the_old_id() {
    let mut turn = Turn::live();
    turn.send([message("m"), delta("m", "before "), invoke("c", "c", "Bash"), delta("m", "after")]);
    turn.send([message_done("m", "before after"), completed()]);
    assert_eq!(
        turn.emitted(),
        [
            "m create before",
            "m complete before",
            "c create",
            "m~2 create after",
            "m~2 complete after",
            "c complete",
            "turn completed"
        ]
    );
}

#[test]
fn a_final_text_that_extends_the_stream_continues_it_and_another_replaces_it() {
    let mut turn = Turn::live();
    turn.send([message("m"), delta("m", "Hel"), message_done("m", "Hello")]);
    turn.send([message("n"), delta("n", "Hel"), message_done("n", "Good day")]);
    let items = turn.items();
    let texts: Vec<_> = items.iter().map(|update| update.body.text().unwrap()).collect();
    assert_eq!((texts[1], texts[3]), (&"Hello".into(), &"Good day".into()));
    assert!(texts[1].continues(texts[0]));
    assert_eq!(texts[1].from_byte(texts[0].len()), "lo");
    assert!(!texts[3].continues(texts[2]));
}

#[test]
fn history_emits_each_item_once_as_what_it_became() {
    let mut turn = Turn::new(UpsertConfig::history());
    turn.send([started(), message("m"), delta("m", "one"), invoke("c", "c", "Read"), message("n"), delta("n", "two")]);
    assert_eq!(turn.emitted(), ["turn started"]);
    assert_eq!(turn.processor.deadline(), None);
    turn.send([result("o", "c", "found", false), completed()]);
    assert_eq!(turn.news(), ["turn started", "m complete one", "c complete found", "n complete two", "turn completed"]);
    turn.send([message_done("late", "and more")]);
    assert_eq!(turn.news(), ["late complete and more"]);
    assert!(turn.processor.is_finished());
}
