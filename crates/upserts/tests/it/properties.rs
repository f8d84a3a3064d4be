//! What holds for any events, cut in any way, taken at any time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use protocol::stream::{ItemDelta, ItemStart};
use protocol::{
    EventId, ItemType, Origin, ResponseStatus, StreamEvent, StreamPayload, Timestamp, ToolDetail, UpsertStatus,
};
use upserts::{Emission, ItemBody, ItemUpdate, Moment, UpsertConfig, UpsertProcessor};

use crate::turn::*;

/// An event of an agent. Ids are few, so that everything meets everything.
#[derive(Clone, Debug)]
enum Event {
    Start { id: u8, kind: ItemType, parent: Option<u8>, content: Option<String> },
    Delta { id: u8, content: String },
    Progress { id: u8, title: u8 },
    MessageDone { id: u8, content: String },
    ThoughtDone { id: u8, content: String },
    Invoked { id: u8, arguments: bool },
    Result { id: u8, call: u8, output: String },
    Failed { id: u8 },
    Cancelled { id: u8 },
    TurnStart,
    TurnEnd(ResponseStatus),
    TurnFailed,
}

fn name(id: u8) -> String {
    format!("i{id}")
}

impl Event {
    fn payload(&self) -> StreamPayload {
        match self {
            Self::Start { id, kind, parent, content } => StreamPayload::ItemStart(ItemStart {
                parent_item_id: parent.map(|parent| item_id(&name(parent))),
                initial_content: content.clone(),
                name: (*kind == ItemType::FunctionCall).then(|| "Bash".into()),
                call_id: matches!(kind, ItemType::FunctionCall | ItemType::FunctionCallOutput)
                    .then(|| call_id(&name(id % 3))),
                origin: id.is_multiple_of(2).then_some(Origin::User),
                ..item_start(&name(*id), *kind)
            }),
            Self::Delta { id, content } => delta(&name(*id), content),
            Self::Progress { id, title } => StreamPayload::ItemDelta(ItemDelta {
                item_id: item_id(&name(*id)),
                delta_content: String::new(),
                tool: Some(Arc::new(ToolDetail { title: Some(name(*title)), ..ToolDetail::default() })),
            }),
            Self::MessageDone { id, content } => message_done(&name(*id), content),
            Self::ThoughtDone { id, content } => thought_done(&name(*id), content),
            Self::Invoked { id, arguments } => {
                invoked(&name(*id), &name(id % 3), "Bash", if *arguments { r#"{"a":1}"# } else { "{}" })
            }
            Self::Result { id, call, output } => result(&name(*id), &name(*call), output, id.is_multiple_of(2)),
            Self::Failed { id } => item_failed(&name(*id), "X", "x"),
            Self::Cancelled { id } => item_cancelled(&name(*id)),
            Self::TurnStart => started(),
            Self::TurnEnd(status) => ended(*status),
            Self::TurnFailed => failed("Y", "y"),
        }
    }

    /// The same, with its text cut at the given character.
    fn cut(&self, at: usize) -> Vec<Self> {
        let Self::Delta { id, content } = self else { return vec![self.clone()] };
        let at = content.char_indices().nth(at).map_or(content.len(), |(index, _)| index);
        let (first, second) = content.split_at(at);
        [first, second].map(|content| Self::Delta { id: *id, content: content.into() }).into()
    }
}

fn content() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-zé😀{}\": \\n]{0,12}",
        1 => (10..200usize).prop_map(tokens),
        1 => Just(String::new()),
    ]
}

fn kind() -> impl Strategy<Value = ItemType> {
    prop_oneof![
        Just(ItemType::Message),
        Just(ItemType::Reasoning),
        Just(ItemType::FunctionCall),
        Just(ItemType::FunctionCallOutput)
    ]
}

fn id() -> std::ops::Range<u8> {
    0..6
}

fn event() -> impl Strategy<Value = Event> {
    let parent = prop_oneof![2 => Just(None), 1 => id().prop_map(Some)];
    prop_oneof![
        6 => (id(), kind(), parent, proptest::option::of(content()))
            .prop_map(|(id, kind, parent, content)| Event::Start { id, kind, parent, content }),
        12 => (id(), content()).prop_map(|(id, content)| Event::Delta { id, content }),
        2 => (id(), content()).prop_map(|(id, content)| Event::MessageDone { id, content }),
        1 => (id(), content()).prop_map(|(id, content)| Event::ThoughtDone { id, content }),
        2 => (id(), any::<bool>()).prop_map(|(id, arguments)| Event::Invoked { id, arguments }),
        2 => (id(), 0..4u8, content()).prop_map(|(id, call, output)| Event::Result { id, call, output }),
        1 => id().prop_map(|id| Event::Failed { id }),
        1 => Just(Event::TurnStart),
        1 => (id(), id()).prop_map(|(id, title)| Event::Progress { id, title }),
        1 => end(),
    ]
}

