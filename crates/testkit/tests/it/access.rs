//! Nobody else can talk to the port: each known way in, tried.

use testkit::{TestApp, connect, exchange, run_to_end};

/// Where something can be had or done.
const DOORS: [(&str, &str); 5] = [
    ("GET", "/"),
    ("GET", "/portlet"),
    ("GET", "/api/session/list?projectId=x"),
    ("GET", "/shell/index.html"),
    ("POST", "/api/session/create"),
];

/// Sends a request to every door with these headers, and returns the statuses.
async fn knock(app: &TestApp, headers: &[(&str, &str)]) -> Vec<u16> {
    let mut statuses = Vec::new();
    for (method, path) in DOORS {
        let body: &[u8] = if method == "POST" { b"{}" } else { b"" };
        statuses.push(exchange(app.address(), method, path, headers, body).await.status);
    }
    statuses
}

async fn refused_window(app: &TestApp, path: &str, headers: &[(&str, &str)]) -> u16 {
    match connect(app.address(), path, headers).await {
        Ok(_) => panic!("a window opened at {path} with {headers:?}"),
        Err(refused) => refused.status,
    }
}

#[tokio::test]
async fn with_the_secret_every_door_opens() {
    let app = TestApp::start().await;
    let (host, bearer) = (app.host(), format!("Bearer {}", app.token()));
    let credential = app.sign_in().await.split_once('=').unwrap().1.split(';').next().unwrap().to_owned();
    let cookie = format!("other=1; liminal_token={credential}");
    let origin = format!("http://{host}");
    let lower = format!("bearer {}", app.token());
    let own = format!("liminal_token=another-servers; liminal_token_{}={credential}", app.address().port());
    for credential in [
        ("authorization", bearer.as_str()),
        ("authorization", lower.as_str()),
        ("cookie", cookie.as_str()),
        ("cookie", own.as_str()),
    ] {
        let headers = [
            ("host", host.as_str()),
            credential,
            ("content-type", "application/json"),
            ("origin", &origin),
            ("sec-fetch-site", "same-origin"),
        ];
        let statuses = knock(&app, &headers).await;
        // What a request means is not looked at here: the last two doors say "no such project" and "no such field".
        assert_eq!(statuses, [200, 200, 404, 200, 400]);
        connect(app.address(), "/ws", &headers[1..]).await.unwrap();
    }
}

#[tokio::test]
async fn without_the_secret_no_door_opens() {
    let app = TestApp::start().await;
    let host = app.host();
    let wrong = "0".repeat(app.token().len());
    let short = &app.token()[..app.token().len() - 1];
    for value in
        ["", "Bearer", "Bearer ", "Basic abc", &format!("Bearer {wrong}"), &format!("Bearer {short}"), app.token()]
    {
        let mut headers = vec![("host", host.as_str()), ("content-type", "application/json")];
        if !value.is_empty() {
            headers.push(("authorization", value));
        }
        assert_eq!(knock(&app, &headers).await, [403; 5], "{value:?}");
        assert_eq!(refused_window(&app, "/ws", &headers[1..]).await, 403, "{value:?}");
    }
    let other_port = app.address().port() ^ 1;
    let credential = app.sign_in().await.split_once('=').unwrap().1.split(';').next().unwrap().to_owned();
    for cookie in [
        "liminal_token=",
        &format!("liminal_token={wrong}"),
        &format!("liminal_token=browser-{wrong}"),
        &format!("token={credential}"),
        &format!("liminal_token_{other_port}={credential}"),
    ] {
        let headers = [("host", host.as_str()), ("content-type", "application/json"), ("cookie", cookie)];
        assert_eq!(knock(&app, &headers).await, [403; 5], "{cookie:?}");
        assert_eq!(refused_window(&app, "/ws", &headers[1..]).await, 403, "{cookie:?}");
    }
}

#[tokio::test]
async fn the_secret_in_a_query_opens_no_socket_and_no_api() {
    let app = TestApp::start().await;
    let token = app.token().to_owned();
    assert_eq!(refused_window(&app, &format!("/ws?token={token}"), &[]).await, 403);
    let host = app.host();
    for path in [
        "/api/session/list?projectId=x&token=",
        "/api/openapi.json?token=",
        "/portlet?token=",
        "/shell/index.html?token=",
    ] {
        let answer = exchange(app.address(), "GET", &format!("{path}{token}"), &[("host", &host)], b"").await;
        assert_eq!(answer.status, 403, "{path}");
        assert_eq!(answer.header("set-cookie"), None, "{path}");
    }
}

