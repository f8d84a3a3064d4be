//! Files that an earlier version wrote, kept in `tests/data`, and the messages at the end of a server.

use std::path::Path;

use protocol::{ClientMessage, ServerFrame, ServerMessage};
use serde_json::Value;
use testkit::{TestApp, TestSetup};
use uuid::Uuid;

/// The files of version 1, for a project that is there.
fn version_1(data_dir: &Path, project: &Path) {
    let path = project.to_str().unwrap();
    let id = Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("file://{path}").as_bytes()).to_string();
    testkit::make_private(data_dir);
    for name in ["projects.json", "sessions.json"] {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/version-1").join(name);
        let text = std::fs::read_to_string(kept).unwrap();
        std::fs::write(data_dir.join(name), text.replace("PROJECT_ID", &id).replace("PROJECT_PATH", path)).unwrap();
    }
}

#[tokio::test]
async fn files_of_version_1_are_read_and_nothing_in_them_is_lost() {
    let builder = TestApp::builder();
    let project = builder.home().join("weather").canonicalize().unwrap_or_else(|_| builder.home().join("weather"));
    std::fs::create_dir(&project).unwrap();
    let project = project.canonicalize().unwrap();
    version_1(&builder.data_dir(), &project);
    let app = builder.start().await;

    let listed = app.run(&["list", "--json"]).await;
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let titles: Vec<_> =
        listed["projects"][0]["sessions"].as_array().unwrap().iter().map(|session| &session["title"]).collect();
    assert_eq!(
        titles,
        ["Fix the rounding of degrees", "Show the forecast for the week"],
        "the archived one is not listed"
    );
    assert_eq!(listed["projects"][0]["name"], "weather");

    let mut window = app.window().await;
    let session_id = protocol::SessionId::parse("codex:019a4f7e-1111-7222-8333-944455566677").unwrap();
    window.call(&ClientMessage::SessionRename { session_id, title: "Degrees".into() }).await;
    let other = app.home().join("other");
    std::fs::create_dir(&other).unwrap();
    window.call(&ClientMessage::ProjectAdd { path: other.to_str().unwrap().into() }).await;
    let kept =
        |name: &str| -> Value { serde_json::from_slice(&std::fs::read(app.data_dir().join(name)).unwrap()).unwrap() };
    let (projects, sessions) = (kept("projects.json"), kept("sessions.json"));
    assert_eq!(projects["projects"][0]["colour"], "a field that only a later version knows");
    assert_eq!(projects["projects"].as_array().unwrap().len(), 2);
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 3);
    assert_eq!((&sessions["version"], &sessions["sessions"][1]["archived"]), (&1.into(), &true.into()));
}

#[tokio::test]
async fn the_first_ctrl_c_names_what_will_be_cancelled() {
    let mut setup = TestSetup::start().await;
    let (mut window, session, mut screen) = setup.begin("codex").await;
    let content = "say:Begun\nhold:never".to_owned();
    window.ask(&ClientMessage::SessionSend { session_id: session.clone(), content }).await;
    // The title is saved beside the turn, which does not wait for it.
    let titled = |frame: &ServerFrame| matches!(frame.message, ServerMessage::SessionTitleUpdated { .. });
    window.until("the title", titled).await;
    screen.reopen(&mut window, None).await;
    screen.until(&mut window, "the answer", |screen| screen.answers() == ["Begun"]).await;
    setup.app.interrupt();
    setup.app.until_printed("One agent is still working and will be cancelled:").await;
    assert_eq!(setup.app.until_printed("(Codex)").await, "  say:Begun hold:never (Codex)");
    setup.app.until_printed("Finished turns are kept").await;
    assert_eq!(setup.app.ended().await.code(), Some(0));
}
