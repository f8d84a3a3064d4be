//! Text as HTML text, escaped exactly as the sanitizer does it.
//!
//! Comes in: any text. Goes out: the same text with every special character as an entity. The entities are those of the
//! sanitizer's serializer (`&nbsp;` included), so the sanitizer changes nothing in our output.

/// Appends `text` as the content of an element.
pub(crate) fn text_into(out: &mut String, text: &str) {
    escape_into(out, text, false);
}

/// Appends `text` as the inside of a double-quoted attribute.
pub(crate) fn attribute_into(out: &mut String, text: &str) {
    escape_into(out, text, true);
}

fn escape_into(out: &mut String, text: &str, quotes: bool) {
    let bytes = text.as_bytes();
    let mut written = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let (entity, length) = match byte {
            b'&' => ("&amp;", 1),
            b'<' => ("&lt;", 1),
            b'>' => ("&gt;", 1),
            b'"' if quotes => ("&quot;", 1),
            // U+00A0 in UTF-8; other characters may share its first byte.
            0xC2 if bytes.get(at + 1) == Some(&0xA0) => ("&nbsp;", 2),
            // An HTML parser would replace these two; we replace them explicitly.
            b'\r' => ("\n", 1),
            0 => ("\u{FFFD}", 1),
            _ => continue,
        };
        out.push_str(&text[written..at]);
        out.push_str(entity);
        written = at + length;
    }
    out.push_str(&text[written..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_special_character_is_escaped() {
        let mut out = String::new();
        attribute_into(&mut out, "a<b>\"c\" & \u{a0}é\0");
        assert_eq!(out, "a&lt;b&gt;&quot;c&quot; &amp; &nbsp;é\u{FFFD}");
    }
}
