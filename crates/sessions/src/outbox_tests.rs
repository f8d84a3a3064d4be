//! The outbox as one window sees it: order kept, superseded states skipped, memory bounded.

use std::sync::Arc;
use std::time::Duration;

use protocol::{ItemId, Origin, ServerMessage, SessionId, Timestamp, TurnId, Upsert, UpsertBody, UpsertStatus};
use serde_json::Value;
use upserts::{Emission, ItemUpdate, Moment, UpsertConfig, UpsertProcessor};

use super::*;
use crate::item::tests::{session, update};

async fn next(frames: &mut Frames) -> Value {
    let frame = frames.next().await.unwrap();
    serde_json::from_slice(&frame.into_bytes()).unwrap()
}

fn frame_with(word: &str) -> Frame {
    let error = protocol::ErrorMessage::new(protocol::ErrorCode::InternalError, word);
    Frame::of(ServerMessage::Error(error), None)
}

fn content(frame: &Value) -> &str {
    frame["payload"]["content"].as_str().unwrap()
}

#[tokio::test]
async fn a_newer_state_takes_the_place_of_the_one_still_waiting() {
    let outbox = Outbox::new(WindowKind::Plain);
    let mut frames = Frames::new(Arc::clone(&outbox));
    let (a, b) = (
        ItemCell::new(update("a", "one", UpsertStatus::Create), 1, 0, &Arc::default()),
        ItemCell::new(update("b", "two", UpsertStatus::Create), 2, 0, &Arc::default()),
    );
    outbox.push_item(&session(), 1, &a);
    outbox.push_item(&session(), 2, &b);
    a.replace(update("a", "one and more", UpsertStatus::Complete), 3);
    outbox.push_item(&session(), 3, &a);
    let first = next(&mut frames).await;
    assert_eq!((content(&first), &first["seq"]), ("one and more", &Value::from(1)));
    assert_eq!(content(&next(&mut frames).await), "two");
    assert!(outbox.lock().queue.is_empty());
}

#[tokio::test]
async fn a_window_that_never_reads_is_disconnected_and_costs_nothing_more() {
    let outbox = Outbox::new(WindowKind::View);
    let mut frames = Frames::new(Arc::clone(&outbox));
    let frame = Frame::of(ServerMessage::Ack {}, None);
    for _ in 0..2 * SLOTS_MAX {
        outbox.push(After::Nothing, frame.clone());
    }
    assert!(outbox.gone().is_cancelled());
    assert!(outbox.lock().queue.is_empty());
    assert!(frames.next().await.is_none());
}

#[tokio::test]
async fn one_frame_may_be_larger_than_the_bound_but_two_may_not() {
    let big = || {
        let mut error = protocol::ErrorMessage::new(protocol::ErrorCode::InternalError, "x".repeat(BYTES_MAX));
        error.detail = None;
        Frame::of(ServerMessage::Error(error), None)
    };
    let outbox = Outbox::new(WindowKind::Plain);
    outbox.push(After::Nothing, big());
    assert!(!outbox.gone().is_cancelled());
    outbox.push(After::Nothing, big());
    assert!(outbox.gone().is_cancelled());
}

#[tokio::test]
async fn of_a_sessions_states_only_the_newest_waits_and_it_comes_after_what_was_there_before_it() {
    let outbox = Outbox::new(WindowKind::View);
    let mut frames = Frames::new(Arc::clone(&outbox));
    let other = SessionId::parse("codex:2").unwrap();
    for _ in 0..2 * SLOTS_MAX {
        outbox.push_state(&session(), frame_with("working"));
    }
    outbox.push_state(&other, frame_with("the other"));
    outbox.push(After::Session(session()), frame_with("a turn's end"));
    outbox.push_state(&session(), frame_with("finished"));
    assert!(!outbox.gone().is_cancelled());
    for word in ["the other", "a turn's end", "finished"] {
        assert_eq!(next(&mut frames).await["message"], word);
    }
    assert_eq!(outbox.lock().bytes, 0);
    outbox.push_state(&session(), frame_with("idle"));
    assert_eq!(next(&mut frames).await["message"], "idle");
}

