//! The real Claude Code, driven by the provider, against the scripted model.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::{Continuity, ToolContent, ToolKind, UpsertStatus};
use providers::claude::{ClaudeConfig, ClaudeProvider};
use providers::{NewSession, OpenSession, Provider, ProviderError};
use testkit::programs;
use testkit::scripted_model::ScriptedModel;
use upserts::{ItemBody, ItemUpdate};

use crate::listener::{Listener, soon};

/// A home, a project and a model of its own for each test.
pub(crate) struct Bench {
    home: tempfile::TempDir,
    project: tempfile::TempDir,
    pub(crate) model: ScriptedModel,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(project.path().join("README.md"), "# Demo\n\nA small demo project.\n").unwrap();
        Self { home, project, model: ScriptedModel::start().await.unwrap() }
    }

    pub(crate) fn config(&self) -> ClaudeConfig {
        let set = |name: &str, value: &str| (OsString::from(name), Some(OsString::from(value)));
        let home = self.home.path().to_str().unwrap();
        let mut env = vec![
            set("HOME", home),
            set("ANTHROPIC_BASE_URL", &self.model.url()),
            set("ANTHROPIC_API_KEY", "dummy"),
            set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            set("DISABLE_AUTOUPDATER", "1"),
            set("DISABLE_TELEMETRY", "1"),
            set("DISABLE_ERROR_REPORTING", "1"),
            set("CLAUDE_CODE_MAX_RETRIES", "1"),
        ];
        // Nothing of whoever runs the tests.
        for name in ["CLAUDE_CONFIG_DIR", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_MODEL", "CLAUDE_CODE_OAUTH_TOKEN"] {
            env.push((name.into(), None));
        }
        ClaudeConfig {
            command: programs::claude().to_str().unwrap().to_owned(),
            start_timeout: Duration::from_secs(60),
            env,
            guardian: Some(programs::scripted_agent().to_owned()),
            ..ClaudeConfig::default()
        }
    }

    pub(crate) fn provider(&self) -> ClaudeProvider {
        ClaudeProvider::new(self.config()).unwrap()
    }

    fn project_dir(&self) -> PathBuf {
        self.project.path().to_owned()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.project.path().join(name)
    }

    async fn create(&self, provider: &ClaudeProvider) -> Listener {
        let new = NewSession { project_dir: self.project_dir() };
        Listener::new(soon("the session", provider.create_session(new)).await.unwrap())
    }

    fn open(&self, id: &protocol::AgentSessionId) -> OpenSession {
        OpenSession { id: id.clone(), project_dir: self.project_dir(), prompted: true, items_max: 200 }
    }
}

fn tool<'a>(items: &[&'a ItemUpdate], tool: &str) -> &'a ItemUpdate {
    let found = items.iter().find(|item| matches!(&item.body, ItemBody::ToolCall { name, .. } if &**name == tool));
    found.unwrap_or_else(|| panic!("no {tool} among {items:#?}"))
}

fn detail(item: &ItemUpdate) -> &protocol::ToolDetail {
    match &item.body {
        ItemBody::ToolCall { tool: Some(detail), .. } => detail,
        other => panic!("not a tool call: {other:?}"),
    }
}

fn output(item: &ItemUpdate) -> String {
    item.body.text().map(ToString::to_string).unwrap_or_default()
}

/// TC-2.2d, TC-3.1a, TC-3.2a, TC-3.2b, TC-3.3a, TC-3.3d.
#[tokio::test]
async fn a_session_is_created_and_answers_turn_after_turn_in_one_process() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    assert!(provider.is_alive(&session.id));

    let first = provider.send_message(&session.id, "say:hello **world**").await.unwrap();
    session.until_end_of(&first).await;
    assert!(session.is_completed(&first), "{session:#?}");
    assert_eq!(session.said(&first), ["hello **world**"]);
    let second = provider.send_message(&session.id, "think:let me see\nsay:I thought").await.unwrap();
    session.until_end_of(&second).await;
    assert_eq!(session.said(&second), ["I thought"]);
    let items = session.of(&second);
    assert!(matches!(&items[1].body, ItemBody::Thinking { text, .. } if *text == "let me see"), "{items:#?}");
    assert_eq!(session.statuses.iter().filter(|status| **status == protocol::AgentStatus::Connected).count(), 1);
    assert_eq!(session.continuity, [Continuity::Live]);
    let facts = &session.facts;
    assert!(facts.commands.as_ref().is_some_and(|commands| !commands.is_empty()));
    let options: Vec<_> = facts.options.iter().flatten().map(|option| option.id.as_str()).collect();
    assert_eq!(options, ["mode", "model"]);
    assert!(facts.model.is_some() && facts.context.is_some(), "{facts:?}");
    soon("the end", provider.shutdown()).await;
}

