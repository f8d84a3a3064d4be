//! The real Codex behind its ACP adapter, driven by the provider, against the scripted model.

use std::time::Duration;

use protocol::{
    AgentSessionId, AgentStatus, Continuity, Origin, PermissionDecision, SessionId, ToolContent, ToolDetail, ToolKind,
    TurnId,
};
use providers::acp::{AcpAgent, AcpProvider, AcpSettings};
use providers::{NewSession, Provider, ProviderError, StoredSession};
use testkit::programs;
use testkit::scripted_model::ScriptedModel;
use upserts::{ItemBody, ItemUpdate};

use crate::acp_bench::{is_running, items_of, kill, until};
use crate::listener::{Listener, soon};

/// A home, a project and a model of its own for each test.
struct Bench {
    home: tempfile::TempDir,
    project: tempfile::TempDir,
    model: ScriptedModel,
    provider: AcpProvider,
}

impl Bench {
    async fn new() -> Self {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(project.path().join("README.md"), "# Demo\n\nA small demo project.\n").unwrap();
        let model = ScriptedModel::start().await.unwrap();
        std::fs::create_dir(home.path().join(".codex")).unwrap();
        std::fs::write(home.path().join(".codex/config.toml"), model.codex_settings()).unwrap();
        let provider = provider(&home);
        Self { home, project, model, provider }
    }

    /// As after a restart of ours.
    async fn again(self) -> Self {
        soon("the end", self.provider.shutdown()).await;
        let provider = provider(&self.home);
        Self { provider, ..self }
    }

    async fn create(&self) -> Listener {
        let new = NewSession { project_dir: self.project.path().to_owned() };
        Listener::new(soon("the session", self.provider.create_session(new)).await.unwrap())
    }

    fn open(&self, id: &AgentSessionId) -> StoredSession {
        StoredSession {
            id: SessionId::new(self.provider.cli_type(), id),
            agent_id: id.clone(),
            project_dir: self.project.path().to_owned(),
            prompted: true,
            options: Default::default(),
            history: Default::default(),
            items_max: 200,
        }
    }

    async fn send(&self, session: &Listener, text: &str) -> TurnId {
        soon("the turn", session.send(text)).await.unwrap()
    }

    async fn turn(&self, session: &mut Listener, text: &str) -> TurnId {
        let turn = self.send(session, text).await;
        session.until_end_of(&turn).await;
        turn
    }
}

fn provider(home: &tempfile::TempDir) -> AcpProvider {
    let mut agent = AcpAgent::codex(programs::codex_acp().to_str().unwrap()).unwrap();
    agent.command = agent
        .command
        .guardian(programs::scripted_agent())
        .current_dir(home.path())
        .env("HOME", home.path())
        .env("SCRIPTED_KEY", "dummy")
        .env("NO_BROWSER", "1");
    // Nothing of whoever runs the tests.
    for name in ["CODEX_HOME", "OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_PATH"] {
        agent.command = agent.command.env_remove(name);
    }
    let settings = AcpSettings { start_timeout: Duration::from_secs(60), ..AcpSettings::default() };
    AcpProvider::new(agent, settings)
}

fn tools(session: &Listener, turn: &TurnId) -> Vec<(ToolDetail, String)> {
    let tool = |item: &ItemUpdate| match &item.body {
        ItemBody::ToolCall { tool: Some(tool), output, .. } => {
            Some((ToolDetail::clone(tool), output.as_ref().map(ToString::to_string).unwrap_or_default()))
        }
        _ => None,
    };
    session.of(turn).into_iter().filter_map(tool).collect()
}

/// TC-2.2e, TC-4.1a, TC-4.1c.
#[tokio::test]
async fn codex_answers_thinks_runs_reads_and_changes_files() {
    let bench = Bench::new().await;
    assert!(bench.provider.describe().await.installed);
    let mut session = bench.create().await;
    let turn = bench.turn(&mut session, "think:Let me see.\nsay:Hello from Codex").await;
    assert!(session.is_completed(&turn));
    assert_eq!(session.answers(&turn), ["Hello from Codex"]);
    let thoughts = session.of(&turn).into_iter().filter(|item| matches!(item.body, ItemBody::Thinking { .. }));
    assert_eq!(thoughts.map(|item| item.body.text().unwrap().to_string()).collect::<Vec<_>>(), ["Let me see."]);
    session.until("the facts", |session| session.facts.options.is_some() && session.facts.commands.is_some()).await;
    session.until("the title", |session| session.facts.agent_title.as_deref() == Some("Scripted title")).await;
    assert_eq!(bench.provider.describe().await.version.as_deref(), Some("2.6.0"));

    let turn = bench.turn(&mut session, "bash:echo one; echo two\nsay:done").await;
    let [(command, output)] = &tools(&session, &turn)[..] else { panic!("{session:#?}") };
    assert_eq!((command.kind, command.exit_code), (ToolKind::Execute, Some(0)));
    assert_eq!(command.command.as_deref(), Some("echo one; echo two"));
    assert!(output.ends_with("two\n"), "{output:?}");
    assert_eq!(session.answers(&turn), ["done"]);

    let turn = bench.turn(&mut session, "write:new.txt=one\\ntwo\\n\nsay:written").await;
    assert_eq!(std::fs::read_to_string(bench.project.path().join("new.txt")).unwrap(), "one\ntwo\n");
    let [(edit, _)] = &tools(&session, &turn)[..] else { panic!("{session:#?}") };
    assert!(
        matches!(&edit.content[..], [ToolContent::Diff { old_text: None, new_text, .. }] if new_text == "one\ntwo\n")
    );

    let turn = bench.turn(&mut session, "parallel:bash:echo A || read:README.md\nsay:both").await;
    let tools = tools(&session, &turn);
    assert_eq!(tools.len(), 2, "{session:#?}");
    assert!(tools.iter().any(|(_, output)| output.contains("A small demo project.")));
    let turn = bench.turn(&mut session, "bash:ls /no-such-directory\nsay:failed").await;
    assert!(session.of(&turn).iter().any(|item| matches!(item.body, ItemBody::ToolCall { is_error: Some(true), .. })));
}

