//! The file stays close to the size of what was said, and large things fit.

use std::fs;
use std::sync::Arc;

use journal::{Journal, Read};
use protocol::{
    CallId, ItemId, Origin, Timestamp, ToolContent, ToolDetail, ToolKind, TurnRecordStatus, UpsertBody, UpsertStatus,
};
use serde_json::json;

use crate::samples::{NOON_MS, Recording, open};

fn prose(random: &mut fastrand::Rng, bytes: usize) -> String {
    (0..bytes).map(|_| *random.choice(b"abcdefghij klmno pqrstu vwxyz\n").unwrap() as char).collect()
}

/// Arguments, detail and output of a call as agents send them.
fn tool_call(random: &mut fastrand::Rng, number: usize) -> (UpsertBody, usize) {
    let path = format!("/home/user/project/src/{}.rs", prose(random, 12).replace(['\n', ' '], "_"));
    let output_bytes = random.usize(0..4000);
    let argument_bytes = random.usize(60..240);
    let (name, kind, arguments, output, content) = match random.u8(0..3) {
        0 => {
            let text = prose(random, output_bytes);
            let numbered = |(n, line)| format!("{:>6}→{line}", n + 1);
            let lines: Vec<String> = text.split('\n').enumerate().map(numbered).collect();
            let file = ToolContent::File { path: path.clone(), start_line: 1, text };
            let arguments = json!({ "file_path": path, "limit": argument_bytes });
            ("Read", ToolKind::Read, arguments, lines.join("\n"), vec![file])
        }
        1 => {
            let text = prose(random, argument_bytes);
            let diff =
                ToolContent::Diff { path: path.clone(), old_text: None, new_text: text.clone(), start_line: None };
            let arguments = json!({ "file_path": path, "content": text });
            ("Write", ToolKind::Edit, arguments, "The file was written.".to_owned(), vec![diff])
        }
        _ => {
            let arguments = json!({ "command": prose(random, argument_bytes), "description": "Run the tests" });
            ("Bash", ToolKind::Execute, arguments, prose(random, output_bytes), vec![])
        }
    };
    let arguments = arguments.as_object().unwrap().clone();
    let said = serde_json::to_string(&arguments).unwrap().len() + output.len();
    let detail = ToolDetail {
        kind,
        command: arguments.get("command").and_then(|command| command.as_str()).map(Into::into),
        content,
        started_at: Some(Timestamp::from_unix_ms(NOON_MS)),
        ended_at: Some(Timestamp::from_unix_ms(NOON_MS + 30)),
        ..ToolDetail::default()
    };
    let body = UpsertBody::ToolCall {
        tool_name: name.into(),
        tool_arguments: Arc::new(arguments),
        call_id: CallId::parse(format!("toolu_01{number:022}")).unwrap(),
        tool_output: Some(output),
        tool_output_is_error: Some(false),
        tool: Some(Arc::new(detail)),
    };
    (body, said)
}

#[tokio::test]
async fn the_file_is_at_most_half_as_large_again_as_what_was_said() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path());
    let mut s = Recording::begin(&journal, "a").await;
    let mut random = fastrand::Rng::with_seed(7);
    let mut said = 0;
    for number in 0..4000 {
        let turn = format!("0193a1b2-0000-7000-8000-{:012x}", number / 20);
        let turns = if number % 20 == 0 { vec![s.turn(&turn, TurnRecordStatus::Completed)] } else { vec![] };
        let item = ItemId::generate();
        let (body, bytes) = if random.bool() {
            let bytes = random.usize(200..2000);
            (UpsertBody::Message { content: prose(&mut random, bytes), origin: Origin::Agent }, bytes)
        } else {
            tool_call(&mut random, number)
        };
        said += bytes;
        let mut items = Vec::new();
        if let UpsertBody::Message { content, origin } = &body {
            // Most text comes in pieces that are folded later.
            let half = UpsertBody::Message { content: content[..100].into(), origin: *origin };
            items.push(s.change(s.upsert(&turn, item.as_str(), half, UpsertStatus::Create)));
        }
        s.record(items, turns).await;
        let done = s.change(s.upsert(&turn, item.as_str(), body, UpsertStatus::Complete));
        s.record(vec![done], vec![]).await;
    }
    let stats = journal.stats().await.unwrap();
    assert_eq!(stats.items, 4000);
    journal.close().await;
    let bytes = fs::metadata(directory.path().join("journal.db")).unwrap().len();
    let ratio = bytes as f64 / said as f64;
    assert!(ratio <= 1.5, "{bytes} bytes for {said} bytes said: {ratio:.2}");
    println!("{bytes} bytes for {said} bytes said: {ratio:.3}");
}

#[tokio::test]
async fn a_text_of_64_mebibytes_comes_back_whole() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path());
    let mut s = Recording::begin(&journal, "a").await;
    let text = "0123456789abcdef".repeat(4 << 20);
    let half = s.change(s.message("t", "i", &text[..text.len() / 2], UpsertStatus::Create));
    s.record(vec![half], vec![]).await;
    let done = s.change(s.message("t", "i", &text, UpsertStatus::Complete));
    s.record(vec![done], vec![]).await;
    let page = s.read(Read::Newest { limit: 2 }).await;
    let UpsertBody::Message { content, .. } = &page.items[0].upsert.body else { panic!("a message") };
    assert!(*content == text);
}

#[tokio::test]
async fn ten_thousand_tool_calls_in_one_turn_are_read_by_page() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path());
    let mut s = Recording::begin(&journal, "a").await;
    let turn = s.turn("t", TurnRecordStatus::Running);
    s.record(vec![], vec![turn]).await;
    for hundred in 0..100 {
        let calls = (0..100).map(|n| format!("i{}", hundred * 100 + n));
        let items =
            calls.map(|id| s.change(s.tool("t", &id, Some("fine"), UpsertStatus::Complete))).collect::<Vec<_>>();
        s.record(items, vec![]).await;
    }
    let mut seen = 0;
    let mut position = i64::MAX;
    loop {
        let page = s.read(Read::Before { position, limit: 300 }).await;
        seen += page.items.len();
        assert_eq!(page.turns.len(), 1);
        position = page.items[0].position;
        if !page.more {
            break;
        }
    }
    assert_eq!(seen, 10_000);
    let outline = journal.outline(s.key).await.unwrap();
    assert_eq!((outline.len(), outline[0].items.len()), (1, 10_000));
}
