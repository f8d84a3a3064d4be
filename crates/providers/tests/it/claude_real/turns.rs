//! Every kind of turn.

use std::time::Duration;

use protocol::{Continuity, ToolContent, ToolKind, UpsertStatus};
use providers::{Provider, ProviderError};
use upserts::ItemBody;

use super::{Bench, detail, output, tool};
use crate::listener::soon;

/// TC-2.2d, TC-3.1a, TC-3.2a, TC-3.2b, TC-3.3a, TC-3.3d.
#[tokio::test]
async fn a_session_is_created_and_answers_turn_after_turn_in_one_process() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    assert!(session.session.is_alive());

    let first = session.send("say:hello **world**").await.unwrap();
    session.until_end_of(&first).await;
    assert!(session.is_completed(&first), "{session:#?}");
    assert_eq!(session.answers(&first), ["hello **world**"]);
    let second = session.send("think:let me see\nsay:I thought").await.unwrap();
    session.until_end_of(&second).await;
    assert_eq!(session.answers(&second), ["I thought"]);
    let items = session.of(&second);
    assert!(matches!(&items[1].body, ItemBody::Thinking { text, .. } if *text == "let me see"), "{items:#?}");
    assert_eq!(session.statuses.iter().filter(|status| **status == protocol::AgentStatus::Connected).count(), 1);
    assert_eq!(session.continuity, [Continuity::Live]);
    let facts = &session.facts;
    assert!(facts.commands.as_ref().is_some_and(|commands| !commands.is_empty()));
    let options: Vec<_> = facts.options.iter().flatten().map(|option| option.id.as_str()).collect();
    assert_eq!(options, ["mode", "model"]);
    assert!(facts.model.is_some() && facts.context.is_some(), "{facts:?}");
    soon("the end", provider.shutdown()).await;
}

/// TC-3.3b, TC-3.3c, TC-3.3f: each tool as what it is, with its result, and the turn's usage at its end.
#[tokio::test]
async fn tools_are_shown_as_what_they_do() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let script = "read:README.md\nbash:echo out && touch made.txt\nwrite:new.txt=one\\ntwo\\n\n\
                  edit:new.txt=two=>2\nbash:echo no >&2; exit 3\nsay:done";
    let turn = session.send(script).await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_completed(&turn), "{session:#?}");
    let items = session.of(&turn);
    assert!(items.iter().all(|item| item.status == UpsertStatus::Complete));

    let read = tool(&items, "Read");
    assert_eq!(detail(read).kind, ToolKind::Read);
    assert!(detail(read).locations[0].path.ends_with("/README.md"));
    let shown = &detail(read).content[..];
    assert!(matches!(shown, [ToolContent::File { start_line: 1, text, .. }] if text.contains("demo")), "{shown:?}");

    let bash = tool(&items, "Bash");
    assert_eq!((detail(bash).kind, detail(bash).exit_code), (ToolKind::Execute, Some(0)));
    assert_eq!(output(bash).trim(), "out");
    assert_eq!(detail(bash).command.as_deref(), Some("echo out && touch made.txt"));
    let permission = detail(bash).permission.as_ref().map(|permission| permission.decision);
    assert_eq!(permission, Some(protocol::PermissionDecision::AllowedAutomatically), "touch had to be asked for");
    assert!(bench.file("made.txt").exists());

    let write = tool(&items, "Write");
    assert!(
        matches!(&detail(write).content[..], [ToolContent::Diff { old_text: None, new_text, .. }] if new_text == "one\ntwo\n")
    );
    let edit = tool(&items, "Edit");
    assert!(
        matches!(&detail(edit).content[..], [ToolContent::Diff { old_text: Some(old), new_text, start_line: Some(1), .. }]
            if old == "one\ntwo\n" && new_text == "one\n2\n"),
        "{edit:#?}"
    );
    assert_eq!(std::fs::read_to_string(bench.file("new.txt")).unwrap(), "one\n2\n");

    let failed = items.iter().rev().find(|item| matches!(item.body, ItemBody::ToolCall { .. })).unwrap();
    assert!(matches!(failed.body, ItemBody::ToolCall { is_error: Some(true), .. }));
    assert_eq!((detail(failed).exit_code, output(failed).trim()), (Some(3), "no"));
    assert_eq!(session.answers(&turn), ["done"]);
    let Some(protocol::TurnEvent::TurnComplete { usage: Some(usage), .. }) = session.end_of(&turn) else {
        panic!("no usage: {session:#?}")
    };
    assert_eq!(usage.input_tokens, 600, "six model calls");
    soon("the end", provider.shutdown()).await;
}

