//! Sessions of Claude Code as the hub holds them: who owns one, what ends it, what a broken agent may not do to
//! another.

use std::time::Duration;

use protocol::{AgentSessionId, AgentStatus, CallId, Continuity};
use providers::claude::ClaudeProvider;
use providers::{Provider, ProviderError, StoredSession};
use upserts::ItemBody;
use uuid::Uuid;

use crate::claude_faults::{Bench, stored};
use crate::claude_real::programs_in;
use crate::listener::{Listener, soon};

/// A session that was given no message yet, opened with the options that the user had set.
async fn opened(bench: &Bench, provider: &ClaudeProvider, options: &[(&str, &str)]) -> Listener {
    let id = AgentSessionId::parse(Uuid::new_v4().to_string()).unwrap();
    let options = options.iter().map(|(option, value)| ((*option).to_owned(), (*value).to_owned())).collect();
    let stored = StoredSession { options, ..stored(&id, bench.project_dir()) };
    Listener::new(provider.load_session(stored).await.unwrap().opened)
}

/// TC-3.4b, TC-3.4c.
#[tokio::test]
async fn a_closed_session_has_no_process_any_more_and_is_not_alive() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let mut other = bench.create(&provider).await.unwrap();
    let turn = session.send("pid").await.unwrap();
    session.until_end_of(&turn).await;
    let process = std::path::PathBuf::from(format!("/proc/{}", session.answers(&turn)[0]));
    assert!(session.session.is_alive() && process.exists());

    let running = session.send("part:in the middle\nstall").await.unwrap();
    session.until("the middle", |session| session.text().contains("middle")).await;
    soon("the kill", session.session.close()).await.unwrap();
    assert!(!session.session.is_alive());
    assert!(!process.exists(), "it is gone when the call returns");
    session.until("its end", |session| session.closed).await;
    assert!(session.is_cancelled(&running), "{session:#?}");
    assert_eq!(session.answers(&running), ["in the middle"]);
    let again = session.session.close().await;
    assert!(matches!(again, Err(ProviderError::SessionNotFound(_))), "{again:?}");

    assert!(other.session.is_alive(), "the one beside it lives");
    let turn = other.send("say:still here").await.unwrap();
    other.until_end_of(&turn).await;
    assert_eq!(other.answers(&turn), ["still here"]);
    soon("the end", provider.shutdown()).await;
    assert!(!other.session.is_alive());
}

/// TC-3.3g.
#[tokio::test]
async fn a_result_of_a_call_nobody_made_is_a_finished_call_of_its_own() {
    for (word, failed) in [("result", false), ("failed", true)] {
        let bench = Bench::new("");
        let provider = bench.provider();
        let mut session = bench.create(&provider).await.unwrap();
        let turn = session.send(&format!("{word}:from nowhere\nsay:after")).await.unwrap();
        session.until_end_of(&turn).await;
        assert!(session.is_completed(&turn), "{session:#?}");
        let items = session.of(&turn);
        let call = items.iter().find(|item| matches!(item.body, ItemBody::ToolCall { .. })).unwrap();
        assert!(call.status.is_final(), "{call:#?}");
        let ItemBody::ToolCall { call_id, output: Some(output), is_error, .. } = &call.body else {
            panic!("{call:#?}")
        };
        assert_eq!(*call_id, CallId::from_foreign("toolu_nobodys"));
        assert_eq!((output.to_string().as_str(), *is_error), ("from nowhere", Some(failed)));
        assert_eq!(session.answers(&turn), ["after"]);
        soon("the end", provider.shutdown()).await;
    }
}

#[tokio::test]
async fn of_two_messages_at_once_one_begins_a_turn_and_the_other_is_refused() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    for _ in 0..5 {
        let send = |text: &'static str| session.send(text);
        let (first, second) = tokio::join!(send("say:one of them"), send("say:one of them"));
        let (turn, refused) = match (first, second) {
            (Ok(turn), Err(refused)) | (Err(refused), Ok(turn)) => (turn, refused),
            both => panic!("{both:?}"),
        };
        assert!(matches!(refused, ProviderError::TurnInProgress), "{refused:?}");
        session.until_end_of(&turn).await;
        assert_eq!(session.answers(&turn), ["one of them"]);
    }
    assert_eq!(session.turns.iter().filter(|turn| turn.is_end()).count(), 5);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn an_agent_that_takes_the_id_of_another_session_is_abandoned_and_the_other_is_not_touched() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut thief = bench.create(&provider).await.unwrap();
    let mut other = bench.create(&provider).await.unwrap();
    let id = thief.agent_id.clone();
    let turn = thief.send(&format!("say:mine\nbecome:{}\nwhole:not mine", other.agent_id)).await.unwrap();
    thief.until_end_of(&turn).await;
    let (code, message) = thief.error_of(&turn).unwrap();
    assert!(code == "PROCESS_CRASH" && message.contains("open already"), "{code} {message}");
    assert_eq!(thief.agent_id, id);

    let here = other.send("say:still here").await.unwrap();
    other.until_end_of(&here).await;
    assert_eq!(other.answers(&here), ["still here"]);
    assert!(other.text() == "still here" && other.session.is_alive(), "{other:#?}");

    soon("the restart", thief.session.reconnect()).await.unwrap();
    let back = thief.send("say:back").await.unwrap();
    thief.until_end_of(&back).await;
    assert_eq!(thief.answers(&back), ["back"]);
    assert_eq!(thief.answers(&turn), ["mine"], "nothing of what it sent in the other's name");
    assert!(thief.items.iter().all(|item| item.status.is_final()), "{thief:#?}");
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn an_id_that_is_not_a_uuid_is_not_taken_from_the_agent_and_never_given_to_it() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let id = session.agent_id.clone();
    for foreign in ["not-a-uuid", "--resume", "../../etc/passwd"] {
        let turn = session.send(&format!("become:{foreign}\nsay:received")).await.unwrap();
        session.until_end_of(&turn).await;
        assert_eq!(session.answers(&turn), ["received"]);
    }
    assert!(session.agent_id == id && session.session.is_alive());

    let odd = AgentSessionId::parse("not-a-uuid").unwrap();
    let mut opened = Listener::new(provider.load_session(stored(&odd, bench.project_dir())).await.unwrap().opened);
    let turn = opened.send("say:never").await.unwrap();
    opened.until_end_of(&turn).await;
    assert!(opened.error_of(&turn).is_some() && opened.text().is_empty(), "{opened:#?}");
    assert!(!opened.session.is_alive());
    soon("the end", provider.shutdown()).await;
}

