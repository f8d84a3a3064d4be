//! What is for the user alone stays so: the secret, and the directory it is in.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Output, Stdio};

use testkit::{TestApp, command_at, exchange, within};
use tokio::io::AsyncReadExt;

async fn start_in(home: &Path, data_dir: &Path) -> Output {
    let mut command = command_at(home, &["--port", "0", "--no-open", "--data-dir", data_dir.to_str().unwrap()]);
    within("it to end", command.output()).await.unwrap()
}

#[tokio::test]
async fn the_secret_is_not_printed_where_nobody_sits() {
    let home = tempfile::tempdir().unwrap();
    let mut command = command_at(home.path(), &["--port", "0", "--no-open"]);
    let mut server = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut out, mut printed) = (server.stdout.take().unwrap(), String::new());
    within("the greeting", async {
        while !printed.contains("Ctrl-C") {
            let mut piece = [0; 4096];
            let read = out.read(&mut piece).await.unwrap();
            assert!(read > 0, "{printed}");
            printed.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    })
    .await;
    let secret = fs::read_to_string(home.path().join(".liminal-builder/token")).unwrap();
    assert!(printed.contains("run: liminal-builder open\n"), "{printed}");
    let opened = within("open", command_at(home.path(), &["open", "--print"]).output()).await.unwrap();
    assert!(String::from_utf8_lossy(&opened.stdout).contains(secret.trim()), "asked for, it is printed");
    server.kill().await.unwrap();
    let mut log = String::new();
    server.stderr.take().unwrap().read_to_string(&mut log).await.unwrap();
    for text in [&printed, &log] {
        assert!(!text.contains(secret.trim()) && !text.contains("token="), "{text}");
    }
}

#[tokio::test]
async fn at_a_terminal_the_link_is_printed() {
    let home = tempfile::tempdir().unwrap();
    let program = testkit::programs::liminal_builder();
    let mut command = tokio::process::Command::new("script");
    command.args(["-qefc", &format!("'{}' --port 0 --no-open", program.display()), "/dev/null"]);
    command.env("HOME", home.path()).env_remove("LIMINAL_DATA_DIR").kill_on_drop(true);
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut terminal = spawned.expect("`script`, which gives a program a terminal, is there");
    let (mut out, mut printed) = (terminal.stdout.take().unwrap(), String::new());
    within("the greeting", async {
        while !printed.contains("Ctrl-C") {
            let mut piece = [0; 4096];
            let read = out.read(&mut piece).await.unwrap();
            assert!(read > 0, "{printed}");
            printed.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    })
    .await;
    let secret = fs::read_to_string(home.path().join(".liminal-builder/token")).unwrap();
    assert!(printed.contains(&format!("/?token={}", secret.trim())), "{printed}");
}

#[tokio::test]
async fn a_data_directory_is_made_for_the_user_alone() {
    let app = TestApp::builder().through(&["sh", "-c", r#"umask 0; exec "$0" "$@""#]).start().await;
    app.sign_in().await;
    assert_eq!(fs::metadata(app.data_dir()).unwrap().permissions().mode() & 0o777, 0o700);
    for entry in fs::read_dir(app.data_dir()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o022, 0, "{:?} {mode:o}", entry.path());
    }
}

#[tokio::test]
async fn a_data_directory_that_others_may_write_to_is_refused_with_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let real = home.path().join("it's data");
    fs::create_dir(&real).unwrap();
    let link = home.path().join("link");
    symlink(&real, &link).unwrap();
    for mode in [0o777, 0o770, 0o702, 0o1777] {
        fs::set_permissions(&real, Permissions::from_mode(mode)).unwrap();
        for path in [&real, &link] {
            let ended = start_in(home.path(), path).await;
            let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert_eq!(ended.status.code(), Some(1), "{mode:o}");
            assert!(stderr.contains("can be written to by other users") && stderr.contains("chmod go-w '"), "{stderr}");
        }
        assert_eq!(fs::read_dir(&real).unwrap().count(), 0, "nothing was written there");
        let data_dir = real.to_str().unwrap();
        let doctor = command_at(home.path(), &["doctor", "--no-start", "--data-dir", data_dir]).output();
        let doctor = within("doctor", doctor).await.unwrap();
        assert!(String::from_utf8_lossy(&doctor.stdout).contains("chmod go-w"), "{doctor:?}");
        let list = within("list", command_at(home.path(), &["list", "--data-dir", data_dir]).output()).await.unwrap();
        assert!(String::from_utf8_lossy(&list.stderr).contains("chmod go-w"), "{list:?}");
    }
    // What the message says to run fixes it.
    fs::set_permissions(&real, Permissions::from_mode(0o755)).unwrap();
    TestApp::builder().arg("--data-dir").arg(&real).start().await;
}

#[tokio::test]
async fn a_data_directory_of_another_user_is_refused_by_name_also_by_root() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: a data directory of another user: only root can give one away");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
    chown(&data, Some(65534), None).unwrap();
    let ended = start_in(home.path(), &data).await;
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1));
    assert!(stderr.contains("belongs to nobody (user id 65534)") && stderr.contains("runs as root"), "{stderr}");
    assert!(stderr.contains("--data-dir"), "{stderr}");
    assert_eq!((fs::read_dir(&data).unwrap().count(), fs::metadata(&data).unwrap().uid()), (0, 65534));
}

#[tokio::test]
async fn a_browser_that_looks_for_a_service_worker_gets_one_that_removes_itself() {
    let app = TestApp::start().await;
    let host = app.host();
    let headers = [("host", host.as_str()), ("service-worker", "script"), ("sec-fetch-site", "same-origin")];
    for path in ["/sw.js", "/", "/static/js/worker.js?v=3", "/api/session/list", "/ws"] {
        let answer = exchange(app.address(), "GET", path, &headers, b"").await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("text/javascript; charset=utf-8")),
            "{path}"
        );
        assert!(answer.text().contains("registration.unregister()"), "{path}");
        assert_eq!((answer.header("set-cookie"), answer.header("cache-control")), (None, Some("no-store")), "{path}");
    }
    let foreign = [("host", "evil.example"), headers[1]];
    assert_eq!(exchange(app.address(), "GET", "/sw.js", &foreign, b"").await.status, 421);
    let elsewhere = [headers[0], headers[1], ("sec-fetch-site", "cross-site")];
    assert_eq!(exchange(app.address(), "GET", "/sw.js", &elsewhere, b"").await.status, 403);
    // Any other request is answered as ever.
    for (method, header) in [("POST", "script"), ("GET", "other")] {
        let headers = [("host", host.as_str()), ("service-worker", header)];
        assert_eq!(exchange(app.address(), method, "/sw.js", &headers, b"").await.status, 403, "{method}");
    }
}
