//! The browsers that were let in: each with a credential of its own, listed, and revoked.

use protocol::ClientMessage;
use serde_json::{Value, json};
use testkit::{Response, TestApp, connect, exchange, within};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0";

async fn visit(app: &TestApp, path: &str, cookies: &str) -> Response {
    let host = app.host();
    let headers = [("host", host.as_str()), ("cookie", cookies), ("user-agent", FIREFOX), ("accept", "text/html")];
    exchange(app.address(), "GET", path, &headers, b"").await
}

async fn list(app: &TestApp) -> Vec<Value> {
    app.request("GET", "/api/browsers", None).await.json()["browsers"].as_array().unwrap().clone()
}

async fn is_let_in(app: &TestApp, cookies: &str) -> bool {
    let mut statuses = Vec::new();
    for path in ["/", "/portlet", "/shell/main.js", "/api/browsers", "/api/openapi.json"] {
        statuses.push(visit(app, path, cookies).await.status);
    }
    statuses.push(match connect(app.address(), "/ws", &[("cookie", cookies)]).await {
        Ok(_) => 200,
        Err(refused) => refused.status,
    });
    assert!(statuses.iter().all(|status| *status == statuses[0]), "{statuses:?}");
    match statuses[0] {
        200 => true,
        403 => false,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn the_link_gives_each_browser_a_credential_of_its_own_and_never_the_secret() {
    let mut app = TestApp::start().await;
    let link = format!("/?token={}", app.token());
    let (one, other) = (visit(&app, &link, "").await, visit(&app, &link, "").await);
    let (one, other) = (one.cookies(), other.cookies());
    assert_ne!(one, other);
    for cookies in [&one, &other] {
        assert!(!cookies.contains(app.token()));
        assert!(is_let_in(&app, cookies).await);
    }
    let listed = list(&app).await;
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|browser| browser["label"] == "Firefox on Linux" && browser["isCurrent"] == false));
    let seen = visit(&app, "/api/browsers", &other).await.json();
    assert_eq!([&seen["browsers"][0]["isCurrent"], &seen["browsers"][1]["isCurrent"]], [false, true]);
    // The same browser again is not another one.
    assert_eq!(visit(&app, &link, &one).await.cookies(), one);
    assert_eq!(list(&app).await.len(), 2);
    // On the disk there are hashes, for the user alone, and they outlive the server.
    let file = app.data_dir().join("browsers.json");
    let kept = std::fs::read_to_string(&file).unwrap();
    let credential = one.split(['=', ';']).nth(1).unwrap().strip_prefix("browser-").unwrap();
    assert_eq!(credential.len(), 64, "256 bits");
    assert!(!kept.contains(credential) && !kept.contains(app.token()), "{kept}");
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    app.interrupt();
    app.ended().await;
    let again = app.again().arg("--port").arg(app.address().port().to_string()).start().await;
    assert!(is_let_in(&again, &one).await);
}

#[tokio::test]
async fn a_new_secret_locks_every_browser_out() {
    let mut app = TestApp::start().await;
    let cookies = app.sign_in().await;
    app.interrupt();
    app.ended().await;
    std::fs::remove_file(app.data_dir().join("token")).unwrap();
    let again = app.again().arg("--port").arg(app.address().port().to_string()).start().await;
    assert!(!is_let_in(&again, &cookies).await);
    assert_eq!(list(&again).await.len(), 0);
}

#[tokio::test]
async fn a_cookie_that_holds_the_secret_is_exchanged_by_the_page_and_good_for_nothing_else() {
    let app = TestApp::start().await;
    for name in ["liminal_token".to_owned(), format!("liminal_token_{}", app.address().port())] {
        let old = format!("{name}={}", app.token());
        for path in ["/portlet", "/api/browsers", "/shell/main.js"] {
            assert_eq!(visit(&app, path, &old).await.status, 403, "{path}");
        }
        assert_eq!(connect(app.address(), "/ws", &[("cookie", &old)]).await.unwrap_err().status, 403);
        let host = app.host();
        let head = exchange(app.address(), "HEAD", "/", &[("host", &host), ("cookie", &old)], b"").await;
        assert_eq!((head.status, head.header("set-cookie")), (403, None));
        let page = visit(&app, "/", &old).await;
        assert_eq!((page.status, page.header("location")), (303, Some("/")));
        assert!(!page.cookies().contains(app.token()));
        assert!(is_let_in(&app, &page.cookies()).await);
    }
    assert_eq!(list(&app).await.len(), 2);
}

