//! Which item an event belongs to: by its own id, by its call, or a new one.

use protocol::{CallId, ItemId, Origin};

use crate::batch::{Batch, Change};
use crate::events::EventSource;
use crate::item::{Content, Item, State};
use crate::processor::{Role, UpsertProcessor};
use crate::released::{ReleasedText, TextKind};
use crate::text::Text;
use crate::tool::ToolCall;
use crate::update::Moment;

impl UpsertProcessor {
    /// Starts an item under the source's id, or under one derived from it if that is taken, and closes the text before
    /// it. Sub-agents run at the same time, so only items of one parent close each other.
    pub(crate) fn begin(
        &mut self,
        item_id: &ItemId,
        content: Content,
        parent: Option<ItemId>,
        source: &EventSource,
        now: Moment,
    ) -> usize {
        if let Some(open) = self.open_texts.get(&parent) {
            self.settle(*open, State::Complete, now);
        }
        let own_id = self.unused_id(item_id);
        let is_text = !matches!(content, Content::Tool(_));
        let slot = self.add(Item {
            item_id: own_id.clone(),
            turn_id: source.turn_id.clone(),
            session_id: source.session_id.clone(),
            parent: parent.clone(),
            continues: None,
            bytes_before: 0,
            source_timestamp: source.timestamp,
            content,
            state: State::Open,
            batch: Batch::new(),
            source_ids: Vec::with_capacity(1),
        });
        if is_text {
            self.open_texts.insert(parent, slot);
        }
        if own_id != *item_id {
            self.set_role(&own_id, Role::Item(slot));
        }
        self.set_role(item_id, Role::Item(slot));
        slot
    }

    /// From now on the source means this item by the id.
    fn set_role(&mut self, id: &ItemId, role: Role) {
        let (Role::Item(slot) | Role::OutputOf(slot)) = role;
        let ids = &mut self.items[slot].source_ids;
        if !ids.contains(id) {
            ids.push(id.clone());
        }
        self.roles.insert(id.clone(), role);
    }

    /// Text that continues an item which is no longer held.
    pub(crate) fn continue_released(&mut self, item_id: &ItemId, source: &EventSource, now: Moment) -> Option<usize> {
        let ReleasedText { kind, parent, bytes } = self.released.text(item_id)?.clone();
        let text = Text::default();
        let content = match kind {
            TextKind::Message(origin) => Content::Message { text, origin },
            TextKind::Thinking(provider_id) => Content::Thinking { text, provider_id },
        };
        let slot = self.begin(item_id, content, parent, source, now);
        self.items[slot].bytes_before = bytes;
        Some(slot)
    }

    /// Text for a closed text item starts a new item, in its place.
    pub(crate) fn continuation(&mut self, item_id: &ItemId, closed: usize, source: &EventSource, now: Moment) -> usize {
        let earlier = &self.items[closed];
        let content = match &earlier.content {
            Content::Thinking { provider_id, .. } => {
                Content::Thinking { text: Text::default(), provider_id: provider_id.clone() }
            }
            Content::Message { origin, .. } => Content::Message { text: Text::default(), origin: *origin },
            Content::Tool(_) => Content::Message { text: Text::default(), origin: Origin::Agent },
        };
        let bytes_before = earlier.bytes_before + earlier.growing_bytes();
        let slot = self.begin(item_id, content, earlier.parent.clone(), source, now);
        self.items[slot].continues = Some(closed);
        self.items[slot].bytes_before = bytes_before;
        slot
    }

    /// The id itself, or `id~2`, `id~3` … if the source has used it for something that is closed.
    fn unused_id(&mut self, item_id: &ItemId) -> ItemId {
        if !self.is_used(item_id) {
            return item_id.clone();
        }
        let part = self.parts.entry(item_id.clone()).or_insert(1);
        loop {
            *part += 1;
            let candidate = ItemId::from_foreign(&format!("{item_id}~{part}"));
            if !self.roles.contains_key(&candidate) && !self.released.contains(&candidate) {
                return candidate;
            }
        }
    }

    fn is_used(&self, id: &ItemId) -> bool {
        self.roles.contains_key(id) || self.released.contains(id)
    }

    /// The source means something by this id that is no longer held.
    pub(crate) fn is_released(&self, id: &ItemId) -> bool {
        !self.roles.contains_key(id) && self.released.contains(id)
    }

