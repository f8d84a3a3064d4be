//! Many windows on one session: slow ones, lost ones, and what a page costs.

use protocol::{ClientMessage, ServerMessage, SessionId};
use testkit::{Screen, TestApp, TestSetup, within};
use tokio::io::AsyncReadExt;

fn send(session: &SessionId, content: &str) -> ClientMessage {
    ClientMessage::SessionSend { session_id: session.clone(), content: content.into() }
}

/// What a page was sent for one turn.
struct Cost {
    bytes: usize,
    frames: usize,
}

/// Lets one turn run, and compares what a page and a plain window show of it.
async fn cost(app: &TestApp, setup: &TestSetup, shape: &str, pieces: usize) -> Cost {
    let (mut page, mut plain) = (app.view_window().await, app.window().await);
    let session = setup.create(&mut plain, "codex").await.id;
    let mut on_page = Screen::open(&mut page, &session).await;
    let (bytes, frames) = (page.bytes_read(), page.frames_read());
    plain.ask(&send(&session, &format!("paced:{pieces} {shape}"))).await;
    on_page.until_turn_end(&mut page).await;
    let in_full = Screen::open(&mut app.window().await, &session).await;
    assert_eq!(on_page.texts(), in_full.texts(), "{shape}: the merged frames say the same as the plain contract");
    let answer = on_page.items.last().unwrap();
    let text = answer.text.clone();
    // Not on the thread that serves the other windows: it takes seconds without optimization.
    let full = tokio::task::spawn_blocking(move || rendering::markdown(&text)).await.unwrap();
    let full: Vec<String> = full.iter().map(ToString::to_string).collect();
    assert_eq!(answer.blocks, full, "{shape}: and look like one render of the whole");
    Cost { bytes: page.bytes_read() - bytes, frames: page.frames_read() - frames }
}

/// The frame around what was added.
const HEAD_BYTES: usize = 300;

/// Linear cost: 48 KB of text in 2,000 pieces at 500 a second cost at most 500 KB, whatever their shape, and twice the text
/// twice that. Cost that grew with the square of the length would be four times as much.
///
/// At that rate two pieces make a frame. Where the agent is held up by a busy machine, fewer do: every frame beyond that
/// may cost its head.
#[tokio::test]
async fn a_long_answer_costs_a_page_little_more_than_its_length() {
    let setup = TestSetup::start().await;
    for (pieces, bytes_max) in [(2_000, 500_000), (4_000, 1_000_000)] {
        let shapes = ["paragraph", "code", "mixed"];
        let costs = futures_util::future::join_all(shapes.map(|shape| cost(&setup.app, &setup, shape, pieces))).await;
        for (shape, Cost { bytes, frames }) in shapes.iter().zip(costs) {
            let bytes_max = bytes_max + frames.saturating_sub(pieces / 2) * HEAD_BYTES;
            assert!(bytes <= bytes_max, "{shape}: {bytes} bytes in {frames} frames for {} of text", pieces * 24);
        }
    }
}

#[tokio::test]
async fn a_window_that_never_reads_is_disconnected_and_slows_nobody() {
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let session = setup.create(&mut window, "codex").await.id;
    let mut deaf = setup.app.window().await;
    Screen::open(&mut deaf, &session).await;
    let mut screen = Screen::open(&mut window, &session).await;
    // Each call is an item of its own, so nothing can be left out; together they are more than may wait for a window, and than
    // the sockets between take.
    let output = "y".repeat(4_000);
    for turn in 0..61 {
        let call =
            |number| format!("call:c{turn}-{number} x\noutput:c{turn}-{number} {output}\ndone:c{turn}-{number} 0\n");
        screen.converse(&mut window, &(0..200).map(call).collect::<String>()).await;
    }
    assert!(screen.items.len() > 12_000);
    assert!(screen.is_settled());
    // The server let the deaf one go: its socket ends instead of growing for ever.
    let mut stream = deaf.into_stream();
    within("the deaf window's socket to end", async {
        let mut buffer = vec![0; 1 << 20];
        while !matches!(stream.read(&mut buffer).await, Ok(0) | Err(_)) {}
    })
    .await;
}

#[tokio::test]
async fn a_window_that_reads_slowly_ends_with_the_final_state_of_everything() {
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let session = setup.create(&mut window, "codex").await.id;
    let mut slow = setup.app.window().await;
    let mut behind = Screen::open(&mut slow, &session).await;
    let mut screen = Screen::open(&mut window, &session).await;
    // The slow one reads nothing until the turn is over.
    screen.converse(&mut window, "think:hm\nflood:20000\ncall:c1 ls\noutput:c1 a\ndone:c1 0").await;
    behind.until_turn_end(&mut slow).await;
    assert_eq!(behind.texts(), screen.texts());
    assert_eq!(screen.answers()[0].len(), 20_000 * "12345678 ".len());
    assert!(behind.seqs.len() < 4_000, "what was superseded was left out: {} messages", behind.seqs.len());
}