/// TC-3.3b, TC-3.3c, TC-3.3e: each tool as what it is, with its result.
#[tokio::test]
async fn tools_are_shown_as_what_they_do() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let script = "read:README.md\nbash:echo out && touch made.txt\nwrite:new.txt=one\\ntwo\\n\n\
                  edit:new.txt=two=>2\nbash:echo no >&2; exit 3\nsay:done";
    let turn = provider.send_message(&session.id, script).await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_completed(&turn), "{session:#?}");
    let items = session.of(&turn);
    assert!(items.iter().all(|item| item.status == UpsertStatus::Complete));

    let read = tool(&items, "Read");
    assert_eq!(detail(read).kind, ToolKind::Read);
    assert!(detail(read).locations[0].path.ends_with("/README.md"));
    let shown = &detail(read).content[..];
    assert!(matches!(shown, [ToolContent::File { start_line: 1, text, .. }] if text.contains("demo")), "{shown:?}");

    let bash = tool(&items, "Bash");
    assert_eq!((detail(bash).kind, detail(bash).exit_code), (ToolKind::Execute, Some(0)));
    assert_eq!(output(bash).trim(), "out");
    assert_eq!(detail(bash).command.as_deref(), Some("echo out && touch made.txt"));
    let permission = detail(bash).permission.as_ref().map(|permission| permission.decision);
    assert_eq!(permission, Some(protocol::PermissionDecision::AllowedAutomatically), "touch had to be asked for");
    assert!(bench.file("made.txt").exists());

    let write = tool(&items, "Write");
    assert!(
        matches!(&detail(write).content[..], [ToolContent::Diff { old_text: None, new_text, .. }] if new_text == "one\ntwo\n")
    );
    let edit = tool(&items, "Edit");
    assert!(
        matches!(&detail(edit).content[..], [ToolContent::Diff { old_text: Some(old), new_text, start_line: Some(1), .. }]
            if old == "one\ntwo\n" && new_text == "one\n2\n"),
        "{edit:#?}"
    );
    assert_eq!(std::fs::read_to_string(bench.file("new.txt")).unwrap(), "one\n2\n");

    let failed = items.iter().rev().find(|item| matches!(item.body, ItemBody::ToolCall { .. })).unwrap();
    assert!(matches!(failed.body, ItemBody::ToolCall { is_error: Some(true), .. }));
    assert_eq!((detail(failed).exit_code, output(failed).trim()), (Some(3), "no"));
    assert_eq!(session.said(&turn), ["done"]);
    let Some(protocol::TurnEvent::TurnComplete { usage: Some(usage), .. }) = session.end_of(&turn) else {
        panic!("no usage: {session:#?}")
    };
    assert_eq!(usage.input_tokens, 600, "six model calls");
    soon("the end", provider.shutdown()).await;
}

/// TC-3.3f.
#[tokio::test]
async fn two_tools_at_once_are_kept_apart() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let script = "say:both\nparallel:bash:echo one || read:README.md\nsay:after";
    let turn = provider.send_message(&session.id, script).await.unwrap();
    session.until_end_of(&turn).await;
    let items = session.of(&turn);
    let kinds: Vec<_> = items.iter().map(|item| item.body.text().map(ToString::to_string)).collect();
    assert_eq!(items.len(), 5, "{kinds:?}");
    assert_eq!(output(tool(&items, "Bash")), "one");
    assert!(output(tool(&items, "Read")).contains("demo"));
    assert_eq!(session.said(&turn), ["both", "after"]);
    soon("the end", provider.shutdown()).await;
}

