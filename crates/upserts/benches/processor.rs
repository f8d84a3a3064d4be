//! What the processor costs per event, in time and in memory. `cargo bench -p upserts`.
//!
//! Everything runs with the live configuration and, if not said otherwise, one event every ten microseconds: 100,000 per
//! second. After each event the way is free, so each bench takes as often as the ceiling lets it.

use std::collections::HashMap;
use std::time::Duration;

use divan::counter::{BytesCount, ItemsCount};
use divan::{AllocProfiler, Bencher};
use protocol::stream::{ItemDelta, ItemStart, ResponseDone, ResponseStart};
use protocol::{EventId, ItemId, ItemType, ResponseStatus, SessionId, StreamEvent, StreamPayload, Timestamp, TurnId};
use upserts::{Emission, Moment, UpsertConfig, UpsertProcessor};

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

const EVENT_INTERVAL: Duration = Duration::from_micros(10);
const INTERLEAVED_DELTAS: usize = 20_000;

fn main() {
    divan::main();
}

/// Deltas spread over items that are all open: one sub-agent's message each.
#[divan::bench(args = [1, 10, 100], sample_count = 30)]
fn interleaved(bencher: Bencher, items: usize) {
    bencher
        .with_inputs(|| {
            let source = EventGenerator::new();
            let ids: Vec<ItemId> = (0..items).map(|_| ItemId::generate()).collect();
            let mut events: Vec<_> =
                ids.iter().map(|id| source.event(message(id.clone(), Some(ItemId::generate())))).collect();
            events.extend((0..INTERLEAVED_DELTAS).map(|number| source.event(delta(&ids[number % items]))));
            events
        })
        .input_counter(|events| ItemsCount::new(events.len()))
        .bench_values(run);
}

/// A long message in deltas of five bytes: twice the length should take twice the time.
#[divan::bench(args = [1_000_000, 2_000_000], sample_count = 20)]
fn long_message(bencher: Bencher, bytes: usize) {
    bencher
        .with_inputs(|| {
            let source = EventGenerator::new();
            let id = ItemId::generate();
            let mut events = vec![source.event(start()), source.event(message(id.clone(), None))];
            events.extend((0..bytes / DELTA.len()).map(|_| source.event(delta(&id))));
            events.push(source.event(end()));
            events
        })
        .counter(BytesCount::new(bytes))
        .bench_values(run);
}

/// One delta into a message that is already there: what is allocated here is what a delta costs, at full speed and when
/// each goes out by itself.
#[divan::bench(args = [EVENT_INTERVAL, Duration::from_millis(4)], sample_count = 200, sample_size = 5000)]
fn one_delta_every(bencher: Bencher, interval: Duration) {
    let source = EventGenerator::new();
    let id = ItemId::generate();
    let mut processor = source.processor();
    let mut now = Moment { wall: Timestamp::default(), elapsed: Duration::ZERO };
    processor.push(source.event(message(id.clone(), None)), now);
    bencher.with_inputs(|| source.event(delta(&id))).bench_local_values(|event| {
        now.elapsed += interval;
        processor.push(event, now);
        processor.take(now)
    });
}

/// Pushes every event and takes after each, reading of every emission only what was added. The bytes read.
fn run(events: Vec<StreamEvent>) -> usize {
    let mut processor = EventGenerator::new().processor();
    let mut now = Moment { wall: Timestamp::default(), elapsed: Duration::ZERO };
    let mut known: HashMap<ItemId, usize> = HashMap::new();
    let mut read = 0;
    for event in events {
        now.elapsed += EVENT_INTERVAL;
        processor.push(event, now);
        for emission in processor.take(now) {
            if let Emission::Item(update) = emission
                && let Some(text) = update.body.text()
            {
                let known = known.entry(update.item_id).or_default();
                read += divan::black_box(text.from_byte(*known)).len();
                *known = text.len();
            }
        }
    }
    read
}

const DELTA: &str = "five ";

struct EventGenerator {
    session_id: SessionId,
    turn_id: TurnId,
}

impl EventGenerator {
    fn new() -> Self {
        let session_id = SessionId::new(&parse("codex"), &parse("s1"));
        Self { session_id, turn_id: TurnId::generate() }
    }

    fn processor(&self) -> UpsertProcessor {
        UpsertProcessor::new(UpsertConfig::live(), self.session_id.clone(), self.turn_id.clone())
    }

    fn event(&self, payload: StreamPayload) -> StreamEvent {
        StreamEvent {
            event_id: EventId::generate(),
            timestamp: Timestamp::default(),
            turn_id: self.turn_id.clone(),
            session_id: self.session_id.clone(),
            payload,
        }
    }
}

#[expect(clippy::unwrap_used, reason = "the ids are written here")]
fn parse<T: std::str::FromStr<Err = protocol::IdError>>(text: &str) -> T {
    text.parse().unwrap()
}

fn start() -> StreamPayload {
    StreamPayload::ResponseStart(ResponseStart { model_id: "m".into(), provider_id: "p".into() })
}

fn message(item_id: ItemId, parent_item_id: Option<ItemId>) -> StreamPayload {
    StreamPayload::ItemStart(ItemStart {
        item_id,
        item_type: ItemType::Message,
        initial_content: None,
        name: None,
        call_id: None,
        origin: None,
        parent_item_id,
        tool: None,
    })
}

fn delta(item_id: &ItemId) -> StreamPayload {
    StreamPayload::ItemDelta(ItemDelta { item_id: item_id.clone(), delta_content: DELTA.into(), tool: None })
}

fn end() -> StreamPayload {
    StreamPayload::ResponseDone(ResponseDone {
        status: ResponseStatus::Completed,
        finish_reason: None,
        error: None,
        usage: None,
    })
}
