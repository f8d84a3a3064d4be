//! How sessions end: killed, archived, and with their server. Messages are sent and kept, and no process is left.

use std::collections::BTreeSet;
use std::time::Duration;

use protocol::{ClientMessage, ServerMessage, SessionId, TurnEvent, TurnStatus, UpsertStatus};
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::{Screen, TestApp, TestSetup, Window, within};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

fn send(session: &SessionId, content: &str) -> ClientMessage {
    ClientMessage::SessionSend { session_id: session.clone(), content: content.into() }
}

/// Every living process that this server's agents are made of: the agents, what they started, and their guardians.
fn processes_of(server: u32) -> BTreeSet<i32> {
    let mark = format!("LIMINAL_AGENT_MARK={server}.");
    let is_ours = |pid: i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(mark.as_bytes()))
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|pid| is_ours(*pid)).collect()
}

async fn until_gone(server: u32, processes: &BTreeSet<i32>) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    within("the processes to be gone", async {
        while !processes_of(server).is_disjoint(processes) {
            looks.tick().await;
        }
    })
    .await;
}

/// A session in the middle of a turn, and the processes that were started for it.
async fn working(setup: &TestSetup, window: &mut Window, agent: &str, prompt: &str) -> (Screen, BTreeSet<i32>) {
    let before = processes_of(setup.app.pid());
    let session = setup.create(window, agent).await.id;
    let mut screen = Screen::open(window, &session).await;
    window.ask(&send(&session, prompt)).await;
    screen.until(window, "the first text", |screen| screen.answers() == ["so far"]).await;
    let after = processes_of(setup.app.pid());
    (screen, after.difference(&before).copied().collect())
}

async fn post(app: &TestApp, session: &SessionId, what: &str) -> u16 {
    app.request("POST", &format!("/api/session/{session}/{what}"), Some(&json!({}))).await.status
}

/// TC-6.3a.
#[tokio::test]
async fn killing_a_session_ends_its_process_and_only_its() {
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let (mut killed, processes) = working(&setup, &mut window, "claude-code", "say:so far\nstall").await;
    let (mut other, others) = working(&setup, &mut window, "claude-code", "say:so far\nstall").await;
    assert!(!processes.is_empty() && !others.is_empty() && processes.is_disjoint(&others));
    assert_eq!(post(&setup.app, &killed.session, "kill").await, 200);
    until_gone(setup.app.pid(), &processes).await;
    assert!(others.is_subset(&processes_of(setup.app.pid())), "the other one goes on");
    let status = setup.app.request("GET", &format!("/api/session/{}/status", killed.session), None).await.json();
    assert_eq!((&status["isAlive"], &status["state"]["attention"]), (&false.into(), &"idle".into()));
    killed.reopen(&mut window, None).await;
    assert!(killed.is_settled() && killed.answers() == ["so far"], "{:?}", killed.items);
    assert_eq!(post(&setup.app, &other.session, "cancel").await, 200);
    other.until_turn_end(&mut window).await;
}

/// TC-6.3a for a session that is archived: what was begun for it does not work on unseen.
#[tokio::test]
async fn archiving_a_working_session_ends_its_process() {
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let (screen, processes) = working(&setup, &mut window, "claude-code", "say:so far\nstall").await;
    assert!(!processes.is_empty());
    window.call(&ClientMessage::SessionArchive { session_id: screen.session.clone() }).await;
    until_gone(setup.app.pid(), &processes).await;
    assert!(setup.sessions(&mut window).await.is_empty());
}

/// What a window receives from now on, up to its close.
async fn to_the_end(window: &mut Window, screens: &mut [Screen]) {
    within("the window to be closed", async {
        loop {
            match window.next_or_close().await {
                Ok(frame) => screens.iter_mut().for_each(|screen| screen.take(&frame)),
                Err(close) => return assert_eq!(close.expect("a close frame").code, CloseCode::Away),
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_asked_to_stop_settles_its_turns_before_every_window_and_leaves_no_process() {
    let mut setup = TestSetup::start().await;
    let mut windows = [setup.app.window().await, setup.app.view_window().await];
    let (mut codex, _) = working(&setup, &mut windows[0], "codex", "say:so far\ncall:c1 sleep\nhold:never").await;
    // While the other one begins, nobody looks at what this window receives of the first.
    let runs_its_call = |screen: &Screen| match &screen.items[..] {
        [_, answer, call] => answer.status.is_final() && !call.status.is_final(),
        _ => false,
    };
    codex.until(&mut windows[0], "its call", runs_its_call).await;
    let (claude, _) = working(&setup, &mut windows[0], "claude-code", "say:so far\nstall").await;
    let sessions = [codex.session.clone(), claude.session.clone()];
    let mut seen = [vec![codex, claude], Vec::new()];
    for session in &sessions {
        let screen = Screen::open(&mut windows[1], session).await;
        seen[1].push(screen);
    }
    let (server, processes) = (setup.app.pid(), processes_of(setup.app.pid()));
    assert!(processes.len() >= 4, "two agents and their guardians: {processes:?}");
    setup.app.signal(Signal::TERM);
    for (window, screens) in windows.iter_mut().zip(&mut seen) {
        to_the_end(window, screens).await;
        for screen in screens {
            assert_eq!(screen.answers(), ["so far"]);
            assert!(screen.is_settled(), "{:?}", screen.items);
            let end = screen.turns.last().expect("the end of the turn");
            assert!(matches!(end, TurnEvent::TurnComplete { status: TurnStatus::Cancelled, .. }), "{end:?}");
            let message = screen.items.iter().find(|item| item.text == "so far").unwrap();
            assert_eq!(message.status, UpsertStatus::Complete, "what was shown stays");
        }
    }
    assert_eq!(setup.app.ended().await.code(), Some(0));
    assert_eq!(processes_of(server), BTreeSet::new(), "none is left to a guardian");

    // Also what may lag behind is on the disk.
    let kept = std::fs::read(setup.app.data_dir().join("sessions.json")).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    for screen in &seen[0] {
        let record = kept["sessions"].as_array().unwrap().iter().find(|record| record["id"] == screen.session.as_str());
        let Some(TurnEvent::TurnComplete { at, .. }) = screen.turns.last() else { panic!() };
        let at = serde_json::to_value(at).unwrap();
        assert!(record.unwrap()["lastActiveAt"].as_str() >= at.as_str(), "{record:?} is older than {at}");
    }
}

#[tokio::test]
async fn who_asks_for_more_while_the_server_ends_is_refused_and_holds_nothing_up() {
    let mut setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    // An agent that ends its turn for nobody, so that the end takes a while.
    let (screen, _) = working(&setup, &mut window, "codex", "say:so far\ndeaf:never").await;
    setup.app.signal(Signal::TERM);
    setup.app.until_printed("Stopping").await;
    let request = window.ask(&send(&screen.session, "say:more")).await;
    let mut refusal = None;
    within("the window to be closed", async {
        while let Ok(frame) = window.next_or_close().await {
            if frame.request_id.as_ref() == Some(&request) {
                refusal = Some(frame.message);
            }
        }
    })
    .await;
    assert!(matches!(refusal, Some(ServerMessage::Error(_))), "{refusal:?}");
    assert_eq!(setup.app.ended().await.code(), Some(0));
}
