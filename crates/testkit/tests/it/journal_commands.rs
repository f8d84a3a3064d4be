//! `export`, `journal` and what `doctor` says of the journal: with a server and without one.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use testkit::{TestSetup, command_at, within};

#[track_caller]
fn outcome(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// The program in a home without a server.
async fn alone(home: &Path, args: &[&str]) -> (i32, String, String) {
    outcome(&within("the command to end", command_at(home, args).output()).await.unwrap())
}

/// A session with one turn: a thought, a command and an answer.
async fn conversation(setup: &TestSetup, answer: &str) -> String {
    let project = setup.app.home().join("project");
    let (code, out, error) = outcome(&setup.app.run(&["new", "codex", "--project", project.to_str().unwrap()]).await);
    assert_eq!(code, 0, "{error}");
    let id = out.trim().to_owned();
    let asked = format!("think:Hm\ncall:c cargo test\noutput:c one\ndone:c 2\nsay:{answer}");
    let (code, _, error) = outcome(&setup.app.run(&["send", &id, &asked]).await);
    assert_eq!(code, 0, "{error}");
    id
}

#[tokio::test]
async fn a_session_is_exported_in_every_format() {
    let setup = TestSetup::start().await;
    let id = conversation(&setup, "Two **words** for jane@example.com").await;

    let (code, text, error) = outcome(&setup.app.run(&["export", &id]).await);
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(text.starts_with("# ") && text.contains("\n## You"), "{text}");
    assert!(
        text.contains("**Ran** `cargo test` (failed, exit status 2") && text.contains("```text\none\n```"),
        "{text}"
    );
    assert!(text.contains("Two **words** for jane@example.com\n"), "{text}");

    let (_, text, _) = outcome(&setup.app.run(&["export", &id, "--format", "json", "--redact"]).await);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&value["format"], &value["redacted"]), (&json!("liminal-builder.export"), &json!(true)));
    assert_eq!(value["session"]["id"], id.as_str());
    assert_eq!(value["turns"].as_array().unwrap().len(), 1);
    assert!(value["items"].as_array().unwrap().len() >= 4, "{value}");
    assert!(text.contains("[redacted e-mail]") && !text.contains("jane@"), "{text}");

    let file = setup.app.home().join("out.html");
    let args = ["export", &id, "--format", "html", "-o", file.to_str().unwrap()];
    let (code, out, _) = outcome(&setup.app.run(&args).await);
    assert_eq!((code, out), (0, format!("Written to {}\n", file.display())));
    let html = std::fs::read_to_string(&file).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
    assert!(html.contains("<strong>words</strong>") && !html.contains("<script"));

    let (code, _, error) = outcome(&setup.app.run(&args).await);
    assert_eq!(code, 2, "a file that is there is not replaced");
    assert!(error.contains("--force"), "{error}");
    std::fs::write(&file, "old").unwrap();
    let forced = [&args[..], &["--force", "--json"]].concat();
    let (code, out, _) = outcome(&setup.app.run(&forced).await);
    assert_eq!((code, std::fs::read_to_string(&file).unwrap().len()), (0, html.len()));
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["bytes"], html.len());
    assert_eq!(outcome(&setup.app.run(&["export", "nothing"]).await).0, 5);
}

#[tokio::test]
async fn an_export_is_an_attachment_and_needs_what_every_route_needs() {
    let setup = TestSetup::start().await;
    let id = conversation(&setup, "Hello").await;
    let path = format!("/api/session/{id}/export");
    for (query, content_type, extension) in [
        ("", "text/markdown; charset=utf-8", "md"),
        ("?format=json&redact=true", "application/json", "json"),
        ("?format=html", "text/html; charset=utf-8", "html"),
    ] {
        let answer = setup.app.request("GET", &format!("{path}{query}"), None).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(content_type)));
        let disposition = answer.header("content-disposition").unwrap();
        assert!(disposition.starts_with("attachment; filename=\""), "{disposition}");
        assert!(disposition.ends_with(&format!(".{extension}")), "{disposition}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert!(answer.text().contains("Hello"));
    }
    for (query, field) in [("?format=pdf", "format"), ("?redact=maybe", "redact"), ("?format=md&format=json", "format")]
    {
        let answer = setup.app.request("GET", &format!("{path}{query}"), None).await;
        assert_eq!((answer.status, &answer.json()["error"]["field"]), (400, &json!(field)), "{query}");
    }
    let host = setup.app.host();
    let without = testkit::exchange(setup.app.address(), "GET", &path, &[("host", &host)], b"").await;
    assert_eq!(without.status, 403);
    let none = setup.app.request("GET", "/api/session/codex:none/export", None).await;
    assert_eq!((none.status, &none.json()["error"]["code"]), (404, &json!("SESSION_NOT_FOUND")));
}

