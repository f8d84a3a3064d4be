//! One JSON file per body of the HTTP API, and one with every error's code and message.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::golden_tests::{check, cli_type, project, session_id, state, summary, turn_id};
use crate::http::*;
use crate::*;

/// Written as in the file, and read back as it was.
fn check_body<T: Serialize + DeserializeOwned + PartialEq + Debug>(name: &str, body: &T) {
    let value = serde_json::to_value(body).unwrap();
    check(&format!("http.{name}.json"), &value);
    assert_eq!(serde_json::from_value::<T>(value).unwrap(), *body);
}

#[test]
fn every_body_of_the_http_api_has_its_golden_file_and_is_read_back() {
    check_body("health", &HealthBody { status: "ok".into(), version: "0.1.0".into(), uptime_ms: 1234 });
    let (cli_type, session_id) = (cli_type(), session_id());
    check_body(
        "create",
        &CreateSessionBody {
            cli_type: cli_type.clone(),
            project_id: Some(project().id),
            project_dir: Some("/home/dev/demo".into()),
        },
    );
    check_body("session", &SessionBody { session_id: session_id.clone(), cli_type: cli_type.clone() });
    check_body("sessions", &SessionListBody { sessions: vec![summary()] });
    check_body(
        "status",
        &SessionStatusBody { session_id: session_id.clone(), cli_type, is_alive: true, state: state() },
    );
    check_body("send", &SendBody { content: "Hello".into() });
    check_body("sent", &SentBody { turn_id: turn_id(), recorded: true });
    let row = UsageRow {
        day: "2026-11-18".into(),
        session_id: session_id.clone(),
        title: "Fix the login".into(),
        project_id: project().id,
        project_name: Some(project().name),
        cli_type: session_id.cli_type(),
        turns: 3,
        input_tokens: 1200,
        output_tokens: 340,
        cache_read_input_tokens: 56_000,
        cache_creation_input_tokens: 780,
        cost_usd: Some(0.25),
    };
    assert_eq!(row.tokens(), 58_320);
    check_body("usage", &UsageBody { today: "2026-11-18".into(), rows: vec![row] });
    let path = "/?token=once-0123".to_owned();
    check_body("ticket", &TicketBody { path, file: Some("/home/dev/.liminal-builder/.open-0123.html".into()) });
    let at = Timestamp::from_unix_ms(1_700_000_000_000);
    let browser = BrowserInfo {
        id: "0123abcd".into(),
        label: "Firefox on Linux".into(),
        added_at: at,
        last_used_at: at,
        is_current: true,
    };
    check_body("browsers", &BrowserListBody { is_required: true, browsers: vec![browser] });
    check_body("revoke", &RevokeBody { id: Some("0123abcd".into()), all: false });
    check_body("revoked", &RevokedBody { revoked: vec!["0123abcd".into()] });
    let session = JournalSession {
        session_id,
        title: Some("Fix the login".into()),
        items: 12,
        turns: 3,
        said_bytes: 34_567,
        first_at: Some(at),
        last_at: Some(at),
    };
    let stats = JournalStatsBody {
        path: Some("/home/dev/.liminal-builder/journal.db".into()),
        file_bytes: 65_536,
        free_bytes: 4096,
        disk_free_bytes: Some(1_000_000_000),
        format: 1,
        items: 12,
        turns: 3,
        sessions: vec![session],
    };
    check_body("journal", &stats);
    let damage = vec!["row 5 missing from index item_position".into()];
    let check = JournalCheckBody { damage, contradictions: vec!["a gap".into()], items: 12 };
    assert!(!check.is_sound());
    check_body("journal-check", &check);
    check_body("prune", &PruneBody { older_than_ms: Some(7_776_000_000), before: None });
    check_body("pruned", &PrunedBody { turns: 3, items: 12, freed_bytes: 32_768 });
    let code = ErrorCode::SessionNotFound;
    check_body("error", &ErrorBody { error: ErrorMessage::new(code, code.message("")) });
}

#[test]
fn every_error_has_its_code_and_its_message_in_the_golden_file() {
    let errors: serde_json::Map<String, Value> =
        ErrorCode::ALL.iter().map(|code| (code.as_str().to_owned(), code.message("Codex").into())).collect();
    check("errors.json", &Value::Object(errors));
}
