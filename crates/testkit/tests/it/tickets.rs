//! The one-time link of the browser that is started for the user: who can use it, and who cannot.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use testkit::{Builder, Response, TestApp, exchange, within};
use tokio::process::Command;

const NOBODY: u32 = 65534;

/// Tests of what another user can do need one, and only root may become one.
fn can_be_another_user(what: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("SKIPPED: {what}: only root can start a process of another user");
    }
    is_root
}

async fn until_there(file: &Path) -> String {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    within("a file", async {
        loop {
            match std::fs::read_to_string(file) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                _ => looks.tick().await,
            };
        }
    })
    .await
}

/// A browser that notes what it was given, and stays until the file beside it says otherwise.
fn browser(builder: Builder) -> (Builder, PathBuf) {
    let (tools, opened) = (builder.home().join("tools"), builder.home().join("opened"));
    std::fs::create_dir(&tools).unwrap();
    let script =
        format!("#!/bin/sh\necho \"$1\" > {0}\nwhile [ ! -e {0}.close ]; do sleep 0.05; done\n", opened.display());
    testkit::programs::script(&tools.join("xdg-open"), &script);
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    (builder.env("PATH", path).arg("--open"), opened)
}

async fn issue(app: &TestApp) -> String {
    let answer = app.request("POST", "/api/ticket", Some(&serde_json::json!({}))).await;
    assert_eq!(answer.status, 201);
    answer.json()["path"].as_str().unwrap().to_owned()
}

async fn get(app: &TestApp, path: &str) -> Response {
    let host = app.host();
    exchange(app.address(), "GET", path, &[("host", &host)], b"").await
}

/// Bash, as another user: it needs no file of ours, which that user could not read.
fn as_nobody(script: &str) -> Command {
    let mut command = Command::new("/bin/bash");
    command.args(["-c", script]).uid(NOBODY).gid(NOBODY).current_dir("/").kill_on_drop(true);
    command
}

/// Sends a request to the server and prints the answer.
fn request_script(app: &TestApp, path: &str) -> String {
    let (host, port) = (app.host(), app.address().port());
    format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; \
         printf 'GET %s HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n' \"{path}\" >&3; cat <&3"
    )
}

async fn output(mut command: Command) -> String {
    let output = within("the other user", command.output()).await.unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn another_user_cannot_redeem_a_ticket_and_does_not_use_it_up() {
    if !can_be_another_user("a ticket that another user offers") {
        return;
    }
    for host in ["127.0.0.1", "::"] {
        let app = TestApp::builder().arg("--host").arg(host).start().await;
        let path = issue(&app).await;
        for _ in 0..3 {
            let answer = output(as_nobody(&request_script(&app, &path))).await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
            assert!(!answer.to_ascii_lowercase().contains("set-cookie"), "{answer}");
            assert!(answer.contains("for a browser of the user who runs Liminal Builder"), "{answer}");
        }
        let port = app.address().port();
        let ours =
            exchange(([127, 0, 0, 1], port).into(), "GET", &path, &[("host", &format!("127.0.0.1:{port}"))], b"").await;
        assert_eq!(ours.status, 303, "{host}");
        assert!(!ours.cookies().is_empty());
    }
}

/// The attack of the review, as it was run.
#[tokio::test]
async fn whoever_reads_the_browsers_command_line_gains_nothing() {
    if !can_be_another_user("reading the command line of the browser as another user") {
        return;
    }
    let (builder, opened) = browser(TestApp::builder());
    let app = builder.start().await;
    // Its own command line holds this script, and must not be taken for the browser's: no word of it begins like a link.
    let thief = format!(
        "while :; do for file in /proc/[0-9]*/cmdline; do \
           while IFS= read -r -d '' word; do \
             case \"$word\" in http://{host}/?token=once-*) path=\"/${{word#http://{host}/}}\"; {request}; exit;; esac; \
           done < \"$file\"; done 2>/dev/null; done",
        host = app.host(),
        request = request_script(&app, "$path"),
    );
    let answer = output(as_nobody(&thief)).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(!answer.to_ascii_lowercase().contains("set-cookie"), "{answer}");
    let link = until_there(&opened).await;
    let path = link.strip_prefix(&format!("http://{}", app.host())).unwrap();
    assert_eq!(get(&app, path).await.status, 303, "the browser itself is let in all the same");
    std::fs::write(opened.with_extension("close"), "").unwrap();
}

#[tokio::test]
async fn only_a_get_redeems_a_ticket_or_the_secret() {
    let app = TestApp::start().await;
    let host = app.host();
    let ticket = issue(&app).await;
    let secret = format!("/?token={}", app.token());
    for path in [&ticket, &secret] {
        for method in ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
            let answer = exchange(app.address(), method, path, &[("host", &host)], b"").await;
            assert!(answer.status == 403 || answer.status == 405, "{method}: {answer:?}");
            assert_eq!(answer.header("set-cookie"), None, "{method}");
        }
    }
    assert_eq!(get(&app, &ticket).await.status, 303);
    assert_eq!(get(&app, &ticket).await.status, 403);
}

