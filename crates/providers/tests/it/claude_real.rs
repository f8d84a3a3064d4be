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