#[tokio::test]
async fn facts_without_end_wait_as_one_and_none_is_lost() {
    let outbox = Outbox::new(WindowKind::View);
    let mut frames = Frames::new(Arc::clone(&outbox));
    outbox.push_facts(&session(), frame_with("the model"), || unreachable!("nothing waits"));
    outbox.push_state(&session(), frame_with("working"));
    for _ in 0..2 * SLOTS_MAX {
        outbox.push_facts(&session(), frame_with("a title"), || frame_with("the model and a title"));
    }
    assert!(!outbox.gone().is_cancelled());
    for word in ["working", "the model and a title"] {
        assert_eq!(next(&mut frames).await["message"], word);
    }
    assert!(outbox.lock().queue.is_empty());
    outbox.push_facts(&session(), frame_with("another title"), || unreachable!("nothing waits"));
    assert_eq!(next(&mut frames).await["message"], "another title");
}

#[tokio::test]
async fn what_takes_long_to_make_holds_up_its_own_session_alone() {
    let outbox = Outbox::new(WindowKind::View);
    let mut frames = Frames::new(Arc::clone(&outbox));
    let other = SessionId::parse("codex:2").unwrap();
    let long = format!("```rust\n{}", "fn long() -> Vec<u8> { vec![1, 2, 3] }\n".repeat(5_000));
    let (a, b) = (
        ItemCell::new(update("a", long.clone(), UpsertStatus::Update), 1, 0, &Arc::default()),
        ItemCell::new(update("b", "short", UpsertStatus::Complete), 2, 0, &Arc::default()),
    );
    // More of them than are made at once.
    let crowd = ["codex:3", "codex:4"].map(|id| SessionId::parse(id).unwrap());
    for (session, id) in crowd.iter().zip(["c", "d"]) {
        outbox.push_item(
            session,
            3,
            &ItemCell::new(update(id, long.clone(), UpsertStatus::Update), 3, 0, &Arc::default()),
        );
    }
    outbox.push_item(&session(), 1, &a);
    outbox.push(After::Session(session()), frame_with("its own end"));
    outbox.push_state(&session(), frame_with("its own state"));
    outbox.push_item(&other, 2, &b);
    outbox.push(After::Nothing, frame_with("a project"));
    // It neither overtakes what was sent before it, nor is it overtaken.
    let removed = ServerMessage::ProjectRemoved { project_id: protocol::ProjectId::parse("p").unwrap() };
    outbox.push(After::of(&removed), Frame::of(removed, None));
    outbox.push(After::Session(other), frame_with("of the other session"));
    assert_eq!(content(&next(&mut frames).await), "short");
    assert_eq!(next(&mut frames).await["message"], "a project");
    let rest = [
        next(&mut frames).await,
        next(&mut frames).await,
        next(&mut frames).await,
        next(&mut frames).await,
        next(&mut frames).await,
    ];
    let mut names: Vec<_> =
        rest.iter().map(|frame| frame["message"].as_str().or(frame["payload"]["itemId"].as_str()).unwrap()).collect();
    // Two are made at once: either may be first.
    names.sort_by_key(|word| ["c", "d"].iter().position(|of_crowd| of_crowd == word));
    assert_eq!(names, ["a", "its own end", "its own state", "c", "d"]);
    assert_eq!(next(&mut frames).await["type"], "project:removed");
    assert_eq!(next(&mut frames).await["message"], "of the other session");
    assert!(outbox.lock().queue.is_empty());
    outbox.finish();
    assert!(frames.next().await.is_none());
}

#[tokio::test]
async fn a_window_that_ends_is_first_sent_what_is_being_made() {
    let outbox = Outbox::new(WindowKind::Plain);
    let mut frames = Frames::new(Arc::clone(&outbox));
    let cell = ItemCell::new(update("a", "x".repeat(1 << 20), UpsertStatus::Complete), 1, 0, &Arc::default());
    outbox.push_item(&session(), 1, &cell);
    outbox.finish();
    assert_eq!(content(&next(&mut frames).await).len(), 1 << 20);
    assert!(frames.next().await.is_none());
}

/// What a page does with a patch.
fn merge(blocks: &mut Vec<String>, patch: &Value) {
    let (from, keep) = (patch["from"].as_u64().unwrap() as usize, patch["keep"].as_u64().unwrap() as usize);
    let html: Vec<&str> = patch["html"].as_array().unwrap().iter().map(|html| html.as_str().unwrap()).collect();
    let cache: Vec<u16> = blocks.get(from).map(|block| block.encode_utf16().take(keep).collect()).unwrap_or_default();
    blocks.truncate(from);
    for (index, part) in html.iter().enumerate() {
        let head = if index == 0 { String::from_utf16(&cache).unwrap() } else { String::new() };
        blocks.push(head + part);
    }
}

