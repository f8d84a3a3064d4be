//! The text that is being written, and how it is recognised when it comes twice: as an error that the agent reports
//! twice, or as the beginning of another message when an interrupted stream starts over.

use protocol::ItemId;

use super::event_builder::TextKind;

/// How much of a text is kept to recognise it.
const TEXT_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct OpenText {
    pub(super) item_id: ItemId,
    pub(super) kind: TextKind,
    pub(super) message_id: Option<String>,
    /// It is a sub-agent's.
    pub(super) is_nested: bool,
    /// The whole text, as long as it is not too long to be known again.
    text: Option<String>,
    /// Another message that has begun with the same text, and all of it so far.
    repeat: Option<(String, String)>,
}

/// What a message that follows another directly has beyond it.
pub(super) enum Repeat {
    /// So far only what is shown already.
    Nothing,
    /// The other, and then this.
    More(String),
    /// Something else; this is all of it.
    Other(String),
}

impl OpenText {
    pub(super) fn new(item_id: ItemId, kind: TextKind, message_id: Option<String>, text: Option<String>) -> Self {
        Self { item_id, kind, message_id, is_nested: false, text, repeat: None }
    }

    /// A piece of the message `id`, and this one is the last that was shown. Once the other contains all of this one,
    /// it goes on in its place.
    pub(super) fn follow(&mut self, id: &str, text: String) -> Repeat {
        let (Some(known), Some(own)) = (&self.text, &self.message_id) else { return Repeat::Other(text) };
        if own == id || known.is_empty() {
            return Repeat::Other(text);
        }
        let before = self.repeat.take().filter(|(repeated, _)| repeated == id).map(|(_, before)| before);
        let all = before.unwrap_or_default() + &text;
        if known.starts_with(&all) && known.len() > all.len() {
            self.repeat = Some((id.to_owned(), all));
            return Repeat::Nothing;
        }
        let Some(more) = all.strip_prefix(known.as_str()).map(str::to_owned) else { return Repeat::Other(all) };
        self.message_id = Some(id.to_owned());
        self.add(&more);
        Repeat::More(more)
    }

    pub(super) fn add(&mut self, text: &str) {
        self.text = self.text.take().filter(|known| known.len() + text.len() <= TEXT_BYTES_MAX);
        if let Some(known) = &mut self.text {
            known.push_str(text);
        }
    }

    /// The item, if this error is all of its text.
    pub(super) fn repeats(self, error: &str) -> Option<ItemId> {
        let text = self.text?;
        let text = text.trim();
        (!text.is_empty() && error.contains(text)).then_some(self.item_id)
    }
}

/// Thought and text of one answer may share an id.
pub(super) fn message_item_id(message_id: &str, kind: TextKind) -> ItemId {
    match kind {
        TextKind::Thought => ItemId::from_foreign(&format!("{message_id}.thought")),
        _ => ItemId::from_foreign(message_id),
    }
}
