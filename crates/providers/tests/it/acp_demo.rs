//! The built-in demo agent, driven like any other.

use protocol::{
    AgentSessionId, AgentStatus, PermissionDecision, SessionId, ToolContent, ToolKind, TurnRecordStatus, UpsertStatus,
};
use providers::acp::{AcpAgent, AcpProvider, AcpSettings};
use providers::{NewSession, Provider, StoredSession};
use testkit::programs;
use upserts::ItemBody;

use crate::acp_bench::items_of;
use crate::listener::{Listener, soon};

struct Demo {
    home: tempfile::TempDir,
    provider: AcpProvider,
}

impl Demo {
    fn new(home: tempfile::TempDir, pace_ms: &str) -> Self {
        let mut agent = AcpAgent::demo(programs::scripted_agent().to_owned(), "0.1.0").unwrap();
        agent.command = agent
            .command
            .guardian(programs::scripted_agent())
            .env("LIMINAL_DATA_DIR", home.path())
            .env("LIMINAL_DEMO_PACE_MS", pace_ms);
        Self { home, provider: AcpProvider::new(agent, AcpSettings::default()) }
    }

    async fn create(&self) -> Listener {
        let new = NewSession { project_dir: self.home.path().to_owned() };
        Listener::new(soon("the session", self.provider.create_session(new)).await.unwrap())
    }

    fn stored_session(&self, id: &AgentSessionId) -> StoredSession {
        StoredSession {
            id: SessionId::new(self.provider.cli_type(), id),
            agent_id: id.clone(),
            project_dir: self.home.path().to_owned(),
            prompted: true,
            options: Default::default(),
            history: Default::default(),
            items_max: 200,
        }
    }

    async fn turn(&self, session: &mut Listener, text: &str) -> protocol::TurnId {
        let turn = soon("the turn", session.send(text)).await.unwrap();
        session.until_end_of(&turn).await;
        turn
    }
}

