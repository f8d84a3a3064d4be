//! What a browser gets to see, and what it never does.

use testkit::{TestApp, exchange};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     frame-src 'self'; frame-ancestors 'self'; base-uri 'none'; form-action 'self'; \
     require-trusted-types-for 'script'; trusted-types liminal-rendered liminal-sprite liminal-worker";

#[tokio::test]
async fn the_link_lets_a_browser_in_and_leaves_no_trace_in_the_address_bar() {
    let app = TestApp::start().await;
    let host = app.host();
    let link = format!("/?token={}", app.token());
    let answer = exchange(app.address(), "GET", &link, &[("host", &host), ("sec-fetch-site", "none")], b"").await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
    let cookie = answer.header("set-cookie").unwrap();
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    let pair = cookie.split(';').next().unwrap();
    let page = exchange(app.address(), "GET", "/", &[("host", &host), ("cookie", pair)], b"").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
}

#[tokio::test]
async fn without_the_link_a_page_says_where_to_find_it() {
    let app = TestApp::start().await;
    let host = app.host();
    let headers = [("host", host.as_str()), ("accept", "text/html,*/*")];
    let anything = [("host", host.as_str()), ("accept", "*/*")];
    for (path, headers) in [
        ("/", &headers[..]),
        ("/", &anything),
        ("/", &headers[..1]),
        ("/portlet", &headers),
        ("/?token=wrong", &headers),
        ("/?token=", &headers),
    ] {
        let answer = exchange(app.address(), "GET", path, headers, b"").await;
        assert_eq!(answer.status, 403, "{path}");
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert!(answer.text().contains("open the link that Liminal Builder printed"), "{path}");
        assert!(answer.text().contains("<pre>liminal-builder open</pre>"), "{path}");
        assert_eq!(answer.header("set-cookie"), None);
        assert!(!answer.text().contains(app.token()));
    }
    assert_eq!(exchange(app.address(), "GET", "/sign-in.css", &headers, b"").await.status, 200);
    // Who asks for JSON alone is no person.
    let script = [("host", host.as_str()), ("accept", "application/json")];
    let answer = exchange(app.address(), "GET", "/", &script, b"").await;
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (403, &"UNAUTHORIZED".into()));
}

#[tokio::test]
async fn every_answer_carries_the_security_headers() {
    let app = TestApp::start().await;
    let host = app.host();
    let bearer = format!("Bearer {}", app.token());
    let good = [("host", host.as_str()), ("authorization", &bearer)];
    for (path, headers) in [
        ("/", &good[..]),
        ("/portlet", &good),
        ("/shell/index.html", &good),
        ("/nothing", &good),
        ("/api/health", &good),
        ("/api/session/list", &good),
        ("/", &good[..1]),
        ("/ws", &good[..1]),
        ("/ws", &good),
        ("/", &good[1..]),
    ] {
        let answer = exchange(app.address(), "GET", path, headers, b"").await;
        for (name, value) in [
            ("content-security-policy", POLICY),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{path} ({})", answer.status);
        }
    }
}

#[tokio::test]
async fn a_file_the_browser_has_is_not_sent_again() {
    let app = TestApp::start().await;
    let (host, bearer) = (app.host(), format!("Bearer {}", app.token()));
    let first = app.request("GET", "/", None).await;
    let etag = first.header("etag").unwrap();
    assert!(!first.body.is_empty());
    let headers = [("host", host.as_str()), ("authorization", &bearer), ("if-none-match", etag)];
    let second = exchange(app.address(), "GET", "/", &headers, b"").await;
    assert_eq!((second.status, second.body.len(), second.header("etag")), (304, 0, Some(etag)));
    assert_eq!(second.header("cache-control"), Some("no-cache"));
}

#[tokio::test]
async fn no_address_leads_out_of_the_embedded_files() {
    let app = TestApp::start().await;
    let climbs = [
        "../",
        "..%2f",
        "..%2F",
        "%2e%2e/",
        "%2e%2e%2f",
        "%252e%252e%252f",
        "..\\",
        "..%5c",
        ".../",
        "..;/",
        "%c0%ae%c0%ae/",
    ];
    let targets = ["etc/passwd", "Cargo.toml", "package.json", "tests/package.json", "crates/server/Cargo.toml"];
    for folder in ["/", "/shell/", "/portlet/", "/shared/"] {
        for climb in climbs {
            for (depth, target) in (1..12).step_by(3).zip(targets.iter().cycle()) {
                let path = format!("{folder}{}{target}", climb.repeat(depth));
                let answer = app.request("GET", &path, None).await;
                assert_eq!(answer.status, 404, "{path}");
            }
        }
    }
    for path in [
        "//etc/passwd",
        "/etc/passwd",
        "/tests/",
        "/package.json",
        "/package-lock.json",
        "/shell/../shell/index.html",
        "/shared/protocol.d.ts",
        "/.git/config",
        "/shell/%00index.html",
    ] {
        assert_eq!(app.request("GET", path, None).await.status, 404, "{path}");
    }
}
