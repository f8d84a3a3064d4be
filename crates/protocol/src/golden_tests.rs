//! One JSON file per message variant, written by Rust (`UPDATE_GOLDENS=1 cargo test -p protocol`), read by JavaScript.
//!
//! The tables that name the files are exhaustive: a new variant does not compile before it has a file, and the test
//! fails before it has a sample.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::*;

/// Names the file of every variant; the second half lists them all.
macro_rules! files {
    ($type:ty; $($pattern:pat => $file:literal),+ $(,)?) => {{
        fn file(value: &$type) -> &'static str {
            match value { $($pattern => $file),+ }
        }
        (file, [$($file),+])
    }};
}

/// Looks at each sample with the name of its file, and sees to it that there is one for every file.
fn each<T, const N: usize>(
    samples: impl IntoIterator<Item = T>,
    (file, all): (impl Fn(&T) -> &'static str, [&'static str; N]),
    mut look: impl FnMut(&str, T),
) {
    let mut missing = BTreeSet::from(all);
    for sample in samples {
        let file = file(&sample);
        missing.remove(file);
        look(file, sample);
    }
    assert!(missing.is_empty(), "there is no sample for {missing:?}");
}

pub(crate) fn check(file: &str, value: &Value) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("goldens").join(file);
    let text = serde_json::to_string_pretty(value).unwrap() + "\n";
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(golden, text, "{}", path.display());
}

pub(crate) fn at() -> Timestamp {
    Timestamp::parse("2026-11-15T21:15:56.123Z").unwrap()
}
pub(crate) fn session_id() -> SessionId {
    SessionId::parse("claude-code:4f0c1a52-7d6e-4b0a-9a53-0f6d3f1f2a10").unwrap()
}
pub(crate) fn turn_id() -> TurnId {
    TurnId::parse("turn-1").unwrap()
}
fn item_id() -> ItemId {
    ItemId::parse("item-1").unwrap()
}
fn call_id() -> CallId {
    CallId::parse("toolu_01").unwrap()
}
pub(crate) fn cli_type() -> CliType {
    CliType::parse("claude-code").unwrap()
}
pub(crate) fn project() -> Project {
    Project {
        id: ProjectId::parse("5bd1bd8a-43f7-5a3e-8a5c-3b4a3f7b9d01").unwrap(),
        path: "/home/dev/demo".into(),
        name: "demo".into(),
        added_at: at(),
        defaults: Some(ProjectDefaults {
            cli_type: cli_type(),
            options: [("mode".to_owned(), "plan".to_owned())].into(),
        }),
    }
}
pub(crate) fn state() -> SessionState {
    SessionState {
        attention: Attention::Working,
        reason: Some("Run cargo test".into()),
        continuity: Continuity::Live,
        hangs: true,
        since: Some(at()),
    }
}
pub(crate) fn summary() -> SessionSummary {
    SessionSummary {
        id: session_id(),
        project_id: project().id,
        title: "New Session".into(),
        last_active_at: at(),
        created_at: at(),
        cli_type: cli_type(),
        state: state(),
    }
}
fn definition() -> AgentDefinition {
    AgentDefinition {
        name: "Gemini".into(),
        command: "gemini".into(),
        args: vec!["--acp".into()],
        env: vec![EnvVariable { name: "GEMINI_API_KEY".into(), value: "key".into() }],
    }
}
fn arguments() -> serde_json::Map<String, Value> {
    serde_json::Map::from_iter([("command".to_string(), json!("cargo test"))])
}
fn usage() -> Usage {
    Usage {
        input_tokens: 12,
        output_tokens: 34,
        cache_read_input_tokens: Some(5),
        cache_creation_input_tokens: Some(6),
        cost_usd: Some(0.25),
    }
}
fn tool() -> Arc<ToolDetail> {
    Arc::new(ToolDetail {
        kind: ToolKind::Execute,
        title: Some("Run the tests".into()),
        command: Some("cargo test".into()),
        locations: vec![ToolLocation { path: "src/lib.rs".into(), line: Some(7) }],
        content: vec![
            ToolContent::Diff {
                path: "src/lib.rs".into(),
                old_text: Some("a\n".into()),
                new_text: "b\n".into(),
                start_line: Some(1),
            },
            ToolContent::File { path: "src/lib.rs".into(), start_line: 1, text: "b\n".into() },
            ToolContent::Image { mime_type: "image/png".into(), data: "aGk=".into() },
            ToolContent::Text { text: "done".into() },
        ],
        exit_code: Some(0),
        permission: Some(Permission {
            decision: PermissionDecision::AllowedAutomatically,
            option: Some("Allow once".into()),
        }),
        interrupted: true,
        started_at: Some(at()),
        ended_at: Some(at()),
    })
}
fn upsert(body: UpsertBody) -> Upsert {
    Upsert {
        turn_id: turn_id(),
        session_id: Some(session_id()),
        item_id: item_id(),
        source_timestamp: at(),
        emitted_at: at(),
        status: UpsertStatus::Complete,
        error_code: None,
        error_message: None,
        parent_item_id: None,
        body,
        view: UpsertView::default(),
    }
}
fn message() -> Upsert {
    upsert(UpsertBody::Message { content: "Hello".into(), origin: Origin::Agent })
}

