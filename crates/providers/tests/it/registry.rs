//! The registry and the one trait behind it: whoever holds them does not know which agent it has.

use std::sync::Arc;

use protocol::{CliType, SessionId};
use providers::acp::{AcpAgent, AcpProvider, AcpSettings};
use providers::{NewSession, Provider, ProviderError, Registry, StoredSession};
use testkit::programs;

use crate::acp_bench;
use crate::claude_faults::Bench;
use crate::listener::{Listener, soon};

fn cli_type(name: &str) -> CliType {
    CliType::parse(name).unwrap()
}

/// Both kinds of provider, each with the scripted agent on its wire.
fn registry(claude: &Bench, state: &std::path::Path) -> Registry {
    let codex = AcpAgent { cli_type: cli_type("codex"), ..acp_bench::agent(state, &[]) };
    let codex: Arc<dyn Provider> = Arc::new(AcpProvider::new(codex, AcpSettings::default()));
    Registry::new([Arc::new(claude.provider()) as Arc<dyn Provider>, codex])
}

/// E TC-2.1b, E TC-2.1c, E TC-2.2a, E TC-2.2b.
#[tokio::test]
async fn claude_code_and_codex_are_found_by_their_type_and_nobody_else_is() {
    let (claude, state) = (Bench::new(""), tempfile::tempdir().unwrap());
    let registry = registry(&claude, state.path());
    for name in ["claude-code", "codex"] {
        assert_eq!(registry.get(&cli_type(name)).unwrap().cli_type().as_str(), name);
    }
    let Err(refused) = registry.get(&cli_type("gemini")) else { panic!("nobody registered it") };
    assert!(matches!(&refused, ProviderError::UnsupportedCliType(unknown) if unknown.as_str() == "gemini"));
    assert!(refused.to_string().contains("gemini"), "{refused}");
}

/// E TC-2.1a: create, load, send, cancel, close, is it alive, and its events; the same calls for both.
#[tokio::test]
async fn the_whole_life_of_a_session_goes_through_the_one_trait_whichever_agent_it_is() {
    assert!(programs::scripted_agent().exists());
    let (claude, state) = (Bench::new(""), tempfile::tempdir().unwrap());
    let registry = registry(&claude, state.path());
    for (name, stalling) in [("claude-code", "part:in the middle\nstall"), ("codex", "say:in the middle\nhold:never")] {
        let provider = registry.get(&cli_type(name)).unwrap();
        let project_dir = claude.project_dir();
        let created = provider.create_session(NewSession { project_dir: project_dir.clone() });
        let mut session = Listener::new(soon("the session", created).await.unwrap());
        assert!(session.session.is_alive(), "{name}");

        let turn = soon("the turn", session.send("say:hello")).await.unwrap();
        session.until_end_of(&turn).await;
        assert_eq!(session.answers(&turn), ["hello"], "{name}");
        let turn = soon("the turn", session.send(stalling)).await.unwrap();
        session.until("the middle", |session| session.text().contains("middle")).await;
        soon("the cancel", session.session.cancel()).await.unwrap();
        session.until_end_of(&turn).await;
        assert!(session.is_cancelled(&turn), "{name}: {session:#?}");

        soon("the close", session.session.close()).await.unwrap();
        assert!(!session.session.is_alive(), "{name}");
        let stored = StoredSession {
            id: SessionId::new(provider.cli_type(), &session.agent_id),
            agent_id: session.agent_id.clone(),
            project_dir,
            prompted: false,
            options: Default::default(),
            history: Default::default(),
            items_max: 10,
        };
        let loaded = soon("the session again", provider.load_session(stored)).await.unwrap();
        drop(loaded);
        soon("the end", provider.shutdown()).await;
    }
}