/// TC-3.4a.
#[tokio::test]
async fn cancel_in_a_text_keeps_what_was_said_and_the_session_goes_on() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let turn = provider.send_message(&session.id, "say:the beginning\nhold:never\nsay:the end").await.unwrap();
    session.until("the beginning", |session| session.text().contains("beginning")).await;
    provider.cancel_turn(&session.id).await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_cancelled(&turn), "{session:#?}");
    assert_eq!(session.said(&turn), ["the beginning"]);
    assert!(session.of(&turn).iter().all(|item| item.status == UpsertStatus::Complete));

    let next = provider.send_message(&session.id, "say:still here").await.unwrap();
    session.until_end_of(&next).await;
    assert_eq!(session.said(&next), ["still here"]);
    provider.cancel_turn(&session.id).await.unwrap();
    let last = provider.send_message(&session.id, "say:a cancel with nothing running is nothing").await.unwrap();
    session.until_end_of(&last).await;
    assert!(session.is_completed(&last));
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn cancel_in_a_tool_ends_the_tool() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let turn = provider.send_message(&session.id, "bash:touch started && sleep 300\nsay:never").await.unwrap();
    let started = bench.file("started");
    session
        .until("the tool's permission", |session| {
            session.of(&turn).iter().any(
                |item| matches!(&item.body, ItemBody::ToolCall { tool: Some(tool), .. } if tool.permission.is_some()),
            )
        })
        .await;
    soon("the tool to run", async {
        while !started.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    provider.cancel_turn(&session.id).await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_cancelled(&turn), "{session:#?}");
    let items = session.of(&turn);
    assert!(detail(tool(&items, "Bash")).interrupted);
    assert_eq!(session.said(&turn), Vec::<String>::new());
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn cancel_before_the_first_word_ends_the_turn() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    for _ in 0..3 {
        let turn = provider.send_message(&session.id, "hold:never\nsay:never").await.unwrap();
        provider.cancel_turn(&session.id).await.unwrap();
        session.until_end_of(&turn).await;
        assert!(session.is_cancelled(&turn), "{session:#?}");
    }
    let turn = provider.send_message(&session.id, "say:ready").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.said(&turn), ["ready"]);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_question_to_the_user_is_shown_and_left_to_the_chat() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let turn = provider.send_message(&session.id, "ask\nsay:I assumed blue").await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_completed(&turn), "{session:#?}");
    let items = session.of(&turn);
    let asked = detail(tool(&items, "AskUserQuestion"));
    assert!(
        matches!(&asked.content[..], [ToolContent::Text { text }] if text.contains("Which colour?") && text.contains("Blue"))
    );
    let decision = asked.permission.as_ref().map(|permission| permission.decision);
    assert_eq!(decision, Some(protocol::PermissionDecision::Cancelled));
    assert_eq!(session.said(&turn), ["I assumed blue"]);
    soon("the end", provider.shutdown()).await;
}