#[tokio::test]
async fn codex_asks_for_permission_and_gets_it_once() {
    let bench = Bench::new().await;
    let mut session = bench.create().await;
    soon("the mode", session.session.set_option("mode", "read-only")).await.unwrap();
    session
        .until("the mode", |session| {
            let options = session.facts.options.iter().flatten();
            options.into_iter().any(|option| option.id == "mode" && option.value == "read-only")
        })
        .await;
    let turn = bench.turn(&mut session, "write:asked.txt=x\\n\nsay:done").await;
    let [(edit, _)] = &tools(&session, &turn)[..] else { panic!("{session:#?}") };
    let permission = edit.permission.as_ref().unwrap();
    assert_eq!(permission.decision, PermissionDecision::AllowedAutomatically);
    assert_eq!(permission.option.as_deref(), Some("Yes, proceed"));
    assert!(bench.project.path().join("asked.txt").exists());
}

/// After a cancel Codex resumes the session, and starts it in a mode in which it need not ask.
#[tokio::test]
async fn codex_still_asks_for_permission_after_a_cancel() {
    let bench = Bench::new().await;
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:first").await;
    soon("the mode", session.session.set_option("mode", "read-only")).await.unwrap();
    let turn = bench.send(&session, "say:partial words\nhold:never").await;
    session.until("the text", |session| session.text().contains("partial words")).await;
    soon("the cancel", session.session.cancel()).await.unwrap();
    session.until_end_of(&turn).await;
    let turn = bench.turn(&mut session, "write:asked.txt=x\n\nsay:done").await;
    assert_eq!(session.continuity.last(), Some(&Continuity::Resumed));
    let [(edit, _)] = &tools(&session, &turn)[..] else { panic!("{session:#?}") };
    assert!(edit.permission.is_some(), "{edit:#?}");
    let options = session.facts.options.iter().flatten();
    assert!(options.into_iter().any(|option| option.id == "mode" && option.value == "read-only"));
}

/// Codex itself leaves the command running, whether it has announced it by then or not.
#[tokio::test]
async fn a_cancel_really_stops_codexs_command_and_the_session_goes_on() {
    let bench = Bench::new().await;
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:first").await;
    for is_announced in [true, false] {
        let pid_file = bench.project.path().join(format!("pid-{is_announced}"));
        let turn = bench.send(&session, &format!("bash:echo $$ > {}; exec sleep 1000", pid_file.display())).await;
        // The shell becomes the command only after it has written its id.
        until("the command", || pid_file.exists() && !sleeping_in(bench.project.path()).is_empty()).await;
        let sleepers = sleeping_in(bench.project.path());
        if is_announced {
            session.until("the call", |session| !tools(session, &turn).is_empty()).await;
        }
        soon("the cancel", session.session.cancel()).await.unwrap();
        session.until_end_of(&turn).await;
        assert!(session.is_cancelled(&turn));
        assert!(tools(&session, &turn).iter().all(|(detail, _)| detail.interrupted));
        until("the command to be gone", || sleepers.iter().all(|pid| !is_running(*pid))).await;
        let turn = bench.turn(&mut session, "say:and on").await;
        assert_eq!(session.answers(&turn), ["and on"]);
        assert_eq!(session.continuity.last(), Some(&Continuity::Resumed));
    }
}

#[tokio::test]
async fn a_cancel_keeps_the_text_codex_has_sent() {
    let bench = Bench::new().await;
    let mut session = bench.create().await;
    let turn = bench.send(&session, "say:partial words\nhold:never").await;
    session.until("the text", |session| session.text().contains("partial words")).await;
    soon("the cancel", session.session.cancel()).await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_cancelled(&turn));
    assert!(session.answers(&turn)[0].starts_with("partial words"));
    let turn = bench.turn(&mut session, "say:alive").await;
    assert_eq!(session.answers(&turn), ["alive"]);
}

