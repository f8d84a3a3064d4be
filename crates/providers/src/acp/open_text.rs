//! The text that grows now, and how it is known again: as an error that is said twice, or as the beginning of another
//! message when a cut stream begins anew.

use protocol::ItemId;

use super::event_builder::Voice;

/// How much of a text is kept to know it again.
const WORDS_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct OpenText {
    pub(super) item_id: ItemId,
    pub(super) voice: Voice,
    pub(super) message_id: Option<String>,
    /// A sub-agent speaks.
    pub(super) is_nested: bool,
    /// The whole text, as long as it is not too long to be known again.
    words: Option<String>,
    /// Another message that has begun with the same words, and all of it so far.
    repeat: Option<(String, String)>,
}

/// What a message that follows another directly says beyond it.
pub(super) enum Repeat {
    /// So far only what is shown already.
    Nothing,
    /// The other, and then this.
    More(String),
    /// Something else; this is all of it.
    Other(String),
}

impl OpenText {
    pub(super) fn new(item_id: ItemId, voice: Voice, message_id: Option<String>, words: Option<String>) -> Self {
        Self { item_id, voice, message_id, is_nested: false, words, repeat: None }
    }

    /// A piece of the message `id`, and this one is the last that was shown. Once the other has said all of this one,
    /// it goes on in its place.
    pub(super) fn follow(&mut self, id: &str, text: String) -> Repeat {
        let (Some(words), Some(own)) = (&self.words, &self.message_id) else { return Repeat::Other(text) };
        if own == id || words.is_empty() {
            return Repeat::Other(text);
        }
        let before = self.repeat.take().filter(|(repeated, _)| repeated == id).map(|(_, before)| before);
        let all = before.unwrap_or_default() + &text;
        if words.starts_with(&all) && words.len() > all.len() {
            self.repeat = Some((id.to_owned(), all));
            return Repeat::Nothing;
        }
        let Some(rest) = all.strip_prefix(words.as_str()).map(str::to_owned) else { return Repeat::Other(all) };
        self.message_id = Some(id.to_owned());
        self.add(&rest);
        Repeat::More(rest)
    }

    pub(super) fn add(&mut self, text: &str) {
        self.words = self.words.take().filter(|words| words.len() + text.len() <= WORDS_BYTES_MAX);
        if let Some(words) = &mut self.words {
            words.push_str(text);
        }
    }

    /// The item, if all it says is this error.
    pub(super) fn says(self, error: &str) -> Option<ItemId> {
        let words = self.words?;
        let words = words.trim();
        (!words.is_empty() && error.contains(words)).then_some(self.item_id)
    }
}

/// Thought and text of one answer may share an id.
pub(super) fn message_item_id(message_id: &str, voice: Voice) -> ItemId {
    match voice {
        Voice::Thought => ItemId::from_foreign(&format!("{message_id}.thought")),
        _ => ItemId::from_foreign(message_id),
    }
}