/// A denial comes from the program's own rules here: viewer mode itself never refuses a tool.
#[tokio::test]
async fn a_tool_that_is_denied_says_so_and_the_turn_goes_on() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    soon("the mode", provider.set_option(&session.id, "mode", "dontAsk")).await.unwrap();
    let turn = provider.send_message(&session.id, "bash:touch forbidden\nsay:went on").await.unwrap();
    session.until_end_of(&turn).await;
    let items = session.of(&turn);
    assert!(matches!(tool(&items, "Bash").body, ItemBody::ToolCall { is_error: Some(true), .. }), "{items:#?}");
    assert!(!bench.file("forbidden").exists());
    assert_eq!(session.said(&turn), ["went on"]);
    let mode = session.facts.options.iter().flatten().find(|option| option.id == "mode").unwrap();
    assert_eq!(mode.value, "dontAsk");
    let refused = soon("the answer", provider.set_option(&session.id, "mode", "bypassPermissions")).await;
    assert!(matches!(refused, Err(ProviderError::Protocol { .. })), "{refused:?}");
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_plan_the_user_asked_for_waits_for_the_user() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    soon("the mode", provider.set_option(&session.id, "mode", "plan")).await.unwrap();
    let turn = provider.send_message(&session.id, "plan:1. Do it\nsay:waiting").await.unwrap();
    session.until_end_of(&turn).await;
    let items = session.of(&turn);
    let plan = tool(&items, "ExitPlanMode");
    assert!(matches!(&detail(plan).content[..], [ToolContent::Text { text }] if text == "1. Do it"));
    assert_eq!(detail(plan).kind, ToolKind::SwitchMode);
    let mode = session.facts.options.iter().flatten().find(|option| option.id == "mode").unwrap();
    assert_eq!(mode.value, "plan", "{session:#?}");
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_long_stream_arrives_whole() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let turn = provider.send_message(&session.id, "stream:2000").await.unwrap();
    session.until_end_of(&turn).await;
    let expected: Vec<_> = (0..2000).map(|word| format!("w{word}")).collect();
    assert_eq!(session.said(&turn), [expected.join(" ")]);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn errors_of_the_model_are_the_turns_error_and_retries_are_told() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;

    let failed = provider.send_message(&session.id, "error:500").await.unwrap();
    session.until_end_of(&failed).await;
    let (code, words) = session.error_of(&failed).unwrap();
    assert!(code == "AGENT_PROTOCOL_ERROR" && words.contains("500"), "{code} {words}");
    assert!(session.all_facts.iter().any(|facts| facts.activity.as_ref().is_some_and(|now| now.contains("Try 1"))));
    assert_eq!(session.facts.activity.as_deref(), Some(""), "over when the turn is");
    assert!(session.text().contains("tries again"), "{session:#?}");

    let refused = provider.send_message(&session.id, "error:401").await.unwrap();
    session.until_end_of(&refused).await;
    assert!(session.error_of(&refused).unwrap().1.contains("/login"), "{session:#?}");

    let recovered = provider.send_message(&session.id, "error:529*1\nsay:better").await.unwrap();
    session.until_end_of(&recovered).await;
    assert!(session.is_completed(&recovered), "{session:#?}");
    assert_eq!(session.said(&recovered), ["better"]);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_not_shown_twice() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let turn = provider.send_message(&session.id, "say:half an answer\nerror:cut*1\nsay:whole").await.unwrap();
    session.until_end_of(&turn).await;
    let said = session.said(&turn);
    assert_eq!(said.iter().filter(|text| text.contains("half an answer")).count(), 1, "{session:#?}");
    soon("the end", provider.shutdown()).await;
}

fn comparable(items: &[&ItemUpdate]) -> Vec<String> {
    let line = |item: &&ItemUpdate| {
        let mut body = item.body.clone();
        // Live we know that nobody was asked; the file only knows that leave was given.
        if let ItemBody::ToolCall { tool: Some(tool), .. } = &mut body {
            let mut plain = protocol::ToolDetail::clone(tool);
            plain.permission = None;
            plain.started_at = None;
            plain.ended_at = None;
            *tool = plain.into();
        }
        format!("{} {} {:?} {:?} {body:?}", item.turn_id, item.item_id, item.parent_item_id, item.status)
    };
    items.iter().map(line).collect()
}

/// TC-3.1b, TC-2.3a, TC-2.5b.
#[tokio::test]
async fn history_after_a_restart_is_what_was_live_and_the_next_message_resumes() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let prompts = [
        "think:hm\nsay:one",
        "read:README.md\nsay:two",
        "parallel:bash:echo a || bash:echo b\nsay:three",
        "write:x.txt=1\\n\nedit:x.txt=1=>2\nsay:four",
        "bash:exit 4\nsay:five",
        "/context",
        "error:529*1\nsay:six",
        "/compact",
        "say:seven",
        "error:400",
    ];
    for prompt in prompts {
        let turn = provider.send_message(&session.id, prompt).await.unwrap();
        session.until_end_of(&turn).await;
    }
    let cancelled = provider.send_message(&session.id, "say:part\nhold:never").await.unwrap();
    session.until("the part", |session| session.text().contains("part")).await;
    provider.cancel_turn(&session.id).await.unwrap();
    session.until_end_of(&cancelled).await;
    soon("the end", provider.shutdown()).await;

    let provider = bench.provider();
    let loaded = soon("the history", provider.load_session(bench.open(&session.id))).await.unwrap();
    assert!(!provider.is_alive(&session.id), "nothing is started to show history");
    assert_eq!(loaded.history.continuity, Continuity::Dormant);
    let live: Vec<_> = session.items.iter().collect();
    let past: Vec<_> = loaded.history.items.iter().collect();
    for (past, live) in comparable(&past).iter().zip(comparable(&live)) {
        assert_eq!(*past, live);
    }
    assert_eq!(past.len(), live.len());
    let turns: Vec<_> = loaded.history.turns.iter().map(|turn| (turn.turn_id.clone(), turn.status)).collect();
    assert_eq!(turns.len(), prompts.len() + 1);
    assert_eq!(turns[turns.len() - 2].1, protocol::TurnRecordStatus::Error);
    assert_eq!(turns[turns.len() - 1], (cancelled, protocol::TurnRecordStatus::Cancelled));

    let mut session = Listener::new(loaded.session);
    let calls = bench.model.calls();
    let turn = provider.send_message(&session.id, "say:resumed").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.said(&turn), ["resumed"]);
    assert_eq!(session.continuity, [Continuity::Resumed]);
    assert!(bench.model.calls() > calls);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_session_that_was_never_prompted_begins_under_its_id() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let session = bench.create(&provider).await;
    let id = session.id.clone();
    soon("the end", provider.shutdown()).await;
    let provider = bench.provider();
    let open = OpenSession { prompted: false, ..bench.open(&id) };
    let loaded = soon("the session", provider.load_session(open)).await.unwrap();
    assert!(loaded.history.items.is_empty());
    let mut session = Listener::new(loaded.session);
    let turn = provider.send_message(&id, "say:first words").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.said(&turn), ["first words"]);
    assert_eq!((session.id.as_str(), &session.continuity[..]), (id.as_str(), &[Continuity::Live][..]));
    soon("the end", provider.shutdown()).await;
}