#[test]
fn every_upsert_has_its_golden_file() {
    let bodies = [
        UpsertBody::Message { content: "Hello".into(), origin: Origin::Agent },
        UpsertBody::Thinking { content: "Hm".into(), provider_id: "claude-code".into() },
        UpsertBody::ToolCall {
            tool_name: "Bash".into(),
            tool_arguments: Arc::new(arguments()),
            call_id: call_id(),
            tool_output: Some("ok\n".into()),
            tool_output_is_error: Some(false),
            tool: Some(tool()),
        },
    ];
    let files = files!(UpsertBody;
        UpsertBody::Message { .. } => "upsert.message.json",
        UpsertBody::Thinking { .. } => "upsert.thinking.json",
        UpsertBody::ToolCall { .. } => "upsert.tool_call.json",
    );
    each(bodies, files, |file, body| {
        let value = serde_json::to_value(upsert(body.clone())).unwrap();
        check(file, &value);
        assert_eq!(serde_json::from_value::<Upsert>(value).unwrap(), upsert(body));
    });
    let mut failed = message();
    failed.status = UpsertStatus::Error;
    failed.error_code = Some("PROCESS_CRASH".into());
    failed.error_message = Some("Claude Code stopped unexpectedly".into());
    failed.parent_item_id = Some(ItemId::parse("item-0").unwrap());
    failed.view = UpsertView {
        content_from: Some(5),
        blocks: Some(BlockPatch { from: 1, keep: 3, html: vec!["Hello</p>".into()] }),
        sections: Some(vec![ToolSection {
            kind: SectionKind::Diff,
            path: Some("src/lib.rs".into()),
            html: "<table></table>".into(),
            added: Some(1),
            removed: Some(1),
            cut_lines: Some(400),
        }]),
    };
    let value = serde_json::to_value(&failed).unwrap();
    check("upsert.view.json", &value);
    assert_eq!(serde_json::from_value::<Upsert>(value).unwrap(), failed);
}

fn turn_events() -> [TurnEvent; 3] {
    [
        TurnEvent::TurnStarted {
            turn_id: turn_id(),
            session_id: session_id(),
            model_id: "claude-sonnet-4-5".into(),
            provider_id: "claude-code".into(),
            at: at(),
        },
        TurnEvent::TurnComplete {
            turn_id: turn_id(),
            session_id: session_id(),
            status: TurnStatus::Completed,
            usage: Some(usage()),
            at: at(),
        },
        TurnEvent::TurnError {
            turn_id: turn_id(),
            session_id: session_id(),
            error_code: "PROCESS_CRASH".into(),
            error_message: "Claude Code stopped unexpectedly".into(),
            at: at(),
        },
    ]
}

#[test]
fn every_turn_event_has_its_golden_file() {
    let files = files!(TurnEvent;
        TurnEvent::TurnStarted { .. } => "turn.turn_started.json",
        TurnEvent::TurnComplete { .. } => "turn.turn_complete.json",
        TurnEvent::TurnError { .. } => "turn.turn_error.json",
    );
    each(turn_events(), files, |file, event| {
        let value = serde_json::to_value(&event).unwrap();
        check(file, &value);
        assert_eq!(serde_json::from_value::<TurnEvent>(value).unwrap(), event);
    });
}

