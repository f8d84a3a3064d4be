//! The HTTP API and its description.

use serde_json::{Value, json};
use testkit::{TestApp, exchange};

#[tokio::test]
async fn health_needs_no_secret_and_tells_no_secret() {
    let app = TestApp::start().await;
    let host = app.host();
    let answer = exchange(app.address(), "GET", "/api/health", &[("host", &host)], b"").await;
    assert_eq!(answer.status, 200);
    let body = answer.json();
    assert_eq!((&body["status"], &body["version"]), (&json!("ok"), &json!(env!("CARGO_PKG_VERSION"))));
    assert!(body["uptimeMs"].is_u64());
    assert_eq!(body.as_object().unwrap().len(), 3);
}

#[tokio::test]
async fn every_described_route_is_there_and_answers_as_described() {
    let app = TestApp::start().await;
    let document = app.request("GET", "/api/openapi.json", None).await.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    let mut routes = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let path = path.replace("{id}", "codex:none");
            let body = (method == "post").then(|| json!({}));
            let answer = app.request(&method.to_uppercase(), &path, body.as_ref()).await;
            let described = &operation["responses"][answer.status.to_string()];
            assert!(described.is_object(), "{method} {path} answered {}", answer.status);
            assert_ne!(answer.status, 405, "{method} {path}");
            if answer.status >= 400 && path != "/ws" {
                let error = answer.json();
                let error = &error["error"];
                assert!(error["code"].is_string() && error["message"].is_string(), "{method} {path}: {error}");
                assert!(!error["message"].as_str().unwrap().contains("nothing at this path"), "{method} {path}");
            }
            routes += 1;
        }
    }
    assert_eq!(routes, 11, "a route was added or lost: describe it");
}

#[tokio::test]
async fn references_inside_the_description_lead_somewhere() {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(list) => list.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let app = TestApp::start().await;
    let document = app.request("GET", "/api/openapi.json", None).await.json();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said_by_code_and_field() {
    let app = TestApp::start().await;
    let cases = [
        ("GET", "/api/session/list", None, 400, "PROJECT_ID_REQUIRED"),
        ("GET", "/api/session/list?projectId=", None, 400, "PROJECT_ID_REQUIRED"),
        ("GET", "/api/session/list?projectId=none", None, 404, "PROJECT_NOT_FOUND"),
        ("GET", "/api/session/codex:none/status", None, 404, "SESSION_NOT_FOUND"),
        ("GET", "/api/session/--help/status", None, 404, "SESSION_NOT_FOUND"),
        ("GET", "/api/session/..%2f..%2fetc/status", None, 404, "SESSION_NOT_FOUND"),
        ("POST", "/api/session/codex:none/load", Some(json!({})), 404, "SESSION_NOT_FOUND"),
        ("POST", "/api/session/codex:none/send", Some(json!({"content": "hello"})), 404, "SESSION_NOT_FOUND"),
        ("POST", "/api/session/codex:none/cancel", None, 404, "SESSION_NOT_FOUND"),
        ("POST", "/api/session/codex:none/kill", None, 404, "SESSION_NOT_FOUND"),
        (
            "POST",
            "/api/session/create",
            Some(json!({"cliType": "none", "projectId": "x"})),
            400,
            "UNSUPPORTED_CLI_TYPE",
        ),
        ("POST", "/api/session/create", Some(json!({})), 400, "INVALID_MESSAGE"),
        ("POST", "/api/session/create", Some(json!([])), 400, "INVALID_MESSAGE"),
        ("GET", "/api/nothing", None, 404, "INVALID_MESSAGE"),
        ("DELETE", "/api/session/list", None, 405, "INVALID_MESSAGE"),
    ];
    for (method, path, body, status, code) in cases {
        let answer = app.request(method, path, body.as_ref()).await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (status, &json!(code)), "{method} {path}");
    }
    let answer = app.request("POST", "/api/session/create", Some(&json!({"cliType": 7}))).await;
    assert_eq!(answer.json()["error"]["field"], "cliType");
}

#[tokio::test]
async fn a_body_longer_than_the_limit_is_refused_and_the_server_lives() {
    let app = TestApp::start().await;
    let body = json!({"content": "x".repeat(1024 * 1024)});
    let answer = app.request("POST", "/api/session/codex:none/send", Some(&body)).await;
    assert_eq!(answer.status, 413);
    assert_eq!(app.request("GET", "/api/health", None).await.status, 200);
}
