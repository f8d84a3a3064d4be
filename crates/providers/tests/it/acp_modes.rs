//! The user's options stay set: over idle times, restarts of the agent and of ours.

use std::time::Duration;

use providers::acp::AcpSettings;
use providers::{Provider, ProviderError, StoredSession};

use crate::acp_bench::{Bench, until};
use crate::listener::{Listener, soon};

#[tokio::test]
async fn a_mode_is_set_at_the_agent_and_reported() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    soon("the option", session.session.set_option("mode", "code")).await.unwrap();
    session.until("the mode", |session| session.facts.options.as_ref().is_some_and(|all| all[0].value == "code")).await;
    let turn = bench.turn(&mut session, "mode").await;
    assert_eq!(session.answers(&turn), ["code"]);
    let refused = soon("an answer", session.session.set_option("mode", "dance")).await;
    assert!(matches!(refused, Err(ProviderError::Protocol { .. })));
}

fn mode(listener: &Listener) -> Option<&str> {
    listener.facts.options.as_ref().map(|options| options[0].value.as_str())
}

/// An agent forgets the mode with the session it closes, and with its process.
#[tokio::test]
async fn the_mode_the_user_set_is_set_again_before_the_next_message() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    soon("the option", session.session.set_option("mode", "code")).await.unwrap();
    let turn = bench.send(&session, "call:c1 sleep 100\nhold:never").await;
    session.until("the call", |session| session.items.len() == 2).await;
    soon("the cancel", session.session.cancel()).await.unwrap();
    session.until_end_of(&turn).await;
    bench.until_logged(&format!("session/close {}", session.agent_id)).await;
    let turn = bench.turn(&mut session, "mode").await;
    assert_eq!(session.answers(&turn), ["code"]);
    let asked: Vec<String> = bench.log().iter().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect();
    assert!(
        asked.ends_with(&["session/resume".into(), "session/set_mode".into(), "session/prompt".into()]),
        "{asked:?}"
    );

    bench.kill().await;
    session.until("the loss", |session| session.statuses.contains(&protocol::AgentStatus::Reconnecting)).await;
    session.until("the connection", |session| session.statuses.last() == Some(&protocol::AgentStatus::Connected)).await;
    let turn = bench.turn(&mut session, "mode").await;
    assert_eq!(session.answers(&turn), ["code"]);
    assert_eq!(mode(&session), Some("code"));
    assert_eq!((bench.count("start"), bench.count("session/set_mode")), (2, 3), "{:#?}", bench.log());
}

#[tokio::test]
async fn a_mode_set_while_the_session_is_evicted_is_set_before_its_next_message() {
    let settings = AcpSettings { idle: Some(Duration::from_millis(100)), ..AcpSettings::default() };
    let bench = Bench::with(&[], settings);
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:one").await;
    until("its rest", || !session.session.is_alive()).await;
    soon("the option", session.session.set_option("mode", "code")).await.unwrap();
    session.until("the mode", |session| mode(session) == Some("code")).await;
    assert_eq!(bench.count("session/set_mode"), 0, "it is not woken up for this");
    let turn = bench.turn(&mut session, "mode").await;
    assert_eq!(session.answers(&turn), ["code"]);
    assert_eq!(mode(&session), Some("code"));
}

#[tokio::test]
async fn the_users_options_are_reported_to_be_stored_and_set_again_after_a_restart_of_ours() {
    let bench = Bench::new(&["fixed-mode"]);
    let mut session = bench.create().await;
    soon("the option", session.session.set_option("mode", "code")).await.unwrap();
    bench.turn(&mut session, "say:one").await;
    let (id, options) = (session.agent_id.clone(), session.options.clone());
    assert_eq!(options, [("mode".to_owned(), "code".to_owned())].into());
    soon("the end", bench.provider.shutdown()).await;

    let bench = bench.again(&["fixed-mode"]);
    let stored = StoredSession { options, ..bench.stored_session(&id) };
    let loaded = soon("the session", bench.provider.load_session(stored.clone())).await.unwrap();
    assert_eq!(loaded.history.facts.options.as_ref().unwrap()[0].value, "code");
    let mut session = Listener::new(loaded.opened);
    let turn = bench.turn(&mut session, "mode").await;
    assert_eq!(session.answers(&turn), ["code"]);
    soon("the end", bench.provider.shutdown()).await;

    // An agent that refuses it shows the history, and gets no message.
    let bench = bench.again(&["fixed-mode"]);
    bench.release("fixed-mode");
    let loaded = soon("the session", bench.provider.load_session(stored)).await.unwrap();
    assert_eq!(loaded.history.turns.len(), 2);
    let session = Listener::new(loaded.opened);
    let refused = soon("an answer", session.send("mode")).await.unwrap_err();
    let ProviderError::LoadFailed { detail } = &refused else { panic!("{refused:?}") };
    assert!(detail.contains("The mode is fixed."), "{detail}");
}

#[tokio::test]
async fn options_set_before_the_first_message_are_set_in_the_session_that_is_created_again() {
    let bench = Bench::new(&[]);
    let session = bench.create().await;
    let options = [("mode".to_owned(), "code".to_owned()), ("gone".to_owned(), "x".to_owned())].into();
    let stored = StoredSession { prompted: false, options, ..bench.stored_session(&session.agent_id) };
    let handle = std::sync::Arc::clone(&session.session);
    drop(session);
    until("its end", || !handle.is_alive()).await;
    let loaded = soon("the session", bench.provider.load_session(stored)).await.unwrap();
    let mut session = Listener::new(loaded.opened);
    let turn = bench.turn(&mut session, "mode").await;
    assert_eq!(session.answers(&turn), ["code"]);
}

#[tokio::test]
async fn a_session_whose_mode_is_refused_after_its_eviction_gets_no_message_in_another() {
    let bench = Bench::new(&["fixed-mode"]);
    let mut session = bench.create().await;
    soon("the option", session.session.set_option("mode", "code")).await.unwrap();
    bench.release("fixed-mode");
    let turn = bench.send(&session, "call:c1 sleep 100\nhold:never").await;
    session.until("the call", |session| session.items.len() == 2).await;
    soon("the cancel", session.session.cancel()).await.unwrap();
    session.until_end_of(&turn).await;
    for _ in 0..2 {
        let refused = soon("an answer", session.send("mode")).await.unwrap_err();
        let ProviderError::LoadFailed { detail } = &refused else { panic!("{refused:?}") };
        assert!(detail.contains("The mode is fixed."), "{detail}");
    }
    assert_eq!(bench.count("session/prompt"), 1);
    assert_eq!(mode(&session), Some("code"));
}