/// TC-1.1a to e, TC-1.2a to c.
#[test]
fn every_stream_event_has_its_golden_file() {
    use stream::*;
    let start = |item_type, name: Option<&str>| {
        StreamPayload::ItemStart(ItemStart {
            item_id: item_id(),
            item_type,
            initial_content: Some("He".into()),
            name: name.map(Into::into),
            call_id: name.map(|_| call_id()),
            origin: Some(Origin::Agent),
            parent_item_id: None,
            tool: name.map(|_| tool()),
        })
    };
    let done = |final_item| StreamPayload::ItemDone(ItemDone { item_id: item_id(), final_item });
    let error = || ErrorDetail::new(ErrorCode::ProcessCrash, "Codex stopped unexpectedly");
    let payloads = [
        StreamPayload::ResponseStart(ResponseStart { model_id: "gpt".into(), provider_id: "codex".into() }),
        start(ItemType::Message, None),
        start(ItemType::Reasoning, None),
        start(ItemType::FunctionCall, Some("Bash")),
        start(ItemType::FunctionCallOutput, Some("Bash")),
        StreamPayload::ItemDelta(ItemDelta { item_id: item_id(), delta_content: "llo".into(), tool: None }),
        done(FinalItem::Message { content: "Hello".into(), origin: Origin::Agent }),
        done(FinalItem::Reasoning { content: "Hm".into(), provider_id: "codex".into() }),
        done(FinalItem::FunctionCall { name: "Bash".into(), call_id: call_id(), arguments: arguments(), tool: None }),
        done(FinalItem::FunctionCallOutput {
            call_id: call_id(),
            output: "ok".into(),
            is_error: false,
            tool: Some(tool()),
        }),
        StreamPayload::ItemError(ItemError { item_id: item_id(), error: error() }),
        StreamPayload::ItemCancelled(ItemCancelled { item_id: item_id(), reason: Some("superseded".into()) }),
        StreamPayload::ResponseDone(ResponseDone {
            status: ResponseStatus::Completed,
            finish_reason: Some("end_turn".into()),
            error: None,
            usage: Some(usage()),
        }),
        StreamPayload::ResponseError(ResponseError { error: error() }),
    ];
    let files = files!(StreamPayload;
        StreamPayload::ResponseStart(_) => "response_start",
        StreamPayload::ItemStart(ItemStart { item_type: ItemType::Message, .. }) => "item_start.message",
        StreamPayload::ItemStart(ItemStart { item_type: ItemType::Reasoning, .. }) => "item_start.reasoning",
        StreamPayload::ItemStart(ItemStart { item_type: ItemType::FunctionCall, .. }) => "item_start.function_call",
        StreamPayload::ItemStart(ItemStart { item_type: ItemType::FunctionCallOutput, .. }) => "item_start.function_call_output",
        StreamPayload::ItemDelta(_) => "item_delta",
        StreamPayload::ItemDone(ItemDone { final_item: FinalItem::Message { .. }, .. }) => "item_done.message",
        StreamPayload::ItemDone(ItemDone { final_item: FinalItem::Reasoning { .. }, .. }) => "item_done.reasoning",
        StreamPayload::ItemDone(ItemDone { final_item: FinalItem::FunctionCall { .. }, .. }) => "item_done.function_call",
        StreamPayload::ItemDone(ItemDone { final_item: FinalItem::FunctionCallOutput { .. }, .. }) => "item_done.function_call_output",
        StreamPayload::ItemError(_) => "item_error",
        StreamPayload::ItemCancelled(_) => "item_cancelled",
        StreamPayload::ResponseDone(_) => "response_done",
        StreamPayload::ResponseError(_) => "response_error",
    );
    each(payloads, files, |file, payload| {
        let event = StreamEvent {
            event_id: EventId::parse("event-1").unwrap(),
            timestamp: at(),
            turn_id: turn_id(),
            session_id: session_id(),
            payload,
        };
        let value = serde_json::to_value(&event).unwrap();
        check(&format!("stream.{file}.json"), &value);
        assert_eq!(StreamEvent::parse(&value.to_string()).unwrap(), event);
    });
}

