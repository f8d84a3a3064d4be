use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn read(line: &str) -> Value {
    parse(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[test]
fn each_lone_half_of_a_pair_becomes_one_replacement_character() {
    for (written, expected) in [
        (r"\ud83d", "\u{fffd}"),
        (r"\uD83D", "\u{fffd}"),
        (r"\uDe00", "\u{fffd}"),
        (r"a\ud83d", "a\u{fffd}"),
        (r"\ude00b", "\u{fffd}b"),
        (r"\ude00\ud83d", "\u{fffd}\u{fffd}"),
        (r"\ud83d\ud83d\ude00", "\u{fffd}\u{1f600}"),
        (r"\ud83dA", "\u{fffd}A"),
        (r"\ud83d\n\ude00", "\u{fffd}\n\u{fffd}"),
        (r"\ud83d\\ude00", "\u{fffd}\\ude00"),
        (r"\ud83d😀\ude00", "\u{fffd}😀\u{fffd}"),
        (r#"\"\ud83d\""#, "\"\u{fffd}\""),
        (r"\\\ud83d", "\\\u{fffd}"),
    ] {
        assert_eq!(read(&format!("{{\"a\":\"{written}\"}}")), json!({"a": expected}), "{written}");
        assert_eq!(read(&format!("{{\"{written}\":1}}")), json!({ expected: 1 }), "as a key: {written}");
    }
}

#[test]
fn what_only_looks_like_a_lone_half_is_left_as_it_is() {
    for text in [r#"{"a":"\\ud83d"}"#, r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\\\\ude00"}"#, r#"{"a":"\u00e9"}"#, "{}", ""]
    {
        assert_eq!(repaired(text), None, "{text}");
    }
    // Outside of a string it is no escape, and no JSON either.
    assert_eq!(repaired(r"{\ud83d}"), None);
    assert!(parse::<Value>(br"{\ud83d}").is_err());
}

#[test]
fn raw_control_characters_and_broken_utf_8_inside_a_string_are_read() {
    assert_eq!(read("{\"a\":\"x\0y\tz\x1f\"}"), json!({"a": "x\0y\tz\x1f"}));
    let bytes = b"{\"a\":\"x\xff\xf0\x9f\x98y\\ud83d\"}";
    assert_eq!(parse::<Value>(bytes).unwrap(), json!({"a": "x\u{fffd}\u{fffd}y\u{fffd}"}));
    // Between the values they are no JSON.
    assert!(parse::<Value>(b"{\"a\":\0 1}").is_err());
}

#[test]
fn what_cannot_be_repaired_is_reported_with_the_error_of_the_first_parse() {
    let error = parse::<Value>(br#"{"a":"\ud83d""#).unwrap_err();
    assert_eq!(error.to_string(), serde_json::from_str::<Value>(r#"{"a":"\ud83d""#).unwrap_err().to_string());
    assert!(parse::<Value>(br#"{"a":"\uZZZZ"}"#).is_err() && parse::<Value>(br#"{"a":"\ud8"#).is_err());
}

#[test]
fn a_broken_line_still_shows_what_it_is_and_whom_it_answers() {
    let kind = |line: &str| Glimpse::of(line).kind;
    assert_eq!(kind(r#"{"type":"result","is_error":tr"#).as_deref(), Some("result"));
    assert_eq!(
        kind(r#"{"message":{"type":"result"},"result":"\"type\":\"x\"","type" : "result""#).as_deref(),
        Some("result")
    );
    assert_eq!(kind(r#"{"type":"user","message":{"type":"result"},"content":"#).as_deref(), Some("user"));
    assert_eq!((kind(r#"{"text":"\"type\":\"result\"","#), kind("type: result"), kind("")), (None, None, None));

    let answered = |line: &str| Glimpse::of(line).answered();
    assert_eq!(answered(r#"{"jsonrpc":"2.0","id":7,"result":{"stopReason":"end_tu"#), Some(7));
    assert_eq!(answered(r#"{"error":{"code":1,"id":3},"id":"12"} trailing"#), Some(12));
    assert_eq!(
        answered(r#"{"id":7,"method":"fs/read_text_file","params":{"result":1"#),
        None,
        "the agent's own request"
    );
    assert_eq!(answered(r#"{"id":7,"par"#), None, "it may be a request");
    assert_eq!(answered(r#"{"params":{"id":7,"result":1}"#), None);
    let named = Glimpse::of(r#"{"method":"session/update","params":{"sessionId":"s-1","update":{"text":"#);
    assert_eq!(named.session.as_deref(), Some("s-1"));
}

/// One UTF-16 unit, or one character, and how it is written.
#[derive(Clone, Debug)]
enum Piece {
    Character(char, bool),
    /// A half of a pair, in capital digits or not.
    Half(u16, bool),
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let piece = prop_oneof![
        4 => (any::<char>(), any::<bool>()).prop_map(|(character, raw)| Piece::Character(character, raw)),
        2 => (0xD800_u16..=0xDFFF, any::<bool>()).prop_map(|(unit, capitals)| Piece::Half(unit, capitals)),
        1 => prop_oneof![Just('\\'), Just('"'), Just('u'), Just('d')].prop_map(|c| Piece::Character(c, true)),
    ];
    proptest::collection::vec(piece, 0..12)
}

/// As an agent would write it, and as a decoder that replaces lone halves reads it.
fn written(pieces: &[Piece]) -> (String, String) {
    let (mut text, mut units) = (String::new(), Vec::new());
    for piece in pieces {
        match piece {
            Piece::Character(character, raw) => {
                let mut buffer = [0; 2];
                let encoded = character.encode_utf16(&mut buffer);
                units.extend_from_slice(encoded);
                match character {
                    '"' | '\\' => text.extend(['\\', *character]),
                    // Raw control characters are wrong JSON too, and are repaired as well.
                    _ if *raw && *character != '\n' => text.push(*character),
                    _ => encoded.iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}"))),
                }
            }
            Piece::Half(unit, capitals) => {
                units.push(*unit);
                text.push_str(&if *capitals { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") });
            }
        }
    }
    (text, String::from_utf16_lossy(&units))
}

proptest! {
    #[test]
    fn a_line_with_lone_halves_parses_and_differs_only_there(
        key in pieces(), first in pieces(), second in pieces(), number in any::<i64>(),
    ) {
        let (key, first, second) = (written(&key), written(&first), written(&second));
        let line = format!(r#"{{"n":{number},"list":["{}",{{"k{}":true}}],"last":"{}"}}"#, first.0, key.0, second.0);
        let expected = json!({"n": number, "list": [first.1, {format!("k{}", key.1): true}], "last": second.1});
        prop_assert_eq!(parse::<Value>(line.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn a_line_that_parses_is_never_changed(text in ".*", value in any::<f64>()) {
        let line = json!({"a": text, &text: value}).to_string();
        prop_assert_eq!(repaired(&line), None);
    }

    #[test]
    fn nothing_that_comes_in_breaks_it(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in r#"[\\"ud8:{}a ,0-9\x00😀]*"#) {
        let _ = parse::<Value>(&bytes);
        let _ = repaired(&text);
        Glimpse::of(&text);
        Glimpse::of(&String::from_utf8_lossy(&bytes));
    }
}