#[tokio::test]
async fn three_sessions_of_codex_stream_at_once_on_one_process() {
    let bench = Bench::new().await;
    let mut sessions = [bench.create().await, bench.create().await, bench.create().await];
    let mut turns = Vec::new();
    for (number, session) in sessions.iter().enumerate() {
        turns.push(bench.send(session, &format!("say:session {number}\nstream:100x2\nsay:end {number}")).await);
    }
    for (number, (session, turn)) in sessions.iter_mut().zip(&turns).enumerate() {
        session.until_end_of(turn).await;
        let text = session.answers(turn).concat();
        assert!(
            text.starts_with(&format!("session {number}\nw0 w1 ")) && text.ends_with(&format!(" w99\nend {number}")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn errors_of_the_model_are_shown_as_notices_and_the_session_lives() {
    let bench = Bench::new().await;
    let mut session = bench.create().await;
    let turn = bench.turn(&mut session, "error:400").await;
    let notices: Vec<String> = session
        .of(&turn)
        .into_iter()
        .filter_map(|item| match &item.body {
            ItemBody::Message { text, origin: Origin::System } => Some(text.to_string()),
            _ => None,
        })
        .collect();
    assert!(notices.concat().contains("scripted error 400"), "{session:#?}");
    let turn = bench.turn(&mut session, "say:recovered").await;
    assert_eq!(session.answers(&turn), ["recovered"]);
}

#[tokio::test]
async fn codex_killed_in_a_turn_comes_back_with_its_memory() {
    let bench = Bench::new().await;
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:before").await;
    let turn = bench.send(&session, "say:partial\nhold:never").await;
    session.until("the text", |session| session.text().contains("partial")).await;
    let pid = bench.provider.process_id().await.unwrap();
    kill(pid);
    session.until_end_of(&turn).await;
    assert_eq!(session.error_of(&turn), Some(("PROCESS_CRASH".into(), "Codex stopped unexpectedly".into())));
    assert!(session.answers(&turn)[0].starts_with("partial"));
    session
        .until("the connection", |session| {
            session.statuses.contains(&AgentStatus::Reconnecting)
                && session.statuses.last() == Some(&AgentStatus::Connected)
        })
        .await;
    assert_eq!(session.continuity.last(), Some(&Continuity::Resumed));
    let turn = bench.turn(&mut session, "say:after").await;
    assert_eq!(session.answers(&turn), ["after"]);
}

/// TC-4.1b.
#[tokio::test]
async fn codex_replays_a_sessions_history_after_a_restart() {
    let bench = Bench::new().await;
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:first answer").await;
    bench.turn(&mut session, "bash:echo hi\nsay:second answer").await;
    let (id, calls) = (session.agent_id.clone(), bench.model.calls());
    let live: Vec<(String, String)> = session.items.iter().map(key).collect();
    let bench = bench.again().await;
    let loaded = soon("the session", bench.provider.load_session(bench.open(&id))).await.unwrap();
    let loaded_items: Vec<(String, String)> = items_of(&loaded.history).iter().map(key).collect();
    // The user's own messages have ids of ours while they are live; everything else keeps its id.
    let texts = |items: &[(String, String)]| items.iter().map(|(_, text)| text.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&loaded_items), texts(&live));
    for (id, text) in live.iter().filter(|(id, _)| !id.ends_with(".user")) {
        assert!(loaded_items.contains(&(id.clone(), text.clone())), "{id} {text:?} is not in {loaded_items:?}");
    }
    assert_eq!(loaded.history.continuity, Continuity::Resumed);
    assert_eq!(bench.model.calls(), calls, "history is loaded without the model");
    let mut session = Listener::new(loaded.opened);
    let turn = bench.turn(&mut session, "say:third").await;
    assert_eq!(session.answers(&turn), ["third"]);
}

#[tokio::test]
async fn a_session_codex_does_not_have_is_refused() {
    let bench = Bench::new().await;
    let unknown = AgentSessionId::parse("00000000-0000-4000-8000-000000000000").unwrap();
    let refused = soon("an answer", bench.provider.load_session(bench.open(&unknown))).await.unwrap_err();
    assert!(
        matches!(&refused, ProviderError::LoadFailed { detail } if detail.contains("no rollout found")),
        "{refused:?}"
    );
}

fn key(item: &ItemUpdate) -> (String, String) {
    (item.item_id.to_string(), item.body.text().map(ToString::to_string).unwrap_or_default())
}

/// Commands that sleep in this directory.
fn sleeping_in(directory: &std::path::Path) -> Vec<u32> {
    let directory = directory.canonicalize().unwrap();
    let processes =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    processes
        .filter(|pid: &u32| {
            std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == directory)
                && std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == b"sleep\x001000\x00")
        })
        .collect()
}
