//! What is masked, and what is not.

use export::redact::{SecretKind, spans, text};
use export::{Format, Redaction};
use proptest::prelude::*;
use protocol::TurnRecordStatus;

use crate::session::{GIF, everything, exported, header, turn};

/// Texts, and the part of each that must vanish.
const SECRETS: &[(&str, &str)] = &[
    ("key sk-ant-api03-AbCdEfGh_1234-xyz here", "sk-ant-api03-AbCdEfGh_1234-xyz"),
    ("OPENAI sk-proj-abcDEF1234567890", "sk-proj-abcDEF1234567890"),
    ("'sk-1234567890abcdef1234567890abcdef'", "sk-1234567890abcdef1234567890abcdef"),
    ("\u{1b}[32msk-ant-api03-AbCdEfGh\u{1b}[0m", "sk-ant-api03-AbCdEfGh"),
    ("-sk-ant-api03-AbCdEfGh removed", "sk-ant-api03-AbCdEfGh"),
    ("{\"line\":\"a\\nsk-ant-api03-AbCdEfGh\\n\"}", "sk-ant-api03-AbCdEfGh"),
    ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
    ("gho_16C7e42F292c6912E7710c838347Ae178B4a", "gho_16C7e42F292c6912E7710c838347Ae178B4a"),
    ("github_pat_11ABCDEFG0abcdefghijkl_mnopqrst", "github_pat_11ABCDEFG0abcdefghijkl_mnopqrst"),
    ("https://ghp_abcdefghijklmnopqrst@github.com/a/b", "ghp_abcdefghijklmnopqrst"),
    ("xoxb-123456789012-abcdefABCDEF", "xoxb-123456789012-abcdefABCDEF"),
    ("id AKIAIOSFODNN7EXAMPLE.", "AKIAIOSFODNN7EXAMPLE"),
    ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "AIzaSyA1234567890abcdefghijklmnopqrstuv"),
    (
        "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF-123_x!",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF-123_x",
    ),
    ("Authorization: Bearer abc123def456ghi", "abc123def456ghi"),
    ("authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    ("curl -H 'Authorization: token abcdef'", "abcdef"),
    ("use bearer 9f86d081884c7d65", "9f86d081884c7d65"),
    (
        "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\nxyz=\n-----END RSA PRIVATE KEY-----\nb",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\nxyz=\n-----END RSA PRIVATE KEY-----",
    ),
    ("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"),
    ("DB_PASSWORD=hunter2 ./run", "hunter2"),
    ("url?token=abc&x=1", "abc"),
    ("export API_KEY=\"p4ss w0rd\"", "p4ss w0rd"),
    ("\"clientSecret\": \"q\\\"uoted\"", "q\\\"uoted"),
    ("{\\\"password\\\": \\\"hunter2\\\"}", "hunter2"),
    ("api_key: abcdef123456", "abcdef123456"),
    ("password: correcthorse\n", "correcthorse"),
    ("mysql --password hunter2 -u root", "hunter2"),
    ("login --token=s3cr3t", "s3cr3t"),
    ("postgres://app:pa55word@db:5432/x", "pa55word"),
    ("https://user:p%40ss@example.com/", "p%40ss"),
    ("The secret is 9f86d081884c7d659a2feaa0c55ad015.", "9f86d081884c7d659a2feaa0c55ad015"),
    ("token: `3q2+7wAAAAD/3q2+7wAAAAD=`", "3q2+7wAAAAD/3q2+7wAAAAD="),
    ("mail jane.doe+x@mail.example.co.uk now", "jane.doe+x@mail.example.co.uk"),
    ("Jörg <jörg@example.de>", "jörg@example.de"),
    ("?to=jane%40example.com", "jane%40example.com"),
    ("qq 12345@163.com", "12345@163.com"),
];

/// Texts that must stay as they are.
const HARMLESS: &[&str] = &[
    "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "session 123e4567-e89b-42d3-a456-426614174000",
    "src/token/password.rs:12 and ~/.ssh/id_ed25519.pub",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "max_tokens=4096, input_tokens: 123456",
    "let token = self.tokens.next();",
    "token: String, password: Option<String>,",
    "fn f(password: &str, token: u64)",
    "connect(password=password, token=args.token)",
    "password=$PASSWORD token=${TOKEN} secret=<your secret> api_key=***",
    "password = None",
    "token = get_token()",
    "Unexpected token: '}'",
    "unexpected token in JSON at position 12",
    "PWD=/home/dev/demo",
    "git@github.com:org/repo.git and ssh://git@github.com/org/repo",
    "npm i react@18.2.0 @types/node@20.1.0 eslint@9.0.0-rc.beta",
    "images/logo@2x.png",
    "systemctl status getty@tty1.service",
    "pip install sk-learn-contrib-something",
    "Bearer authentication is required",
    "@media print { a: b }",
    "http://127.0.0.1:3000/api?x=1",
    "std::env::var(\"API_KEY\")",
    "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END CERTIFICATE-----",
    "the password is wrong",
    "--token TOKEN  the token to use",
    "eyJ.eyJ.eyJ",
];