#[tokio::test]
async fn another_origin_is_refused_even_with_the_secret() {
    let app = TestApp::start().await;
    let (host, bearer) = (app.host(), format!("Bearer {}", app.token()));
    let port = app.address().port();
    let (suffixed, secure) = (format!("http://{host}.evil.example"), format!("https://{host}"));
    let (other_port, named) = (format!("http://127.0.0.1:{}", port ^ 1), format!("http://evil.example:{port}"));
    for origin in ["null", "http://evil.example", "file://", &suffixed, &secure, &other_port, &named] {
        let headers = [
            ("host", host.as_str()),
            ("authorization", &bearer),
            ("content-type", "application/json"),
            ("origin", origin),
        ];
        assert_eq!(knock(&app, &headers).await, [403; 5], "{origin}");
        assert_eq!(refused_window(&app, "/ws", &headers[1..]).await, 403, "{origin}");
        let health = exchange(app.address(), "GET", "/api/health", &headers, b"").await;
        assert_eq!(health.status, 403, "{origin}");
    }
}

#[tokio::test]
async fn a_rebound_name_is_refused_even_with_a_matching_origin_and_the_secret() {
    let app = TestApp::start().await;
    let bearer = format!("Bearer {}", app.token());
    let port = app.address().port();
    let names = [format!("evil.example:{port}"), "evil.example".into(), format!("127.0.0.1.evil.example:{port}")];
    for host in names.iter().map(String::as_str).chain(["127.0.0.1", "localhost", ""]) {
        let origin = format!("http://{host}");
        let headers = [
            ("host", host),
            ("authorization", &bearer),
            ("content-type", "application/json"),
            ("origin", &origin),
            ("sec-fetch-site", "same-origin"),
        ];
        assert_eq!(knock(&app, &headers).await, [421; 5], "{host}");
        if !host.is_empty() {
            assert_eq!(refused_window(&app, "/ws", &headers).await, 421, "{host}");
        }
        let health = exchange(app.address(), "GET", "/api/health", &headers, b"").await;
        assert_eq!(health.status, 421, "{host}");
    }
    // Without a Host, with two of them, and with a foreign one in the request line.
    let ours = app.host();
    let twice = [("host", ours.as_str()), ("host", ours.as_str()), ("authorization", &bearer)];
    assert_eq!(exchange(app.address(), "GET", "/", &twice, b"").await.status, 421);
    assert_eq!(exchange(app.address(), "GET", "/", &twice[2..], b"").await.status, 421);
    let absolute = format!("http://evil.example:{port}/");
    assert_eq!(exchange(app.address(), "GET", &absolute, &twice[1..], b"").await.status, 421);
}

#[tokio::test]
async fn a_name_the_user_vouches_for_is_answered() {
    let app = TestApp::builder().arg("--allowed-hosts").arg("box.example").start().await;
    let bearer = format!("Bearer {}", app.token());
    let headers = [
        ("host", "box.example"),
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("origin", "https://box.example"),
    ];
    assert_eq!(knock(&app, &headers).await, [200, 200, 404, 200, 400]);
}

#[tokio::test]
async fn a_request_another_site_caused_is_refused_even_with_the_secret() {
    let app = TestApp::start().await;
    let (host, bearer) = (app.host(), format!("Bearer {}", app.token()));
    for site in ["cross-site", "same-site", "", "Same-Origin", "nonsense"] {
        let headers = [
            ("host", host.as_str()),
            ("authorization", &bearer),
            ("content-type", "application/json"),
            ("sec-fetch-site", site),
        ];
        assert_eq!(knock(&app, &headers).await, [403; 5], "{site}");
        assert_eq!(refused_window(&app, "/ws", &headers[1..]).await, 403, "{site}");
    }
}

#[tokio::test]
async fn a_body_that_a_form_could_send_is_refused() {
    let app = TestApp::start().await;
    let (host, bearer) = (app.host(), format!("Bearer {}", app.token()));
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain; application/json",
        "",
    ] {
        let headers = [("host", host.as_str()), ("authorization", &bearer), ("content-type", kind)];
        for path in ["/api/session/create", "/api/session/codex:1/send", "/api/session/codex:1/kill"] {
            let answer = exchange(app.address(), "POST", path, &headers, b"{\"content\":\"x\"}").await;
            assert_eq!(answer.status, 403, "{kind} to {path}");
            assert_eq!(answer.json()["error"]["code"], "FORBIDDEN");
        }
    }
}