#[tokio::test]
async fn revoking_a_browser_closes_its_windows_at_once_and_no_other() {
    let app = TestApp::start().await;
    let (gone, stays) = (app.sign_in().await, app.sign_in().await);
    let mut windows = [
        connect(app.address(), "/ws", &[("cookie", &gone)]).await.unwrap(),
        connect(app.address(), "/ws?view=1", &[("cookie", &gone)]).await.unwrap(),
    ];
    let mut other = connect(app.address(), "/ws", &[("cookie", &stays)]).await.unwrap();
    let mut script = app.window().await;
    for window in &mut windows {
        window.call(&ClientMessage::ProjectList {}).await;
    }
    let id = list(&app).await[0]["id"].clone();
    // By another browser, as its Settings do.
    let (host, body) = (app.host(), json!({ "id": id }).to_string());
    let headers = [("host", host.as_str()), ("cookie", &stays), ("content-type", "application/json")];
    let answer = exchange(app.address(), "POST", "/api/browsers/revoke", &headers, body.as_bytes()).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"revoked": [id]})));
    for window in &mut windows {
        assert_eq!(window.closed().await.unwrap().code, CloseCode::Policy);
    }
    assert!(!is_let_in(&app, &gone).await && is_let_in(&app, &stays).await);
    other.call(&ClientMessage::ProjectList {}).await;
    script.call(&ClientMessage::ProjectList {}).await;
    // On the disk before it was confirmed.
    let kept = std::fs::read_to_string(app.data_dir().join("browsers.json")).unwrap();
    assert!(!kept.contains(id.as_str().unwrap()), "{kept}");
    let twice = exchange(app.address(), "POST", "/api/browsers/revoke", &headers, body.as_bytes()).await;
    assert_eq!(twice.status, 404);
    for wrong in [json!({}), json!({"id": id, "all": true}), json!({"all": false}), json!({"id": 7})] {
        let answer = app.request("POST", "/api/browsers/revoke", Some(&wrong)).await;
        assert_eq!(answer.status, 400, "{wrong}");
    }
    assert!(is_let_in(&app, &stays).await);
}

fn output(output: &std::process::Output) -> (i32, String) {
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[tokio::test]
async fn the_command_line_lists_browsers_and_revokes_them() {
    let mut app = TestApp::start().await;
    let (code, text) = output(&app.run(&["browsers"]).await);
    assert!(code == 0 && text.contains("liminal-builder open"), "{text}");
    let first = visit(&app, &format!("/?token={}", app.token()), "").await.cookies();
    let second = app.sign_in().await;
    let (code, text) = output(&app.run(&["browsers", "--json"]).await);
    let listed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (code, &listed["isRequired"], &listed["browsers"][0]["label"]),
        (0, &json!(true), &json!("Firefox on Linux"))
    );
    let id = listed["browsers"][0]["id"].as_str().unwrap();
    let (code, text) = output(&app.run(&["browsers"]).await);
    assert!(code == 0 && text.lines().count() == 2 && text.starts_with(&format!("{id}  Firefox on Linux")), "{text}");
    assert!(text.contains("used  now"), "{text}");
    let (code, text) = output(&app.run(&["browsers", "revoke", &id[..7], "--json"]).await);
    assert_eq!((code, text), (0, format!("{{\"revoked\":[\"{id}\"]}}\n")));
    assert!(!is_let_in(&app, &first).await && is_let_in(&app, &second).await);
    let (code, text) = output(&app.run(&["browsers", "revoke", id, "--json"]).await);
    assert!(code == 1 && text.contains("BROWSER_NOT_FOUND"), "{text}");
    for wrong in [&["browsers", "revoke"][..], &["browsers", "revoke", id, "--all"]] {
        assert_eq!(output(&app.run(wrong).await).0, 2);
    }
    assert_eq!(output(&app.run(&["browsers", "revoke", "--all"]).await), (0, "Revoked 1 browser\n".into()));
    assert!(!is_let_in(&app, &second).await);
    app.interrupt();
    app.ended().await;
    assert_eq!(output(&app.run(&["browsers"]).await).0, 3);
    let app = app.again().arg("--no-auth").start().await;
    let (code, text) = output(&app.run(&["browsers"]).await);
    assert!(code == 0 && text.contains("--no-auth"), "{text}");
}

#[tokio::test]
async fn a_damaged_list_lets_nobody_in_and_a_newer_one_is_left_alone() {
    let mut app = TestApp::start().await;
    let cookies = app.sign_in().await;
    app.interrupt();
    app.ended().await;
    let file = app.data_dir().join("browsers.json");
    let kept = std::fs::read_to_string(&file).unwrap();
    let newer = kept.replace("\"version\": 1", "\"version\": 2");
    std::fs::write(&file, &newer).unwrap();
    let refused = within("it", app.command(&["--port", "0", "--no-open"]).output()).await.unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("newer Liminal Builder"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), newer);
    std::fs::write(&file, &kept[..kept.len() / 2]).unwrap();
    let again = app.again().arg("--port").arg(app.address().port().to_string()).start().await;
    assert!(!is_let_in(&again, &cookies).await);
    let hello = again.window().await.next_frame().await;
    assert!(format!("{hello:?}").contains("browsers.json.damaged-"), "{hello:?}");
}
