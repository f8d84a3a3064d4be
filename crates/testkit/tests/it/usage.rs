//! Tokens and cost: what agents report is summed per session and day, and survives a restart and an archive.

use protocol::ClientMessage;
use serde_json::Value;
use testkit::TestSetup;

async fn usage(setup: &TestSetup) -> Vec<Value> {
    let answer = setup.app.request("GET", "/api/usage?days=2", None).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    body["rows"].as_array().unwrap().clone()
}

fn sums(rows: &[Value], session: &str) -> Option<(u64, u64, u64, Option<f64>)> {
    let row = rows.iter().find(|row| row["sessionId"] == session)?;
    let number = |field: &str| row[field].as_u64().unwrap();
    Some((number("turns"), number("inputTokens"), number("outputTokens"), row["costUsd"].as_f64()))
}

#[tokio::test]
async fn what_agents_report_is_summed_per_session_and_day_and_survives_a_restart_and_an_archive() {
    let mut setup = TestSetup::start().await;
    let (mut window, first, mut screen) = setup.begin("codex").await;
    screen.converse(&mut window, "say:one").await;
    screen.converse(&mut window, "cost:0.5\nsay:two").await;
    let (mut other, second, mut screen) = setup.begin("codex").await;
    screen.converse(&mut other, "say:three").await;
    let is_there = |rows: &[Value]| {
        assert_eq!(sums(rows, first.as_str()), Some((2, 6, 10, Some(0.5))), "{rows:?}");
        assert_eq!(sums(rows, second.as_str()), Some((1, 3, 5, None)), "{rows:?}");
        assert_eq!(rows.len(), 2, "one row per session and day");
        assert_eq!(rows[0]["projectName"], "project");
    };
    is_there(&usage(&setup).await);

    window.call(&ClientMessage::SessionArchive { session_id: second.clone() }).await;
    setup.app.interrupt();
    setup.app.ended().await;
    let setup = setup.again().await;
    is_there(&usage(&setup).await);

    // Opening a session shows its old turns again. They are not used twice.
    let mut window = setup.app.window().await;
    testkit::Screen::open(&mut window, &first).await;
    is_there(&usage(&setup).await);

    let printed = setup.app.run(&["usage", "--by", "project"]).await;
    let printed = String::from_utf8(printed.stdout).unwrap();
    let line = printed.lines().find(|line| line.starts_with("project ")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["project", "3", "24", "$0.50"]);
    for wrong in ["0", "-1", "x"] {
        let answer = setup.app.request("GET", &format!("/api/usage?days={wrong}"), None).await;
        assert_eq!(answer.status, 400, "{answer:?}");
    }
}
