//! The program as a client of the server that runs: what it prints, and with which exit code it exits.

use std::path::Path;
use std::process::{Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::{Screen, TestApp, TestSetup, command_at, exchange, within};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

#[track_caller]
fn outcome(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[track_caller]
fn json(output: &Output) -> Value {
    let (_, out, _) = outcome(output);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error} in {out:?}"))
}

/// A session with the scripted agent, by the command line.
async fn new_session(setup: &TestSetup) -> String {
    let project = setup.app.home().join("project");
    let (code, out, _) = outcome(&setup.app.run(&["new", "codex", "--project", project.to_str().unwrap()]).await);
    assert_eq!(code, 0);
    out.trim().to_owned()
}

fn signal(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    kill_process(pid.unwrap(), signal).unwrap();
}

async fn ended(mut child: Child) -> (Option<i32>, String) {
    let mut rest = String::new();
    let status = within("the command to end", async {
        if let Some(mut out) = child.stdout.take() {
            out.read_to_string(&mut rest).await.unwrap();
        }
        child.wait().await.unwrap()
    })
    .await;
    (status.code(), rest)
}

/// Starts it, and waits until it has printed this line.
async fn started(mut command: Command, line: &str) -> (Child, BufReader<tokio::process::ChildStdout>) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    within(line, async {
        let mut read = String::new();
        while !read.contains(line) {
            let mut bytes = [0_u8; 256];
            let count = out.read(&mut bytes).await.unwrap();
            assert_ne!(count, 0, "it ended after {read:?}");
            read.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    })
    .await;
    (child, out)
}

#[tokio::test]
async fn a_session_is_made_spoken_to_and_listed_without_a_page() {
    let setup = TestSetup::start().await;
    let id = new_session(&setup).await;
    assert!(id.starts_with("codex:"), "{id}");

    let asked = "think:Hm\nsay:Two \nsay:words\ncall:c cargo test\noutput:c one\ndone:c 2\nplan:one,two\nsay:And more";
    let (code, out, beside) = outcome(&setup.app.run(&["send", &id, asked]).await);
    assert_eq!((code, out.as_str()), (0, "Two words\n\nAnd more\n"), "nothing but the answer is on standard output");
    assert!(beside.contains("Thinking…\n") && beside.contains("• cargo test\n"), "{beside}");
    assert!(beside.contains("  Failed: exit 2\n    one\n"), "{beside}");
    assert!(beside.contains("Plan\n") && beside.contains(" one\n") && beside.contains(" two\n"), "{beside}");

    let (code, out, beside) = outcome(&setup.app.run(&["send", &id, "--quiet", "think:Hm\nsay:Short"]).await);
    assert_eq!((code, out.as_str(), beside.as_str()), (0, "Short\n", ""));

    let (code, out, _) = outcome(&setup.app.run(&["list"]).await);
    assert_eq!(code, 0);
    let short = id.get(.."codex:".len() + 4).unwrap();
    assert!(out.starts_with("project  ") && out.contains("think:Hm say:Two") && out.contains(short), "{out}");

    let listed = json(&setup.app.run(&["list", "--json"]).await);
    let session = &listed["projects"][0]["sessions"][0];
    assert_eq!((&session["id"], &session["cliType"]), (&id.as_str().into(), &"codex".into()));
    assert_eq!(session["attention"], "idle", "whoever read the answer has seen it");
    assert_eq!(listed["projects"][0]["name"], "project");
}

#[tokio::test]
async fn a_message_may_come_from_standard_input_and_a_session_go_by_the_beginning_of_its_id() {
    let setup = TestSetup::start().await;
    let id = new_session(&setup).await;
    let own = id.strip_prefix("codex:").unwrap();
    let mut command = setup.app.command(&["send", own]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"say:From a pipe\n").await.unwrap();
    assert_eq!(ended(child).await, (Some(0), "From a pipe\n".into()));

    let (code, _, beside) = outcome(&setup.app.run(&["send", &id]).await);
    assert_eq!(code, 2, "nothing was piped in: {beside}");
    assert!(beside.contains("The message is empty."), "{beside}");
}

#[tokio::test]
async fn for_a_script_every_frame_is_a_line_of_json_and_the_last_one_ends_the_turn() {
    let setup = TestSetup::start().await;
    let id = new_session(&setup).await;
    let made = json(&setup.app.run(&["new", "codex", "--json", "-C", "project"]).await);
    assert_eq!(made["cliType"], "codex");
    let (code, out, beside) = outcome(&setup.app.run(&["send", &id, "--json", "say:Hello"]).await);
    assert_eq!((code, beside.as_str()), (0, ""));
    let frames: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(frames.iter().all(|frame| frame["sessionId"] == id.as_str()));
    let is_answer = |frame: &&Value| frame["type"] == "session:upsert" && frame["payload"]["content"] == "Hello";
    assert!(frames.iter().any(|frame| is_answer(&frame)), "{out}");
    let last = frames.iter().rfind(|frame| frame["type"] == "session:turn").unwrap();
    assert_eq!(last["payload"]["type"], "turn_complete");

    let sent = json(&setup.app.run(&["send", "--detach", "--json", &id, "say:Later"]).await);
    assert!(sent["turnId"].is_string());
    let (code, out, _) = outcome(&setup.app.run(&["attach", "--wait", "--json", &id]).await);
    assert_eq!(code, 0);
    assert!(out.lines().next().unwrap().contains(r#""type":"session:history""#), "{out}");
}

#[tokio::test]
async fn a_turn_that_fails_or_is_cancelled_elsewhere_has_an_exit_code_of_its_own() {
    let setup = TestSetup::start().await;
    let id = new_session(&setup).await;
    let (code, _, beside) = outcome(&setup.app.run(&["send", &id, "error:The model is on strike"]).await);
    assert_eq!(code, 1);
    assert!(beside.contains("Turn failed: ") && beside.contains("on strike"), "{beside}");
    assert_eq!(beside.matches("on strike").count(), 1, "once is enough: {beside}");

    let (child, _out) = started(setup.app.command(&["send", &id, "say:Half\nhold:never"]), "Half").await;
    let (code, _, beside) = outcome(&setup.app.run(&["send", &id, "say:No"]).await);
    assert_eq!(code, 6);
    assert!(beside.starts_with("liminal-builder: The agent is still working\n"), "{beside}");
    assert!(beside.contains("liminal-builder cancel"), "it says what can be done: {beside}");
    assert_eq!(outcome(&setup.app.run(&["cancel", &id]).await), (0, "Stopped\n".into(), String::new()));
    assert_eq!(ended(child).await.0, Some(7));
    let (code, out, _) = outcome(&setup.app.run(&["attach", "--wait", &id]).await);
    assert_eq!(code, 7);
    let (failed, stopped) = out.split_once("> say:Half").unwrap();
    assert!(failed.contains("Turn failed: ") && failed.contains("on strike"), "{out}");
    assert!(stopped.contains("Half\nStopped\n"), "{out}");
    let again = json(&setup.app.run(&["cancel", "--json", &id]).await);
    assert_eq!(again, serde_json::json!({"sessionId": id, "cancelled": false}));
}

#[tokio::test]
async fn cancel_comes_back_when_the_turn_has_ended_and_reports_when_it_does_not_end() {
    let setup = TestSetup::start().await;
    let id = new_session(&setup).await;
    assert_eq!(outcome(&setup.app.run(&["send", "--detach", &id, "say:Busy\ndeaf:first"]).await).0, 0);
    let gate = async {
        let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
        within("the agent to be notified", async {
            while !setup.agent_log().contains("session/cancel") {
                looks.tick().await;
            }
        })
        .await;
        setup.open_gate("first");
    };
    let cancel = ["cancel", &id];
    let (output, ()) = tokio::join!(setup.app.run(&cancel), gate);
    assert_eq!(outcome(&output), (0, "Stopped\n".into(), String::new()));
    let (code, out, _) = outcome(&setup.app.run(&["send", &id, "say:At once"]).await);
    assert_eq!((code, out.as_str()), (0, "At once\n"), "the next message need not wait");

    assert_eq!(outcome(&setup.app.run(&["send", "--detach", &id, "say:Busy\ndeaf:second"]).await).0, 0);
    let (code, _, beside) = outcome(&setup.app.run(&["cancel", "--timeout", "0", &id]).await);
    assert_eq!(code, 6, "{beside}");
    assert!(beside.contains("The agent is still working\n") && beside.contains("within 0 s"), "{beside}");
    setup.open_gate("second");
}

#[tokio::test]
async fn ctrl_c_stops_the_turn_of_send_and_only_ends_attach() {
    let setup = TestSetup::start().await;
    let id = new_session(&setup).await;
    let (child, _out) = started(setup.app.command(&["send", &id, "say:One\nhold:first"]), "One").await;
    signal(&child, Signal::INT);
    assert_eq!(ended(child).await.0, Some(130));
    let status = json(&setup.app.run(&["cancel", "--json", &id]).await);
    assert_eq!(status["cancelled"], false, "it was stopped");

    let turn = outcome(&setup.app.run(&["send", "-d", &id, "say:Two\nhold:second\nsay: and three"]).await);
    assert_eq!(turn.0, 0);
    let (child, _out) = started(setup.app.command(&["attach", &id]), "Two").await;
    signal(&child, Signal::INT);
    assert_eq!(ended(child).await.0, Some(130));
    let (child, mut out) = started(setup.app.command(&["attach", "--wait", &id]), "\nTwo").await;
    setup.open_gate("second");
    let mut rest = String::new();
    within("the rest", out.read_to_string(&mut rest)).await.unwrap();
    assert_eq!((ended(child).await.0, rest.as_str()), (Some(0), " and three\n"), "it went on");
}

#[tokio::test]
async fn a_second_ctrl_c_abandons_a_turn_that_does_not_stop() {
    let setup = TestSetup::start().await;
    let id = new_session(&setup).await;
    let mut command = setup.app.command(&["send", &id, "say:Busy\ndeaf:gate"]);
    let (mut child, _out) = started(
        {
            command.stderr(Stdio::piped());
            command
        },
        "Busy",
    )
    .await;
    let mut beside = BufReader::new(child.stderr.take().unwrap()).lines();
    signal(&child, Signal::INT);
    within("a word about it", async {
        while !beside.next_line().await.unwrap().unwrap().starts_with("Stopping. Press Ctrl-C again") {}
    })
    .await;
    signal(&child, Signal::INT);
    assert_eq!(ended(child).await.0, Some(130));
    setup.open_gate("gate");
}

#[tokio::test]
async fn a_reader_that_exits_is_no_error_to_report_and_the_turn_goes_on() {
    let setup = TestSetup::start().await;
    let id = new_session(&setup).await;
    let mut command = setup.app.command(&["send", &id, "say:One\nhold:gate\nsay: two\nsay: three"]);
    command.stderr(Stdio::piped());
    let (mut child, out) = started(command, "One").await;
    drop(out);
    setup.open_gate("gate");
    let mut beside = String::new();
    within("the end", child.stderr.take().unwrap().read_to_string(&mut beside)).await.unwrap();
    assert_eq!((ended(child).await.0, beside.as_str()), (Some(141), ""));
    let (code, out, _) = outcome(&setup.app.run(&["attach", "--wait", &id]).await);
    assert_eq!(code, 0);
    assert!(out.contains("One two three\n"), "{out}");
}

#[tokio::test]
async fn without_a_server_the_message_says_so_and_the_exit_code_is_its_own() {
    let home = tempfile::tempdir().unwrap();
    for args in [&["list"][..], &["new"], &["send", "x", "y"], &["attach", "x"], &["cancel", "x"], &["open"]] {
        let output = within("it", command_at(home.path(), args).output()).await.unwrap();
        let (code, out, beside) = outcome(&output);
        assert_eq!((code, out.as_str()), (3, ""), "{args:?}");
        assert!(beside.contains("No Liminal Builder is running") && beside.contains("Start one with"), "{beside}");
    }
    let output = within("it", command_at(home.path(), &["list", "--json"]).output()).await.unwrap();
    assert_eq!((output.status.code(), &json(&output)["error"]["code"]), (Some(3), &"NO_SERVER".into()));
    assert!(!home.path().join(".liminal-builder").exists(), "a question makes no files");
}

#[tokio::test]
async fn the_secret_is_never_given_to_whoever_took_the_port_of_a_dead_server() {
    let mut app = TestApp::start().await;
    app.kill().await;
    // The lock file still names the address.
    let thief = tokio::net::TcpListener::bind(app.address()).await.unwrap();
    let output = app.run(&["list"]).await;
    assert_eq!(output.status.code(), Some(3));
    let nobody = tokio::time::timeout(std::time::Duration::ZERO, thief.accept()).await;
    assert!(nobody.is_err(), "somebody knocked");
}

#[tokio::test]
async fn a_secret_that_is_refused_has_an_exit_code_of_its_own() {
    let app = TestApp::start().await;
    std::fs::write(app.data_dir().join("token"), "0".repeat(64)).unwrap();
    for args in [&["list", "--json"][..], &["open", "--json"]] {
        let output = app.run(args).await;
        assert_eq!((output.status.code(), &json(&output)["error"]["code"]), (Some(4), &"UNAUTHORIZED".into()));
    }
}

#[tokio::test]
async fn what_cannot_be_found_is_reported_by_code() {
    let app = TestApp::start().await;
    let check = async |args: &[&str], code: i32, error: &str| {
        let output = app.run(args).await;
        let report = json(&output);
        assert_eq!((output.status.code(), report["error"]["code"].as_str()), (Some(code), Some(error)), "{args:?}");
        report["error"].clone()
    };
    check(&["send", "--json", "nothing", "hi"], 5, "SESSION_NOT_FOUND").await;
    check(&["send", "--json", "codex:nothing", "hi"], 5, "SESSION_NOT_FOUND").await;
    check(&["attach", "--json", "codex:nothing"], 5, "SESSION_NOT_FOUND").await;
    check(&["cancel", "--json", "codex:nothing"], 5, "SESSION_NOT_FOUND").await;
    let unknown = check(&["new", "--json", "hal-9000"], 1, "UNSUPPORTED_CLI_TYPE").await;
    assert!(unknown["detail"].as_str().unwrap().contains("claude-code, codex, demo"), "{unknown}");
    check(&["new", "--json", "demo", "-C", "not-there"], 1, "PROJECT_PATH_INVALID").await;
    assert_eq!(app.run(&["send"]).await.status.code(), Some(2));
}

#[tokio::test]
async fn an_agent_that_is_not_installed_is_named_with_the_command_that_installs_it() {
    let app = TestApp::builder().env("CODEX_ACP_CMD", "no-such-program-anywhere").start().await;
    let output = app.run(&["new", "codex"]).await;
    let (code, _, beside) = outcome(&output);
    assert_eq!(code, 1);
    assert!(beside.contains("Could not start Codex. Check that it's installed."), "{beside}");
    assert!(beside.contains("Install it with: npm install"), "{beside}");
}

#[tokio::test]
async fn what_an_agent_sends_reaches_a_pipe_byte_by_byte() {
    let setup = TestSetup::start().await;
    let id = new_session(&setup).await;
    let (code, out, _) = outcome(&setup.app.run(&["send", &id, "say:a\x1b[31mb"]).await);
    assert_eq!((code, out.as_str()), (0, "a\x1b[31mb\n"));
}

#[tokio::test]
async fn the_answer_of_a_session_that_was_opened_elsewhere_is_not_shown_twice() {
    let setup = TestSetup::start().await;
    let id = new_session(&setup).await;
    let mut window = setup.app.window().await;
    let mut screen = Screen::open(&mut window, &protocol::SessionId::parse(&id).unwrap()).await;
    screen.converse(&mut window, "say:Earlier").await;
    let (_, out, _) = outcome(&setup.app.run(&["send", &id, "say:Now"]).await);
    assert_eq!(out, "Now\n");
    let (_, out, _) = outcome(&setup.app.run(&["attach", "--wait", &id]).await);
    assert_eq!(out, "> say:Earlier\n\nEarlier\n\n> say:Now\n\nNow\n");
}

#[tokio::test]
async fn while_another_turn_speaks_a_message_is_refused_and_none_of_its_text_is_printed() {
    let setup = TestSetup::start().await;
    let id = new_session(&setup).await;
    // Options may come after the message.
    let (code, turn, _) = outcome(&setup.app.run(&["send", &id, "paced:100000", "paragraph", "--detach"]).await);
    assert!(code == 0 && turn.lines().count() == 1, "{code} {turn}");
    for _ in 0..5 {
        let (code, out, _) = outcome(&setup.app.run(&["send", &id, "say:hello"]).await);
        assert_eq!((code, out.as_str()), (6, ""));
    }
    assert_eq!(outcome(&setup.app.run(&["cancel", &id]).await).0, 0);
}

#[tokio::test]
async fn open_prints_the_link_and_gives_the_browser_one_that_works_once() {
    let app = TestApp::start().await;
    let link = format!("http://{}/?token={}", app.host(), app.token());
    assert_eq!(outcome(&app.run(&["open"]).await), (0, format!("{link}\n"), String::new()));
    assert_eq!(json(&app.run(&["open", "--json"]).await), serde_json::json!({"link": link, "opened": false}));

    let (opener, opened) = (app.home().join("xdg-open"), app.home().join("opened"));
    let script = format!("#!/bin/sh\necho \"$1\" > {0}.part && mv {0}.part {0}\n", opened.display());
    testkit::programs::script(&opener, &script);
    let path = format!("{}:{}", app.home().display(), std::env::var("PATH").unwrap());
    let mut command = app.command(&["open"]);
    command.env("PATH", path).env("DISPLAY", ":0").env_remove("SSH_CONNECTION");
    let (code, out, _) = outcome(&within("it", command.output()).await.unwrap());
    // The browser has the page, and what is not a terminal may be a log.
    assert_eq!((code, out), (0, format!("http://{}/\n", app.host())));
    let given = read_when_there(&opened).await;
    assert!(!given.contains(app.token()), "every user of the machine can read a command line");
    let path = given.trim().strip_prefix(&format!("http://{}", app.host())).unwrap().to_owned();
    let host = app.host();
    let first = exchange(app.address(), "GET", &path, &[("host", &host)], b"").await;
    assert!(first.status == 303 && !first.cookies().is_empty() && !first.cookies().contains(app.token()));
    assert_eq!(exchange(app.address(), "GET", &path, &[("host", &host)], b"").await.status, 403);
}

async fn read_when_there(file: &Path) -> String {
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
    within("the browser", async {
        while !file.exists() {
            looks.tick().await;
        }
    })
    .await;
    std::fs::read_to_string(file).unwrap()
}

/// A terminal of its own: what is written to the second is read from the first.
fn terminal() -> (std::fs::File, std::fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&near).unwrap();
    unlockpt(&near).unwrap();
    let name = ptsname(&near, Vec::new()).unwrap().into_string().unwrap();
    let far = std::fs::OpenOptions::new().read(true).write(true).open(name).unwrap();
    (near.into(), far)
}

/// Issue 17: an answer was cut in the middle of a word by what was printed beside it.
#[tokio::test]
async fn send_ends_the_line_of_the_answer_before_it_prints_something_beside_it() {
    let setup = TestSetup::start().await;
    let session = new_session(&setup).await;
    let (near, far) = terminal();
    let mut command = setup.app.command(&[
        "send",
        &session,
        "call:c1 ls\nsay:one ha\nhold:go\ndone:c1 1\nsay:lf two\nhold:on\nsay:\nsay:three",
    ]);
    command.stdout(far.try_clone().unwrap()).stderr(far).env("NO_COLOR", "1");
    let mut child = command.spawn().unwrap();
    // Its own handles to the terminal are dropped with the command, so that reading ends with the child.
    drop(command);
    let (send, mut pieces) = tokio::sync::mpsc::channel::<String>(64);
    let reader = std::thread::spawn(move || {
        use std::io::Read;
        let (mut near, mut bytes) = (near, [0_u8; 1024]);
        while let Ok(count @ 1..) = near.read(&mut bytes) {
            send.blocking_send(String::from_utf8_lossy(&bytes[..count]).replace('\r', "")).unwrap();
        }
    });
    let mut shown = String::new();
    within("the beginning of the answer", async {
        while !shown.contains("one ha") {
            shown.push_str(&pieces.recv().await.unwrap());
        }
    })
    .await;
    setup.open_gate("go");
    within("the rest of the line", async {
        while !shown.contains("lf two") {
            shown.push_str(&pieces.recv().await.unwrap());
        }
    })
    .await;
    setup.open_gate("on");
    within("the rest", async {
        while let Some(piece) = pieces.recv().await {
            shown.push_str(&piece);
        }
    })
    .await;
    assert!(child.wait().await.unwrap().success());
    reader.join().unwrap();
    assert!(shown.contains("• ls\n") && shown.contains("one half two"), "{shown:?}");
    assert!(shown.contains("\n  Failed: exit 1\n"), "{shown:?}");
    assert!(shown.find("Failed") > shown.find("one half two"), "{shown:?}");
}
