//! Everything at once, for a long time: ten sessions on two agents, windows that stay, reload and crawl.
//!
//! `LIMINAL_STRESS_SEED` repeats a run, `LIMINAL_STRESS_TURNS` makes it longer (turns of each session).

use std::time::Duration;

use protocol::{ClientMessage, SessionId, TurnEvent, TurnRecordStatus};
use testkit::{DEADLINE, Screen, TestApp, TestSetup, Window};
use tokio::io::AsyncReadExt;

const SESSIONS: usize = 10;
const TURNS: usize = 200;
/// The newest items a page gets at once.
const PAGE_ITEMS: usize = 200;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

/// What one session is asked, turn by turn, and what it must answer.
struct Part {
    session: SessionId,
    prompts: Vec<String>,
    text: String,
}

impl Part {
    fn write(session: SessionId, mut seed: u64, turns: usize) -> Self {
        let mut next = |below: u64| {
            // xorshift: the same parts for the same seed, on every machine.
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % below
        };
        let is_codex = session.cli_type().as_str() == "codex";
        let (mut prompts, mut text) = (Vec::new(), String::new());
        for turn in 0..turns {
            let (mark, flood) = (next(1_000_000), next(30));
            prompts.push(format!("say:{turn} {mark}: \nflood:{flood}"));
            text.push_str(&format!("{turn} {mark}: "));
            // Each wire floods with a text of its own.
            match is_codex {
                true => text.push_str(&"12345678 ".repeat(flood as usize)),
                false => (0..flood).for_each(|number| text.push_str(&format!("{number} "))),
            }
        }
        Self { session, prompts, text }
    }

    async fn play(&self, window: &mut Window) -> Screen {
        let mut screen = Screen::open(window, &self.session).await;
        for prompt in &self.prompts {
            let end = screen.converse(window, prompt).await;
            assert!(matches!(end, TurnEvent::TurnComplete { .. }), "{}: {end:?}", self.session);
        }
        screen
    }
}

/// A window that stays and watches all sessions to their end.
async fn watch(app: &TestApp, parts: &[Part], turns: usize) -> Vec<Screen> {
    let mut window = app.view_window().await;
    let mut screens = Vec::new();
    for part in parts {
        let mut screen = Screen::new(&part.session);
        window
            .ask(&ClientMessage::SessionOpen {
                session_id: part.session.clone(),
                since: None,
                epoch: None,
                journal_id: None,
            })
            .await;
        screen.items.clear();
        screens.push(screen);
    }
    let is_over = |screen: &Screen| screen.turns.iter().filter(|turn| turn.is_end()).count() >= turns;
    while !screens.iter().all(is_over) {
        let frame = window.next_frame().await;
        screens.iter_mut().for_each(|screen| screen.take(&frame));
    }
    screens
}

/// Reopens the session over and over, as someone who reloads the page does, until its last turn is over.
async fn reload(app: &TestApp, part: &Part) -> Screen {
    loop {
        let mut window = app.view_window().await;
        let mut screen = Screen::open(&mut window, &part.session).await;
        // A page has the turns of the items that it was sent.
        let is_last = screen.asked().last() == part.prompts.last().map(String::as_str).as_ref();
        let is_over = screen.records.last().is_some_and(|turn| turn.status == TurnRecordStatus::Completed);
        if is_last && is_over {
            assert!(screen.is_settled());
            return screen;
        }
        let never = screen.until(&mut window, "the next reload", |_| false);
        let _ = tokio::time::timeout(Duration::from_millis(100), never).await;
    }
}

/// Reads one byte a second for as long as it is let.
async fn crawl(app: &TestApp, session: &SessionId) {
    let mut window = app.window().await;
    Screen::open(&mut window, session).await;
    let mut stream = window.into_stream();
    let mut byte = [0; 1];
    while stream.read(&mut byte).await.is_ok_and(|read| read > 0) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // Disconnected, because it was too far behind. It has no part in what the others see.
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn ten_sessions_at_once_reach_every_window_word_for_word() {
    let seed = setting("LIMINAL_STRESS_SEED").unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0).max(1);
    let turns = setting("LIMINAL_STRESS_TURNS").map_or(TURNS, |turns| turns as usize);
    println!("LIMINAL_STRESS_SEED={seed} LIMINAL_STRESS_TURNS={turns}");
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let mut parts = Vec::new();
    for number in 0..SESSIONS {
        let agent = if number % 2 == 0 { "codex" } else { "claude-code" };
        let session = setup.create(&mut window, agent).await.id;
        parts.push(Part::write(session, seed.wrapping_add(number as u64 * 0x9e37_79b9).max(1), turns));
    }
    drop(window);
    let playing = futures_util::future::join_all(parts.iter().map(|part| async {
        let mut window = setup.app.window().await;
        part.play(&mut window).await
    }));
    let watching = watch(&setup.app, &parts, turns);
    let reloading = reload(&setup.app, &parts[0]);
    let all = async { tokio::join!(playing, watching, reloading) };
    let (played, watched, reloaded) = tokio::select! {
        done = tokio::time::timeout(DEADLINE * 10, all) => done.expect("it never came to an end"),
        () = crawl(&setup.app, &parts[0].session) => unreachable!("a crawling window ends nothing"),
    };
    for ((part, played), watched) in parts.iter().zip(&played).zip(&watched) {
        assert!(played.answers().concat() == part.text, "{}: not the text of the agent (seed {seed})", part.session);
        assert!(watched.answers().concat() == part.text, "{}: the watching window differs (seed {seed})", part.session);
        assert!(played.is_settled() && watched.is_settled());
    }
    // A page gets the newest part; it is the same in every word.
    let (last, whole) = (reloaded.texts(), played[0].texts());
    assert!(last.len() >= whole.len().min(PAGE_ITEMS), "{} items after a reload", last.len());
    assert!(last.iter().all(|(id, text)| whole.get(id) == Some(text)), "the reloaded window differs (seed {seed})");
}
