//! A whole page of history at once: stream events in, every item in its final state out.

use std::collections::HashMap;
use std::time::Duration;

use protocol::{ItemId, StreamEvent, Timestamp, TurnId};

use crate::config::UpsertConfig;
use crate::processor::UpsertProcessor;
use crate::update::{Emission, ItemUpdate, Moment};

/// The items of these events, in the order in which each first appeared. Turns may interleave.
pub fn fold(events: impl IntoIterator<Item = StreamEvent>, now: Timestamp) -> Vec<ItemUpdate> {
    let moment = Moment { wall: now, elapsed: Duration::ZERO };
    let mut processors: HashMap<TurnId, UpsertProcessor> = HashMap::new();
    let mut items: Vec<ItemUpdate> = Vec::new();
    let mut positions: HashMap<ItemId, usize> = HashMap::new();
    for event in events {
        let processor = processors.entry(event.turn_id.clone()).or_insert_with(|| {
            UpsertProcessor::new(UpsertConfig::history(), event.session_id.clone(), event.turn_id.clone())
        });
        processor.push(event, moment);
        for emission in processor.take(moment) {
            let Emission::Item(item) = emission else { continue };
            match positions.get(&item.item_id) {
                Some(position) => items[*position] = item,
                None => {
                    positions.insert(item.item_id.clone(), items.len());
                    items.push(item);
                }
            }
        }
    }
    items
}