#[tokio::test]
async fn the_journal_is_counted_checked_and_pruned_with_a_server() {
    let setup = TestSetup::start().await;
    let id = conversation(&setup, "Hello").await;
    let (code, text, _) = outcome(&setup.app.run(&["journal", "stats"]).await);
    assert_eq!(code, 0);
    assert!(text.contains("journal.db\n") && text.contains("1 session, 1 turn, ") && text.contains(" MiB"), "{text}");
    let (_, text, _) = outcome(&setup.app.run(&["journal", "stats", "--json"]).await);
    let stats: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(stats["sessions"][0]["sessionId"], id.as_str());
    assert!(stats["sessions"][0]["title"].as_str().unwrap().starts_with("think:Hm"), "{stats}");

    let (code, text, _) = outcome(&setup.app.run(&["journal", "check"]).await);
    assert_eq!(code, 0);
    assert!(text.starts_with("The journal is sound: "), "{text}");

    let (code, _, error) = outcome(&setup.app.run(&["journal", "prune", "--older-than", "90d"]).await);
    assert_eq!(code, 2, "off a terminal it needs --yes");
    assert!(error.contains("--yes"), "{error}");
    let (code, text, _) = outcome(&setup.app.run(&["journal", "prune", "--older-than", "90d", "--yes"]).await);
    assert_eq!((code, text.as_str()), (0, "No turn is that old; nothing was deleted.\n"));
    for body in [json!({}), json!({"olderThanMs": 1, "before": "2026-01-01T00:00:00Z"}), json!({"before": "x"})] {
        assert_eq!(setup.app.request("POST", "/api/journal/prune", Some(&body)).await.status, 400, "{body}");
    }
    let all = json!({"before": "2999-01-01T00:00:00.000Z"});
    let pruned = setup.app.request("POST", "/api/journal/prune", Some(&all)).await.json();
    assert_eq!(pruned["turns"], 1, "{pruned}");
}

#[tokio::test]
async fn without_a_server_the_file_is_read_and_not_changed() {
    let mut setup = TestSetup::start().await;
    let id = conversation(&setup, "Hello").await;
    setup.app.interrupt();
    setup.app.ended().await;
    let (home, data_dir) = (setup.app.home(), setup.app.data_dir());
    let files = || {
        let mut names: Vec<_> = std::fs::read_dir(&data_dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        (names, std::fs::read(data_dir.join("journal.db")).unwrap())
    };
    let before = files();
    let (code, text, _) = alone(home, &["journal", "stats", "--json"]).await;
    let stats: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &stats["sessions"][0]["sessionId"]), (0, &json!(id)));
    assert!(stats["sessions"][0]["title"].as_str().unwrap().starts_with("think:Hm"), "{stats}");
    let (code, text, _) = alone(home, &["journal", "check", "--json"]).await;
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &report["damage"], &report["contradictions"]), (0, &json!([]), &json!([])));
    let (_, text, _) = alone(home, &["doctor", "--no-start"]).await;
    assert!(text.contains("Journal ") && text.contains("no damage found"), "{text}");
    assert!(files() == before, "nothing was changed");

    let (code, _, _) = alone(home, &["journal", "prune", "--older-than", "1h", "--yes", "--json"]).await;
    assert_eq!(code, 0);
    assert_eq!(alone(home, &["export", &id]).await.0, 3, "an export needs a server");
}

#[tokio::test]
async fn damage_has_an_exit_code_of_its_own_and_doctor_names_it() {
    let mut setup = TestSetup::start().await;
    conversation(&setup, &"A long answer. ".repeat(2_000)).await;
    setup.app.interrupt();
    setup.app.ended().await;
    let (home, file) = (setup.app.home(), setup.app.data_dir().join("journal.db"));
    let mut bytes = std::fs::read(&file).unwrap();
    // Every page but the first: the file opens, and its content is broken.
    let from = bytes.len() / 4;
    bytes[from..].fill(0x5a);
    std::fs::write(&file, &bytes).unwrap();
    let (code, text, error) = alone(home, &["journal", "check"]).await;
    assert_eq!(code, 9, "{text}{error}");
    let (code, text, _) = alone(home, &["doctor", "--no-start"]).await;
    assert_eq!(code, 1);
    assert!(text.contains("!! Journal"), "{text}");
    assert_eq!(std::fs::read(&file).unwrap(), bytes, "neither changes the file");
}

#[tokio::test]
async fn without_a_journal_there_is_nothing_to_look_at_and_nothing_is_made() {
    let home = tempfile::tempdir().unwrap();
    for (args, expected) in [
        (&["journal", "stats"][..], "There is no journal yet.\n"),
        (&["journal", "check"], "There is no journal yet.\n"),
        (&["journal", "prune", "--older-than", "90d", "--yes"], "No turn is that old; nothing was deleted.\n"),
    ] {
        let (code, text, error) = alone(home.path(), args).await;
        assert_eq!((code, text.as_str()), (0, expected), "{error}");
    }
    assert_eq!(alone(home.path(), &["journal", "prune", "--older-than", "soon", "--yes"]).await.0, 2);
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}
