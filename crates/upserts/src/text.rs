//! Text that only grows, written by the processor and read by everyone.
//!
//! The bytes of an item are stored once. A [`Text`] is a view of them, from the start to where they ended when it was
//! taken: cloning it copies no text, and later text is beyond its end. A reader that has an earlier view can request
//! only the text after it.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// A snapshot of a growing text.
#[derive(Clone, Default)]
pub struct Text {
    /// Only ever appended to, so every snapshot's range stays what it was.
    buffer: Arc<RwLock<String>>,
    bytes: usize,
    utf16_units: usize,
}

impl Text {
    /// Length in bytes of UTF-8.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Length in UTF-16 code units: what a browser calls `length`.
    pub fn utf16_len(&self) -> usize {
        self.utf16_units
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Lends the whole text without copying it. The writer waits until `read` returns, so keep it short.
    pub fn with_str<R>(&self, read: impl FnOnce(&str) -> R) -> R {
        let buffer = self.buffer.read().unwrap_or_else(PoisonError::into_inner);
        read(&buffer[..self.bytes])
    }

    /// The text from this byte on. An offset inside a character is rounded down to its start; one beyond the end gives
    /// nothing.
    pub fn from_byte(&self, offset: usize) -> String {
        self.with_str(|text| {
            let mut start = offset.min(text.len());
            while !text.is_char_boundary(start) {
                start -= 1;
            }
            text[start..].to_owned()
        })
    }

    /// The text from this UTF-16 offset on; rounded like [`Text::from_byte`], so a surrogate pair is never split. Costs
    /// no more than the part it returns.
    pub fn from_utf16(&self, offset: usize) -> String {
        if self.bytes == self.utf16_units {
            return self.from_byte(offset);
        }
        self.with_str(|text| {
            let mut units_left = self.utf16_units.saturating_sub(offset);
            let mut start = text.len();
            for (index, character) in text.char_indices().rev() {
                if units_left == 0 {
                    break;
                }
                units_left = units_left.saturating_sub(character.len_utf16());
                start = index;
            }
            text[start..].to_owned()
        })
    }

    /// Whether `earlier` is the beginning of this very text, so that a reader who has it needs only the rest.
    pub fn continues(&self, earlier: &Text) -> bool {
        earlier.is_empty() || (Arc::ptr_eq(&self.buffer, &earlier.buffer) && earlier.bytes <= self.bytes)
    }

    /// For the one writer, whose window always reaches the end of the buffer.
    pub(crate) fn append(&mut self, more: &str) {
        let mut buffer = self.buffer.write().unwrap_or_else(PoisonError::into_inner);
        debug_assert_eq!(buffer.len(), self.bytes, "only the writer's own window may grow");
        buffer.push_str(more);
        self.bytes = buffer.len();
        self.utf16_units += utf16_units(more);
    }

    /// Back to an earlier length, in a buffer of its own: what was shared stays as it is.
    pub(crate) fn cut(&mut self, bytes: usize) {
        if bytes < self.bytes {
            *self = self.with_str(|text| Self::from(&text[..bytes]));
        }
    }

    /// Frees the space reserved for growth, once no more is expected.
    pub(crate) fn shrink_to_fit(&self) {
        self.buffer.write().unwrap_or_else(PoisonError::into_inner).shrink_to_fit();
    }
}

fn utf16_units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self { bytes: text.len(), utf16_units: utf16_units(&text), buffer: Arc::new(RwLock::new(text)) }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_str(|text| f.write_str(text))
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_str(|text| fmt::Debug::fmt(text, f))
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        // One lock at a time: two threads that compare two texts crosswise must not wait for each other.
        self.bytes == other.bytes && (Arc::ptr_eq(&self.buffer, &other.buffer) || *self == *other.to_string())
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.with_str(|text| text == other)
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_does_not_change_when_the_text_grows() {
        let mut text = Text::from("one");
        let earlier = text.clone();
        text.append(" two");
        assert_eq!(earlier, "one");
        assert_eq!(text, "one two");
        assert!(text.continues(&earlier));
        assert!(!earlier.continues(&text));
        assert_eq!(text.from_byte(earlier.len()), " two");
    }

    #[test]
    fn another_text_with_the_same_beginning_does_not_continue_it() {
        assert!(!Text::from("one two").continues(&Text::from("one")));
        assert!(Text::from("one").continues(&Text::default()), "everything continues nothing");
    }

    #[test]
    fn an_offset_inside_a_character_is_rounded_down() {
        let text = Text::from("aé😀z");
        assert_eq!((text.len(), text.utf16_len()), (8, 5));
        assert_eq!(text.from_byte(2), "é😀z");
        assert_eq!(text.from_byte(5), "😀z");
        assert_eq!(text.from_utf16(2), "😀z");
        assert_eq!(text.from_utf16(3), "😀z", "half a surrogate pair");
        assert_eq!(text.from_utf16(4), "z");
        assert_eq!(text.from_utf16(5), "");
        assert_eq!(text.from_utf16(99), "");
        assert_eq!(text.from_byte(99), "");
        assert_eq!(text.from_utf16(0), "aé😀z");
    }
}
