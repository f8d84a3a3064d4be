//! Processes: several, lost, idle, ended, and with another id.

use std::time::Duration;

use protocol::{Continuity, UpsertStatus};
use providers::claude::{ClaudeConfig, ClaudeProvider};
use providers::{NewSession, Provider, ProviderError};

use super::{Bench, kill_claude, output, programs_in, tool};
use crate::listener::{Listener, soon};

/// TC-3.2c.
#[tokio::test]
async fn a_killed_agent_ends_the_turn_with_what_was_sent_and_comes_back() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let before = session.send("say:before").await.unwrap();
    session.until_end_of(&before).await;
    let turn = session.send("say:in the middle\nhold:never").await.unwrap();
    session.until("the middle", |session| session.text().contains("middle")).await;
    kill_claude(bench.project.path());
    session.until_end_of(&turn).await;
    let (code, message) = session.error_of(&turn).unwrap();
    assert!(code == "PROCESS_CRASH" && message.contains("stopped unexpectedly"), "{code} {message}");
    let answers = session.of(&turn);
    assert_eq!(answers.last().unwrap().status, UpsertStatus::Error);
    assert_eq!(session.answers(&turn), ["in the middle"]);
    let refused = session.send("say:too soon").await;
    assert!(matches!(refused, Err(ProviderError::Unavailable { .. } | ProviderError::Crashed { .. })), "{refused:?}");

    session.until("the agent to be back", |session| session.continuity.last() == Some(&Continuity::Resumed)).await;
    use protocol::AgentStatus::*;
    assert_eq!(session.statuses[2..], [Disconnected, Reconnecting, Reconnecting, Connected], "{session:#?}");
    let after = session.send("say:after").await.unwrap();
    session.until_end_of(&after).await;
    assert_eq!(session.answers(&after), ["after"]);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn four_sessions_at_once_in_one_project_never_mix() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let create = || bench.create(&provider);
    let (a, b, c, d) = tokio::join!(create(), create(), create(), create());
    let mut sessions = [a, b, c, d];
    for round in 0..3 {
        let mut turns = Vec::new();
        for (number, session) in sessions.iter().enumerate() {
            let script = format!("say:s{number} r{round}\nbash:echo tool-{number}\nstream:50x1\nsay:end {number}");
            turns.push(session.send(&script).await.unwrap());
        }
        for (number, (session, turn)) in sessions.iter_mut().zip(&turns).enumerate() {
            session.until_end_of(turn).await;
            assert!(session.is_completed(turn), "{session:#?}");
            let items = session.of(turn);
            assert_eq!(output(tool(&items, "Bash")), format!("tool-{number}"));
            let answers = session.answers(turn);
            assert_eq!(answers[0], format!("s{number} r{round}"));
            assert!(answers[1].ends_with(&format!("end {number}")), "{answers:?}");
            let id = protocol::SessionId::new(provider.cli_type(), &session.agent_id);
            assert!(session.items.iter().all(|item| item.session_id == id));
        }
    }
    soon("the end", provider.shutdown()).await;
    for session in &mut sessions {
        session.until("its end", |session| session.closed).await;
    }
}

#[tokio::test]
async fn clear_goes_on_under_another_id() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let first = session.agent_id.clone();
    let turn = session.send("say:one").await.unwrap();
    session.until_end_of(&turn).await;
    let clear = session.send("/clear").await.unwrap();
    session.until_end_of(&clear).await;
    session.until("another id", |session| session.agent_id != first).await;
    let second = session.agent_id.clone();
    assert!(session.session.is_alive());
    let turn = session.send("say:two").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.answers(&turn), ["two"]);
    let id = protocol::SessionId::new(provider.cli_type(), &first);
    assert!(session.items.iter().all(|item| item.session_id == id), "our own id stays: {session:#?}");

    // Its command line still names the conversation it began with, which is nobody's now; the other one is its own.
    let mut old = Listener::new(provider.load_session(bench.stored(&first)).await.unwrap().opened);
    let turn = old.send("say:and the first again").await.unwrap();
    old.until_end_of(&turn).await;
    assert_eq!(old.answers(&turn), ["and the first again"], "{old:#?}");
    let elsewhere = bench.provider();
    let mut other = Listener::new(elsewhere.load_session(bench.stored(&second)).await.unwrap().opened);
    let turn = other.send("say:never").await.unwrap();
    other.until_end_of(&turn).await;
    let (_, message) = other.error_of(&turn).unwrap();
    assert!(message.contains("Another Claude Code has this session"), "{message}");
    soon("the end", elsewhere.shutdown()).await;
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn an_idle_process_is_ended_and_the_next_message_resumes() {
    let bench = Bench::new().await;
    let config = ClaudeConfig { idle: Some(Duration::from_millis(200)), ..bench.config() };
    let provider = ClaudeProvider::new(config).unwrap();
    let mut session = bench.create(&provider).await;
    for round in 0..2 {
        let turn = session.send(&format!("say:round {round}")).await.unwrap();
        session.until_end_of(&turn).await;
        assert_eq!(session.answers(&turn), [format!("round {round}")]);
        session
            .until("the process to go", |session| session.statuses.last() == Some(&protocol::AgentStatus::Idle))
            .await;
        assert!(!session.session.is_alive());
    }
    assert!(!session.statuses.contains(&protocol::AgentStatus::Disconnected), "{session:#?}");
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn the_agent_is_described_with_its_version() {
    let bench = Bench::new().await;
    let info = soon("the description", bench.provider().describe()).await;
    assert_eq!((info.name.as_str(), info.installed, info.version.as_deref()), ("Claude Code", true, Some("2.1.325")));
    // On a busy machine it is not known at once.
    let login = async |provider: &ClaudeProvider| loop {
        if let Some(known) = provider.describe().await.logged_in {
            return known;
        }
    };
    assert!(soon("the login", login(&bench.provider())).await, "there is a key");
    let mut without = bench.config();
    without.env.push(("ANTHROPIC_API_KEY".into(), None));
    assert!(!soon("the login", login(&ClaudeProvider::new(without).unwrap())).await);
    let missing = ClaudeConfig { command: "no-such-claude".into(), ..bench.config() };
    let provider = ClaudeProvider::new(missing).unwrap();
    let info = soon("the description", provider.describe()).await;
    assert_eq!((info.installed, info.version), (false, None));
    let failed = provider.create_session(NewSession { project_dir: bench.project_dir() }).await;
    let Err(error @ ProviderError::NotInstalled { .. }) = failed else { panic!("{failed:?}") };
    assert_eq!(error.to_message().install_hint.as_deref(), Some("npm install -g @anthropic-ai/claude-code"));
}

/// TC-5.3a.
#[tokio::test]
async fn nothing_is_left_running_after_the_end_not_even_a_tool() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let turn = session.send("bash:touch started && sleep 300").await.unwrap();
    session.until("the call", |session| session.of(&turn).len() == 2).await;
    let started = bench.file("started");
    soon("the tool to run", async {
        while !started.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(programs_in(bench.project.path()).len() > 1, "the program and its tool");
    soon("the end", provider.shutdown()).await;
    assert_eq!(programs_in(bench.project.path()), []);
    session.until("its end", |session| session.closed).await;
    assert!(session.is_cancelled(&turn), "{session:#?}");
    assert!(session.items.iter().all(|item| item.status == UpsertStatus::Complete), "{session:#?}");
}
