//! Many sessions that stream at once, all on one process of one agent, all shown in one page.

use std::collections::HashMap;
use std::time::Instant;

use protocol::{ClientMessage, ServerMessage};

use super::{Figure, assert_peak, memory_kib};
use crate::{Screen, TestSetup, within};

const PIECE: &str = "12345678 ";
const SERVER_KIB_MAX: u64 = 96 * 1024;
/// What is kept of a session beside its text, and of its text: as it was sent, and as it is shown.
const SESSION_KIB_MAX: u64 = 512;
const TIMES_ITS_TEXT: u64 = 8;

/// So many sessions are each asked for an answer of so many pieces.
///
/// # Panics
/// When a word is missing in one of them, or the server takes too much memory.
pub async fn many_sessions(sessions: usize, pieces: usize) -> Vec<Figure> {
    let setup = TestSetup::start().await;
    let mut window = setup.app.view_window().await;
    let begun = Instant::now();
    let mut screens = HashMap::new();
    for _ in 0..sessions {
        let id = setup.create(&mut window, "codex").await.id;
        let screen = Screen::open(&mut window, &id).await;
        screens.insert(id, screen);
    }
    let mut figures = vec![Figure::time(format!("{sessions} sessions are created and opened"), begun)];
    assert_eq!(setup.agent_log().lines().filter(|line| line.starts_with("start ")).count(), 1, "one process for all");
    let (idle, _) = memory_kib(&setup.app);
    figures.push(Figure::memory("memory with all of them idle", idle));

    let begun = Instant::now();
    for session_id in screens.keys() {
        let content = format!("flood:{pieces}");
        window.ask(&ClientMessage::SessionSend { session_id: session_id.clone(), content }).await;
    }
    let is_over = |screen: &Screen| screen.turns.last().is_some_and(protocol::TurnEvent::is_end);
    let mut running = sessions;
    within("every session to have spoken", async {
        while running > 0 {
            let frame = window.next_frame().await;
            let (ServerMessage::SessionUpsert { session_id, .. } | ServerMessage::SessionTurn { session_id, .. }) =
                &frame.message
            else {
                continue;
            };
            let Some(screen) = screens.get_mut(session_id) else { continue };
            let was_over = is_over(screen);
            screen.take(&frame);
            running -= usize::from(!was_over && is_over(screen));
        }
    })
    .await;
    let chunks = (sessions * pieces) as f64;
    figures.push(Figure::time(format!("{pieces} pieces from each, all at once"), begun));
    figures.push(Figure::new("pieces a second", format!("{:.0}", chunks / begun.elapsed().as_secs_f64())));
    let answer = PIECE.repeat(pieces);
    for (id, screen) in &screens {
        assert!(screen.answers() == [answer.as_str()], "{id} answered something else");
        assert!(screen.is_settled(), "{id} shows something open");
    }
    let answers_kib = (answer.len() * sessions) as u64 / 1024;
    let peak =
        assert_peak(&setup.app, SERVER_KIB_MAX + SESSION_KIB_MAX * sessions as u64 + TIMES_ITS_TEXT * answers_kib);
    figures.push(Figure::memory("the most memory the server had", peak));
    figures
}
