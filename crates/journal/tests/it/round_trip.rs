//! Whatever is recorded comes back as it was.

use std::sync::Arc;

use journal::{
    Batch, Health, ItemChange, Journal, POSITION_GAP, Read, SqliteJournal, StoredItem, TurnChange, TurnOrigin,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use protocol::{
    CallId, ItemId, Origin, Permission, PermissionDecision, SessionFacts, Timestamp, ToolContent, ToolDetail, ToolKind,
    ToolLocation, TurnId, TurnRecord, TurnRecordStatus, Upsert, UpsertBody, UpsertStatus, Usage,
};
use serde_json::{Map, Number, Value};

use crate::samples::{open, session, turn_id};

fn text() -> BoxedStrategy<String> {
    prop_oneof![Just(String::new()), "\\PC{0,40}", "[a-z \n]{60,200}", "[\\x00-\\x7f]{0,20}", any::<String>()].boxed()
}

fn time() -> BoxedStrategy<Timestamp> {
    prop_oneof![Just(0), 1i64..4_000_000_000_000].prop_map(Timestamp::from_unix_ms).boxed()
}

fn json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| Number::from_f64(number).map_or(Value::Null, Value::Number)),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec(("[a-z/~]{0,6}", inner), 0..4).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
    .boxed()
}

fn content(shared: String) -> BoxedStrategy<ToolContent> {
    let text = prop_oneof![Just(shared), text()];
    let line = option::of(any::<u32>());
    prop_oneof![
        (text.clone(), option::of(text.clone()), text.clone(), line).prop_map(
            |(path, old_text, new_text, start_line)| { ToolContent::Diff { path, old_text, new_text, start_line } }
        ),
        (text.clone(), any::<u32>(), text.clone()).prop_map(|(path, start_line, text)| ToolContent::File {
            path,
            start_line,
            text
        }),
        (text.clone(), text.clone()).prop_map(|(mime_type, data)| ToolContent::Image { mime_type, data }),
        text.prop_map(|text| ToolContent::Text { text }),
    ]
    .boxed()
}

fn detail(shared: String) -> BoxedStrategy<ToolDetail> {
    let kind = prop_oneof![Just(ToolKind::Other), Just(ToolKind::Execute), Just(ToolKind::Edit)];
    let location = (text(), option::of(any::<u32>())).prop_map(|(path, line)| ToolLocation { path, line });
    let permission =
        option::of(text()).prop_map(|option| Permission { decision: PermissionDecision::AllowedAlways, option });
    let times = (option::of(time()), option::of(time()));
    let ended = (option::of(any::<i32>()), option::of(permission), any::<bool>());
    (
        kind,
        option::of(text()),
        option::of(Just(shared.clone())),
        vec(location, 0..3),
        vec(content(shared), 0..3),
        ended,
        times,
    )
        .prop_map(|(kind, title, command, locations, content, (exit_code, permission, interrupted), times)| {
            ToolDetail {
                kind,
                title,
                command,
                locations,
                content,
                exit_code,
                permission,
                interrupted,
                started_at: times.0,
                ended_at: times.1,
            }
        })
        .boxed()
}

fn tool_call() -> BoxedStrategy<UpsertBody> {
    text()
        .prop_flat_map(|shared| {
            let arguments = vec(("[a-z/~]{0,6}", prop_oneof![Just(Value::String(shared.clone())), json()]), 0..4);
            let output = option::of(prop_oneof![Just(shared.clone()), text()]);
            let call = prop_oneof![Just("item".to_owned()), "[a-z][a-z0-9_:.-]{0,30}"];
            (text(), arguments, call, output, option::of(any::<bool>()), option::of(detail(shared))).prop_map(
                |(tool_name, arguments, call, tool_output, tool_output_is_error, tool)| UpsertBody::ToolCall {
                    tool_name,
                    tool_arguments: Arc::new(arguments.into_iter().collect::<Map<_, _>>()),
                    call_id: CallId::parse(call).unwrap(),
                    tool_output,
                    tool_output_is_error,
                    tool: tool.map(Arc::new),
                },
            )
        })
        .boxed()
}

fn upsert(status: BoxedStrategy<UpsertStatus>) -> BoxedStrategy<Upsert> {
    let origin = prop_oneof![Just(Origin::User), Just(Origin::Agent), Just(Origin::System)];
    let body = prop_oneof![
        (text(), origin).prop_map(|(content, origin)| UpsertBody::Message { content, origin }),
        (text(), text()).prop_map(|(content, provider_id)| UpsertBody::Thinking { content, provider_id }),
        tool_call(),
    ];
    let error = (option::of(text()), option::of(text()));
    (body, status, time(), time(), error, option::of(Just("parent")), "[a-c]")
        .prop_map(|(body, status, source_timestamp, emitted_at, (error_code, error_message), parent, turn)| Upsert {
            turn_id: TurnId::parse(turn).unwrap(),
            session_id: Some(session("a")),
            item_id: ItemId::parse("item").unwrap(),
            source_timestamp,
            emitted_at,
            status,
            error_code,
            error_message,
            parent_item_id: parent.map(|id| ItemId::parse(id).unwrap()),
            body,
            view: Default::default(),
        })
        .boxed()
}