    /// The part of a final text that belongs to this item, when earlier parts of it were closed as separate items.
    pub(crate) fn without_earlier_parts<'a>(&self, slot: usize, wording: &'a str) -> &'a str {
        let item = &self.items[slot];
        let Some((mut before, rest)) = wording.split_at_checked(item.bytes_before) else { return wording };
        let mut part = item.continues;
        while let Some(slot) = part {
            // What is no longer held cannot be compared.
            let Some(earlier) = self.items.get(slot) else { return rest };
            let text = earlier.growing().map_or_else(String::new, Text::to_string);
            let Some(shorter) = before.strip_suffix(text.as_str()) else { return wording };
            before = shorter;
            part = earlier.continues;
        }
        rest
    }

    pub(crate) fn open_text(&self, item_id: &ItemId) -> Option<usize> {
        self.known_text(item_id).filter(|slot| self.items[*slot].is_open())
    }

    pub(crate) fn known_text(&self, item_id: &ItemId) -> Option<usize> {
        match self.roles.get(item_id) {
            Some(Role::Item(slot)) if !self.items[*slot].is_tool() => Some(*slot),
            _ => None,
        }
    }

    pub(crate) fn is_cancelled(&self, item_id: &ItemId) -> bool {
        let Some(Role::Item(slot) | Role::OutputOf(slot)) = self.roles.get(item_id) else { return false };
        self.items[*slot].state == State::Cancelled
    }

    /// The call of an invocation; starts it if it is new.
    pub(crate) fn invocation(
        &mut self,
        item_id: &ItemId,
        call_id: Option<&CallId>,
        parent: Option<ItemId>,
        source: &EventSource,
        now: Moment,
    ) -> usize {
        if let Some(slot) = self.known_invocation(item_id, call_id) {
            self.set_role(item_id, Role::Item(slot));
            let item = &mut self.items[slot];
            let mut changed = false;
            if item.parent.is_none() && parent.is_some() {
                item.parent = parent;
                changed = true;
            }
            if let (Some(call_id), Some(call)) = (call_id, item.tool_mut())
                && *call_id != call.call_id
            {
                call.call_id = call_id.clone();
                self.calls.insert(call_id.clone(), slot);
                changed = true;
            }
            if changed {
                self.changed(slot, Change::Arguments, now);
            }
            return slot;
        }
        let slot = self.begin_call(item_id, call_id.cloned(), parent, source, now);
        self.changed(slot, Change::Progress, now);
        slot
    }

    fn known_invocation(&self, item_id: &ItemId, call_id: Option<&CallId>) -> Option<usize> {
        let same_item = match self.roles.get(item_id) {
            Some(Role::Item(slot)) => self
                .call_at(*slot)
                .filter(|(item, call)| item.is_open() || call_id.is_none_or(|call_id| *call_id == call.call_id))
                .map(|_| *slot),
            _ => None,
        };
        // A result may have come before its invocation.
        let orphan = || {
            let slot = self.calls.get(call_id?)?;
            self.call_at(*slot).filter(|(_, call)| call.is_nameless()).map(|_| *slot)
        };
        same_item.or_else(orphan)
    }

    fn call_at(&self, slot: usize) -> Option<(&Item, &ToolCall)> {
        let item = &self.items[slot];
        match &item.content {
            Content::Tool(call) if item.state != State::Cancelled => Some((item, call)),
            _ => None,
        }
    }

    /// The call of a result; a call that was never announced gets its own item. From then on the id stands for the
    /// call's output.
    pub(crate) fn result_owner(
        &mut self,
        item_id: &ItemId,
        call_id: Option<CallId>,
        parent: Option<ItemId>,
        source: &EventSource,
        now: Moment,
    ) -> usize {
        let by_call = call_id.as_ref().and_then(|id| self.calls.get(id)).copied();
        let by_item = || match self.roles.get(item_id) {
            Some(Role::Item(slot) | Role::OutputOf(slot)) if self.items[*slot].is_tool() => Some(*slot),
            _ => None,
        };
        let slot = by_call.or_else(by_item).unwrap_or_else(|| self.begin_call(item_id, call_id, parent, source, now));
        self.set_role(item_id, Role::OutputOf(slot));
        slot
    }

    fn begin_call(
        &mut self,
        item_id: &ItemId,
        call_id: Option<CallId>,
        parent: Option<ItemId>,
        source: &EventSource,
        now: Moment,
    ) -> usize {
        let call_id = call_id.unwrap_or_else(|| CallId::from_foreign(item_id.as_str()));
        let call = ToolCall::new(call_id.clone(), source.timestamp);
        let slot = self.begin(item_id, Content::Tool(call), parent, source, now);
        self.calls.insert(call_id, slot);
        slot
    }
}
