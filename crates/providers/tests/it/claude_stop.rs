//! Stop with a Claude Code that does not stop, or says so in its own way.

use protocol::{AgentStatus, UpsertStatus};
use providers::{Provider, ProviderError};

use crate::claude_faults::Bench;
use crate::listener::{Listener, soon};

fn connected(session: &Listener) -> usize {
    session.statuses.iter().filter(|status| **status == AgentStatus::Connected).count()
}

/// Four seconds of patience are in it.
#[tokio::test]
async fn an_interrupt_that_is_ignored_ends_the_turn_and_the_next_message_is_answered_by_another_process() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let (mut session, mut other) = (bench.create(&provider).await.unwrap(), bench.create(&provider).await.unwrap());
    let turn = session.send("say:words\ntool:make\nstall").await.unwrap();
    session.until("the call", |session| session.of(&turn).len() == 3).await;
    soon("the cancel", session.session.cancel()).await.unwrap();
    soon("the cancel", session.session.cancel()).await.unwrap();
    let refused = soon("an answer", session.send("say:too soon")).await;
    assert!(matches!(refused, Err(ProviderError::TurnInProgress)), "{refused:?}");
    let others = other.send("say:meanwhile").await.unwrap();
    other.until_end_of(&others).await;
    session.until_end_of(&turn).await;
    assert!(session.is_cancelled(&turn), "{:?}", session.end_of(&turn));
    assert_eq!(session.answers(&turn), ["words"]);
    assert!(session.of(&turn).iter().all(|item| item.status.is_final() && item.status != UpsertStatus::Error));

    let next = soon("the next turn", session.send("pid")).await.unwrap();
    session.until_end_of(&next).await;
    assert!(session.is_completed(&next), "{session:#?}");
    assert_eq!(connected(&session), 2, "a process of its own for each: {session:#?}");
    assert!(!session.statuses.contains(&AgentStatus::Disconnected), "{session:#?}");
    assert_eq!(connected(&other), 1);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_turn_that_ends_after_it_was_stopped_is_cancelled_however_the_program_words_its_end() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    for end in [
        r#"{"type":"result","subtype":"success","is_error":true,"result":"ok"}"#,
        r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#,
        r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["\ud83d"]}"#,
        r#"{"type":"result","subtype":"error_max_turns","is_error":tr"#,
    ] {
        let turn = session.send(&format!("part:words\non-stop:{end}")).await.unwrap();
        session.until("the text", |session| session.answers(&turn) == ["words"]).await;
        soon("the cancel", session.session.cancel()).await.unwrap();
        session.until_end_of(&turn).await;
        assert!(session.is_cancelled(&turn), "{end}: {:?}", session.end_of(&turn));
        assert_eq!(session.answers(&turn), ["words"]);
    }
    let turn = session.send("say:next").await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_completed(&turn), "{:?}", session.end_of(&turn));
    assert_eq!(connected(&session), 1, "in the same process");
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_program_that_crashes_while_it_stops_ends_the_turn_as_cancelled_and_is_shown_as_lost() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let turn = session.send("say:words\ntool:make\non-stop:exit:7").await.unwrap();
    session.until("the call", |session| session.of(&turn).len() == 3).await;
    soon("the cancel", session.session.cancel()).await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_cancelled(&turn), "{:?}", session.end_of(&turn));
    assert!(session.of(&turn).iter().all(|item| item.status.is_final() && item.status != UpsertStatus::Error));
    session.until("the loss", |session| session.statuses.contains(&AgentStatus::Disconnected)).await;
    assert!(session.details.iter().any(|detail| detail.contains("exit code 7")), "{:?}", session.details);
    session.until("another process", |session| connected(session) == 2).await;
    let next = session.send("say:next").await.unwrap();
    session.until_end_of(&next).await;
    assert_eq!(session.answers(&next), ["next"]);
    soon("the end", provider.shutdown()).await;
}