fn tools(session: &Listener) -> Vec<(&protocol::ToolDetail, String)> {
    let tool = |item: &'_ upserts::ItemUpdate| match &item.body {
        ItemBody::ToolCall { output, .. } => Some(output.as_ref().map(ToString::to_string).unwrap_or_default()),
        _ => None,
    };
    session
        .items
        .iter()
        .filter_map(|item| match &item.body {
            ItemBody::ToolCall { tool: Some(detail), .. } => Some((&**detail, tool(item).unwrap_or_default())),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn the_tour_shows_every_kind_of_thing() {
    let demo = Demo::new(tempfile::tempdir().unwrap(), "0");
    let info = demo.provider.describe().await;
    assert_eq!((info.cli_type.as_str(), info.name.as_str(), info.installed), ("demo", "Demo agent", true));
    let mut session = demo.create().await;
    let turn = demo.turn(&mut session, "/tour").await;
    assert!(session.is_completed(&turn));
    assert!(session.items.iter().any(|item| matches!(item.body, ItemBody::Thinking { .. })));
    assert!(session.text().contains("fn fibonacci"));
    let tools = tools(&session);
    let of = |kind| tools.iter().find(|(detail, _)| detail.kind == kind).unwrap();
    assert!(matches!(&of(ToolKind::Edit).0.content[..], [ToolContent::Diff { .. }]));
    let (command, output) = of(ToolKind::Execute);
    assert_eq!((command.exit_code, output.contains("4 passed")), (Some(0), true));
    let permission = of(ToolKind::Delete).0.permission.as_ref().unwrap();
    assert_eq!(permission.decision, PermissionDecision::AllowedAutomatically);
    assert!(session.text().contains("The answer was `allow`"));
    session.until("the facts", |session| session.facts.context.is_some() && session.facts.commands.is_some()).await;
    assert_eq!(session.facts.plan.as_ref().map(Vec::len), Some(3));
    assert_eq!(session.facts.agent_title.as_deref(), Some("/tour"));
}

#[tokio::test]
async fn help_lists_every_word_and_modes_and_models_can_be_switched() {
    let demo = Demo::new(tempfile::tempdir().unwrap(), "0");
    let mut session = demo.create().await;
    demo.turn(&mut session, "/help").await;
    for command in session.facts.commands.clone().unwrap() {
        assert!(session.text().contains(&format!("`{}`", command.name)), "{} is not listed", command.name);
    }
    soon("the option", session.session.set_option("mode", "terse")).await.unwrap();
    soon("the option", session.session.set_option("model", "demo-small")).await.unwrap();
    session.until("the model", |session| session.facts.model.as_deref() == Some("Demo Small")).await;
    let turn = demo.turn(&mut session, "edit").await;
    assert_eq!(session.answers(&turn), ["Done."]);
    let turn = demo.turn(&mut session, "fail").await;
    assert_eq!(session.error_of(&turn).unwrap().1, "The demo agent was asked to fail.");
}

#[tokio::test]
async fn its_sessions_survive_a_restart() {
    let demo = Demo::new(tempfile::tempdir().unwrap(), "0");
    let mut session = demo.create().await;
    demo.turn(&mut session, "think, then run").await;
    let live: Vec<String> =
        session.items.iter().map(|item| item.body.text().map(ToString::to_string).unwrap_or_default()).collect();
    soon("the end", demo.provider.shutdown()).await;

    let demo = Demo::new(demo.home, "0");
    let loaded = soon("the session", demo.provider.load_session(demo.stored_session(&session.agent_id))).await.unwrap();
    let loaded_texts: Vec<String> = items_of(&loaded.history)
        .iter()
        .map(|item| item.body.text().map(ToString::to_string).unwrap_or_default())
        .collect();
    assert_eq!(loaded_texts, live);
    assert!(items_of(&loaded.history).iter().all(|item| item.status == UpsertStatus::Complete));
    let turn = &loaded.history.turns[0];
    assert_eq!(turn.status, TurnRecordStatus::Completed);
    let mut session = Listener::new(loaded.opened);
    demo.turn(&mut session, "hello").await;
    assert!(session.text().contains("demo agent"));
}

#[tokio::test]
async fn how_each_turn_ended_what_was_planned_and_how_long_it_took_survive_a_restart() {
    use std::os::unix::fs::PermissionsExt;
    let demo = Demo::new(tempfile::tempdir().unwrap(), "1");
    let mut session = demo.create().await;
    demo.turn(&mut session, "plan and ask").await;
    soon("the option", session.session.set_option("mode", "terse")).await.unwrap();
    demo.turn(&mut session, "fail").await;
    let crashed = demo.turn(&mut session, "crash").await;
    assert_eq!(session.error_of(&crashed).unwrap().1, "Demo agent stopped unexpectedly");
    session.until("the loss", |session| session.statuses.contains(&AgentStatus::Reconnecting)).await;
    session.until("its return", |session| session.statuses.last() == Some(&AgentStatus::Connected)).await;
    let turn = soon("the turn", session.send("long 100000")).await.unwrap();
    session.until("some text", |session| session.answers(&turn).first().is_some_and(|text| text.contains("fox"))).await;
    soon("the cancel", session.session.cancel()).await.unwrap();
    session.until_end_of(&turn).await;
    // This one is never asked to end: its process is ended under it.
    let turn = soon("the turn", session.send("long 100000")).await.unwrap();
    session.until("some text", |session| session.answers(&turn).first().is_some_and(|text| text.contains("fox"))).await;
    let directory = demo.home.path().join("demo-agent");
    let file = std::fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&directory), mode(&file)), (0o700, 0o600), "for the user's eyes only");
    // As it lies on the disk at this moment, which is what a killed program leaves.
    let kept = std::fs::read_to_string(&file).unwrap();
    soon("the end", demo.provider.shutdown()).await;
    std::fs::write(&file, kept).unwrap();

    let demo = Demo::new(demo.home, "0");
    let history =
        soon("the session", demo.provider.load_session(demo.stored_session(&session.agent_id))).await.unwrap().history;
    let ends: Vec<_> = history.turns.iter().map(|turn| turn.status).collect();
    use TurnRecordStatus::{Cancelled, Completed, Error};
    assert_eq!(ends, [Completed, Error, Error, Cancelled, Cancelled]);
    let errors: Vec<_> = history.turns.iter().filter_map(|turn| turn.error_message.as_deref()).collect();
    assert_eq!(errors, ["The demo agent was asked to fail.", "Demo agent stopped unexpectedly"]);
    assert_eq!(history.facts.options.as_ref().unwrap()[0].value, "terse");
    let took = |turn: &protocol::TurnRecord| turn.ended_at.unwrap().unix_ms() - turn.started_at.unix_ms();
    assert!(took(&history.turns[0]) > 0 && took(&history.turns[3]) > 0, "{:?}", history.turns);
    assert_eq!(history.facts.plan.as_ref().map(Vec::len), Some(3));
    let texts: Vec<_> = items_of(&history).iter().filter_map(|item| Some(item.body.text()?.to_string())).collect();
    assert_eq!(texts.iter().filter(|text| text.starts_with("The quick brown fox")).count(), 2, "{texts:?}");
    let asked = items_of(&history).iter().find_map(|item| match &item.body {
        ItemBody::ToolCall { tool: Some(detail), output: Some(output), .. } if detail.kind == ToolKind::Delete => {
            Some((detail.permission.clone(), output.to_string()))
        }
        _ => None,
    });
    let (permission, output) = asked.unwrap();
    assert_eq!(permission.unwrap().decision, PermissionDecision::AllowedAutomatically);
    assert_eq!(output, "Permission asked, and answered with `allow`.");
}

#[tokio::test]
async fn a_cancel_stops_it_in_the_middle_of_a_word() {
    let demo = Demo::new(tempfile::tempdir().unwrap(), "5");
    let mut session = demo.create().await;
    let turn = soon("the turn", session.send("long 100000")).await.unwrap();
    session.until("some text", |session| session.text().contains("brown fox")).await;
    soon("the cancel", session.session.cancel()).await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_cancelled(&turn));
    assert!(session.answers(&turn)[0].contains("brown fox"));
}