#[test]
fn every_secret_vanishes_and_nothing_else() {
    for (line, secret) in SECRETS {
        let masked = text(line);
        assert!(line.contains(secret), "{line}");
        assert!(!masked.contains(secret), "{line} became {masked}");
        let expected = [SecretKind::Key, SecretKind::Email].map(|kind| line.replace(secret, kind.mask()));
        let is_header = line.contains("earer") || line.contains("BEGIN PRIVATE");
        assert!(is_header || expected.contains(&masked.to_string()), "{line} became {masked}");
        assert_eq!(text(&masked), masked, "masking again changes nothing");
    }
}

#[test]
fn what_is_no_secret_stays() {
    for line in HARMLESS {
        assert_eq!(text(line), *line);
    }
}

#[test]
fn every_format_masks_every_text() {
    for (line, secret) in SECRETS.iter().filter(|(_, secret)| !secret.contains(['\n', '"', '\\'])) {
        let turns = [turn("t1", TurnRecordStatus::Error, Some(line))];
        for format in Format::ALL {
            let items = everything(line);
            let file = exported(format, Redaction::Secrets, header(line), &turns, &without_paths(items));
            assert!(!file.contains(secret), "{secret} is in the {format:?} of {line}");
        }
    }
}

/// Paths stay, also in a redacted file; so do the contents of pictures.
fn without_paths(mut items: Vec<protocol::Upsert>) -> Vec<protocol::Upsert> {
    for item in &mut items {
        if let protocol::UpsertBody::ToolCall { tool: Some(tool), .. } = &mut item.body {
            let tool = std::sync::Arc::make_mut(tool);
            for content in &mut tool.content {
                match content {
                    protocol::ToolContent::Diff { path, .. } | protocol::ToolContent::File { path, .. } => {
                        *path = "a.rs".into();
                    }
                    protocol::ToolContent::Image { mime_type, data } => {
                        (*mime_type, *data) = ("image/gif".into(), GIF.into());
                    }
                    protocol::ToolContent::Text { .. } => {}
                }
            }
        }
    }
    items
}

#[test]
fn the_value_of_a_secret_argument_is_masked_and_pictures_stay() {
    let arguments = serde_json::json!({"env": {"DB_PASSWORD": "correct horse"}, "list": ["a@b.example"], "n": 5});
    let serde_json::Value::Object(arguments) = arguments else { panic!("an object") };
    let body = crate::session::call(arguments, "", protocol::ToolDetail::default());
    let mut items = everything("x");
    items.push(crate::session::item("t1", "i9", body));
    let file = exported(Format::Json, Redaction::Secrets, header("t"), &[], &items);
    assert!(!file.contains("correct horse") && !file.contains("a@b.example"));
    assert!(file.contains("\"DB_PASSWORD\":\"[redacted key]\"") && file.contains("\"n\":5"));
    assert!(file.contains(GIF), "pictures stay");
}

#[test]
fn texts_made_to_be_slow_are_masked_in_one_pass() {
    for unit in [
        "sk-",
        "sk--",
        "token=a::",
        "pwd=\"",
        "eyJ.",
        "eyJ--",
        "a@",
        "SG.",
        "://a:",
        "-----BEGIN PRIVATE KEY-----",
        "token ",
        "bearer ",
        "\\",
    ] {
        let long = unit.repeat(200_000 / unit.len());
        let masked = text(&long);
        assert!(masked.len() <= long.len() * 4, "{unit}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_but_the_masked_parts_changes(
        words in prop::collection::vec(prop_oneof!["\\PC{0,12}", "[ \\n\"'=:@./\\\\-]{0,4}", prop::sample::select(
            SECRETS.iter().map(|(line, _)| (*line).to_owned()).collect::<Vec<_>>()
        )], 0..12)
    ) {
        let long = words.concat();
        let (mut rebuilt, mut at) = (String::new(), 0);
        for span in spans(&long) {
            prop_assert!(span.range.start >= at && span.range.start < span.range.end);
            rebuilt.push_str(&long[at..span.range.start]);
            rebuilt.push_str(span.kind.mask());
            at = span.range.end;
        }
        rebuilt.push_str(&long[at..]);
        prop_assert_eq!(text(&long), rebuilt);
    }

    #[test]
    fn a_key_vanishes_wherever_it_stands(before in "\\PC{0,20}", after in "\\PC{0,20}") {
        let key = "sk-ant-api03-Zq9AbCdEfGh";
        let masked = text(&format!("{before} {key} {after}")).into_owned();
        prop_assert!(!masked.contains(key));
    }
}
