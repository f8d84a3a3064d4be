//! Starting, stopping, and standing in each other's way.

use std::net::TcpListener;

use protocol::ClientMessage;
use rustix::process::Signal;
use testkit::{TestApp, run_to_end};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

#[tokio::test]
async fn ctrl_c_closes_every_window_with_a_word_and_ends_well() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut app = TestApp::start().await;
        let mut windows = [app.window().await, app.view_window().await];
        app.signal(signal);
        for window in &mut windows {
            assert_eq!(window.closed().await.expect("a close frame").code, CloseCode::Away);
        }
        assert_eq!(app.ended().await.code(), Some(0));
    }
}

#[tokio::test]
async fn a_window_that_does_not_answer_does_not_hold_up_the_end() {
    let mut app = TestApp::start().await;
    let deaf = app.window().await;
    let half_open = tokio::net::TcpStream::connect(app.address()).await.unwrap();
    app.interrupt();
    assert_eq!(app.ended().await.code(), Some(0));
    drop((deaf, half_open));
}

#[tokio::test]
async fn after_a_stop_the_same_directory_and_port_can_be_taken_again() {
    let mut app = TestApp::start().await;
    let mut window = app.window().await;
    let path = app.home().to_str().unwrap().to_owned();
    window.call(&ClientMessage::ProjectAdd { path }).await;
    let port = app.address().port().to_string();
    app.interrupt();
    app.ended().await;
    let again = app.again().arg("--port").arg(&port).start().await;
    assert_eq!(again.address(), app.address());
}

#[tokio::test]
async fn a_port_in_use_is_named_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let home = tempfile::tempdir().unwrap();
    let ended = run_to_end(&["--port", &port, "--no-open", "--data-dir", home.path().to_str().unwrap()]);
    let words = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1));
    assert!(words.contains(&format!("port {port}")) && words.contains("in use") && words.contains("--port"), "{words}");
    assert!(ended.stdout.is_empty(), "it said nothing of listening");
}

#[tokio::test]
async fn a_second_server_on_the_same_directory_is_refused_and_names_the_first() {
    let app = TestApp::start().await;
    let ended = run_to_end(&["--port", "0", "--no-open", "--data-dir", app.data_dir().to_str().unwrap()]);
    let words = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1));
    assert!(words.contains(&format!("http://{}", app.host())) && words.contains(&app.pid().to_string()), "{words}");
    app.window().await.call(&ClientMessage::ProjectList {}).await;
}

#[tokio::test]
async fn wrong_usage_is_told_apart_from_failure() {
    for args in [&["--no-such-flag"][..], &["--port", "70000"], &["--log", "=="], &["--allowed-hosts", "http://x"]] {
        let ended = run_to_end(args);
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {ended:?}");
        assert!(!ended.stderr.is_empty());
    }
}

#[tokio::test]
async fn help_and_version_are_there_for_the_asking() {
    let version = run_to_end(&["--version"]);
    assert_eq!(String::from_utf8_lossy(&version.stdout), format!("liminal-builder {}\n", env!("CARGO_PKG_VERSION")));
    let help = String::from_utf8_lossy(&run_to_end(&["--help"]).stdout).into_owned();
    for name in [
        "LIMINAL_HOST",
        "LIMINAL_PORT",
        "LIMINAL_DATA_DIR",
        "LIMINAL_ALLOWED_HOSTS",
        "LIMINAL_LOG",
        "CLAUDE_CMD",
        "CODEX_ACP_CMD",
        "ACP_START_TIMEOUT_MS",
        "ACP_PROMPT_TIMEOUT_MS",
        "LIMINAL_IDLE_MINUTES",
        "--open",
        "--no-open",
        "--no-auth",
        "--log-json",
        "--version",
    ] {
        assert!(help.contains(name), "{name} is missing in\n{help}");
    }
}

#[tokio::test]
async fn settings_come_from_the_environment_and_flags_win() {
    let builder = TestApp::builder();
    let (by_variable, by_flag) = (builder.home().join("variable"), builder.home().join("flag"));
    let app = builder.env("LIMINAL_DATA_DIR", &by_variable).env("LIMINAL_PORT", "1").start().await;
    assert!(by_variable.join("token").exists() && app.address().port() != 1);
    let app = app.again().env("LIMINAL_DATA_DIR", &by_variable).arg("--data-dir").arg(&by_flag).start().await;
    assert!(by_flag.join("token").exists());
    drop(app);
}