/// TC-3.3e.
#[tokio::test]
async fn two_tools_at_once_are_kept_apart() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let script = "say:both\nparallel:bash:echo one || read:README.md\nsay:after";
    let turn = session.send(script).await.unwrap();
    session.until_end_of(&turn).await;
    let items = session.of(&turn);
    let kinds: Vec<_> = items.iter().map(|item| item.body.text().map(ToString::to_string)).collect();
    assert_eq!(items.len(), 5, "{kinds:?}");
    assert_eq!(output(tool(&items, "Bash")), "one");
    assert!(output(tool(&items, "Read")).contains("demo"));
    assert_eq!(session.answers(&turn), ["both", "after"]);
    soon("the end", provider.shutdown()).await;
}

/// TC-3.4a.
#[tokio::test]
async fn cancel_in_a_text_keeps_what_was_sent_and_the_session_goes_on() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let turn = session.send("say:the beginning\nhold:never\nsay:the end").await.unwrap();
    session.until("the beginning", |session| session.text().contains("beginning")).await;
    session.session.cancel().await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_cancelled(&turn), "{session:#?}");
    assert_eq!(session.answers(&turn), ["the beginning"]);
    assert!(session.of(&turn).iter().all(|item| item.status == UpsertStatus::Complete));

    let next = session.send("say:still here").await.unwrap();
    session.until_end_of(&next).await;
    assert_eq!(session.answers(&next), ["still here"]);
    session.session.cancel().await.unwrap();
    let last = session.send("say:a cancel with nothing running is nothing").await.unwrap();
    session.until_end_of(&last).await;
    assert!(session.is_completed(&last));
    soon("the end", provider.shutdown()).await;
}

fn is_sleep(program: &std::path::Path) -> bool {
    // Where one program is many, its name says so.
    program.file_name().is_some_and(|name| matches!(name.to_str(), Some("sleep" | "coreutils" | "busybox")))
}