#[test]
fn every_client_message_has_its_golden_file_and_is_read_back() {
    let (session_id, project_id) = (session_id(), project().id);
    let messages = [
        ClientMessage::ProjectList {},
        ClientMessage::ProjectAdd { path: "~/demo".into() },
        ClientMessage::ProjectRemove { project_id: project_id.clone() },
        ClientMessage::ProjectRestore { project_id: project_id.clone() },
        ClientMessage::ProjectSetDefaults { project_id: project_id.clone(), defaults: project().defaults },
        ClientMessage::ProjectOpenIn { project_id: project_id.clone(), target: OpenTarget::Editor },
        ClientMessage::SessionOpenIn { session_id: session_id.clone(), target: OpenTarget::Terminal },
        ClientMessage::SettingsGet {},
        ClientMessage::SettingsSet { editor: Some("code -n {dir}".into()), terminal: Some(String::new()) },
        ClientMessage::SessionList { project_id: project_id.clone() },
        ClientMessage::SessionCreate { project_id, cli_type: cli_type() },
        ClientMessage::SessionOpen {
            session_id: session_id.clone(),
            since: Some(7),
            epoch: Some(2),
            journal_id: Some("j1".into()),
        },
        ClientMessage::SessionLeave { session_id: session_id.clone() },
        ClientMessage::SessionSend { session_id: session_id.clone(), content: "Hello".into() },
        ClientMessage::SessionCancel { session_id: session_id.clone() },
        ClientMessage::SessionArchive { session_id: session_id.clone() },
        ClientMessage::SessionRestore { session_id: session_id.clone() },
        ClientMessage::SessionRename { session_id: session_id.clone(), title: "Relay".into() },
        ClientMessage::SessionPage { session_id: session_id.clone(), before: item_id(), limit: 100 },
        ClientMessage::SessionSeen { session_id: session_id.clone() },
        ClientMessage::SessionOutput { session_id: session_id.clone(), item_id: item_id() },
        ClientMessage::SessionSetOption {
            session_id: session_id.clone(),
            option_id: "mode".into(),
            value: "plan".into(),
        },
        ClientMessage::SessionReconnect { cli_type: cli_type(), session_id: Some(session_id) },
        ClientMessage::PathComplete { prefix: "~/de".into() },
        ClientMessage::PathRecent {},
        ClientMessage::AgentList {},
        ClientMessage::AgentConfig {},
        ClientMessage::AgentSave {
            revision: "r-1".into(),
            replaces: Some("Gemini CLI".into()),
            definition: definition(),
        },
        ClientMessage::AgentRemove { revision: "r-1".into(), name: "Gemini".into() },
        ClientMessage::AgentProbe { cli_type: cli_type() },
        ClientMessage::AgentProbeDefinition { definition: definition() },
    ];
    let mut missing = BTreeSet::from_iter(ClientMessage::TYPES);
    for message in messages {
        missing.remove(&message.wire_type());
        let mut value = serde_json::to_value(&message).unwrap();
        value["requestId"] = json!("r1");
        check(&format!("client.{}.json", message.wire_type().replace(':', ".")), &value);
        let frame = ClientFrame::parse(&value.to_string()).unwrap();
        assert_eq!(frame, ClientFrame { request_id: Some("r1".into()), message });
    }
    assert!(missing.is_empty(), "there is no sample for {missing:?}");
}

