//! Starting, stopping, and standing in each other's way.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::{CliType, ClientMessage, ServerMessage};
use rustix::process::Signal;
use testkit::{Builder, TestApp, exchange, run_to_end, within};
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

#[tokio::test]
async fn ctrl_c_closes_every_window_with_a_word_and_ends_well() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        // These tests themselves may run under `nohup`.
        if signal == Signal::HUP && ignores_hang_ups("self") {
            continue;
        }
        let mut app = TestApp::start().await;
        let mut windows = [app.window().await, app.view_window().await];
        app.signal(signal);
        for window in &mut windows {
            assert_eq!(window.closed().await.expect("a close frame").code, CloseCode::Away);
        }
        assert_eq!(app.ended().await.code(), Some(0));
    }
}

/// As the kernel sees it.
fn ignores_hang_ups(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    ignored & (1 << (Signal::HUP.as_raw() - 1)) != 0
}

#[tokio::test]
async fn under_nohup_the_end_of_the_terminal_is_not_the_end() {
    let mut app = TestApp::builder().through(&["nohup"]).start().await;
    let mut window = app.window().await;
    assert!(ignores_hang_ups(&app.pid().to_string()));
    app.signal(Signal::HUP);
    window.call(&ClientMessage::ProjectList {}).await;
    // It was no first signal either: this one drains in order.
    app.interrupt();
    assert_eq!(window.closed().await.expect("a close frame").code, CloseCode::Away);
    assert_eq!(app.ended().await.code(), Some(0));
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
async fn a_request_that_never_ends_does_not_hold_up_the_end() {
    let mut app = TestApp::start().await;
    let mut slow = tokio::net::TcpStream::connect(app.address()).await.unwrap();
    let head = format!(
        "POST /api/session/create HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        app.host(),
        app.token()
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(app.request("GET", "/api/health", None).await.status, 200);
    app.interrupt();
    assert_eq!(app.ended().await.code(), Some(0));
}

/// An agent that, once spoken to, writes its process id to `file`, never answers, and does not exit when asked.
fn stubborn_agent(data_dir: &Path, file: &Path) {
    testkit::make_private(data_dir);
    let script = "read -r _; echo $$ > \"$PID_FILE.part\" && mv \"$PID_FILE.part\" \"$PID_FILE\"; trap '' TERM; while :; do sleep 1; done";
    let agents = serde_json::json!({"agent_servers": {"Stubborn": {
        "command": "/bin/sh", "args": ["-c", script], "env": {"PID_FILE": file}
    }}});
    std::fs::write(data_dir.join("agents.json"), agents.to_string()).unwrap();
}

/// Waits for what can be seen but is not reported.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    within(what, async {
        while !is_so() {
            looks.tick().await;
        }
    })
    .await;
}

/// A server whose one agent does not exit when asked, with what `/proc` has of that agent.
async fn with_stubborn_agent(builder: Builder) -> (TestApp, PathBuf) {
    let pid_file = builder.home().join("agent.pid");
    stubborn_agent(&builder.data_dir(), &pid_file);
    let app = builder.start().await;
    let mut window = app.window().await;
    let path = app.home().to_str().unwrap().to_owned();
    let ServerMessage::ProjectAdded { project } = window.call(&ClientMessage::ProjectAdd { path }).await else {
        panic!("no project was added")
    };
    let cli_type = CliType::parse("Stubborn").unwrap();
    window.ask(&ClientMessage::SessionCreate { project_id: project.id, cli_type }).await;
    until("the agent to start", || pid_file.exists()).await;
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    let agent = Path::new("/proc").join(pid.trim());
    assert!(agent.exists());
    (app, agent)
}

#[tokio::test]
async fn what_does_not_stop_in_time_is_left_behind_by_the_server_and_ended_by_the_guardian() {
    let (mut app, agent) = with_stubborn_agent(TestApp::builder().arg("--stop-time-ms").arg("0")).await;
    app.interrupt();
    // 1, and not the 0 of a server that had all the time it wanted.
    assert_eq!(app.ended().await.code(), Some(1));
    until("the agent to be gone", || !agent.exists()).await;
    drop(app.again().start().await);
}

/// Its guardian would end it too, but only after the server.
#[tokio::test]
async fn an_agent_that_is_just_starting_is_gone_when_the_server_is() {
    let (mut app, agent) = with_stubborn_agent(TestApp::builder()).await;
    app.signal(Signal::TERM);
    assert_eq!(app.ended().await.code(), Some(0));
    assert!(!agent.exists(), "it was waited for");
}

