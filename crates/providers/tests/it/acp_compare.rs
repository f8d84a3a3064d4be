//! A session that our journal has is opened: its agent resumes it, loads it, or has lost it.

use protocol::{AgentSessionId, Continuity};
use providers::{HistoryWanted, LoadedSession, Provider, ProviderError, StoredSession};

use crate::acp_bench::{Bench, items_of};
use crate::listener::{Listener, soon};

/// A session with one turn whose server has stopped, and its agent's id.
async fn said_once(bench: Bench, args: &[&str]) -> (Bench, AgentSessionId) {
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:before").await;
    soon("the end", bench.provider.shutdown()).await;
    (bench.again(args), session.agent_id.clone())
}

fn compared(bench: &Bench, id: &AgentSessionId) -> StoredSession {
    StoredSession { history: HistoryWanted::Compare, ..bench.stored_session(id) }
}

async fn open(bench: &Bench, id: &AgentSessionId) -> LoadedSession {
    soon("the session", bench.provider.load_session(compared(bench, id))).await.unwrap()
}

/// The next message is answered in another session of the agent's, and nothing is called resumed.
async fn goes_on_as_copy(bench: &Bench, old: &AgentSessionId, loaded: LoadedSession) {
    assert_eq!((loaded.has_history, loaded.history.continuity), (false, Continuity::Copy));
    assert!(loaded.history.events.is_empty() && loaded.history.turns.is_empty());
    assert!(loaded.history.facts.options.is_some(), "{:?}", loaded.history.facts);
    let mut session = Listener::new(loaded.opened);
    let turn = bench.turn(&mut session, "say:on").await;
    assert_eq!(session.answers(&turn), ["on"]);
    assert_ne!(session.agent_id, *old);
    assert!(!session.continuity.contains(&Continuity::Resumed), "{:?}", session.continuity);
    // The agent resumes what it has, which is not all that is shown.
    bench.kill().await;
    session.until("its continuity", |session| !session.continuity.is_empty()).await;
    assert_eq!(session.continuity, [Continuity::Copy]);
}

#[tokio::test]
async fn an_agent_that_resumes_is_not_asked_to_replay() {
    let (bench, id) = said_once(Bench::new(&[]), &[]).await;
    let loaded = open(&bench, &id).await;
    assert_eq!((loaded.has_history, loaded.history.continuity), (false, Continuity::Resumed));
    assert!(loaded.history.events.is_empty() && loaded.history.turns.is_empty());
    assert!(loaded.history.facts.options.is_some(), "{:?}", loaded.history.facts);
    let mut session = Listener::new(loaded.opened);
    let turn = bench.turn(&mut session, "say:on").await;
    assert_eq!(session.answers(&turn), ["on"]);
    assert_eq!(session.agent_id, id);
    assert_eq!((bench.count("session/resume"), bench.count("session/load"), bench.count("session/new")), (1, 0, 1));
}

#[tokio::test]
async fn an_agent_that_is_slow_to_resume_is_not_called_resumed_before_it_has_answered() {
    let (bench, id) = said_once(Bench::new(&[]), &["slow-resume"]).await;
    let opening = bench.provider.load_session(compared(&bench, &id));
    tokio::pin!(opening);
    let asked = bench.until_logged("session/resume");
    tokio::select! {
        loaded = &mut opening => panic!("the agent has not answered: {loaded:?}"),
        () = asked => {}
    }
    bench.release(&format!("resume-{id}"));
    let loaded = soon("the session", opening).await.unwrap();
    assert_eq!(loaded.history.continuity, Continuity::Resumed);
}

#[tokio::test]
async fn an_agent_that_only_loads_or_refuses_to_resume_gives_its_history_to_be_compared() {
    for (args, resumes) in [(&["no-resume"][..], 0), (&["refuse-resume"][..], 1)] {
        let (bench, id) = said_once(Bench::new(&[]), args).await;
        let loaded = open(&bench, &id).await;
        assert_eq!((loaded.has_history, loaded.history.continuity), (true, Continuity::Resumed), "{args:?}");
        assert_eq!((items_of(&loaded.history).len(), loaded.history.turns.len()), (2, 1), "{args:?}");
        let mut session = Listener::new(loaded.opened);
        let turn = bench.turn(&mut session, "say:on").await;
        assert_eq!(session.answers(&turn), ["on"]);
        assert_eq!((session.items.len(), session.agent_id == id), (2, true), "{args:?}");
        assert_eq!((bench.count("session/resume"), bench.count("session/load")), (resumes, 1), "{args:?}");
    }
}

#[tokio::test]
async fn an_agent_that_replays_nothing_has_nothing_to_compare_and_is_a_copy() {
    let (bench, id) = said_once(Bench::new(&[]), &["empty-load", "no-resume"]).await;
    let loaded = open(&bench, &id).await;
    assert_eq!((loaded.has_history, loaded.history.continuity), (false, Continuity::Copy));
    let mut session = Listener::new(loaded.opened);
    let turn = bench.turn(&mut session, "say:on").await;
    assert_eq!((session.answers(&turn), session.agent_id == id), (vec!["on".to_owned()], true));
}

#[tokio::test]
async fn an_agent_that_can_neither_resume_nor_load_goes_on_in_another_session_as_a_copy() {
    let (bench, id) = said_once(Bench::new(&[]), &["no-load", "no-resume"]).await;
    let loaded = open(&bench, &id).await;
    goes_on_as_copy(&bench, &id, loaded).await;
    assert_eq!((bench.count("session/resume"), bench.count("session/load")), (0, 0));
}

#[tokio::test]
async fn a_session_that_the_agent_no_longer_has_goes_on_in_another_one_as_a_copy() {
    for args in [&[][..], &["no-list"][..], &["no-load"][..], &["no-resume"][..]] {
        let bench = Bench::new(args);
        let deleted = AgentSessionId::parse("deleted").unwrap();
        let loaded = open(&bench, &deleted).await;
        goes_on_as_copy(&bench, &deleted, loaded).await;
    }
}

/// What our journal shows was said to an earlier session of the agent's.
#[tokio::test]
async fn a_session_that_got_no_message_under_its_present_id_is_created_again_as_a_copy() {
    let bench = Bench::new(&[]);
    let id = AgentSessionId::parse("unused").unwrap();
    let stored = StoredSession { prompted: false, ..compared(&bench, &id) };
    let loaded = soon("the session", bench.provider.load_session(stored)).await.unwrap();
    goes_on_as_copy(&bench, &id, loaded).await;
}

/// It may succeed the next time, so no other session takes the place of it.
#[tokio::test]
async fn a_session_that_the_agent_has_and_refuses_is_not_replaced() {
    let (bench, id) = said_once(Bench::new(&[]), &["refuse-resume", "refuse-load"]).await;
    let refused = soon("an answer", bench.provider.load_session(compared(&bench, &id))).await;
    assert!(matches!(&refused, Err(ProviderError::LoadFailed { .. })), "{refused:?}");
    assert_eq!(bench.count("session/new"), 1);
    soon("the end", bench.provider.shutdown()).await;
    let bench = bench.again(&[]);
    assert_eq!(open(&bench, &id).await.history.continuity, Continuity::Resumed);
}
