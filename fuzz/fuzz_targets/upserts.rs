//! Any events, in any order, at any time: the processor never panics, settles everything, and the live stream ends as
//! the same events replayed as history do.
#![no_main]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use protocol::stream::{
    ItemCancelled, ItemDelta, ItemDone, ItemError, ItemStart, ResponseDone, ResponseError, ResponseStart,
};
use protocol::{
    CallId, ErrorDetail, EventId, FinalItem, ItemId, ItemType, Origin, ResponseStatus, SessionId, StreamEvent,
    StreamPayload, Timestamp, ToolDetail, TurnId,
};
use upserts::{Emission, ItemUpdate, Moment, UpsertConfig, UpsertProcessor};

#[derive(Arbitrary, Debug)]
struct Step {
    event: Event,
    /// Milliseconds that pass afterwards.
    pause_ms: u8,
    /// Whether the way is free then.
    free: bool,
}

/// An event of an agent. Ids are taken modulo a few, so that everything meets everything.
#[derive(Arbitrary, Debug)]
enum Event {
    Start { id: u8, kind: u8, parent: Option<u8>, call: Option<u8>, content: Option<String>, titled: bool },
    Delta { id: u8, content: String, title: Option<String> },
    MessageDone { id: u8, content: String },
    ThoughtDone { id: u8, content: String },
    Invoked { id: u8, call: u8, arguments: u8 },
    Result { id: u8, call: u8, output: String, is_error: bool },
    Failed { id: u8 },
    Cancelled { id: u8 },
    TurnStart,
    TurnEnd { status: u8 },
    TurnError,
}

fn item_id(id: u8) -> ItemId {
    ItemId::from_foreign(&format!("i{}", id % 6))
}

fn call_id(id: u8) -> CallId {
    CallId::from_foreign(&format!("c{}", id % 4))
}

fn error() -> ErrorDetail {
    ErrorDetail { code: "X".into(), message: "x".into() }
}

fn detail(title: String) -> Arc<ToolDetail> {
    Arc::new(ToolDetail { title: Some(title), ..ToolDetail::default() })
}

fn payload(event: &Event) -> StreamPayload {
    let done = |id: u8, final_item| StreamPayload::ItemDone(ItemDone { item_id: item_id(id), final_item });
    match event {
        Event::Start { id, kind, parent, call, content, titled } => StreamPayload::ItemStart(ItemStart {
            item_id: item_id(*id),
            item_type: match kind % 4 {
                0 => ItemType::Message,
                1 => ItemType::Reasoning,
                2 => ItemType::FunctionCall,
                _ => ItemType::FunctionCallOutput,
            },
            initial_content: content.clone(),
            name: titled.then(|| "Bash".into()),
            call_id: call.map(call_id),
            origin: titled.then_some(Origin::User),
            parent_item_id: parent.map(item_id),
            tool: titled.then(|| detail("start".into())),
        }),
        Event::Delta { id, content, title } => StreamPayload::ItemDelta(ItemDelta {
            item_id: item_id(*id),
            delta_content: content.clone(),
            tool: title.clone().map(detail),
        }),
        Event::MessageDone { id, content } => {
            done(*id, FinalItem::Message { content: content.clone(), origin: Origin::Agent })
        }
        Event::ThoughtDone { id, content } => {
            done(*id, FinalItem::Reasoning { content: content.clone(), provider_id: "p".into() })
        }
        Event::Invoked { id, call, arguments } => {
            let arguments = (0..arguments % 3).map(|key| (key.to_string(), key.into())).collect();
            done(*id, FinalItem::FunctionCall { name: "Bash".into(), call_id: call_id(*call), arguments, tool: None })
        }
        Event::Result { id, call, output, is_error } => done(
            *id,
            FinalItem::FunctionCallOutput {
                call_id: call_id(*call),
                output: output.clone(),
                is_error: *is_error,
                tool: None,
            },
        ),
        Event::Failed { id } => StreamPayload::ItemError(ItemError { item_id: item_id(*id), error: error() }),
        Event::Cancelled { id } => StreamPayload::ItemCancelled(ItemCancelled { item_id: item_id(*id), reason: None }),
        Event::TurnStart => {
            StreamPayload::ResponseStart(ResponseStart { model_id: "m".into(), provider_id: "p".into() })
        }
        Event::TurnEnd { status } => StreamPayload::ResponseDone(ResponseDone {
            status: match status % 3 {
                0 => ResponseStatus::Completed,
                1 => ResponseStatus::Cancelled,
                _ => ResponseStatus::Error,
            },
            finish_reason: None,
            error: None,
            usage: None,
        }),
        Event::TurnError => StreamPayload::ResponseError(ResponseError { error: error() }),
    }
}

/// The last state of every item, in order of first emission, and how often the turn ended.
fn run(config: UpsertConfig, steps: &[Step]) -> (Vec<ItemUpdate>, usize) {
    let session_id: SessionId = "codex:s".parse().unwrap();
    let turn_id: TurnId = "t".parse().unwrap();
    let event_id: EventId = "e".parse().unwrap();
    let mut processor = UpsertProcessor::new(config, session_id.clone(), turn_id.clone());
    let mut now = Moment { wall: Timestamp::default(), elapsed: Duration::ZERO };
    let mut taken = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let stream_event = StreamEvent {
            event_id: event_id.clone(),
            timestamp: Timestamp::from_unix_ms(number as i64),
            turn_id: turn_id.clone(),
            session_id: session_id.clone(),
            payload: payload(&step.event),
        };
        processor.push(stream_event, now);
        now.elapsed += Duration::from_millis(step.pause_ms.into());
        if step.free {
            taken.extend(processor.take(now));
        }
    }
    processor.abort(error(), now);
    now.elapsed += Duration::from_secs(2);
    taken.extend(processor.take(now));
    assert!(processor.is_finished());

    let mut order = Vec::new();
    let mut last: HashMap<ItemId, ItemUpdate> = HashMap::new();
    let mut ends = 0;
    for emission in taken {
        match emission {
            Emission::Turn(turn) => ends += usize::from(turn.is_end()),
            Emission::Item(update) => {
                if !last.contains_key(&update.item_id) {
                    order.push(update.item_id.clone());
                }
                if let Some(text) = update.body.text() {
                    let known = last.get(&update.item_id).and_then(|earlier| earlier.body.text());
                    let known = known.filter(|known| text.continues(known)).cloned().unwrap_or_default();
                    assert_eq!(known.to_string() + &text.from_byte(known.len()), text.to_string());
                    assert_eq!(text.from_utf16(known.utf16_len()), text.from_byte(known.len()));
                }
                last.insert(update.item_id.clone(), update);
            }
        }
    }
    (order.iter().filter_map(|id| last.remove(id)).collect(), ends)
}

fuzz_target!(|steps: Vec<Step>| {
    let (live, live_ends) = run(UpsertConfig::live(), &steps);
    let (batched, _) = run(UpsertConfig::default(), &steps);
    let (history, history_ends) = run(UpsertConfig::history(), &steps);
    assert_eq!((live_ends, history_ends), (1, 1));
    assert!(live.iter().chain(&batched).all(|update| update.status.is_final()));
    // What was taken back is shown as far as it had been, which depends on time.
    if !steps.iter().any(|step| matches!(step.event, Event::Cancelled { .. })) {
        assert_eq!(live, history);
        assert_eq!(batched, history);
    }
});
