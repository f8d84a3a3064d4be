//! The HTTP API and its description.

use protocol::{ClientMessage, ServerMessage};
use serde_json::{Value, json};
use testkit::{TestApp, exchange};

#[tokio::test]
async fn health_needs_no_secret_and_shows_no_secret() {
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
    assert_eq!(routes, 18, "a route was added or lost: describe it");
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
async fn what_is_wrong_with_a_request_is_reported_by_code_and_field() {
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
        ("GET", "/api/session/list?projectId=a&projectId=b", None, 400, "INVALID_MESSAGE"),
        ("GET", "/api/session/%ff/status", None, 404, "SESSION_NOT_FOUND"),
        ("GET", "/api/nothing", None, 404, "INVALID_MESSAGE"),
        ("POST", "/api/nothing", None, 405, "INVALID_MESSAGE"),
        ("DELETE", "/api/session/list", None, 405, "INVALID_MESSAGE"),
        ("GET", "/ws", None, 426, "INVALID_MESSAGE"),
    ];
    for (method, path, body, status, code) in cases {
        let answer = app.request(method, path, body.as_ref()).await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (status, &json!(code)), "{method} {path}");
    }
    let answer = app.request("POST", "/api/session/create", Some(&json!({"cliType": 7}))).await;
    assert_eq!(answer.json()["error"]["field"], "cliType");
    for (method, path, message, header) in [
        ("GET", "/api/nothing", "There is nothing at this path.", None),
        ("DELETE", "/api/session/list", "This path does not take that method.", Some(("allow", "GET,HEAD"))),
        ("POST", "/nothing", "This path does not take that method.", Some(("allow", "GET, HEAD"))),
        ("GET", "/ws", "This path takes WebSocket connections only.", Some(("upgrade", "websocket"))),
    ] {
        let answer = app.request(method, path, None).await;
        assert_eq!(answer.json()["error"]["message"], message, "{method} {path}");
        if let Some((name, value)) = header {
            assert_eq!(answer.header(name), Some(value), "{method} {path}");
        }
    }
}

/// The names and kinds of a body's fields, without what they hold.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), shape(value))).collect(),
        Value::Array(list) => list.iter().map(shape).collect(),
        Value::String(_) => json!("text"),
        Value::Number(_) => json!("number"),
        other => other.clone(),
    }
}

fn golden(name: &str) -> Value {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/goldens").join(name);
    serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap()
}

#[tokio::test]
async fn answers_have_the_shape_of_the_golden_files_and_of_the_description() {
    let app = TestApp::start().await;
    let directory = json!({"cliType": "demo", "projectDir": app.home()});
    let created = app.request("POST", "/api/session/create", Some(&directory)).await.json();
    let id = created["sessionId"].as_str().unwrap();
    let mut window = app.window().await;
    let ServerMessage::ProjectList { projects } = window.call(&ClientMessage::ProjectList {}).await else {
        panic!("no list")
    };
    let list = format!("/api/session/list?projectId={}", projects[0].id);
    let prompt = json!({"content": "hello"});
    let document = app.request("GET", "/api/openapi.json", None).await.json();
    for (name, schema, answer) in [
        ("health", "Health", app.request("GET", "/api/health", None).await),
        ("session", "Session", app.request("POST", &format!("/api/session/{id}/load"), None).await),
        ("sessions", "SessionList", app.request("GET", &list, None).await),
        ("status", "SessionStatus", app.request("GET", &format!("/api/session/{id}/status"), None).await),
        ("sent", "Sent", app.request("POST", &format!("/api/session/{id}/send"), Some(&prompt)).await),
        ("browsers", "BrowserList", browsers(&app).await),
        ("pruned", "Pruned", app.request("POST", "/api/journal/prune", Some(&json!({"olderThanMs": 1_000_000}))).await),
        ("revoked", "Revoked", app.request("POST", "/api/browsers/revoke", Some(&json!({"all": true}))).await),
        ("error", "Error", app.request("GET", "/api/session/codex:none/status", None).await),
    ] {
        let (mut golden, mut answer) = (shape(&golden(&format!("http.{name}.json"))), shape(&answer.json()));
        // What a state is about is not always there.
        for state in ["/state", "/sessions/0"] {
            for body in [&mut golden, &mut answer] {
                if let Some(Value::Object(state)) = body.pointer_mut(state) {
                    state.retain(|name, _| !["reason", "since", "hangs"].contains(&name.as_str()));
                }
            }
        }
        assert_eq!(answer, golden, "{name}");
        let described = document["components"]["schemas"][schema]["properties"].as_object();
        let described: Vec<_> = described.unwrap_or_else(|| panic!("{schema} is not described")).keys().collect();
        let mut fields: Vec<_> = golden.as_object().unwrap().keys().collect();
        fields.sort();
        assert!(fields.iter().all(|field| described.contains(field)), "{schema}: {fields:?} in {described:?}");
    }
}

/// As an authorized browser sees it.
async fn browsers(app: &TestApp) -> testkit::Response {
    let (host, cookies) = (app.host(), app.sign_in().await);
    exchange(app.address(), "GET", "/api/browsers", &[("host", &host), ("cookie", &cookies)], b"").await
}

#[tokio::test]
async fn a_body_longer_than_the_limit_is_refused_and_the_server_lives() {
    let app = TestApp::start().await;
    let body = json!({"content": "x".repeat(1024 * 1024)});
    let answer = app.request("POST", "/api/session/codex:none/send", Some(&body)).await;
    assert_eq!(answer.status, 413);
    assert_eq!(app.request("GET", "/api/health", None).await.status, 200);
}

/// AC-1.3: Undo in one window is seen in every window, and nothing of the project is different from before.
#[tokio::test]
async fn a_removal_is_taken_back_in_every_window_also_while_the_directory_is_gone() {
    let app = TestApp::start().await;
    let (mut window, mut other) = (app.window().await, app.window().await);
    let mut added = Vec::new();
    for name in ["one", "two", "three"] {
        let directory = app.home().join(name);
        std::fs::create_dir(&directory).unwrap();
        let path = directory.to_str().unwrap().to_owned();
        let ServerMessage::ProjectAdded { project } = window.call(&ClientMessage::ProjectAdd { path }).await else {
            panic!("no project was added")
        };
        added.push(project);
    }
    let project_id = added[0].id.clone();
    let before = std::fs::read_to_string(app.data_dir().join("projects.json")).unwrap();
    window.call(&ClientMessage::ProjectRemove { project_id: project_id.clone() }).await;
    other.until("the removal", |frame| matches!(frame.message, ServerMessage::ProjectRemoved { .. })).await;
    std::fs::remove_dir(app.home().join("one")).unwrap();

    let answer = window.call(&ClientMessage::ProjectRestore { project_id: project_id.clone() }).await;
    assert_eq!(answer, ServerMessage::ProjectAdded { project: added[0].clone() });
    let news =
        |frame: &protocol::ServerFrame| frame.message == ServerMessage::ProjectAdded { project: added[0].clone() };
    other.until("the project to be back", news).await;
    assert_eq!(
        other.call(&ClientMessage::ProjectList {}).await,
        ServerMessage::ProjectList { projects: added.clone() }
    );
    assert_eq!(std::fs::read_to_string(app.data_dir().join("projects.json")).unwrap(), before);
}