#[test]
fn every_server_message_has_its_golden_file_and_is_read_back() {
    let (session_id, project_id) = (session_id(), project().id);
    let facts = SessionFacts {
        plan: Some(vec![facts::PlanEntry { content: "Read".into(), status: facts::PlanStatus::InProgress }]),
        context: Some(facts::ContextUse { used: 62_000, size: 200_000 }),
        commands: Some(vec![facts::AgentCommandInfo {
            name: "compact".into(),
            description: "Make room".into(),
            hint: Some("[what to keep]".into()),
        }]),
        options: Some(vec![facts::ConfigOption {
            id: "mode".into(),
            name: "Mode".into(),
            category: facts::ConfigCategory::Mode,
            value: "plan".into(),
            choices: vec![facts::ConfigChoice {
                value: "plan".into(),
                name: "Plan".into(),
                description: Some("Read only".into()),
            }],
        }]),
        agent_title: Some("Relay".into()),
        model: Some("opus".into()),
        silent_ms: Some(30_000),
        activity: Some("Trying again (2 of 10)".into()),
        branch: Some("main".into()),
    };
    let messages = [
        ServerMessage::ServerHello {
            version: "0.1.0".into(),
            instance: "a1".into(),
            home: "/home/dev".into(),
            notices: vec!["sessions.json was damaged and set aside".into()],
            has_display: true,
        },
        ServerMessage::ServerNotices { notices: vec!["The disk is full.".into()] },
        ServerMessage::ProjectList { projects: vec![project()] },
        ServerMessage::ProjectAdded { project: project() },
        ServerMessage::ProjectUpdated { project: project() },
        ServerMessage::ProjectRemoved { project_id: project_id.clone() },
        ServerMessage::SessionList { project_id: project_id.clone(), sessions: vec![summary()] },
        ServerMessage::SessionCreated { session_id: session_id.clone(), project_id, session: summary() },
        ServerMessage::SessionHistory {
            session_id: session_id.clone(),
            entries: vec![message()],
            journal_id: "j1".into(),
            epoch: 2,
            seq: 9,
            more: true,
            since: Some(7),
            turns: vec![TurnRecord {
                turn_id: turn_id(),
                status: TurnRecordStatus::Error,
                started_at: at(),
                ended_at: Some(at()),
                model_id: Some("opus".into()),
                usage: Some(usage()),
                error_code: Some("PROCESS_CRASH".into()),
                error_message: Some("Claude Code stopped unexpectedly".into()),
                forgotten: true,
            }],
            facts: facts.clone(),
            session: summary(),
        },
        ServerMessage::SessionUpsert { session_id: session_id.clone(), seq: 10, payload: message() },
        ServerMessage::SessionTurn {
            session_id: session_id.clone(),
            seq: 11,
            payload: turn_events()[0].clone(),
            recorded: true,
        },
        ServerMessage::SessionPage {
            session_id: session_id.clone(),
            entries: vec![message()],
            more: false,
            turns: Vec::new(),
        },
        ServerMessage::SessionOutput {
            session_id: session_id.clone(),
            item_id: item_id(),
            html: vec!["<pre></pre>".into()],
        },
        ServerMessage::SessionArchived { session_id: session_id.clone() },
        ServerMessage::SessionRestored { session_id: session_id.clone(), session: summary() },
        ServerMessage::SessionTitleUpdated { session_id: session_id.clone(), title: "Relay".into() },
        ServerMessage::SessionState { session_id: session_id.clone(), state: state(), last_active_at: at() },
        ServerMessage::SessionFacts { session_id: session_id.clone(), facts },
        ServerMessage::SettingsCurrent {
            settings: ServerSettings {
                editor: OpenerSetting { command: "code -n {dir}".into(), default_command: Some("code".into()) },
                terminal: OpenerSetting::default(),
            },
        },
        ServerMessage::PathRecents {
            directories: vec![RecentDirectory {
                path: "/home/dev/old".into(),
                source: RecentSource::Removed,
                is_repository: true,
            }],
        },
        ServerMessage::PathCompletions {
            prefix: "~/de".into(),
            paths: vec![PathCompletion { path: "~/demo/".into(), is_project: true, is_repository: true }],
        },
        ServerMessage::AgentList {
            agents: vec![AgentInfo {
                cli_type: cli_type(),
                name: "Claude Code".into(),
                installed: true,
                version: Some("2.1.325".into()),
                program: Some("claude".into()),
                install_hint: Some("npm install -g @anthropic-ai/claude-code".into()),
                logged_in: Some(true),
                login_hint: Some("claude /login".into()),
                status: AgentStatus::Connected,
            }],
        },
        ServerMessage::AgentConfig {
            config: AgentConfig {
                file: "/home/dev/.liminal-builder/agents.json".into(),
                revision: "r-2".into(),
                problem: Some("it is not in the expected form".into()),
                agents: vec![
                    AgentEntry::BuiltIn {
                        cli_type: cli_type(),
                        name: "Claude Code".into(),
                        command: "claude".into(),
                        variable: Some("CLAUDE_CMD".into()),
                        is_replaced: false,
                    },
                    AgentEntry::Configured { cli_type: CliType::parse("Gemini").unwrap(), definition: definition() },
                    AgentEntry::Unusable { name: "Half".into(), reason: "the command is empty".into() },
                ],
            },
        },
        ServerMessage::AgentProbed {
            outcome: ProbeOutcome::Works {
                program: "/usr/bin/gemini".into(),
                version: Some("0.61.0".into()),
                login: ProbeLogin::Account { account: "dev@example.com".into() },
            },
        },
        ServerMessage::AgentStatus {
            cli_type: cli_type(),
            session_id: Some(session_id.clone()),
            status: AgentStatus::Reconnecting,
            attempt: Some(3),
            attempts_max: Some(5),
            retry_in_ms: Some(4000),
            detail: Some("out of memory".into()),
        },
        ServerMessage::Ack {},
        ServerMessage::Error(ErrorMessage {
            code: ErrorCode::AgentNotInstalled,
            message: ErrorCode::AgentNotInstalled.message("Claude Code"),
            field: Some("cliType".into()),
            detail: Some("claude: not found".into()),
            session_id: Some(session_id),
            cli_type: Some(cli_type()),
            install_hint: Some("npm install -g @anthropic-ai/claude-code".into()),
        }),
    ];
    let files = files!(ServerMessage;
            ServerMessage::ServerHello { .. } => "server.hello",
            ServerMessage::ServerNotices { .. } => "server.notices",
            ServerMessage::ProjectList { .. } => "project.list",
            ServerMessage::ProjectAdded { .. } => "project.added",
            ServerMessage::ProjectUpdated { .. } => "project.updated",
            ServerMessage::ProjectRemoved { .. } => "project.removed",
            ServerMessage::SessionList { .. } => "session.list",
            ServerMessage::SessionCreated { .. } => "session.created",
            ServerMessage::SessionHistory { .. } => "session.history",
            ServerMessage::SessionUpsert { .. } => "session.upsert",
            ServerMessage::SessionTurn { .. } => "session.turn",
            ServerMessage::SessionPage { .. } => "session.page",
            ServerMessage::SessionOutput { .. } => "session.output",
            ServerMessage::SessionArchived { .. } => "session.archived",
            ServerMessage::SessionRestored { .. } => "session.restored",
            ServerMessage::SessionTitleUpdated { .. } => "session.title-updated",
            ServerMessage::SessionState { .. } => "session.state",
            ServerMessage::SessionFacts { .. } => "session.facts",
            ServerMessage::SettingsCurrent { .. } => "settings.current",
            ServerMessage::PathCompletions { .. } => "path.completions",
            ServerMessage::PathRecents { .. } => "path.recents",
            ServerMessage::AgentList { .. } => "agent.list",
            ServerMessage::AgentConfig { .. } => "agent.config",
            ServerMessage::AgentProbed { .. } => "agent.probed",
            ServerMessage::AgentStatus { .. } => "agent.status",
            ServerMessage::Ack {} => "ack",
            ServerMessage::Error(_) => "error",
    );
    each(messages, files, |file, message| {
        let frame = ServerFrame { message, request_id: Some("r1".into()) };
        let value = serde_json::to_value(&frame).unwrap();
        check(&format!("server.{file}.json"), &value);
        assert_eq!(serde_json::from_value::<ServerFrame>(value).unwrap(), frame);
    });
}

