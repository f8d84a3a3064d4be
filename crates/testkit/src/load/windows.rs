//! Many windows on one session, half of them pages and half of them plain.

use std::time::Instant;

use futures_util::future::join_all;
use protocol::ClientMessage;

use super::{Figure, assert_peak, memory_kib};
use crate::{Screen, TestSetup};

/// Frames are made once and shared: a window costs its socket, its buffers, and what waits for it.
const WINDOW_KIB_MAX: u64 = 1024;
const SERVER_KIB_MAX: u64 = 96 * 1024;

/// So many windows watch an answer of so many pieces.
///
/// # Panics
/// When one of them ends with another text than the one that asked, or the server takes too much memory.
pub async fn many_windows(windows: usize, pieces: usize) -> Vec<Figure> {
    let setup = TestSetup::start().await;
    let mut asking = setup.app.window().await;
    let session = setup.create(&mut asking, "codex").await.id;
    let mut screen = Screen::open(&mut asking, &session).await;
    let (before, _) = memory_kib(&setup.app);
    let begun = Instant::now();
    let opening = (0..windows).map(async |number| {
        let mut window = if number % 2 == 0 { setup.app.view_window().await } else { setup.app.window().await };
        let screen = Screen::open(&mut window, &session).await;
        (window, screen)
    });
    let mut watching = join_all(opening).await;
    let mut figures = vec![Figure::time(format!("{windows} windows open the session"), begun)];
    let (idle, _) = memory_kib(&setup.app);
    figures.push(Figure::new("memory for each, idle", format!("{} KiB", idle.saturating_sub(before) / windows as u64)));

    let begun = Instant::now();
    let content = format!("think:hm\npaced:{pieces} mixed\ncall:c1 ls\noutput:c1 a\ndone:c1 0\nflood:{pieces}");
    asking.ask(&ClientMessage::SessionSend { session_id: session.clone(), content }).await;
    let watch = join_all(watching.iter_mut().map(async |(window, screen)| {
        screen.until_turn_end(window).await;
        Instant::now()
    }));
    let (_, ends) = tokio::join!(screen.until_turn_end(&mut asking), watch);
    figures.push(Figure::time(format!("an answer of {} pieces is in all of them", pieces * 2), begun));
    if let (Some(first), Some(last)) = (ends.iter().min(), ends.iter().max()) {
        let apart = last.duration_since(*first).as_secs_f64() * 1000.0;
        figures.push(Figure::new("between the first that has it and the last", format!("{apart:.1} ms")));
    }
    let texts = screen.texts();
    for (number, (_, watched)) in watching.iter().enumerate() {
        assert!(watched.is_settled(), "window {number} shows something open");
        for item in watched.items.iter().filter(|item| item.origin.is_some()) {
            assert!(texts.get(item.id.as_str()) == Some(&item.text), "window {number} shows another text");
        }
        assert_eq!(watched.items.len(), texts.len(), "window {number} shows everything");
    }
    let peak = assert_peak(&setup.app, SERVER_KIB_MAX + WINDOW_KIB_MAX * windows as u64);
    figures.push(Figure::memory("the most memory the server had", peak));
    figures
}
