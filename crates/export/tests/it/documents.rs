//! What a reader finds in each format.

use export::{Format, Redaction, file_stem};
use protocol::{Origin, ToolContent, ToolDetail, ToolKind, TurnRecordStatus, Upsert};
use serde_json::{Map, Value, json};

use crate::session::{call, everything, exported, header, item, message, thinking, turn};

fn conversation() -> (Vec<protocol::TurnRecord>, Vec<Upsert>) {
    let run = ToolDetail {
        kind: ToolKind::Execute,
        command: Some("cargo test".into()),
        exit_code: Some(2),
        ..ToolDetail::default()
    };
    let edit = ToolDetail {
        kind: ToolKind::Edit,
        locations: vec![protocol::ToolLocation { path: "src/a.rs".into(), line: None }],
        content: vec![ToolContent::Diff {
            path: "src/a.rs".into(),
            old_text: Some("one\ntwo\n".into()),
            new_text: "one\nthree\n".into(),
            start_line: None,
        }],
        ..ToolDetail::default()
    };
    let turns = vec![
        turn("t1", TurnRecordStatus::Completed, None),
        turn("t2", TurnRecordStatus::Cancelled, None),
        turn("t3", TurnRecordStatus::Error, Some("no *credit*")),
    ];
    let items = vec![
        item("t1", "i1", message("Fix it\n# please", Origin::User)),
        item("t1", "i2", thinking("Hm")),
        item("t1", "i3", call(Map::new(), "\u{1b}[31mred\u{1b}[0m\n```\n", run)),
        item("t1", "i4", call(Map::new(), "", edit)),
        item("t1", "i5", message("Done with **care**", Origin::Agent)),
        item("t2", "i6", message("More", Origin::User)),
        item("t2", "i7", message("```rust\nlet x", Origin::Agent)),
        item("t3", "i8", message("Again", Origin::User)),
    ];
    (turns, items)
}

#[test]
fn markdown_has_messages_calls_diffs_and_how_turns_ended() {
    let (turns, items) = conversation();
    let text = exported(Format::Markdown, Redaction::None, header("A title"), &turns, &items);
    let expected = "\
# A title

- Agent: Codex
- Project: `/home/dev/demo`
- Session: `codex:0199a213`
- Created: 2026-11-15 21:15 UTC
- Exported: 2026-11-15 22:15 UTC

## You · 2026-11-15 21:15 UTC

> Fix it
> # please

## Codex · 2026-11-15 21:15 UTC

<details><summary>Thinking</summary>

Hm

</details>

**Ran** `cargo test` (failed, exit status 2)

````text
red
```
````

**Edited** `src/a.rs`

```diff
--- a/src/a.rs
+++ b/src/a.rs
 one
-two
+three
```

Done with **care**

## You · 2026-11-15 21:15 UTC

> More

## Codex · 2026-11-15 21:15 UTC

```rust
let x
```

*Stopped*

## You · 2026-11-15 21:15 UTC

> Again

*Turn ended: no \\*credit\\**
";
    assert_eq!(text, expected);
}

#[test]
fn json_is_one_object_with_every_field_of_the_items() {
    let (turns, items) = conversation();
    let text = exported(Format::Json, Redaction::None, header("A \"title\""), &turns, &items);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&value["format"], &value["version"]), (&json!("liminal-builder.export"), &json!(1)));
    assert_eq!(value["session"]["title"], "A \"title\"");
    assert_eq!(value["session"]["exportedAt"], "2026-11-15T22:15:56.000Z");
    let read: Vec<Upsert> = serde_json::from_value(value["items"].clone()).unwrap();
    assert_eq!(read, items);
    let read: Vec<protocol::TurnRecord> = serde_json::from_value(value["turns"].clone()).unwrap();
    assert_eq!(read, turns);
    let empty = exported(Format::Json, Redaction::None, header(""), &[], &[]);
    assert_eq!(serde_json::from_str::<Value>(&empty).unwrap()["items"], json!([]));
}

#[test]
fn html_shows_the_conversation_without_a_script() {
    let (turns, items) = conversation();
    let text = exported(Format::Html, Redaction::None, header("A <title>"), &turns, &items);
    for part in [
        "<title>A &lt;title&gt;</title>",
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:",
        "<summary>Thinking</summary>",
        "<b>Ran</b> <code>cargo test</code> <span class=\"note\">failed, exit status 2</span>",
        "<strong>care</strong>",
        "<div class=\"line del\">",
        "<span class=\"fg1\">red</span>",
        "<p class=\"end\">Stopped</p>",
        "prefers-color-scheme: dark",
        "@media print",
    ] {
        assert!(text.contains(part), "{part} is missing");
    }
    assert_eq!(text.matches("<section class=\"turn\">").count(), 3);
    assert_eq!(text.matches("</section>").count(), 3);
    assert!(!text.contains("<script"));
    let shown = exported(Format::Html, Redaction::None, header("x"), &turns, &everything("x"));
    assert!(shown.contains("<img src=\"data:image/gif;base64,R0lG"), "pictures are in the file");
}

#[test]
fn pages_of_any_size_give_the_same_file() {
    let (turns, items) = conversation();
    for format in Format::ALL {
        let whole = exported(format, Redaction::None, header("t"), &turns, &items);
        let mut exporter = export::Exporter::new(format, Redaction::None, header("t"));
        let mut out = Vec::new();
        exporter.begin(&mut out).unwrap();
        exporter.page(&turns, &items, &mut out).unwrap();
        exporter.end(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), whole, "{format:?}");
    }
}

#[test]
fn a_file_name_holds_letters_digits_and_hyphens_only() {
    assert_eq!(file_stem("Fix the \"login\"\r\n; filename=x/../../y"), "Fix-the-login-filename-x-y");
    assert_eq!(file_stem("修复 登录"), "修复-登录");
    assert_eq!(file_stem("../.."), "session");
    assert_eq!(file_stem(&"a".repeat(500)).len(), 60);
}
