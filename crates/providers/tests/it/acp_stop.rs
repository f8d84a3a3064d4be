//! Stop with ACP agents that do not stop: the turn ends all the same, what comes late is dropped, the next message is
//! answered or the session reports why not, and the agent's other sessions go on.

use std::time::Duration;

use protocol::{AgentStatus, Continuity, UpsertStatus};
use providers::acp::AcpSettings;
use providers::{Provider, ProviderError};

use crate::acp_bench::{Bench, items_of, until};
use crate::listener::{Listener, soon};

/// Gives an agent little time to stop.
fn impatient() -> AcpSettings {
    AcpSettings { cancel_grace: Duration::from_millis(200), ..AcpSettings::default() }
}

fn hangs(session: &Listener) -> bool {
    session.statuses.last() == Some(&AgentStatus::Disconnected)
        && session.details.last().is_some_and(|detail| detail.contains("hangs. Restart it"))
}

async fn stop(session: &Listener) {
    soon("the cancel", session.session.cancel()).await.unwrap();
}

/// A turn that answers `words` and ignores a cancel. When the gate `late` is open it goes on, and ends with a title.
const DEAF: &str =
    "say:words\ncall:c1 make\ndeaf:late\nsay: too late\noutput:c1 too late\ndone:c1 0\nthink:too late\ntitle:late over";

#[test]
fn the_user_is_promised_five_seconds() {
    assert!(AcpSettings::default().cancel_grace < Duration::from_secs(5));
}

#[tokio::test]
async fn a_turn_the_agent_does_not_stop_ends_here_and_the_next_message_is_answered_through_close_and_resume() {
    for args in [&[][..], &["no-resume"][..]] {
        let bench = Bench::with(args, impatient());
        let (mut session, mut other) = (bench.create().await, bench.create().await);
        bench.turn(&mut session, "say:before").await;
        let others = bench.send(&other, "say:one\nhold:go\nsay:two").await;
        other.until("its text", |session| session.text().contains("one")).await;
        let turn = bench.send(&session, DEAF).await;
        session.until("the call", |session| session.items.iter().any(|item| item.item_id.as_str() == "c1")).await;
        stop(&session).await;
        stop(&session).await;
        session.until_end_of(&turn).await;
        assert!(session.is_cancelled(&turn), "{:?}", session.end_of(&turn));
        assert!(session.of(&turn).iter().all(|item| item.status.is_final()), "{session:#?}");

        // The old prompt speaks and is answered in the middle of the next turn.
        let next = bench.send(&session, "say:next\nhold:on\nsay: answer").await;
        session.until("the next text", |session| session.text().contains("next")).await;
        bench.release("late");
        session.until("the late end", |session| session.facts.agent_title.as_deref() == Some("late over")).await;
        assert!(session.end_of(&next).is_none(), "the answer to the old prompt ended the new turn");
        bench.release("on");
        session.until_end_of(&next).await;
        assert!(session.is_completed(&next));
        assert_eq!(
            (session.answers(&turn), session.answers(&next)),
            (vec!["words".into()], vec!["next answer".into()])
        );
        let before = session.text().matches("before").count();
        assert_eq!(before, 1, "what a load replays is not shown again: {session:#?}");
        let method = if args.is_empty() { "session/resume" } else { "session/load" };
        assert_eq!((bench.count("session/cancel"), bench.count("session/close"), bench.count(method)), (1, 1, 1));

        bench.release("go");
        other.until_end_of(&others).await;
        assert_eq!(other.answers(&others), ["onetwo"]);
        assert_eq!(bench.count("start"), 1);
    }
}

#[tokio::test]
async fn an_agent_that_cannot_close_a_session_hangs_in_it_until_it_answers_and_its_others_go_on() {
    let bench = Bench::with(&["no-close"], impatient());
    let (mut session, mut other) = (bench.create().await, bench.create().await);
    let others = bench.send(&other, "say:one\nhold:go\nsay:two").await;
    let turn = bench.send(&session, DEAF).await;
    session.until("the call", |session| session.items.iter().any(|item| item.item_id.as_str() == "c1")).await;
    stop(&session).await;
    session.until_end_of(&turn).await;
    assert!(session.is_cancelled(&turn));
    session.until("word of it", hangs).await;
    let refused = soon("an answer", session.send("say:x")).await.unwrap_err();
    assert_eq!(refused.to_message().message, "Scripted does not answer. Restart it to go on.");
    // With nothing running it does nothing.
    stop(&session).await;

    bench.release("late");
    session.until("its return", |session| session.statuses.last() == Some(&AgentStatus::Connected)).await;
    assert_eq!(session.answers(&turn), ["words"]);
    assert!(!session.text().contains("too late"), "{session:#?}");
    let next = bench.turn(&mut session, "say:next").await;
    assert_eq!(session.answers(&next), ["next"]);
    assert_eq!(bench.count("session/prompt"), 3, "the refused message never reached it");
    bench.release("go");
    other.until_end_of(&others).await;
    assert_eq!(other.answers(&others), ["onetwo"]);
    assert_eq!((bench.count("start"), other.statuses.contains(&AgentStatus::Disconnected)), (1, false));
}

