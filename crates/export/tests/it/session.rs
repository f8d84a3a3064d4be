//! A session that has one of everything, and its export.

use std::sync::Arc;

use export::{Exporter, Format, Header, Redaction};
use protocol::{
    CallId, ItemId, Origin, SessionId, Timestamp, ToolContent, ToolDetail, ToolKind, TurnId, TurnRecord,
    TurnRecordStatus, Upsert, UpsertBody, UpsertStatus, UpsertView,
};
use serde_json::{Map, Value};

pub(crate) const START_MS: i64 = 1_794_777_356_000;

pub(crate) fn header(title: &str) -> Header {
    Header {
        session_id: SessionId::parse("codex:0199a213").unwrap(),
        title: title.into(),
        agent: "Codex".into(),
        project_path: Some("/home/dev/demo".into()),
        created_at: Timestamp::from_unix_ms(START_MS),
        exported_at: Timestamp::from_unix_ms(START_MS + 3_600_000),
        is_complete: true,
    }
}

pub(crate) fn turn(id: &str, status: TurnRecordStatus, error: Option<&str>) -> TurnRecord {
    TurnRecord {
        turn_id: TurnId::parse(id).unwrap(),
        status,
        started_at: Timestamp::from_unix_ms(START_MS),
        ended_at: None,
        model_id: None,
        usage: None,
        error_code: None,
        error_message: error.map(Into::into),
        forgotten: false,
    }
}

pub(crate) fn item(turn: &str, id: &str, body: UpsertBody) -> Upsert {
    let session = SessionId::parse("codex:0199a213").unwrap();
    Upsert {
        turn_id: TurnId::parse(turn).unwrap(),
        session_id: Some(session),
        item_id: ItemId::parse(id).unwrap(),
        source_timestamp: Timestamp::from_unix_ms(START_MS),
        emitted_at: Timestamp::from_unix_ms(START_MS),
        status: UpsertStatus::Complete,
        error_code: None,
        error_message: None,
        parent_item_id: None,
        body,
        view: UpsertView::default(),
    }
}

pub(crate) fn message(content: &str, origin: Origin) -> UpsertBody {
    UpsertBody::Message { content: content.into(), origin }
}

pub(crate) fn thinking(content: &str) -> UpsertBody {
    UpsertBody::Thinking { content: content.into(), provider_id: "codex".into() }
}

pub(crate) fn call(arguments: Map<String, Value>, output: &str, tool: ToolDetail) -> UpsertBody {
    UpsertBody::ToolCall {
        tool_name: "shell".into(),
        tool_arguments: Arc::new(arguments),
        call_id: CallId::parse("c1").unwrap(),
        tool_output: Some(output.into()),
        tool_output_is_error: tool.exit_code.map(|code| code != 0),
        tool: Some(Arc::new(tool)),
    }
}

pub(crate) const GIF: &str = "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==";

/// One item of each kind, each with the same text in every place where an agent or a user decides the text.
pub(crate) fn everything(text: &str) -> Vec<Upsert> {
    let diff = ToolContent::Diff {
        path: format!("src/{text}.rs"),
        old_text: Some("fn a() {}\n".into()),
        new_text: format!("fn b() {{}}\n{text}\n"),
        start_line: Some(3),
    };
    let content = vec![
        diff,
        ToolContent::File { path: text.into(), start_line: 1, text: text.into() },
        ToolContent::Image { mime_type: "image/gif".into(), data: GIF.into() },
        ToolContent::Image { mime_type: text.into(), data: text.into() },
        ToolContent::Text { text: text.into() },
    ];
    let run = ToolDetail {
        kind: ToolKind::Execute,
        command: Some(text.into()),
        exit_code: Some(2),
        content,
        ..ToolDetail::default()
    };
    let other = ToolDetail { title: Some(text.into()), ..ToolDetail::default() };
    let arguments = || [(text.to_owned(), Value::from(text))].into_iter().collect::<Map<_, _>>();
    let mut failed = item("t1", "i5", call(arguments(), text, other));
    failed.status = UpsertStatus::Error;
    failed.error_message = Some(text.into());
    vec![
        item("t1", "i1", message(text, Origin::User)),
        item("t1", "i2", thinking(text)),
        item("t1", "i3", message(text, Origin::Agent)),
        item("t1", "i4", call(Map::new(), text, run)),
        failed,
        item("t1", "i6", message(text, Origin::System)),
    ]
}

pub(crate) fn exported(
    format: Format,
    redaction: Redaction,
    header: Header,
    turns: &[TurnRecord],
    items: &[Upsert],
) -> String {
    let mut exporter = Exporter::new(format, redaction, header);
    let mut out = Vec::new();
    exporter.begin(&mut out).unwrap();
    for page in items.chunks(2) {
        exporter.page(turns, page, &mut out).unwrap();
    }
    exporter.end(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}
