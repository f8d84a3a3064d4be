//! Lines of ACP agents that are not quite JSON: repaired where that is possible, reported where it is not.

use upserts::ItemBody;

use crate::acp_bench::Bench;

/// A line that says this, as it is written between the quotes.
fn chunk(text: &str) -> String {
    let content = format!(r#"{{"type":"text","text":"{text}"}}"#);
    let update = format!(r#"{{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{content}}}"#);
    update_line(&update)
}

fn update_line(update: &str) -> String {
    let params = format!(r#"{{"sessionId":"@session","update":{update}}}"#);
    format!(r#"raw:{{"jsonrpc":"2.0","method":"session/update","params":{params}}}"#)
}

#[tokio::test]
async fn text_with_half_an_emoji_is_shown_with_a_mark_in_its_place() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench.turn(&mut session, &[chunk(r"a\uD83D b"), chunk(r" \ude00c"), chunk(r"\\ud83d")].join("\n")).await;
    assert_eq!(session.answers(&turn), ["a\u{fffd} b \u{fffd}c\\ud83d"]);
    assert!(!session.text().contains("could not be read"), "{session:#?}");
}

#[tokio::test]
async fn a_tool_result_with_half_an_emoji_has_its_output() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let result = r#"{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","rawOutput":{"\ud83d":"x\ud83d"},"content":[{"type":"content","content":{"type":"text","text":"out \udc00"}}]}"#;
    let turn = bench.turn(&mut session, &format!("call:c1 make\n{}\nsay:done", update_line(result))).await;
    let output = session.of(&turn).into_iter().find_map(|item| match &item.body {
        ItemBody::ToolCall { output, .. } => output.as_ref().map(ToString::to_string),
        _ => None,
    });
    assert_eq!(output.as_deref(), Some("out \u{fffd}"), "{session:#?}");
}

#[tokio::test]
async fn raw_control_characters_and_broken_utf_8_cost_no_line() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let line = |text: &[u8]| {
        let line = chunk("TEXT").strip_prefix("raw:").unwrap().replace("@session", session.agent_id.as_str());
        let (before, after) = line.split_once("TEXT").unwrap();
        let bytes = [before.as_bytes(), text, after.as_bytes()].concat();
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("bytes:{digits}")
    };
    let script = [line(b"a\0b\x1b"), line(b"\xf0\x9f\x98c"), line(b"\xff\\ud83d")].join("\n");
    let turn = bench.turn(&mut session, &script).await;
    assert_eq!(session.answers(&turn), ["a\0b\u{1b}\u{fffd}c\u{fffd}\u{fffd}"]);
}

#[tokio::test]
async fn an_answer_to_the_prompt_that_cannot_be_read_ends_the_turn() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let message = "Scripted ended the turn with a line that could not be read.";
    for answer in [
        r#"{"jsonrpc":"2.0","id":@id,"result":{"stopReason":"end_turn"#,
        r#"{"result":{"stopReason":"end_turn","x":"\q"},"id":"@id"}"#,
        r#"{"jsonrpc":"2.0","id":@id,"error":{"code":1,"message":oops}}"#,
    ] {
        let turn = bench.turn(&mut session, &format!("say:words\nraw:{answer}\nmute")).await;
        assert_eq!(session.error_of(&turn), Some(("AGENT_PROTOCOL_ERROR".into(), message.into())), "{answer}");
        assert_eq!(session.answers(&turn), ["words"]);
    }
    // One that can be repaired is an answer like any other, and a request of the agent is none.
    let answer = r#"{"jsonrpc":"2.0","id":@id,"result":{"stopReason":"end_turn","_meta":{"\ud83d":"\ude00"}}}"#;
    let request = r#"{"jsonrpc":"2.0","id":@id,"method":"fs/read_text_file","params":{"path":oops}}"#;
    let turn = bench.turn(&mut session, &format!("raw:{request}\nsay:words\nraw:{answer}\nmute")).await;
    assert!(session.is_completed(&turn), "{:?}", session.end_of(&turn));
    assert_eq!(session.answers(&turn), ["words"]);
}

#[tokio::test]
async fn lines_that_cannot_be_read_are_reported_a_few_times_in_the_session_they_are_for() {
    let bench = Bench::new(&[]);
    let (mut session, mut other) = (bench.create().await, bench.create().await);
    let reports = |text: &str| text.matches("wrote a line that could not be read").count();
    let turn = bench.turn(&mut session, "say:one\ngarbage:10000\nsay: two").await;
    assert_eq!(session.answers(&turn).concat(), "one two");
    let reported = reports(&session.text());
    assert!((1..=3).contains(&reported), "{reported} reports: {}", session.text());
    assert!(session.text().contains("`not a message`"), "{}", session.text());
    // One that is no more than half an update still names its session.
    let broken = r#"raw:{"method":"session/update","params":{"sessionId":"@session","update":{"sessionUpdate":"#;
    bench.turn(&mut session, &format!("{broken}\n{broken}\nsay:three")).await;
    assert_eq!(reports(&session.text()), reported + 1, "each wording once: {}", session.text());
    // A kind of content that a later version of the protocol may have is no error.
    let strange = update_line(r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"hologram"}}"#);
    let turn = bench.turn(&mut session, &format!("{strange}\nsay:four")).await;
    assert_eq!(
        (session.answers(&turn), reports(&session.text())),
        (vec!["four".into()], reported + 1),
        "{}",
        session.text()
    );
    bench.turn(&mut other, "say:alive").await;
    assert_eq!(reports(&other.text()), 0, "{other:#?}");
}

#[tokio::test]
async fn a_line_that_cannot_be_read_in_a_code_block_divides_neither_the_block_nor_its_message() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let (block, more) = (chunk(r"```rust\nlet a = 1;\n"), chunk(r"let b = 2;\n```\n"));
    // With ids of its own for each message, and without.
    for (id, call) in [(r#""messageId":"m","#, "call:c1 make"), ("", "call:c2 make")] {
        let lines = [block.as_str(), "raw:{\"half", more.as_str(), call, "say:after"];
        let script = lines.join("\n").replace(r#""messageId":"m","#, id);
        let turn = bench.turn(&mut session, &script).await;
        assert_eq!(session.answers(&turn), ["```rust\nlet a = 1;\nlet b = 2;\n```\n", "after"], "{session:#?}");
        // The report stands after the text, and before what follows it.
        let texts: Vec<_> = session.of(&turn).iter().map(|item| item.body.text().map(ToString::to_string)).collect();
        let report = texts.iter().position(|text| text.as_ref().is_some_and(|text| text.contains("could not be read")));
        assert_eq!(report, Some(2), "{texts:#?}");
    }
}
