//! Items by their number, and what is remembered of those whose content was released.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use protocol::{CallId, ItemId, Origin};

use crate::item::{Content, Item};

/// Released ids that are recognised. Nothing of a turn is changed after so many items.
const IDS_MAX: usize = 4096;

/// The items of a turn that are held. Numbers are given once and in order.
#[derive(Debug, Default)]
pub(crate) struct Items {
    held: HashMap<usize, Box<Item>>,
    next: usize,
}

impl Items {
    pub(crate) fn push(&mut self, item: Item) -> usize {
        let slot = self.next;
        self.next += 1;
        self.held.insert(slot, Box::new(item));
        slot
    }

    pub(crate) fn get(&self, slot: usize) -> Option<&Item> {
        self.held.get(&slot).map(Box::as_ref)
    }

    pub(crate) fn remove(&mut self, slot: usize) -> Option<Box<Item>> {
        self.held.remove(&slot)
    }

    /// The numbers of the items that are held, in order.
    pub(crate) fn slots(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = self.held.keys().copied().collect();
        slots.sort_unstable();
        slots
    }
}

impl Index<usize> for Items {
    type Output = Item;

    fn index(&self, slot: usize) -> &Item {
        &self.held[&slot]
    }
}

impl IndexMut<usize> for Items {
    #[expect(clippy::expect_used, reason = "as with any index: a slot is used only as long as its item is held")]
    fn index_mut(&mut self, slot: usize) -> &mut Item {
        self.held.get_mut(&slot).expect("an item that is held")
    }
}

/// What continues an item that was released.
#[derive(Clone, Debug)]
pub(crate) struct ReleasedText {
    pub(crate) kind: TextKind,
    pub(crate) parent: Option<ItemId>,
    /// The length of its text and of the parts before it.
    pub(crate) bytes: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum TextKind {
    Message(Origin),
    Thinking(Arc<str>),
}

/// The source's ids of released items, as hashes.
#[derive(Debug, Default)]
pub(crate) struct ReleasedIds {
    hasher: RandomState,
    /// A text that may be continued; none for a call.
    by_hash: HashMap<u64, Option<ReleasedText>>,
    oldest: VecDeque<u64>,
}

impl ReleasedIds {
    pub(crate) fn insert(&mut self, item: &Item) {
        let text = match &item.content {
            Content::Message { origin, .. } => Some(TextKind::Message(*origin)),
            Content::Thinking { provider_id, .. } => Some(TextKind::Thinking(Arc::clone(provider_id))),
            Content::Tool(_) => None,
        };
        let bytes = item.bytes_before + item.growing_bytes();
        let text = text.map(|kind| ReleasedText { kind, parent: item.parent.clone(), bytes });
        for id in &item.source_ids {
            self.add(self.hasher.hash_one(id), text.clone());
        }
        if let Content::Tool(call) = &item.content {
            self.add(self.call_hash(&call.call_id), None);
        }
    }

    fn add(&mut self, hash: u64, text: Option<ReleasedText>) {
        if self.by_hash.insert(hash, text).is_none() {
            self.oldest.push_back(hash);
        }
        if self.oldest.len() > IDS_MAX
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.by_hash.remove(&oldest);
        }
    }

    pub(crate) fn contains(&self, id: &ItemId) -> bool {
        self.by_hash.contains_key(&self.hasher.hash_one(id))
    }

    pub(crate) fn contains_call(&self, id: &CallId) -> bool {
        self.by_hash.contains_key(&self.call_hash(id))
    }

    /// The released text that this id stood for.
    pub(crate) fn text(&self, id: &ItemId) -> Option<&ReleasedText> {
        self.by_hash.get(&self.hasher.hash_one(id))?.as_ref()
    }

    fn call_hash(&self, id: &CallId) -> u64 {
        self.hasher.hash_one(("call", id))
    }
}