/// TC-3.2c, TC-3.4b, TC-8.1.
#[tokio::test]
async fn a_killed_agent_ends_the_turn_with_what_was_said_and_comes_back() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let before = provider.send_message(&session.id, "say:before").await.unwrap();
    session.until_end_of(&before).await;
    let turn = provider.send_message(&session.id, "say:in the middle\nhold:never").await.unwrap();
    session.until("the middle", |session| session.text().contains("middle")).await;
    kill_claude(bench.project.path());
    session.until_end_of(&turn).await;
    let (code, words) = session.error_of(&turn).unwrap();
    assert!(code == "PROCESS_CRASH" && words.contains("stopped unexpectedly"), "{code} {words}");
    let said = session.of(&turn);
    assert_eq!(said.last().unwrap().status, UpsertStatus::Error);
    assert_eq!(session.said(&turn), ["in the middle"]);
    let refused = provider.send_message(&session.id, "say:too soon").await;
    assert!(matches!(refused, Err(ProviderError::Unavailable { .. } | ProviderError::Crashed { .. })), "{refused:?}");

    session.until("the agent to be back", |session| session.continuity.last() == Some(&Continuity::Resumed)).await;
    use protocol::AgentStatus::*;
    assert_eq!(session.statuses[2..], [Disconnected, Reconnecting, Reconnecting, Connected], "{session:#?}");
    let after = provider.send_message(&session.id, "say:after").await.unwrap();
    session.until_end_of(&after).await;
    assert_eq!(session.said(&after), ["after"]);
    soon("the end", provider.shutdown()).await;
}

/// Kills the program that works in this directory, as `kill -9` would.
fn kill_claude(directory: &Path) {
    let directory = directory.canonicalize().unwrap();
    let mut killed = 0;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let works_here = std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == directory);
        let is_claude = std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe.ends_with("claude"));
        if works_here && is_claude {
            rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL)
                .unwrap();
            killed += 1;
        }
    }
    assert_eq!(killed, 1, "one process for the session, no more");
}

/// TC-8.1.
#[tokio::test]
async fn four_sessions_at_once_in_one_project_never_mix() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let create = || bench.create(&provider);
    let (a, b, c, d) = tokio::join!(create(), create(), create(), create());
    let mut sessions = [a, b, c, d];
    for round in 0..3 {
        let mut turns = Vec::new();
        for (number, session) in sessions.iter().enumerate() {
            let script = format!("say:s{number} r{round}\nbash:echo tool-{number}\nstream:50x1\nsay:end {number}");
            turns.push(provider.send_message(&session.id, &script).await.unwrap());
        }
        for (number, (session, turn)) in sessions.iter_mut().zip(&turns).enumerate() {
            session.until_end_of(turn).await;
            assert!(session.is_completed(turn), "{session:#?}");
            let items = session.of(turn);
            assert_eq!(output(tool(&items, "Bash")), format!("tool-{number}"));
            let said = session.said(turn);
            assert_eq!(said[0], format!("s{number} r{round}"));
            assert!(said[1].ends_with(&format!("end {number}")), "{said:?}");
            let id = protocol::SessionId::new(provider.cli_type(), &session.id);
            assert!(session.items.iter().all(|item| item.session_id == id));
        }
    }
    let second_owner = provider.load_session(bench.open(&sessions[0].id)).await;
    assert!(matches!(second_owner, Err(ProviderError::SessionOpen(_))));
    soon("the end", provider.shutdown()).await;
    for session in &mut sessions {
        session.until("its end", |session| session.closed).await;
    }
}

