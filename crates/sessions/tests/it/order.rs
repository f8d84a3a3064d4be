//! Calls reach the agent in the order in which they were requested.

use protocol::ClientMessage;

use crate::puppet::{Stage, open, send};

/// A message in another mode than the user chose, or a cancel that comes before its message, would be the result.
#[tokio::test(flavor = "multi_thread")]
async fn options_messages_and_cancels_reach_the_agent_in_the_order_in_which_a_window_sent_them() {
    for round in 0..30 {
        let stage = Stage::set().await;
        let mut seat = stage.seat();
        let session = stage.create(&mut seat).await;
        stage.hub.kill(&session).await.unwrap();
        // While the session loads all three wait, and are handled together.
        let loads = stage.puppet.hold_loads();
        seat.ask(open(&session, None)).await;
        let (option_id, value) = ("mode".to_owned(), "plan".to_owned());
        seat.ask(ClientMessage::SessionSetOption { session_id: session.clone(), option_id, value }).await;
        seat.ask(send(&session)).await;
        seat.ask(ClientMessage::SessionCancel { session_id: session.clone() }).await;
        loads.send_replace(true);
        // The kill has cancelled once.
        for (call, times) in [("option", 1), ("send", 1), ("cancel", 2)] {
            stage.puppet.until_called(call, times).await;
        }
        let calls = stage.puppet.calls();
        let position = |call: &str| calls.iter().rposition(|made| *made == call);
        assert!(
            position("option") < position("send") && position("send") < position("cancel"),
            "round {round}: {calls:?}"
        );
    }
}