fn end() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::TurnEnd(ResponseStatus::Completed)),
        Just(Event::TurnEnd(ResponseStatus::Cancelled)),
        Just(Event::TurnEnd(ResponseStatus::Error)),
        Just(Event::TurnFailed),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    proptest::collection::vec(event(), 0..40)
}

/// Events among which items are also taken back.
fn events_with_cancels() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![8 => event(), 1 => id().prop_map(|id| Event::Cancelled { id })];
    proptest::collection::vec(event, 0..40)
}

fn config() -> impl Strategy<Value = UpsertConfig> {
    prop_oneof![Just(UpsertConfig::default()), Just(UpsertConfig::live()), Just(UpsertConfig::history())]
}

/// Emissions with the time at which each was taken.
type Taken = Vec<(Duration, Emission)>;

/// Sends all events; `rhythm` gives, again and again, the milliseconds that pass after an event and whether the way is
/// free then. At the end the source goes away. An event's timestamp is its number, however it was cut.
fn run(config: UpsertConfig, events: &[(usize, Event)], rhythm: &[(u8, bool)]) -> (UpsertProcessor, Taken) {
    let mut processor = UpsertProcessor::new(config, session_id(), turn_id());
    let mut taken = Vec::new();
    let mut elapsed = Duration::ZERO;
    let wall = Timestamp::from_unix_ms(99);
    for (position, (number, event)) in events.iter().enumerate() {
        let stream_event = StreamEvent {
            event_id: EventId::parse("e").unwrap(),
            timestamp: Timestamp::from_unix_ms(*number as i64),
            turn_id: turn_id(),
            session_id: session_id(),
            payload: event.payload(),
        };
        processor.push(stream_event, Moment { wall, elapsed });
        let (pause_ms, free) = rhythm[position % rhythm.len()];
        elapsed += Duration::from_millis(pause_ms.into());
        if free {
            taken.extend(processor.take(Moment { wall, elapsed }).into_iter().map(|emission| (elapsed, emission)));
        }
    }
    processor.abort(error("GONE", "gone"), Moment { wall, elapsed });
    elapsed += Duration::from_secs(2);
    taken.extend(processor.take(Moment { wall, elapsed }).into_iter().map(|emission| (elapsed, emission)));
    (processor, taken)
}

fn numbered(events: &[Event]) -> Vec<(usize, Event)> {
    events.iter().cloned().enumerate().collect()
}

fn updates(taken: &Taken) -> Vec<(Duration, &ItemUpdate)> {
    taken
        .iter()
        .filter_map(|(at, emission)| match emission {
            Emission::Item(update) => Some((*at, update)),
            Emission::Turn(_) => None,
        })
        .collect()
}

/// Each item's last state, in the order of first emission.
fn finals(taken: &Taken) -> Vec<ItemUpdate> {
    let mut order = Vec::new();
    let mut last = HashMap::new();
    for (_, update) in updates(taken) {
        if last.insert(update.item_id.clone(), update.clone()).is_none() {
            order.push(update.item_id.clone());
        }
    }
    order.iter().map(|id| last[id].clone()).collect()
}

fn turns(taken: &Taken) -> Vec<Emission> {
    taken
        .iter()
        .map(|(_, emission)| emission)
        .filter(|emission| matches!(emission, Emission::Turn(_)))
        .cloned()
        .collect()
}

fn rhythm() -> impl Strategy<Value = Vec<(u8, bool)>> {
    proptest::collection::vec((0..8u8, any::<bool>()), 1..8)
}

