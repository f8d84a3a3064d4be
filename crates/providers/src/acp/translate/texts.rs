//! Messages and thoughts: which item a piece of text belongs to.

use agent_client_protocol_schema::v1 as acp;
use indexmap::IndexSet;
use protocol::{ItemId, ResponseStatus};

use super::{INTERRUPTED, Translator};
use crate::acp::content::{block_text, plain_message};
use crate::acp::event_builder::{EventBuilder, TextKind};
use crate::acp::open_text::{OpenText, Repeat, message_item_id};
use crate::acp::tool;

/// Ids of texts that are recognised. An agent continues one that it began a moment ago.
const TEXT_IDS_MAX: usize = 4096;

/// The ids of messages and thoughts of a turn, the newest of them.
#[derive(Debug, Default)]
pub(super) struct TextIds(IndexSet<ItemId>);

impl TextIds {
    pub(super) fn contains(&self, id: &ItemId) -> bool {
        self.0.contains(id)
    }

    fn insert(&mut self, id: ItemId) {
        if self.0.len() >= TEXT_IDS_MAX {
            self.0.drain(..TEXT_IDS_MAX / 2);
        }
        self.0.insert(id);
    }
}

impl Translator {
    pub(super) fn user_text(&mut self, chunk: acp::ContentChunk, builder: &mut EventBuilder) {
        let message_id = chunk.message_id.as_ref().map(|id| id.0.to_string());
        if !self.replaying {
            let acp::ContentBlock::Text(text) = &chunk.content else { return };
            let is_echo = self.turns.back().is_some_and(|turn| turn.prompt.contains(text.text.trim()));
            if !is_echo {
                self.text(TextKind::User, chunk, builder);
            }
            return;
        }
        if matches!(&chunk.content, acp::ContentBlock::Text(text) if text.text.starts_with(INTERRUPTED)) {
            if let Some(turn) = self.turns.back_mut() {
                turn.updated_at = builder.now;
            }
            return self.finish_replayed(ResponseStatus::Cancelled, builder);
        }
        let open_text = self.turns.back().and_then(|turn| turn.open_text.as_ref());
        let continues = open_text
            .is_some_and(|text| text.kind == TextKind::User && message_id.is_some() && text.message_id == message_id);
        // A replay has no other mark of where a turn begins.
        if !continues {
            self.finish_replayed(ResponseStatus::Completed, builder);
            self.open_replayed_turn(builder);
        }
        self.text(TextKind::User, chunk, builder);
    }

    pub(super) fn text(&mut self, kind: TextKind, chunk: acp::ContentChunk, builder: &mut EventBuilder) {
        let parent = tool::parent(chunk.meta.as_ref());
        let message_id = chunk.message_id.map(|id| id.0.to_string());
        let is_plain = matches!(chunk.content, acp::ContentBlock::Text(_));
        let mut text = block_text(chunk.content);
        // The user has cancelled this message's turn; what the agent still writes for it belongs nowhere.
        if message_id.as_deref().is_some_and(|id| self.is_cut(id)) {
            return;
        }
        // Text that goes on after the end of its turn stays with its message.
        let item_id = message_id.as_deref().map(|id| message_item_id(id, kind));
        let known = item_id.as_ref().and_then(|id| self.turns.iter_mut().rev().find(|turn| turn.texts.contains(id)));
        if let (Some(turn), Some(item_id)) = (known, item_id.clone()) {
            builder.turn = Some(turn.id.clone());
            match turn.open_text.as_mut().filter(|open_text| open_text.item_id == item_id) {
                Some(open_text) => {
                    // A link or an image in a message would run into the text before it.
                    if !is_plain {
                        text.insert(0, '\n');
                    }
                    open_text.add(&text);
                }
                None => turn.open_text = Some(OpenText::new(item_id.clone(), kind, message_id, None)),
            }
            return builder.delta(item_id, text);
        }
        // After a broken connection to the model some agents start the message over, under another id. Text that is on
        // the screen already is not shown twice.
        if let Some(turn) = self.turns.back_mut().filter(|turn| turn.open && !self.replaying && is_plain)
            && let (Some(id), None) = (&message_id, &parent)
            && let Some(open_text) =
                turn.open_text.as_mut().filter(|open_text| open_text.kind == kind && !open_text.is_nested)
        {
            match open_text.follow(id, text) {
                Repeat::Nothing => return,
                Repeat::More(more) => {
                    builder.turn = Some(turn.id.clone());
                    return builder.delta(open_text.item_id.clone(), more);
                }
                Repeat::Other(all) => text = all,
            }
        }
        // Agents without message ids: what follows directly and is of the same kind is the same message.
        if let Some(turn) = self.turns.back_mut().filter(|turn| turn.open) {
            let open_text = turn.open_text.as_mut();
            if let Some(open_text) = open_text.filter(|text| text.kind == kind && text.message_id == message_id) {
                builder.turn = Some(turn.id.clone());
                open_text.add(&text);
                return builder.delta(open_text.item_id.clone(), text);
            }
        }
        match kind {
            // Some models begin a thought with empty lines, which would be shown as such.
            TextKind::Thought => text = text.trim_start_matches('\n').to_owned(),
            TextKind::Notice => text = plain_message(&text).into_owned(),
            TextKind::Agent | TextKind::User => {}
        }
        // Some agents announce a message with an empty chunk. Nothing would be shown, and between turns a turn opened.
        if text.is_empty() {
            return;
        }
        self.ensure_turn(kind != TextKind::Notice, builder);
        let item_id = item_id.unwrap_or_else(|| self.next_item_id(""));
        if let Some(turn) = self.turns.back_mut() {
            turn.texts.insert(item_id.clone());
            let kept = is_plain.then(String::new);
            let mut open_text = OpenText::new(item_id.clone(), kind, message_id, kept);
            open_text.is_nested = parent.is_some();
            open_text.add(&text);
            turn.open_text = Some(open_text);
        }
        builder.start(item_id, text, kind, parent);
    }

    /// This message, its text or its thought, began in a turn that was cut.
    pub(super) fn is_cut(&self, message_id: &str) -> bool {
        // Asked for every piece of text; nearly no session has such a turn.
        if !self.turns.iter().any(|turn| turn.is_cut) {
            return false;
        }
        let items = [TextKind::Agent, TextKind::Thought].map(|kind| message_item_id(message_id, kind));
        self.turns.iter().filter(|turn| turn.is_cut).any(|turn| items.iter().any(|item| turn.texts.contains(item)))
    }

    /// Without ids of their own, text after something else is another message.
    pub(super) fn close_text(&mut self) {
        if let Some(turn) = self.turns.back_mut() {
            turn.open_text = None;
        }
    }
}
