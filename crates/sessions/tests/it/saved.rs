//! What a session has to save is on the disk when the server has stopped, however soon that is after a message.

use protocol::{ServerMessage, TurnEvent};

use crate::puppet::{Stage, send};

#[tokio::test]
async fn a_stop_right_after_a_turn_loses_neither_the_title_nor_that_the_agent_was_prompted() {
    for round in 0..10 {
        let mut stage = Stage::set().await;
        stage.puppet.answers();
        let mut seat = stage.seat();
        let session = stage.create(&mut seat).await;
        seat.ask(send(&session)).await;
        let is_end = |event: &TurnEvent| event.is_end() || round % 2 == 0;
        seat.until(
            "the turn",
            |frame| matches!(&frame.message, ServerMessage::SessionTurn { payload, .. } if is_end(payload)),
        )
        .await;
        drop(seat);
        stage = stage.restart().await;
        let record = stage.hub.catalog().session(&session).unwrap();
        assert!(record.prompted, "round {round}");
        assert_ne!(record.title, "New Session", "round {round}");
    }
}