#[tokio::test]
async fn a_restart_repairs_a_session_whose_agent_hangs() {
    for args in [&["no-close"][..], &["no-resume", "no-load"][..], &["slow-close"][..], &["refuse-close"][..]] {
        let bench = Bench::with(args, impatient());
        let mut session = bench.create().await;
        bench.turn(&mut session, "say:before").await;
        let turn = bench.send(&session, "say:words\ndeaf:never").await;
        session.until("the text", |session| session.text().contains("words")).await;
        stop(&session).await;
        session.until_end_of(&turn).await;
        session.until("word of it", hangs).await;
        let refused = soon("an answer", session.send("say:x")).await;
        assert!(matches!(refused, Err(ProviderError::Protocol { .. })), "{args:?}: {refused:?}");
        soon("the restart", session.session.reconnect()).await.unwrap();
        session.until("its return", |session| session.statuses.last() == Some(&AgentStatus::Connected)).await;
        if args.contains(&"no-load") {
            // Nothing brings back what such an agent knew, and that is reported.
            assert_eq!(session.continuity.last(), Some(&Continuity::Copy));
            continue;
        }
        let next = bench.turn(&mut session, "say:next").await;
        assert_eq!(session.answers(&next), ["next"], "{args:?}");
    }
}

#[tokio::test]
async fn a_session_that_the_agent_closes_late_is_resumed_with_the_next_message() {
    let bench = Bench::with(&["slow-close"], impatient());
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:before").await;
    let turn = bench.send(&session, "say:words\ndeaf:never").await;
    session.until("the text", |session| session.text().contains("words")).await;
    stop(&session).await;
    session.until_end_of(&turn).await;
    session.until("word of it", hangs).await;
    bench.release(&format!("close-{}", session.agent_id));
    session.until("its return", |session| session.statuses.last() == Some(&AgentStatus::Connected)).await;
    let next = bench.turn(&mut session, "say:next").await;
    assert_eq!(session.answers(&next), ["next"]);
    assert_eq!((bench.count("session/resume"), bench.count("start")), (1, 1));
}

#[tokio::test]
async fn what_a_stopped_prompt_asks_late_is_refused_and_not_shown() {
    let bench = Bench::with(&["no-close"], impatient());
    let mut session = bench.create().await;
    let turn = bench.send(&session, "say:words\ndeaf:late\npermission:c1\nsay:too late").await;
    session.until("the text", |session| session.text().contains("words")).await;
    stop(&session).await;
    session.until_end_of(&turn).await;
    bench.release("late");
    bench.until_logged("permission cancelled").await;
    session.until("its return", |session| session.statuses.last() == Some(&AgentStatus::Connected)).await;
    assert!(session.items.iter().all(|item| item.item_id.as_str() != "c1"), "{session:#?}");
    assert_eq!(session.turns.len(), 2, "no turn of its own either: {session:#?}");
}

#[tokio::test]
async fn a_turn_that_ends_after_it_was_stopped_is_cancelled_however_the_agent_reports_its_end() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    for end in ["end_turn", "refusal", "max_tokens", "something new", "cancelled", "error it broke"] {
        let turn = bench.send(&session, &format!("say:{end}\nafter-stop:{end}\nhold:never")).await;
        session.until("the text", |session| session.answers(&turn) == [end]).await;
        stop(&session).await;
        session.until_end_of(&turn).await;
        assert!(session.is_cancelled(&turn), "{end}: {:?}", session.end_of(&turn));
        assert_eq!(session.answers(&turn), [end]);
    }
    assert_eq!(bench.count("session/close"), 0, "each was ended by the agent");
}

#[tokio::test]
async fn an_agent_that_crashes_while_it_stops_ends_the_turn_as_cancelled_and_is_shown_as_lost() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench.send(&session, "say:words\ncall:c1 make\nafter-stop:exit\nhold:never").await;
    session.until("the call", |session| session.items.len() == 3).await;
    stop(&session).await;
    session.until_end_of(&turn).await;
    assert!(session.is_cancelled(&turn), "{:?}", session.end_of(&turn));
    assert!(session.items.iter().all(|item| item.status.is_final() && item.status != UpsertStatus::Error));
    session.until("the loss", |session| session.statuses.contains(&AgentStatus::Disconnected)).await;
    session.until("its return", |session| session.statuses.last() == Some(&AgentStatus::Connected)).await;
    let next = bench.turn(&mut session, "say:next").await;
    assert_eq!(session.answers(&next), ["next"]);
}

#[tokio::test]
async fn a_replay_that_brings_nothing_of_a_session_with_messages_is_not_called_resumed() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:before").await;
    let id = session.agent_id.clone();
    soon("the end", bench.provider.shutdown()).await;

    let bench = bench.again(&["empty-load", "no-resume"]);
    let loaded = soon("the session", bench.provider.load_session(bench.stored_session(&id))).await.unwrap();
    assert_eq!((items_of(&loaded.history).len(), loaded.history.continuity), (0, Continuity::Copy));
    let mut session = Listener::new(loaded.opened);
    let turn = bench.turn(&mut session, "say:on").await;
    assert_eq!(session.answers(&turn), ["on"]);
    // After a crash of the agent as well.
    bench.kill().await;
    until("the load", || bench.count("session/load") == 2).await;
    session.until("its continuity", |session| !session.continuity.is_empty()).await;
    assert_eq!(session.continuity, [Continuity::Copy]);
}