/// What never reached the agent is nothing that it ought to remember.
#[tokio::test]
async fn a_message_cancelled_before_the_agent_is_up_does_not_make_the_session_a_copy() {
    let gate = tempfile::tempdir().unwrap();
    let open_gate = gate.path().join("open");
    let bench = Bench::new(&format!("wait:{}", open_gate.display()));
    let provider = bench.provider();
    let mut session = opened(&bench, &provider, &[]).await;
    let turn = session.send("say:never").await.unwrap();
    session.session.cancel().await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_cancelled(&turn), "{session:#?}");
    std::fs::write(&open_gate, "").unwrap();
    let next = session.send("say:first words").await.unwrap();
    session.until_end_of(&next).await;
    assert_eq!(session.answers(&next), ["first words"]);
    assert_eq!(session.continuity, [Continuity::Live], "{session:#?}");
    soon("the end", provider.shutdown()).await;
}

/// A message that waits is not stopped by an interrupt: it begins right after it.
#[tokio::test]
async fn a_message_that_begins_after_its_cancel_is_stopped_as_soon_as_it_begins() {
    let bench = Bench::new("tardy");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let turn = session.send("say:never").await.unwrap();
    session.session.cancel().await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_cancelled(&turn), "{session:#?}");
    let next = session.send("say:ready").await.unwrap();
    session.until_end_of(&next).await;
    assert_eq!(session.answers(&next), ["ready"]);
    let connected = session.statuses.iter().filter(|status| **status == AgentStatus::Connected);
    assert_eq!(connected.count(), 1, "in the same process: {session:#?}");
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_session_closed_while_its_agent_starts_leaves_no_process() {
    let gate = tempfile::tempdir().unwrap();
    let bench = Bench::new(&format!("wait:{}", gate.path().join("never").display()));
    let provider = bench.provider();
    let mut session = opened(&bench, &provider, &[]).await;
    let turn = session.send("say:never").await.unwrap();
    soon("a process", async {
        while programs_in(bench.project.path()).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    soon("the kill", session.session.close()).await.unwrap();
    session.until("its end", |session| session.closed).await;
    assert!(session.is_cancelled(&turn), "{session:#?}");
    soon("the process to go", async {
        while !programs_in(bench.project.path()).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_turn_that_does_not_stop_when_asked_is_stopped_with_its_process() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let turn = session.send("part:deaf\nstall").await.unwrap();
    session.until("the part", |session| session.text().contains("deaf")).await;
    session.session.cancel().await.unwrap();
    session.session.cancel().await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_cancelled(&turn), "{session:#?}");
    assert_eq!(session.answers(&turn), ["deaf"]);
    let next = session.send("say:another process").await.unwrap();
    session.until_end_of(&next).await;
    assert_eq!(session.answers(&next), ["another process"]);
    soon("the end", provider.shutdown()).await;
}

/// Who wants a plan must not get changes.
#[tokio::test]
async fn a_program_that_refuses_the_mode_the_user_set_gets_no_message_until_it_accepts_it_or_another_is_set() {
    let gate = tempfile::tempdir().unwrap();
    let open_gate = gate.path().join("open");
    let bench = Bench::new(&format!("stubborn:{}", open_gate.display()));
    let provider = bench.provider();
    let mut session = opened(&bench, &provider, &[("mode", "plan")]).await;
    // The first message starts the program, the second finds it running.
    for _ in 0..2 {
        let turn = session.send("mark:received\nsay:never").await.unwrap();
        session.until_end_of(&turn).await;
        let (_, message) = session.error_of(&turn).unwrap_or_else(|| panic!("{session:#?}"));
        assert!(
            message
                .contains(r#"the mode "plan" could not be set again: not today. Choose another one and send again."#),
            "{message}"
        );
        assert_eq!(session.text(), "");
    }
    assert!(!bench.project.path().join("received").exists());
    let refused = soon("an answer", session.session.set_option("mode", "default")).await;
    assert!(matches!(refused, Err(ProviderError::Protocol { .. })), "{refused:?}");
    std::fs::write(&open_gate, "").unwrap();
    let turn = session.send("say:planned").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.answers(&turn), ["planned"]);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_message_cancelled_while_the_program_is_slow_to_change_its_mode_does_not_hold_up_the_next() {
    let gate = tempfile::tempdir().unwrap();
    let open_gate = gate.path().join("open");
    let bench = Bench::new(&format!("mute:{}", open_gate.display()));
    let provider = bench.provider();
    let mut session = opened(&bench, &provider, &[("mode", "plan")]).await;
    let turn = session.send("say:never").await.unwrap();
    session.until("the program", |session| session.statuses.last() == Some(&AgentStatus::Connected)).await;
    session.session.cancel().await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_cancelled(&turn), "{session:#?}");
    std::fs::write(&open_gate, "").unwrap();
    let turn = session.send("say:planned").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.answers(&turn), ["planned"]);
    soon("the end", provider.shutdown()).await;
}