/// The states a message goes through when it arrives one character at a time.
fn states_of(text: &str) -> Vec<ItemUpdate> {
    use protocol::stream::{ItemDelta, ItemDone, ItemStart};
    use protocol::{EventId, FinalItem, ItemType, StreamEvent, StreamPayload};
    let (turn_id, item_id) = (TurnId::parse("t").unwrap(), ItemId::parse("a").unwrap());
    let mut processor = UpsertProcessor::new(UpsertConfig::live(), session(), turn_id.clone());
    let start = StreamPayload::ItemStart(ItemStart {
        item_id: item_id.clone(),
        item_type: ItemType::Message,
        initial_content: None,
        name: None,
        call_id: None,
        origin: None,
        parent_item_id: None,
        tool: None,
    });
    let deltas = text.chars().map(|character| {
        let delta_content = character.to_string();
        StreamPayload::ItemDelta(ItemDelta { item_id: item_id.clone(), delta_content, tool: None })
    });
    let final_item = FinalItem::Message { content: text.into(), origin: Origin::Agent };
    let done = StreamPayload::ItemDone(ItemDone { item_id: item_id.clone(), final_item });
    let mut states = Vec::new();
    for (tick, payload) in std::iter::once(start).chain(deltas).chain([done]).enumerate() {
        let now = Moment { wall: Timestamp::default(), elapsed: Duration::from_millis(10 * tick as u64) };
        let (event_id, turn_id) = (EventId::generate(), turn_id.clone());
        let event = StreamEvent { event_id, timestamp: now.wall, turn_id, session_id: session(), payload };
        processor.push(event, now);
        states.extend(processor.take(now).into_iter().filter_map(|emission| match emission {
            Emission::Item(update) => Some(update),
            Emission::Turn(_) => None,
        }));
    }
    states
}

#[tokio::test]
async fn what_a_page_merges_holds_the_same_as_the_plain_contract() {
    let text = "# Title 😀\n\nSome *words* and `code`.\n\n```rust\nfn main() {}\n```\n\nThe end.";
    let outbox = Outbox::new(WindowKind::View);
    let mut frames = Frames::new(Arc::clone(&outbox));
    let cell = ItemCell::new(update("a", "", UpsertStatus::Create), 1, 0, &Arc::default());
    let (mut blocks, mut merged) = (Vec::new(), Vec::<u16>::new());
    let states = states_of(text);
    assert!(states.len() >= text.chars().count(), "every character went out on its own");
    for (seq, state) in (2..).zip(states) {
        let UpsertBody::Message { content: plain, .. } = state.to_upsert().body else { panic!("a message") };
        cell.replace(state, seq);
        outbox.push_item(&session(), seq, &cell);
        let frame = next(&mut frames).await;
        merge(&mut blocks, &frame["payload"]["blocks"]);
        merged.truncate(frame["payload"]["contentFrom"].as_u64().unwrap_or(0) as usize);
        merged.extend(content(&frame).encode_utf16());
        let full: Vec<String> = rendering::markdown(&plain).iter().map(ToString::to_string).collect();
        assert_eq!(blocks, full, "after {plain:?}");
        assert_eq!(String::from_utf16(&merged).unwrap(), plain);
    }
    assert_eq!(String::from_utf16(&merged).unwrap(), text);
}

#[tokio::test]
async fn windows_that_keep_up_share_one_encoding() {
    let cell = ItemCell::new(update("a", "hello", UpsertStatus::Update), 1, 0, &Arc::default());
    let frame = |kind| {
        let mut sent = Sent::default();
        cell.frame(&session(), 1, kind, &mut sent).into_bytes().as_ptr()
    };
    assert_eq!(frame(WindowKind::View), frame(WindowKind::View));
    assert_eq!(frame(WindowKind::Plain), frame(WindowKind::Plain));
}

#[tokio::test]
async fn a_plain_upsert_is_the_whole_text() {
    let cell = ItemCell::new(update("a", "hello", UpsertStatus::Complete), 1, 0, &Arc::default());
    let bytes = cell.frame(&session(), 1, WindowKind::Plain, &mut Sent::default()).into_bytes();
    let frame: Value = serde_json::from_slice(&bytes).unwrap();
    let upsert: Upsert = serde_json::from_value(frame["payload"].clone()).unwrap();
    assert_eq!(upsert.body, UpsertBody::Message { content: "hello".into(), origin: Origin::Agent });
    assert_eq!(upsert.view, protocol::UpsertView::default());
}
