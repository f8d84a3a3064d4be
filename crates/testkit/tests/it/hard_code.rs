//! Code that is made to keep a highlighter busy, on pages that grow and on pages that are opened.

use std::time::{Duration, Instant};

use protocol::{ClientMessage, ServerMessage, SessionId};
use rustix::process::Signal;
use testkit::{TestApp, TestSetup, within};

/// What `/api/health` may take.
const HEALTH_TIME_MAX: Duration = Duration::from_millis(100);
/// No single request may take longer, however busy the machine is. It was 20 s.
const HEALTH_TIME_CEILING: Duration = Duration::from_secs(3);
/// Of so many requests in a row the quickest counts: a machine that is busy with other things delays some of them.
const TRIES: usize = 8;
/// Such lines kept SIGTERM from being noticed for 20 s. An idle server stops in less than one.
const STOP_TIME_MAX: Duration = Duration::from_secs(5);

const SCRIPT: &str = "hard:scss -a\nhard:less -a\nhard:powershell -a\nhard:lua _a\nhard:erlang _a\nhard:r a.\n\
    hard:cmd-help a-\nhard:vim ..\nhard-edit:e1 x.less\nhard-edit:e2 x.scss\nhard:scss #{\nhard:php $a\nsay:done";

async fn assert_is_healthy(app: &TestApp, when: &str) {
    let mut times = Vec::new();
    for _ in 0..TRIES {
        let start = Instant::now();
        assert_eq!(app.request("GET", "/api/health", None).await.status, 200, "{when}");
        times.push(start.elapsed());
    }
    times.sort();
    println!("{when}: /api/health took {:?} to {:?}", times[0], times[TRIES - 1]);
    assert!(times[0] < HEALTH_TIME_MAX, "{when}: {times:?}");
    assert!(times[TRIES - 1] < HEALTH_TIME_CEILING, "{when}: {times:?}");
}

fn is_end_of_turn(message: &ServerMessage) -> bool {
    matches!(message, ServerMessage::SessionTurn { payload, .. } if payload.is_end())
}

#[tokio::test]
async fn a_page_full_of_code_that_is_hard_to_highlight_holds_nobody_up() {
    let mut setup = TestSetup::start().await;
    let mut plain = setup.app.window().await;
    let mut sessions: Vec<SessionId> = Vec::new();
    let mut pages = Vec::new();
    for _ in 0..3 {
        let session = setup.create(&mut plain, "codex").await.id;
        let mut page = setup.app.view_window().await;
        page.call(&ClientMessage::SessionOpen {
            session_id: session.clone(),
            since: None,
            epoch: None,
            journal_id: None,
        })
        .await;
        sessions.push(session);
        pages.push(page);
    }
    for session in &sessions {
        plain.ask(&ClientMessage::SessionSend { session_id: session.clone(), content: SCRIPT.into() }).await;
    }
    assert_is_healthy(&setup.app, "while it grows").await;
    for page in &mut pages {
        within("the end of the turn", page.until("the end of the turn", |frame| is_end_of_turn(&frame.message))).await;
    }
    assert_is_healthy(&setup.app, "while the last of it is drawn").await;
    // Windows that open all of it at once, each of which is to be drawn.
    let mut opened = Vec::new();
    for session in &sessions {
        let mut page = setup.app.view_window().await;
        page.ask(&ClientMessage::SessionOpen {
            session_id: session.clone(),
            since: None,
            epoch: None,
            journal_id: None,
        })
        .await;
        opened.push(page);
        assert_is_healthy(&setup.app, "while it is opened").await;
    }
    let start = Instant::now();
    setup.app.signal(Signal::TERM);
    setup.app.ended().await;
    let took = start.elapsed();
    println!("the server stopped {took:?} after SIGTERM");
    assert!(took < STOP_TIME_MAX, "the server stopped {took:?} after SIGTERM");
}
