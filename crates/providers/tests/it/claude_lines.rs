//! Lines of Claude Code, and entries of its files, that are not quite JSON.

use protocol::{AgentSessionId, CliType, SessionId, Timestamp};
use providers::Provider;
use providers::claude::history::SessionFile;
use upserts::{ItemBody, ItemUpdate};

use crate::claude_faults::Bench;
use crate::listener::soon;

fn output<'a>(items: impl IntoIterator<Item = &'a ItemUpdate>) -> Option<String> {
    items.into_iter().find_map(|item| match &item.body {
        ItemBody::ToolCall { output, .. } => output.as_ref().map(ToString::to_string),
        _ => None,
    })
}

const CALL: &str = r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"make"}}]}}"#;
const RESULT: &str = r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"out \ud83d"}]},"tool_use_result":{"stdout":"out \ude00"}}"#;

#[tokio::test]
async fn half_an_emoji_costs_neither_a_tool_result_nor_the_end_of_the_turn() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let end = r#"{"type":"result","subtype":"success","is_error":false,"result":"a \uD83D"}"#;
    let script = format!("raw:{CALL}\nraw:{RESULT}\nraw:{end}\nmute-end");
    let turn = session.send(&script).await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_completed(&turn), "{:?}", session.end_of(&turn));
    assert_eq!(output(session.of(&turn)).as_deref(), Some("out \u{fffd}"), "{session:#?}");
    assert!(!session.text().contains("could not be read"), "{session:#?}");
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_result_that_cannot_be_read_ends_the_turn_and_the_next_message_is_answered() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let message = "Claude Code ended the turn with a line that could not be read.";
    for end in
        [r#"{"type":"result","is_error":fal"#, r#"{"is_error":"\q","type":"result"}"#, r#"{"type":"result","usage":7}"#]
    {
        let turn = session.send(&format!("say:words\nraw:{end}\nmute-end")).await.unwrap();
        session.until_end_of(&turn).await;
        assert_eq!(session.error_of(&turn), Some(("AGENT_PROTOCOL_ERROR".into(), message.into())), "{end}");
        assert_eq!(session.answers(&turn), ["words"]);
    }
    let turn = session.send("say:next").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.answers(&turn), ["next"]);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn lines_that_cannot_be_read_are_reported_a_few_times_in_the_turn() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let script = format!("say:one\n{}say:two", "garbage\n".repeat(500));
    let turn = session.send(&script).await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_completed(&turn));
    assert_eq!(session.answers(&turn), ["one", "two"]);
    let reports = session.text().matches("Claude Code wrote a line that could not be read").count();
    assert_eq!(reports, 3, "{}", session.text());
    assert!(session.text().contains("`not json`"), "{}", session.text());
    // A word that is no end of a turn does not end one, wherever it stands.
    let line = r#"{"message":{"type":"result"},"type":"assistant","#;
    let turn = session.send(&format!("raw:{line}\nsay:on")).await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!((session.answers(&turn), session.is_completed(&turn)), (vec!["on".into()], true));
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_line_that_cannot_be_read_in_a_code_block_divides_neither_the_block_nor_its_message() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let event = |event: &str| format!(r#"raw:{{"type":"stream_event","parent_tool_use_id":null,"event":{event}}}"#);
    let delta = |text: &str| {
        let delta = format!(r#"{{"type":"text_delta","text":"{text}"}}"#);
        event(&format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#))
    };
    let begin = [
        event(r#"{"type":"message_start","message":{"id":"m1","model":"scripted"}}"#),
        event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#),
    ];
    let lines = [delta(r"```rust\nlet a = 1;\n"), "raw:{\"half".into(), delta(r"let b = 2;\n```\n")];
    let whole = r#"raw:{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"```rust\nlet a = 1;\nlet b = 2;\n```\n"}]}}"#;
    // While it grows, before the program sends the whole of it.
    let script = [&begin[..], &lines[..], &["stall".into()]].concat().join("\n");
    let shown = "```rust\nlet a = 1;\nlet b = 2;\n```\n";
    let turn = session.send(&script).await.unwrap();
    session.until("the text", |session| session.answers(&turn) == [shown]).await;
    let mut session = bench.create(&provider).await.unwrap();
    let script = [&begin[..], &lines[..], &[whole.into(), "say:after".into()]].concat().join("\n");
    let turn = session.send(&script).await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.answers(&turn), [shown, "after"], "{session:#?}");
    assert_eq!(session.text().matches("could not be read").count(), 1, "{session:#?}");
    soon("the end", provider.shutdown()).await;
}

#[test]
fn a_session_file_with_half_an_emoji_is_read_whole_and_an_entry_that_cannot_be_read_is_named() {
    let entry = |uuid: &str, parent: &str, rest: &str| {
        format!(r#"{{"uuid":"{uuid}","parentUuid":"{parent}","timestamp":"2026-01-02T03:04:05.000Z",{}"#, &rest[1..])
    };
    let text = [
        entry("u1", "", r#"{"type":"user","message":{"role":"user","content":"a \ud83d"}}"#),
        entry("u2", "u1", CALL),
        entry("u3", "u2", RESULT),
        entry(
            "u4",
            "u3",
            r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"so"}],"usage":7}}"#,
        ),
        entry(
            "u5",
            "u4",
            r#"{"type":"assistant","message":{"id":"m3","content":[{"type":"text","text":"\ude00 end"}]}}"#,
        ),
    ]
    .join("\n");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let agent_id = AgentSessionId::parse("s").unwrap();
    let id = SessionId::new(&CliType::parse("claude-code").unwrap(), &agent_id);
    let read = || SessionFile::at(file.path().to_owned(), id.clone(), agent_id.clone()).read(None, 100).unwrap();
    let items = |history: &providers::History| upserts::fold(history.events.clone(), Timestamp::default());
    let history = read();
    let texts: Vec<String> = items(&history).iter().filter_map(|item| Some(item.body.text()?.to_string())).collect();
    assert_eq!((texts[0].as_str(), texts[1].as_str()), ("a \u{fffd}", "out \u{fffd}"), "{texts:?}");
    assert!(texts[2].contains("Claude Code wrote a line that could not be read"), "{texts:?}");
    assert_eq!((texts[3].as_str(), texts.len(), history.turns.len()), ("\u{fffd} end", 4, 1), "{texts:?}");
    let ids = |history| items(history).iter().map(|item| item.item_id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&history), ids(&read()), "the same whenever it is read");
}