fn text_of(upsert: &mut Upsert) -> Option<&mut String> {
    match &mut upsert.body {
        UpsertBody::Message { content, .. } | UpsertBody::Thinking { content, .. } => Some(content),
        UpsertBody::ToolCall { tool_output, .. } => tool_output.as_mut(),
    }
}

/// A state of the item, and whether its text goes on where the one before it ended.
#[derive(Clone, Debug)]
struct Step {
    upsert: Upsert,
    continues: bool,
}

fn steps() -> BoxedStrategy<Vec<Step>> {
    let running = prop_oneof![Just(UpsertStatus::Create), Just(UpsertStatus::Update)];
    let settled = prop_oneof![Just(UpsertStatus::Complete), Just(UpsertStatus::Error)];
    let status = prop_oneof![3 => running, 1 => settled];
    vec((upsert(status.boxed()), any::<bool>()).prop_map(|(upsert, continues)| Step { upsert, continues }), 1..6)
        .boxed()
}

/// Records each step as a session would, and expects the whole item after each.
async fn check_steps(journal: &SqliteJournal, steps: Vec<Step>) {
    let key = journal.take_over(&session("a")).await.unwrap().key;
    let mut whole: Option<Upsert> = None;
    let mut seq = 0;
    for Step { mut upsert, continues } in steps {
        seq += 2;
        let mut sent = upsert.clone();
        let known = whole.as_mut().filter(|known| !known.status.is_final()).and_then(text_of).cloned();
        let mut text_from = 0;
        if let (true, Some(known), Some(text)) = (continues && !upsert.status.is_final(), known, text_of(&mut upsert)) {
            text.insert_str(0, &known);
            text_from = known.len();
        } else if upsert.status.is_final() {
            sent = upsert.clone();
        }
        let item = ItemChange { upsert: sent, text_from, position: POSITION_GAP, first: seq - 1, last: seq };
        let batch = Batch {
            session: key,
            confirmed: false,
            items: vec![item],
            turns: vec![],
            marks: vec![],
            facts: None,
            completes: false,
        };
        journal.append(batch).await.unwrap().unwrap();
        let expected = StoredItem { upsert: upsert.clone(), position: POSITION_GAP, first: 1, last: seq };
        let found = journal.item(key, &ItemId::parse("item").unwrap()).await.unwrap();
        assert_eq!(found.as_ref(), Some(&expected));
        assert_eq!(journal.read(key, Read::Newest { limit: 5 }).await.unwrap().items, [expected]);
        whole = Some(upsert);
    }
    let report = journal.check().await.unwrap();
    assert_eq!((report.damage, report.contradictions), (vec![], vec![]));
    assert_eq!(*journal.health().borrow(), Health::Writing);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn an_item_comes_back_as_it_was_recorded_after_every_change(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check_steps(&SqliteJournal::in_memory().unwrap(), steps));
    }
}

#[tokio::test]
async fn a_turn_and_facts_come_back_as_they_were_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path());
    let key = journal.take_over(&session("a")).await.unwrap().key;
    let record = TurnRecord {
        turn_id: turn_id("t"),
        status: TurnRecordStatus::Error,
        started_at: Timestamp::default(),
        ended_at: Some(Timestamp::from_unix_ms(7)),
        model_id: Some("m".into()),
        usage: Some(Usage { input_tokens: 1, output_tokens: 2, cost_usd: Some(0.1 + 0.2), ..Usage::default() }),
        error_code: Some("c".into()),
        error_message: Some("é".into()),
        forgotten: true,
    };
    let facts = SessionFacts { model: Some("m".into()), silent_ms: Some(3), ..SessionFacts::default() };
    let running = TurnRecord { status: TurnRecordStatus::Running, usage: None, ..record.clone() };
    for (record, number) in [(running, 1), (record.clone(), 2)] {
        let turn = TurnChange { record, origin: TurnOrigin::Agent, position: 5, first: number, last: number };
        let facts = Some(facts.clone());
        let batch = Batch {
            session: key,
            confirmed: true,
            items: vec![],
            turns: vec![turn],
            marks: vec![],
            facts,
            completes: true,
        };
        journal.append(batch).await.unwrap().unwrap();
    }
    let page = journal.read(key, Read::Since { seq: 1, limit: 5 }).await.unwrap();
    assert_eq!((&page.turns[0].record, page.turns[0].origin, page.turns[0].last), (&record, TurnOrigin::Agent, 2));
    assert_eq!(journal.read(key, Read::Open).await.unwrap().turns, []);
    let head = journal.find(&session("a")).await.unwrap().unwrap();
    assert_eq!((head.facts, head.is_complete, head.position), (facts, true, 5));
}