#[tokio::test]
async fn cancel_in_a_tool_ends_the_tool() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let turn = session.send("bash:touch started && sleep 300\nsay:never").await.unwrap();
    let started = bench.file("started");
    session
        .until("the tool's permission", |session| {
            session.of(&turn).iter().any(
                |item| matches!(&item.body, ItemBody::ToolCall { tool: Some(tool), .. } if tool.permission.is_some()),
            )
        })
        .await;
    soon("the tool to run", async {
        while !started.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let sleepers =
        || super::programs_in(bench.project.path()).into_iter().filter(|(_, program)| is_sleep(program)).count();
    soon("the command", async {
        while sleepers() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    session.session.cancel().await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_cancelled(&turn), "{session:#?}");
    let items = session.of(&turn);
    assert!(detail(tool(&items, "Bash")).interrupted);
    assert_eq!(session.answers(&turn), Vec::<String>::new());
    soon("the command to be gone", async {
        while sleepers() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(session.session.is_alive(), "the command is ended, not the program");
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn cancel_before_the_first_word_ends_the_turn_and_not_the_process() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    for _ in 0..5 {
        let turn = session.send("hold:never\nsay:never").await.unwrap();
        session.session.cancel().await.unwrap();
        session.until_end_of(&turn).await;
        assert!(session.is_cancelled(&turn), "{session:#?}");
    }
    let turn = session.send("say:ready").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.answers(&turn), ["ready"]);
    let connected = session.statuses.iter().filter(|status| **status == protocol::AgentStatus::Connected);
    assert_eq!(connected.count(), 1, "one process for all of it: {session:#?}");
    soon("the end", provider.shutdown()).await;
}

/// A measurement, not a test: from the cancel to the end of the turn, when the next message is taken. Run alone, it
/// prints milliseconds.
#[tokio::test]
#[ignore = "a measurement: cargo test -p providers -- --ignored --nocapture how_soon_a_cancelled"]
async fn how_soon_a_cancelled_session_is_ready() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    for (place, script) in [
        ("before the first word", "hold:never"),
        ("in a text", "say:some words\nhold:never"),
        ("in a fast stream", "say:some words\nstream:100000x1"),
        ("in a thought", "think:some words\nhold:never"),
        ("in a tool", "bash:touch some-words && sleep 300"),
    ] {
        let mut took = Vec::new();
        for _ in 0..7 {
            let turn = session.send(script).await.unwrap();
            if place == "in a tool" {
                soon("the tool to run", async {
                    while std::fs::remove_file(bench.file("some-words")).is_err() {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                })
                .await;
            } else if script != "hold:never" {
                session
                    .until("the text", |session| {
                        session.of(&turn).iter().any(|item| output(item).starts_with("some words"))
                    })
                    .await;
            }
            let begun = std::time::Instant::now();
            session.session.cancel().await.unwrap();
            session.until_end_of(&turn).await;
            took.push(begun.elapsed().as_millis());
            assert!(session.is_cancelled(&turn), "{session:#?}");
        }
        took.sort_unstable();
        println!("{:4} ms at the median, {:4} ms at most  {place}", took[took.len() / 2], took[took.len() - 1]);
        let ready = session.send("say:ready").await.unwrap();
        session.until_end_of(&ready).await;
    }
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_question_to_the_user_is_shown_and_left_to_the_chat() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let turn = session.send("ask\nsay:I assumed blue").await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_completed(&turn), "{session:#?}");
    let items = session.of(&turn);
    let asked = detail(tool(&items, "AskUserQuestion"));
    assert!(
        matches!(&asked.content[..], [ToolContent::Text { text }] if text.contains("Which colour?") && text.contains("Blue"))
    );
    let decision = asked.permission.as_ref().map(|permission| permission.decision);
    assert_eq!(decision, Some(protocol::PermissionDecision::Cancelled));
    assert_eq!(session.answers(&turn), ["I assumed blue"]);
    soon("the end", provider.shutdown()).await;
}

/// A denial comes from the program's own rules here: viewer mode itself never refuses a tool.
#[tokio::test]
async fn a_tool_that_is_denied_says_so_and_the_turn_goes_on() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    soon("the mode", session.session.set_option("mode", "dontAsk")).await.unwrap();
    let turn = session.send("bash:touch forbidden\nsay:went on").await.unwrap();
    session.until_end_of(&turn).await;
    let items = session.of(&turn);
    assert!(matches!(tool(&items, "Bash").body, ItemBody::ToolCall { is_error: Some(true), .. }), "{items:#?}");
    assert!(!bench.file("forbidden").exists());
    assert_eq!(session.answers(&turn), ["went on"]);
    let mode = session.facts.options.iter().flatten().find(|option| option.id == "mode").unwrap();
    assert_eq!(mode.value, "dontAsk");
    let refused = soon("the answer", session.session.set_option("mode", "bypassPermissions")).await;
    assert!(matches!(refused, Err(ProviderError::Protocol { .. })), "{refused:?}");
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_plan_the_user_asked_for_waits_for_the_user() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    soon("the mode", session.session.set_option("mode", "plan")).await.unwrap();
    let turn = session.send("plan:1. Do it\nsay:waiting").await.unwrap();
    session.until_end_of(&turn).await;
    let items = session.of(&turn);
    let plan = tool(&items, "ExitPlanMode");
    assert!(matches!(&detail(plan).content[..], [ToolContent::Text { text }] if text == "1. Do it"));
    assert_eq!(detail(plan).kind, ToolKind::SwitchMode);
    let mode = session.facts.options.iter().flatten().find(|option| option.id == "mode").unwrap();
    assert_eq!(mode.value, "plan", "{session:#?}");
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_long_stream_arrives_whole() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let turn = session.send("stream:2000").await.unwrap();
    session.until_end_of(&turn).await;
    let expected: Vec<_> = (0..2000).map(|word| format!("w{word}")).collect();
    assert_eq!(session.answers(&turn), [expected.join(" ")]);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn errors_of_the_model_are_the_turns_error_and_retries_are_reported() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;

    let failed = session.send("error:500").await.unwrap();
    session.until_end_of(&failed).await;
    let (code, message) = session.error_of(&failed).unwrap();
    assert!(code == "AGENT_PROTOCOL_ERROR" && message.contains("500"), "{code} {message}");
    assert!(session.all_facts.iter().any(|facts| facts.activity.as_ref().is_some_and(|now| now.contains("Try 1"))));
    assert_eq!(session.facts.activity.as_deref(), Some(""), "over when the turn is");
    assert!(session.text().contains("tries again"), "{session:#?}");

    let refused = session.send("error:401").await.unwrap();
    session.until_end_of(&refused).await;
    assert!(session.error_of(&refused).unwrap().1.contains("/login"), "{session:#?}");

    let recovered = session.send("error:529*1\nsay:better").await.unwrap();
    session.until_end_of(&recovered).await;
    assert!(session.is_completed(&recovered), "{session:#?}");
    assert_eq!(session.answers(&recovered), ["better"]);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_not_shown_twice() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let turn = session.send("say:half an answer\nerror:cut*1\nsay:whole").await.unwrap();
    session.until_end_of(&turn).await;
    let answers = session.answers(&turn);
    assert_eq!(answers.iter().filter(|text| text.contains("half an answer")).count(), 1, "{session:#?}");
    soon("the end", provider.shutdown()).await;
}