#[test]
fn every_outcome_of_a_probe_has_its_golden_file() {
    let outcomes = [
        ProbeOutcome::Works { program: "gemini".into(), version: None, login: ProbeLogin::GivesSession {} },
        ProbeOutcome::NeedsLogin {
            program: "gemini".into(),
            version: Some("0.61.0".into()),
            advice: "Log in with `gemini /auth`.".into(),
        },
        ProbeOutcome::Failed {
            message: ErrorCode::AgentHandshakeFailed.message("Gemini"),
            detail: Some("unknown option --acp".into()),
            advice: "Run `gemini --acp` in a terminal to see whether it works by itself.".into(),
        },
    ];
    let files = files!(ProbeOutcome;
        ProbeOutcome::Works { .. } => "works",
        ProbeOutcome::NeedsLogin { .. } => "needs-login",
        ProbeOutcome::Failed { .. } => "failed",
    );
    each(outcomes, files, |file, outcome| {
        let value = serde_json::to_value(&outcome).unwrap();
        check(&format!("probe.{file}.json"), &value);
        assert_eq!(serde_json::from_value::<ProbeOutcome>(value).unwrap(), outcome);
    });
}

/// E TC-6.4b: upserts are the only family of messages.
#[test]
fn no_message_of_the_first_contract_is_left() {
    for old in ["session:update", "session:chunk", "session:complete", "session:cancelled"] {
        let message = json!({"type": old, "sessionId": "codex:a", "seq": 1, "payload": {}, "entry": {}, "content": ""});
        let refused = serde_json::from_value::<crate::ServerMessage>(message).unwrap_err().to_string();
        assert!(refused.contains("unknown variant"), "{old}: {refused}");
    }
}

/// E TC-1.3b.
#[test]
fn what_an_ingestion_derives_later_is_in_no_message_and_documented_so() {
    let derived = ["turnSequenceNumber", "llmTurnNumber", "entryType"];
    let documented = include_str!("stream.rs").split("use std").next().unwrap_or_default();
    let goldens = concat!(env!("CARGO_MANIFEST_DIR"), "/goldens");
    for file in std::fs::read_dir(goldens).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(derived.iter().all(|field| !text.contains(field)), "{}", path.display());
    }
    for field in derived {
        assert!(documented.contains(field), "the contract does not say where {field} comes from");
    }
}
