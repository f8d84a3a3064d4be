//! A session that its agent takes up under another id.

use futures_util::future::join_all;
use protocol::{ErrorCode, ServerMessage, SessionId, TurnStatus};
use providers::ProviderEvent;

use crate::puppet::{Stage, open, send};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_who_asks_by_the_old_id_misses_it_while_it_changes() {
    let stage = Stage::set().await;
    let mut seat = stage.seat();
    for round in 0..20 {
        let old = stage.create(&mut seat).await;
        stage.hub.kill(&old).await.unwrap();
        let new = SessionId::parse(format!("puppet:new-{round}")).unwrap();
        stage.puppet.goes_on_as(Some(&new));
        let loads = stage.puppet.count("load");
        let asked = join_all((0..8).map(async |_| {
            let loaded = stage.hub.load_session(&old).await;
            let (id, _, _) = stage.hub.session_status(&old).unwrap();
            (loaded.unwrap(), id)
        }));
        let looked = async {
            while stage.hub.session_status(&old).unwrap().0 != new {
                tokio::task::yield_now().await;
            }
        };
        let (asked, ()) = tokio::join!(asked, looked);
        assert!(asked.iter().all(|(loaded, id)| (loaded, id) == (&new, &new)), "{asked:?}");
        assert_eq!(stage.puppet.count("load"), loads + 1, "it is one session");
        let ServerMessage::SessionHistory { session_id, .. } = seat.call(open(&old, None)).await else { panic!() };
        assert_eq!(session_id, new);
    }
}

#[tokio::test]
async fn a_new_id_that_cannot_be_kept_is_an_error_and_the_session_can_be_tried_again() {
    let stage = Stage::set().await;
    let mut seat = stage.seat();
    let (session, other) = (stage.create(&mut seat).await, stage.create(&mut seat).await);
    for id in [&session, &other] {
        stage.hub.kill(id).await.unwrap();
    }
    stage.puppet.goes_on_as(Some(&other));
    let ServerMessage::Error(error) = seat.call(send(&session)).await else { panic!("it was sent") };
    assert_eq!(error.code, ErrorCode::SessionLoadFailed);
    assert!(error.detail.as_deref().unwrap_or_default().contains("its new id could not be saved"), "{error:?}");
    assert_eq!(stage.puppet.count("send"), 0);
    stage.puppet.until_called("kill", 3).await;
    stage.puppet.goes_on_as(None);
    stage.hub.send(&session, "hello".into()).await.unwrap();
    assert_eq!(stage.hub.session_status(&session).unwrap().0, session);
}

/// Its agent has nothing under the new id yet: whoever is asked to take it up after a restart must begin it anew too.
#[tokio::test]
async fn a_session_begun_anew_counts_as_never_spoken_to_until_it_is() {
    let stage = Stage::set().await;
    let mut seat = stage.seat();
    let old = stage.create(&mut seat).await;
    let speak = async |id: &SessionId| {
        stage.hub.send(id, "hello".into()).await.unwrap();
        stage.puppet.start_turn(id).await;
        stage.puppet.end_turn(id, TurnStatus::Completed).await;
    };
    let open_again = async |id: &SessionId| {
        stage.hub.kill(id).await.unwrap();
        stage.hub.load_session(id).await.unwrap();
        stage.puppet.opened().prompted
    };
    speak(&old).await;
    assert!(open_again(&old).await);
    let new = SessionId::parse("puppet:new").unwrap();
    stage.puppet.goes_on_as(Some(&new));
    assert!(open_again(&old).await);
    assert!(!open_again(&new).await, "nothing was said under the new id");
    speak(&new).await;
    assert!(open_again(&new).await);
}

#[tokio::test]
async fn a_session_is_opened_with_what_the_user_has_switched_in_it() {
    let stage = Stage::set().await;
    let mut seat = stage.seat();
    let session = stage.create(&mut seat).await;
    stage.hub.kill(&session).await.unwrap();
    stage.hub.load_session(&session).await.unwrap();
    assert!(stage.puppet.opened().chosen.is_empty());
    for mode in ["plan", "code"] {
        let chosen = [("mode".to_owned(), mode.to_owned())].into();
        stage.puppet.say(&session, ProviderEvent::Chosen(chosen)).await;
    }
    stage.hub.kill(&session).await.unwrap();
    let new = SessionId::parse("puppet:new").unwrap();
    stage.puppet.goes_on_as(Some(&new));
    stage.hub.load_session(&session).await.unwrap();
    assert_eq!(stage.puppet.opened().chosen["mode"], "code");
    stage.hub.kill(&new).await.unwrap();
    stage.hub.load_session(&new).await.unwrap();
    assert_eq!(stage.puppet.opened().chosen["mode"], "code", "it goes with the session to its new id");
}