#[tokio::test]
async fn of_many_that_race_for_one_ticket_exactly_one_is_let_in() {
    let app = TestApp::start().await;
    let path = issue(&app).await;
    let answers = futures_util::future::join_all((0..16).map(|_| get(&app, &path))).await;
    let let_in: Vec<_> = answers.iter().filter(|answer| answer.header("set-cookie").is_some()).collect();
    assert_eq!(let_in.len(), 1);
    assert!(answers.iter().all(|answer| [303, 403].contains(&answer.status)));
    let list = app.request("GET", "/api/browsers", None).await.json();
    assert_eq!(list["browsers"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn two_tickets_at_once_are_both_good() {
    let app = TestApp::start().await;
    let (one, other) = (issue(&app).await, issue(&app).await);
    assert_eq!((get(&app, &one).await.status, get(&app, &other).await.status), (303, 303));
}

#[tokio::test]
async fn a_ticket_comes_over_ipv6_too() {
    let app = TestApp::builder().arg("--host").arg("::1").start().await;
    let path = issue(&app).await;
    assert_eq!(get(&app, &path).await.status, 303);
}

/// As on systems that cannot tell whose a connection is.
#[tokio::test]
async fn by_file_the_ticket_is_on_no_command_line_and_the_file_goes_when_it_was_used() {
    let (builder, opened) = browser(TestApp::builder().arg("--open-by-file"));
    let app = builder.start().await;
    let link = until_there(&opened).await;
    let file = PathBuf::from(link.strip_prefix("file://").unwrap());
    assert_eq!(file.parent().unwrap(), app.data_dir());
    assert!(!link.contains("once-"));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let page = std::fs::read_to_string(&file).unwrap();
    let address = format!("http://{}", app.host());
    let (_, rest) = page.split_once(&format!("url={address}")).unwrap();
    let path = rest.split('"').next().unwrap();
    // A file is another site to the browser, and so is what it leads to until a page of ours goes on from there.
    let host = app.host();
    let navigation = [
        ("host", host.as_str()),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    let framed = [navigation[0], navigation[1], navigation[2], ("sec-fetch-dest", "iframe")];
    assert_eq!(exchange(app.address(), "GET", path, &framed, b"").await.status, 403);
    assert!(file.exists());
    let answer = exchange(app.address(), "GET", path, &navigation, b"").await;
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("url=/\"") && !answer.cookies().is_empty(), "{answer:?}");
    assert!(!file.exists());
    let secret = format!("/?token={}", app.token());
    assert_eq!(exchange(app.address(), "GET", &secret, &navigation, b"").await.status, 403, "only a ticket may");
    // Another one, which nobody uses, goes with the server.
    let issued = app.request("POST", "/api/ticket", Some(&serde_json::json!({}))).await.json();
    let unused = PathBuf::from(issued["file"].as_str().unwrap());
    assert!(unused.exists());
    std::fs::write(opened.with_extension("close"), "").unwrap();
    let mut app = app;
    app.interrupt();
    app.ended().await;
    assert!(!unused.exists());
}