#[tokio::test]
async fn a_second_ctrl_c_exits_at_once_and_still_leaves_no_agent_behind() {
    let (mut app, agent) = with_stubborn_agent(TestApp::builder()).await;
    app.interrupt();
    app.until_printed("Stopping").await;
    app.interrupt();
    assert_eq!(app.ended().await.code(), Some(130));
    until("the agent to be gone", || !agent.exists()).await;
}

#[tokio::test]
async fn the_browser_is_opened_with_a_link_that_works_once_and_holds_no_secret() {
    let builder = TestApp::builder();
    let (tools, opened) = (builder.home().join("tools"), builder.home().join("opened"));
    std::fs::create_dir(&tools).unwrap();
    let opener = tools.join("xdg-open");
    let script = format!("#!/bin/sh\necho \"$1\" > {0}.part && mv {0}.part {0}\n", opened.display());
    testkit::programs::script(&opener, &script);
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let app = builder.env("PATH", path).arg("--open").start().await;
    until("the browser to be opened", || opened.exists()).await;

    let link = std::fs::read_to_string(&opened).unwrap();
    assert!(!link.contains(app.token()), "every user of the machine can read a command line");
    let path = link.trim().strip_prefix(&format!("http://{}", app.host())).expect("a link to this server").to_owned();
    let host = app.host();
    let first = exchange(app.address(), "GET", &path, &[("host", &host)], b"").await;
    assert_eq!(first.status, 303);
    assert!(first.header("set-cookie").is_some() && !first.cookies().contains(app.token()), "{first:?}");
    let second = exchange(app.address(), "GET", &path, &[("host", &host)], b"").await;
    assert_eq!((second.status, second.header("set-cookie")), (403, None));
}

#[tokio::test]
async fn a_mistake_in_the_list_of_agents_is_shown_in_every_window_and_stops_nothing() {
    let builder = TestApp::builder();
    builder.write("agents.json", "{");
    let app = builder.start().await;
    let mut window = app.window().await;
    let ServerMessage::ServerHello { notices, .. } = window.next_frame().await.message else { panic!("no greeting") };
    assert!(notices.iter().any(|notice| notice.contains("agents.json")), "{notices:?}");
    window.call(&ClientMessage::ProjectList {}).await;
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
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        stderr.contains(&format!("port {port}")) && stderr.contains("in use") && stderr.contains("--port"),
        "{stderr}"
    );
    assert!(ended.stdout.is_empty(), "it printed nothing of listening");
}

#[tokio::test]
async fn a_second_server_on_the_same_directory_is_refused_and_names_the_first() {
    let app = TestApp::start().await;
    let ended = run_to_end(&["--port", "0", "--no-open", "--data-dir", app.data_dir().to_str().unwrap()]);
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1));
    assert!(stderr.contains(&format!("http://{}", app.host())) && stderr.contains(&app.pid().to_string()), "{stderr}");
    app.window().await.call(&ClientMessage::ProjectList {}).await;
}

#[tokio::test]
async fn wrong_usage_is_distinguished_from_failure() {
    for args in [
        &["--no-such-flag"][..],
        &["--port", "70000"],
        &["--log", "=="],
        &["--allowed-hosts", "http://x"],
        &["--allowed-hosts", "a,:1"],
    ] {
        let ended = run_to_end(args);
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {ended:?}");
        assert!(!ended.stderr.is_empty());
    }
}

const VARIABLES: [&str; 10] = [
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
];

#[tokio::test]
async fn help_and_version_are_there_for_the_asking() {
    let version = run_to_end(&["--version"]);
    assert_eq!(String::from_utf8_lossy(&version.stdout), format!("liminal-builder {}\n", env!("CARGO_PKG_VERSION")));
    let help = String::from_utf8_lossy(&run_to_end(&["--help"]).stdout).into_owned();
    for name in VARIABLES.iter().chain(&["--open", "--no-open", "--no-auth", "--log-json", "--version"]) {
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

#[tokio::test]
async fn a_variable_that_is_set_to_nothing_is_not_set() {
    let mut builder = TestApp::builder();
    for name in VARIABLES {
        builder = builder.env(name, "");
    }
    let app = builder.start().await;
    assert!(app.address().ip().is_loopback());
    assert!(app.home().join(".liminal-builder/token").exists());
}

#[tokio::test]
async fn a_damaged_secret_is_shown_in_every_window() {
    let builder = TestApp::builder();
    builder.write("token", "half a tok");
    let app = builder.start().await;
    let ServerMessage::ServerHello { notices, .. } = app.window().await.next_frame().await.message else {
        panic!("no greeting")
    };
    assert!(notices.iter().any(|notice| notice.contains("token.damaged-")), "{notices:?}");
}