#[tokio::test]
async fn clear_goes_on_under_another_id() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let first = session.id.clone();
    let turn = provider.send_message(&session.id, "say:one").await.unwrap();
    session.until_end_of(&turn).await;
    let clear = provider.send_message(&session.id, "/clear").await.unwrap();
    session.until_end_of(&clear).await;
    session.until("another id", |session| session.id != first).await;
    let second = session.id.clone();
    assert!(!provider.is_alive(&first) && provider.is_alive(&second));
    let turn = provider.send_message(&second, "say:two").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.said(&turn), ["two"]);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_sub_agent_is_nested_under_its_call_live_and_in_history() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let turn = provider.send_message(&session.id, "agent:bash:echo deep\\nsay:sub done\nsay:started it").await.unwrap();
    session.until_end_of(&turn).await;
    session
        .until("the sub-agent's report", |session| session.turns.iter().filter(|turn| turn.is_end()).count() == 2)
        .await;
    let nested = |items: &[ItemUpdate]| {
        let call =
            items.iter().find(|item| matches!(&item.body, ItemBody::ToolCall { name, .. } if &**name == "Agent"));
        let call = call.unwrap_or_else(|| panic!("{items:#?}"));
        assert_eq!(detail(call).kind, ToolKind::Agent);
        assert_eq!(output(call), "sub done");
        let nested: Vec<_> = items.iter().filter(|item| item.parent_item_id.as_ref() == Some(&call.item_id)).collect();
        assert!(nested.iter().all(|item| item.turn_id == turn));
        nested.iter().map(|item| (item.item_id.clone(), output(item))).collect::<Vec<_>>()
    };
    let live = nested(&session.items);
    assert_eq!(live.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["deep", "sub done"]);
    soon("the end", provider.shutdown()).await;
    let provider = bench.provider();
    let loaded = soon("the history", provider.load_session(bench.open(&session.id))).await.unwrap();
    assert_eq!(nested(&loaded.history.items), live);
    let ids = |items: &[ItemUpdate]| {
        let mut ids: Vec<_> = items.iter().map(|item| (item.turn_id.clone(), item.item_id.clone())).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&loaded.history.items), ids(&session.items));
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn an_idle_process_is_ended_and_the_next_message_resumes() {
    let bench = Bench::new().await;
    let config = ClaudeConfig { idle: Some(Duration::from_millis(200)), ..bench.config() };
    let provider = ClaudeProvider::new(config).unwrap();
    let mut session = bench.create(&provider).await;
    for round in 0..2 {
        let turn = provider.send_message(&session.id, &format!("say:round {round}")).await.unwrap();
        session.until_end_of(&turn).await;
        assert_eq!(session.said(&turn), [format!("round {round}")]);
        session
            .until("the process to go", |session| session.statuses.last() == Some(&protocol::AgentStatus::Idle))
            .await;
        assert!(!provider.is_alive(&session.id));
    }
    assert!(!session.statuses.contains(&protocol::AgentStatus::Disconnected), "{session:#?}");
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn the_agent_is_described_with_its_version() {
    let bench = Bench::new().await;
    let info = soon("the description", bench.provider().describe()).await;
    assert_eq!((info.name.as_str(), info.installed, info.version.as_deref()), ("Claude Code", true, Some("2.1.325")));
    let missing = ClaudeConfig { command: "no-such-claude".into(), ..bench.config() };
    let provider = ClaudeProvider::new(missing).unwrap();
    let info = soon("the description", provider.describe()).await;
    assert_eq!((info.installed, info.version), (false, None));
    let failed = provider.create_session(NewSession { project_dir: bench.project_dir() }).await;
    let Err(error @ ProviderError::NotInstalled { .. }) = failed else { panic!("{failed:?}") };
    assert_eq!(error.to_message().install_hint.as_deref(), Some("npm install -g @anthropic-ai/claude-code"));
}