proptest! {
    #[test]
    fn the_outcome_depends_neither_on_chunks_nor_on_time_nor_on_the_configuration(
        events in events(), cuts in proptest::collection::vec(0..20usize, 40), config in config(), rhythm in rhythm()
    ) {
        let (_, whole) = run(UpsertConfig::history(), &numbered(&events), &[(0, false)]);
        let chunked: Vec<_> = events
            .iter()
            .enumerate()
            .flat_map(|(number, event)| event.cut(cuts[number]).into_iter().map(move |piece| (number, piece)))
            .collect();
        let (_, taken) = run(config, &chunked, &rhythm);
        prop_assert_eq!(finals(&taken), finals(&whole), "same items, same order, same last states");
        prop_assert_eq!(turns(&taken), turns(&whole));
    }

    #[test]
    fn every_item_ends_settled_and_the_turn_ends_once(
        events in events_with_cancels(), config in config(), rhythm in rhythm()
    ) {
        let (processor, taken) = run(config, &numbered(&events), &rhythm);
        for update in finals(&taken) {
            prop_assert!(update.status.is_final(), "{update:?}");
            prop_assert_eq!(update.error.is_some(), update.status == UpsertStatus::Error);
        }
        prop_assert!(processor.is_finished());
        prop_assert_eq!(processor.deadline(), None);
        let ends = turns(&taken).iter().filter(|turn| matches!(turn, Emission::Turn(turn) if turn.is_end())).count();
        prop_assert_eq!(ends, 1);
    }

    #[test]
    fn each_item_is_created_once_then_updated_then_final(
        events in events_with_cancels(), config in config(), rhythm in rhythm()
    ) {
        let (_, taken) = run(config, &numbered(&events), &rhythm);
        let mut last: HashMap<_, UpsertStatus> = HashMap::new();
        for (_, update) in updates(&taken) {
            let before = last.insert(update.item_id.clone(), update.status);
            let fits = match (before, update.status) {
                (None, status) => status != UpsertStatus::Update,
                (Some(_), UpsertStatus::Create) => false,
                (Some(before), UpsertStatus::Update) => !before.is_final(),
                (Some(_), _) => true,
            };
            prop_assert!(fits, "{before:?} then {update:?}");
        }
    }

    #[test]
    fn a_reader_that_asks_only_for_the_rest_has_the_whole_text(
        events in events_with_cancels(), rhythm in rhythm(), live in any::<bool>()
    ) {
        let config = if live { UpsertConfig::live() } else { UpsertConfig::default() };
        let (_, taken) = run(config, &numbered(&events), &rhythm);
        let mut known: HashMap<_, (ItemUpdate, String, Vec<u16>)> = HashMap::new();
        for (_, update) in updates(&taken) {
            let Some(text) = update.body.text() else { continue };
            let whole = text.to_string();
            prop_assert_eq!((text.len(), text.utf16_len()), (whole.len(), whole.encode_utf16().count()));
            let earlier = known.remove(&update.item_id);
            let (mut bytes, mut units) = (String::new(), Vec::new());
            if let Some((earlier, earlier_bytes, earlier_units)) = earlier
                && let Some(earlier) = earlier.body.text()
                && text.continues(earlier)
            {
                (bytes, units) = (earlier_bytes, earlier_units);
            }
            bytes.push_str(&text.from_byte(bytes.len()));
            units.extend(text.from_utf16(units.len()).encode_utf16());
            prop_assert_eq!(&bytes, &whole);
            prop_assert_eq!(String::from_utf16(&units).unwrap(), whole);
            known.insert(update.item_id.clone(), (update.clone(), bytes, units));
        }
    }

    #[test]
    fn no_offset_splits_a_character(text in "[aé😀\u{fe0f}z]{0,12}", offset in 0..60usize) {
        let shared = upserts::Text::from(text.as_str());
        prop_assert!(text.ends_with(&shared.from_byte(offset)));
        let rest = shared.from_utf16(offset);
        prop_assert!(text.ends_with(&rest));
        let left_out = shared.utf16_len() - rest.encode_utf16().count();
        prop_assert!(left_out == offset.min(shared.utf16_len()) || left_out + 1 == offset, "rounded down, by half a pair at most");
    }

    #[test]
    fn no_text_that_was_received_is_lost(events in events(), config in config(), rhythm in rhythm()) {
        // Every delta gets a mark of its own; nothing else has a text, so nothing may replace them.
        let marked: Vec<Event> = events
            .into_iter()
            .enumerate()
            .map(|(number, event)| match event {
                Event::Delta { id, .. } => Event::Delta { id, content: format!("<{number}>") },
                Event::Start { id, kind, parent, .. } => Event::Start { id, kind, parent, content: None },
                Event::MessageDone { id, .. } => Event::MessageDone { id, content: String::new() },
                Event::ThoughtDone { id, .. } => Event::ThoughtDone { id, content: String::new() },
                Event::Invoked { id, .. } => Event::Invoked { id, arguments: false },
                Event::Result { id, call, .. } => Event::Result { id, call, output: String::new() },
                other => other,
            })
            .collect();
        let (_, taken) = run(config, &numbered(&marked), &rhythm);
        let shown: String = finals(&taken).iter().map(all_text).collect();
        for (number, event) in marked.iter().enumerate() {
            if matches!(event, Event::Delta { .. }) {
                let count = shown.matches(&format!("<{number}>")).count();
                prop_assert_eq!(count, 1, "<{}> in {}", number, &shown);
            }
        }
    }

    #[test]
    fn live_no_item_exceeds_its_ceiling(events in events_with_cancels(), rhythm in rhythm()) {
        let (_, taken) = run(UpsertConfig::live(), &numbered(&events), &rhythm);
        // An interval begins when an emission was due. One that was taken late may be followed sooner, but only one.
        let mut earlier: HashMap<_, Vec<Duration>> = HashMap::new();
        for (at, update) in updates(&taken) {
            let times = earlier.entry(update.item_id.clone()).or_default();
            for (between, before) in times.iter().rev().enumerate().filter(|_| !update.status.is_final()) {
                prop_assert!(at - *before >= Duration::from_millis(4) * between as u32, "{between} between: {update:?}");
            }
            times.push(at);
        }
    }
}

fn all_text(update: &ItemUpdate) -> String {
    let arguments = match &update.body {
        ItemBody::ToolCall { arguments, .. } => serde_json::to_string(arguments.as_ref()).unwrap(),
        _ => String::new(),
    };
    text(update) + &arguments
}