/// TC-6.1a, TC-6.1b, TC-6.1c, TC-6.1d, TC-6.1e, TC-6.1f, TC-6.2a, TC-6.2b, TC-6.2c, TC-6.2d, TC-6.3b: what HTTP
/// does, windows see.
#[tokio::test]
async fn the_http_api_and_the_windows_are_about_the_same_sessions() {
    let setup = TestSetup::start().await;
    let body = serde_json::json!({"cliType": "codex", "projectId": setup.project});
    let created = setup.app.request("POST", "/api/session/create", Some(&body)).await;
    assert_eq!(created.status, 201);
    let id = created.json()["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(created.json()["cliType"], "codex");
    let list = setup.app.request("GET", &format!("/api/session/list?projectId={}", setup.project), None).await;
    assert_eq!((list.status, &list.json()["sessions"][0]["id"]), (200, &serde_json::json!(id)));

    let mut window = setup.app.window().await;
    let session = SessionId::parse(&id).unwrap();
    let mut screen = Screen::open(&mut window, &session).await;
    let body = serde_json::json!({"content": "say:over http\nhold:go"});
    let sent = setup.app.request("POST", &format!("/api/session/{id}/send"), Some(&body)).await;
    assert_eq!(sent.status, 202);
    screen.until(&mut window, "the text", |screen| screen.answers() == ["over http"]).await;
    let turn = sent.json()["turnId"].as_str().unwrap().to_owned();
    assert!(screen.items.iter().all(|item| item.last.turn_id.as_str() == turn), "TC-6.2d: one turn id throughout");
    let again = setup.app.request("POST", &format!("/api/session/{id}/send"), Some(&body)).await;
    assert_eq!((again.status, &again.json()["error"]["code"]), (409, &serde_json::json!("TURN_IN_PROGRESS")));
    let status = setup.app.request("GET", &format!("/api/session/{id}/status"), None).await.json();
    assert_eq!((&status["isAlive"], &status["state"]["attention"]), (&true.into(), &"working".into()));
    let nothing = serde_json::json!({});
    assert_eq!(setup.app.request("POST", &format!("/api/session/{id}/cancel"), Some(&nothing)).await.status, 200);
    screen.until_turn_end(&mut window).await;
    assert_eq!(setup.app.request("POST", &format!("/api/session/{id}/kill"), Some(&nothing)).await.status, 200);
    assert_eq!(setup.app.request("POST", &format!("/api/session/{id}/load"), Some(&nothing)).await.status, 200);
    screen.converse(&mut window, "say:and on").await;
    assert_eq!(screen.answers(), ["over http", "and on"]);

    let missing = setup.app.request("GET", "/api/session/list", None).await;
    assert_eq!((missing.status, &missing.json()["error"]["code"]), (400, &"PROJECT_ID_REQUIRED".into()));
    for (method, path) in [("GET", "status"), ("POST", "send"), ("POST", "cancel"), ("POST", "kill"), ("POST", "load")]
    {
        let body = (method == "POST").then(|| serde_json::json!({"content": "x"}));
        let answer = setup.app.request(method, &format!("/api/session/codex:nobody/{path}"), body.as_ref()).await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (404, &"SESSION_NOT_FOUND".into()), "{path}");
    }
    let body = serde_json::json!({"cliType": "nobody", "projectId": setup.project});
    let refused = setup.app.request("POST", "/api/session/create", Some(&body)).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &"UNSUPPORTED_CLI_TYPE".into()));
}

#[tokio::test]
async fn a_removed_project_stops_its_turns_and_has_its_sessions_again_when_it_is_restored() {
    let setup = TestSetup::start().await;
    let (mut window, session_id, mut screen) = setup.begin("codex").await;
    screen.send_until_answer(&mut window, "say:one \nhold:never\nsay:two", "one ").await;
    let mut other = setup.app.window().await;
    other.call(&ClientMessage::ProjectRemove { project_id: setup.project.clone() }).await;
    screen.until_turn_end(&mut window).await;
    assert_eq!(screen.answers(), ["one "]);
    other.call(&ClientMessage::ProjectRestore { project_id: setup.project.clone() }).await;
    let answer = window
        .call(&ClientMessage::SessionOpen {
            session_id: session_id.clone(),
            since: None,
            epoch: None,
            journal_id: None,
        })
        .await;
    let ServerMessage::SessionHistory { turns, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(turns.last().unwrap().status, protocol::TurnRecordStatus::Cancelled);
}
