//! More output than memory could hold, through one session: in one turn that never ends, and in turn after turn.

use std::time::{Duration, Instant};

use protocol::{ClientMessage, TurnEvent};

use super::{Figure, assert_peak, forget_peak, memory_kib};
use crate::{Screen, TestSetup, Window};

/// Messages of one turn. Well below the limit of one turn.
const MESSAGES_PER_TURN: usize = 8;
/// What one turn may bring at most is held once as it was sent and once as it is shown, and a little more.
const ONE_TURN_KIB_MAX: u64 = 1024 * 1024;
/// However many turns there were: what a session keeps at hand, and what is under way.
const MANY_TURNS_KIB_MAX: u64 = 1024 * 1024;

/// For the agent to send what nobody shows any more.
const FLOOD_TIME_MAX: Duration = Duration::from_secs(600);

/// So many mebibytes in one turn, which is more than a turn may bring. It ends with a word about it, and is cancelled at an
/// agent that does not react: its output is read and dropped until the timeout, and the session continues.
///
/// # Panics
/// When it does not, or the server takes too much memory.
pub async fn one_turn(mebibytes: usize) -> Vec<Figure> {
    let setup = TestSetup::start().await;
    let mut window = setup.app.view_window().await;
    let session = setup.create(&mut window, "codex").await.id;
    let mut screen = Screen::open(&mut window, &session).await;
    forget_peak(&setup.app);
    let begun = Instant::now();
    let end = long_turn(&mut screen, &mut window, &format!("big-flood:{mebibytes}")).await;
    let TurnEvent::TurnError { error_message, .. } = end else { panic!("the turn ended with {end:?}") };
    let mut figures = vec![Figure::time(format!("{mebibytes} MiB in one turn: until it is stopped"), begun)];
    figures.push(Figure::new("what the user sees", error_message));
    // Sent at once. It waits while the agent still has the turn that was stopped.
    let next = long_turn(&mut screen, &mut window, "again:still here").await;
    assert!(matches!(next, TurnEvent::TurnComplete { .. }), "the turn after it ended with {next:?}");
    assert_eq!(screen.answers().last(), Some(&"still here"));
    figures.push(Figure::time("until the next turn is over", begun));
    figures.push(Figure::memory("the most memory the server had", assert_peak(&setup.app, ONE_TURN_KIB_MAX)));
    figures
}

/// So many messages, a few to a turn, watched by a page and a plain window; none of it is an error. Each is what the
/// scripted agent answers to `script`: so many bytes.
///
/// # Panics
/// When a window ends with another text, or the memory the server takes grows with what was sent.
pub async fn many_turns(messages: usize, script: &str, bytes: usize) -> Vec<Figure> {
    let setup = TestSetup::start().await;
    let (mut page, mut plain) = (setup.app.view_window().await, setup.app.window().await);
    let session = setup.create(&mut page, "codex").await.id;
    let mut on_page = Screen::open(&mut page, &session).await;
    let mut in_full = Screen::open(&mut plain, &session).await;
    let turns = messages.div_ceil(MESSAGES_PER_TURN);
    let begun = Instant::now();
    for turn in 0..turns {
        let messages = (0..MESSAGES_PER_TURN).map(|number| format!("again:{turn}.{number} \n{script}\n"));
        let prompt = messages.collect::<String>();
        let (end, _) = tokio::join!(on_page.converse(&mut page, &prompt), in_full.until_turn_end(&mut plain));
        assert!(matches!(end, TurnEvent::TurnComplete { .. }), "turn {turn} ended with {end:?}");
        for screen in [&mut on_page, &mut in_full] {
            let answers = screen.answers();
            assert_eq!(answers.len(), MESSAGES_PER_TURN, "every message of turn {turn}");
            for (number, text) in answers.iter().enumerate() {
                let rest = text.strip_prefix(&format!("{turn}.{number} "));
                assert!(rest.is_some_and(|rest| rest.len() == bytes), "message {number} of turn {turn} is whole");
            }
            assert!(screen.is_settled());
            // A test need not hold what a browser would.
            screen.items.clear();
        }
    }
    let mebibytes = (turns * MESSAGES_PER_TURN * bytes) as f64 / f64::from(1 << 20);
    let mut figures = vec![Figure::time(format!("{mebibytes:.0} MiB in {turns} turns"), begun)];
    let rate = mebibytes / begun.elapsed().as_secs_f64();
    figures.push(Figure::new("MiB a second, to a page and a plain window", format!("{rate:.1}")));
    let (now, _) = memory_kib(&setup.app);
    figures.push(Figure::memory("memory after it", now));
    figures.push(Figure::memory("the most memory the server had", assert_peak(&setup.app, MANY_TURNS_KIB_MAX)));
    figures
}

/// Sends, and shows everything up to the end of that turn, however long it takes.
async fn long_turn(screen: &mut Screen, window: &mut Window, content: &str) -> TurnEvent {
    let message = ClientMessage::SessionSend { session_id: screen.session.clone(), content: content.into() };
    screen.turns.clear();
    window.ask(&message).await;
    let reading = tokio::time::timeout(FLOOD_TIME_MAX, async {
        loop {
            screen.take(&window.next_frame().await);
            if let Some(end) = screen.turns.last().filter(|turn| turn.is_end()) {
                break end.clone();
            }
        }
    });
    reading.await.unwrap_or_else(|_| panic!("the turn never ended"))
}
