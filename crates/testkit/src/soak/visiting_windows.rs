//! Windows that connect, send requests, lag, send nonsense and disconnect. Each reports how much of it there was.

use std::time::Duration;

use protocol::{ClientMessage, ErrorCode, ServerMessage, SessionId};
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

use super::resources::pause;
use crate::{Screen, TestApp};

/// Opens a session, looks for a moment, and is gone in the middle of whatever comes.
pub(super) async fn reload(
    app: &TestApp,
    sessions: &[SessionId],
    mut random: fastrand::Rng,
    over: &CancellationToken,
) -> usize {
    let mut windows = 0;
    while !over.is_cancelled() {
        let mut window = if random.bool() { app.window().await } else { app.view_window().await };
        let mut screen = Screen::open(&mut window, &sessions[random.usize(..sessions.len())]).await;
        let moment = Duration::from_millis(random.u64(..100));
        let _ = tokio::time::timeout(moment, screen.until(&mut window, "nothing", |_| false)).await;
        windows += 1;
    }
    windows
}

/// Asks for what there is and what there is not, and must have an answer each time.
pub(super) async fn ask(
    app: &TestApp,
    sessions: &[SessionId],
    mut random: fastrand::Rng,
    over: &CancellationToken,
) -> usize {
    let mut window = app.window().await;
    let nobody = SessionId::parse("steady:nobody").unwrap_or_else(|error| panic!("{error}"));
    let mut answered = 0;
    while pause(random.u64(..20), over).await {
        let session_id = sessions[random.usize(..sessions.len())].clone();
        let request = match random.u8(..6) {
            0 => ClientMessage::ProjectList {},
            1 => ClientMessage::AgentList {},
            2 => ClientMessage::PathComplete { prefix: "~/".into() },
            3 => ClientMessage::SessionOpen { session_id: nobody.clone(), since: None, epoch: None, journal_id: None },
            4 => ClientMessage::SessionSeen { session_id },
            _ => ClientMessage::SessionSend { session_id: nobody.clone(), content: "hello".into() },
        };
        // An error is an answer too.
        let _ = window.try_call(&request).await;
        answered += 1;
    }
    answered
}

/// Frames that are in no protocol; each is answered, and the connection lives.
pub(super) async fn send_nonsense(app: &TestApp, mut random: fastrand::Rng, over: &CancellationToken) -> usize {
    let mut window = app.window().await;
    let mut answered = 0;
    while pause(random.u64(..20), over).await {
        let length = random.usize(..200);
        let nonsense = match random.u8(..4) {
            0 => Message::text(std::iter::repeat_with(|| random.char(..)).take(length).collect::<String>()),
            1 => Message::binary(std::iter::repeat_with(|| random.u8(..)).take(length).collect::<Vec<u8>>()),
            2 => Message::text(r#"{"type":"session:send","sessionId":"../../etc","content":{}}"#),
            _ => Message::text("x".repeat(1_100_000)),
        };
        window.send(nonsense).await;
        let is_answer = |message: &ServerMessage| matches!(message, ServerMessage::Error(error) if error.code == ErrorCode::InvalidMessage);
        window.until("an answer to nonsense", |frame| is_answer(&frame.message)).await;
        answered += 1;
    }
    answered
}

/// Windows that open every session and never read a byte.
pub(super) async fn never_read(app: &TestApp, sessions: &[SessionId], over: &CancellationToken) -> usize {
    let mut deaf = Vec::new();
    for _ in 0..3 {
        let mut window = app.view_window().await;
        for session_id in sessions {
            window
                .ask(&ClientMessage::SessionOpen {
                    session_id: session_id.clone(),
                    since: None,
                    epoch: None,
                    journal_id: None,
                })
                .await;
        }
        deaf.push(window);
    }
    over.cancelled().await;
    deaf.len()
}
