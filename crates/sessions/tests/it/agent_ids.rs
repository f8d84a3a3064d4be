//! A session whose agent continues it under another id of its own. Our id stays.

use futures_util::future::join_all;
use protocol::{AgentSessionId, ServerMessage, SessionId, TurnStatus};
use providers::ProviderEvent;

use crate::puppet::{Seat, Stage, open, send};

fn agent_id(id: &str) -> AgentSessionId {
    AgentSessionId::parse(id).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_id_of_a_session_stays_and_everyone_reaches_it_while_the_agents_id_changes() {
    let stage = Stage::set().await;
    let mut seat = stage.seat();
    for round in 0..20 {
        let session = stage.create(&mut seat).await;
        stage.hub.kill(&session).await.unwrap();
        let new = format!("new-{round}");
        stage.puppet.continues_as(Some(&new));
        let loads = stage.puppet.count("load");
        let loaded = join_all((0..8).map(async |_| {
            stage.hub.load_session(&session).await.unwrap();
            stage.hub.session_status(&session).unwrap();
        }));
        let saved = async {
            let is_saved = || stage.hub.catalog().session(&session).unwrap().current_agent_id() == agent_id(&new);
            while !is_saved() {
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(loaded, saved);
        assert_eq!(stage.puppet.count("load"), loads + 1, "it is one session");
        let ServerMessage::SessionHistory { session_id, .. } = seat.call(open(&session, None)).await else { panic!() };
        assert_eq!(session_id, session);
        assert!(stage.hub.list_sessions(&stage.project).unwrap().iter().any(|listed| listed.id == session));
    }
}

#[tokio::test]
async fn a_message_after_a_change_of_the_agents_id_finds_its_session_after_a_restart() {
    let stage = Stage::set().await;
    stage.puppet.answers();
    let mut seat = stage.seat();
    let session = stage.create(&mut seat).await;
    stage.hub.send(&session, "the first".into()).await.unwrap();
    stage.puppet.emit(&session, ProviderEvent::AgentIdChanged(agent_id("new"))).await;
    stage.hub.send(&session, "the second".into()).await.unwrap();
    // What was confirmed is on the disk: the agent's id first, and that it was given a message under it.
    let record = stage.hub.catalog().session(&session).unwrap();
    assert_eq!((record.current_agent_id(), record.prompted), (agent_id("new"), true));
    drop(seat);
    let stage = stage.restart().await;
    let mut seat = stage.seat();
    let sent = seat.ask(send(&session)).await;
    let turn = seat.until("the turn", |frame| frame.request_id.as_ref() == Some(&sent)).await;
    assert!(
        matches!(&turn.message, ServerMessage::SessionTurn { session_id, .. } if *session_id == session),
        "{turn:?}"
    );
    let opened = stage.puppet.opened();
    assert_eq!((opened.id, opened.agent_id, opened.prompted), (session, agent_id("new"), true));
}

/// Its agent has nothing under the new id yet: whoever opens it after a restart must have it created again.
#[tokio::test]
async fn a_session_under_a_new_id_of_its_agent_counts_as_never_prompted_until_it_is() {
    let stage = Stage::set().await;
    let mut seat = stage.seat();
    let session = stage.create(&mut seat).await;
    let prompt = async |id: &SessionId| {
        stage.hub.send(id, "hello".into()).await.unwrap();
        stage.puppet.start_turn(id).await;
        stage.puppet.end_turn(id, TurnStatus::Completed).await;
    };
    let open_again = async |id: &SessionId| {
        stage.hub.kill(id).await.unwrap();
        stage.hub.load_session(id).await.unwrap();
        let opened = stage.puppet.opened();
        (opened.agent_id.as_str().to_owned(), opened.prompted)
    };
    let first = session.agent_session_id().as_str().to_owned();
    prompt(&session).await;
    assert_eq!(open_again(&session).await, (first.clone(), true));
    stage.puppet.continues_as(Some("new"));
    assert_eq!(open_again(&session).await, (first, true));
    assert_eq!(open_again(&session).await, ("new".into(), false), "no message was given under the new id");
    prompt(&session).await;
    assert_eq!(open_again(&session).await, ("new".into(), true));
}

#[tokio::test]
async fn a_session_is_opened_with_the_options_that_the_user_has_set_in_it() {
    let stage = Stage::set().await;
    let mut seat = stage.seat();
    let session = stage.create(&mut seat).await;
    stage.hub.kill(&session).await.unwrap();
    stage.hub.load_session(&session).await.unwrap();
    assert!(stage.puppet.opened().options.is_empty());
    for mode in ["plan", "code"] {
        let options = [("mode".to_owned(), mode.to_owned())].into();
        stage.puppet.emit(&session, ProviderEvent::Options(options)).await;
    }
    stage.hub.kill(&session).await.unwrap();
    stage.puppet.continues_as(Some("new"));
    stage.hub.load_session(&session).await.unwrap();
    assert_eq!(stage.puppet.opened().options["mode"], "code");
    stage.hub.kill(&session).await.unwrap();
    stage.hub.load_session(&session).await.unwrap();
    assert_eq!(stage.puppet.opened().options["mode"], "code", "a new id of the agent's changes nothing else");
}

#[tokio::test]
async fn a_change_of_the_agents_id_in_a_turn_is_seen_by_no_window() {
    let (stage, mut seat, session) = Stage::begin().await;
    seat.ask(send(&session)).await;
    stage.puppet.start_turn(&session).await;
    stage.puppet.emit(&session, ProviderEvent::AgentIdChanged(agent_id("new"))).await;
    stage.puppet.end_turn(&session, TurnStatus::Completed).await;
    let end = until_end(&mut seat).await;
    assert_eq!(end, session);
    stage.hub.kill(&session).await.unwrap();
    stage.hub.load_session(&session).await.unwrap();
    let opened = stage.puppet.opened();
    assert_eq!((opened.agent_id, opened.prompted), (agent_id("new"), false), "the turn was begun under the old id");
}

async fn until_end(seat: &mut Seat) -> SessionId {
    let end = seat
        .until(
            "the end",
            |frame| matches!(&frame.message, ServerMessage::SessionTurn { payload, .. } if payload.is_end()),
        )
        .await;
    let ServerMessage::SessionTurn { session_id, .. } = end.message else { panic!() };
    session_id
}