#[tokio::test]
async fn nothing_ever_invites_another_origin() {
    let app = TestApp::start().await;
    let (host, bearer) = (app.host(), format!("Bearer {}", app.token()));
    let good = [("host", host.as_str()), ("authorization", &bearer)];
    let asking = [
        ("host", host.as_str()),
        ("origin", "http://evil.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type,authorization"),
    ];
    for (method, path, headers) in [
        ("OPTIONS", "/api/session/create", &asking[..]),
        ("GET", "/api/health", &asking[..]),
        ("GET", "/api/health", &good[..]),
        ("GET", "/", &good[..]),
        ("GET", "/nothing", &good[..]),
    ] {
        let answer = exchange(app.address(), method, path, headers, b"").await;
        assert!(answer.headers().all(|(name, _)| !name.starts_with("access-control-")), "{method} {path}: {answer:?}");
    }
    assert_eq!(exchange(app.address(), "OPTIONS", "/api/session/create", &asking, b"").await.status, 403);
}

#[tokio::test]
async fn going_without_the_secret_is_refused_beyond_loopback() {
    let home = tempfile::tempdir().unwrap();
    for host in ["0.0.0.0", "::"] {
        let data = home.path().join("data");
        let args = ["--host", host, "--port", "0", "--no-auth", "--no-open", "--data-dir", data.to_str().unwrap()];
        let ended = run_to_end(&args);
        assert_eq!(ended.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&ended.stderr).contains("loopback only"), "{ended:?}");
        assert!(!data.exists(), "it was refused before anything was done");
    }
}

#[tokio::test]
async fn on_loopback_the_secret_can_be_left_away_but_not_the_other_rules() {
    let app = TestApp::builder().arg("--no-auth").start().await;
    let host = app.host();
    let headers = [("host", host.as_str()), ("content-type", "application/json")];
    assert_eq!(knock(&app, &headers).await, [200, 200, 404, 200, 400]);
    assert_eq!(refused_window(&app, "/ws", &[("origin", "http://evil.example")]).await, 403);
    assert_eq!(refused_window(&app, "/ws", &[("host", "evil.example")]).await, 421);
    connect(app.address(), "/ws", &[]).await.unwrap();
}

#[tokio::test]
async fn the_secret_is_on_disk_for_the_user_alone_and_stays_the_same() {
    use std::os::unix::fs::PermissionsExt;
    let mut app = TestApp::start().await;
    let file = app.data_dir().join("token");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), app.token());
    assert!(app.token().len() >= 64, "256 bits in hexadecimal");
    app.interrupt();
    app.ended().await;
    assert_eq!(app.again().start().await.token(), app.token());
}

/// A browser keeps one jar for all ports of a host.
#[derive(Default)]
struct CookieJar(std::collections::BTreeMap<String, String>);

impl CookieJar {
    async fn visit(&mut self, app: &TestApp, path: &str) -> u16 {
        let cookies = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ");
        let host = app.host();
        let headers = [("host", host.as_str()), ("cookie", &cookies), ("accept", "text/html")];
        let answer = exchange(app.address(), "GET", path, &headers, b"").await;
        for (_, cookie) in answer.headers().filter(|(name, _)| *name == "set-cookie") {
            assert!(cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict"), "{cookie}");
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            self.0.insert(name.into(), value.into());
        }
        answer.status
    }
}

#[tokio::test]
async fn two_servers_side_by_side_do_not_log_each_other_out() {
    let (one, other) = (TestApp::start().await, TestApp::start().await);
    let mut jar = CookieJar::default();
    for app in [&one, &other] {
        assert_eq!(jar.visit(app, &format!("/?token={}", app.token())).await, 303);
    }
    for app in [&one, &other, &one] {
        assert_eq!(jar.visit(app, "/").await, 200);
    }
    assert!(jar.0.contains_key("liminal_token"), "{:?}", jar.0.keys());
}

#[tokio::test]
async fn a_browser_that_is_in_may_follow_an_old_link() {
    let app = TestApp::start().await;
    let mut jar = CookieJar::default();
    assert_eq!(jar.visit(&app, "/?token=old").await, 403, "a stranger may not");
    assert_eq!(jar.visit(&app, &format!("/?token={}", app.token())).await, 303);
    let host = app.host();
    let cookie = format!("liminal_token={}", jar.0["liminal_token"]);
    let headers = [("host", host.as_str()), ("cookie", &cookie)];
    for link in ["/?token=old", "/?token=", "/?token=once-old"] {
        let answer = exchange(app.address(), "GET", link, &headers, b"").await;
        assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{link}");
        assert_eq!(answer.header("set-cookie"), None);
    }
}
