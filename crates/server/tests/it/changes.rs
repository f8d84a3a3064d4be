//! A request that changes something is done, also when its client does not wait for the answer.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use catalog::Catalog;
use journal::SqliteJournal;
use protocol::{AgentInfo, AgentSessionId, AgentStatus, CliType, Prompt, TurnId};
use providers::{
    AgentSession, History, HistoryCursor, LoadedSession, NewSession, OpenedSession, Probe, Provider, ProviderError,
    ProviderEvent, Registry, StatusReport, StoredSession,
};
use server::{Access, Hosts, Patience};
use sessions::{Hub, ServerFacts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const DEADLINE: Duration = Duration::from_secs(60);

/// An agent that creates a session when it is allowed to.
#[derive(Debug)]
struct Slow {
    cli_type: CliType,
    status: watch::Sender<StatusReport>,
    /// How many creations began, and whether they may go on.
    begun: watch::Sender<usize>,
    gate: watch::Sender<bool>,
    fails: bool,
    sessions: std::sync::Mutex<Vec<mpsc::Sender<ProviderEvent>>>,
}

#[async_trait]
impl Provider for Slow {
    fn cli_type(&self) -> &CliType {
        &self.cli_type
    }

    fn name(&self) -> &str {
        "Slow"
    }

    async fn describe(&self) -> AgentInfo {
        AgentInfo {
            cli_type: self.cli_type.clone(),
            name: "Slow".into(),
            installed: true,
            version: None,
            program: None,
            install_hint: None,
            logged_in: None,
            login_hint: None,
            status: AgentStatus::Idle,
        }
    }

    async fn probe(&self, _: &Path) -> Result<Probe, ProviderError> {
        Err(ProviderError::Internal("not asked in these tests".into()))
    }

    fn watch_status(&self) -> watch::Receiver<StatusReport> {
        self.status.subscribe()
    }

    async fn create_session(&self, _: NewSession) -> Result<OpenedSession, ProviderError> {
        self.begun.send_modify(|begun| *begun += 1);
        self.gate.subscribe().wait_for(|is_open| *is_open).await.ok();
        if self.fails {
            return Err(ProviderError::Internal("it has to fail".into()));
        }
        let (sender, events) = mpsc::channel(8);
        self.sessions.lock().unwrap().push(sender);
        let agent_id = AgentSessionId::parse("one").unwrap();
        Ok(OpenedSession { agent_id, session: Arc::new(SlowSession), events })
    }

    async fn load_session(&self, _: StoredSession) -> Result<LoadedSession, ProviderError> {
        Err(ProviderError::Internal("not asked in these tests".into()))
    }

    async fn reconnect(&self) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn shutdown(&self) {}
}

/// A session of it, which nothing is asked of.
#[derive(Debug)]
struct SlowSession;

#[async_trait]
impl AgentSession for SlowSession {
    fn is_alive(&self) -> bool {
        true
    }

    async fn send(&self, _: Prompt) -> Result<TurnId, ProviderError> {
        Err(ProviderError::Internal("not asked in these tests".into()))
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn set_option(&self, _: &str, _: &str) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn reconnect(&self) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn older_history(&self, _: &HistoryCursor, _: usize) -> Result<History, ProviderError> {
        Err(ProviderError::Internal("not asked in these tests".into()))
    }

    async fn close(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("waited too long for {what}"))
}

async fn request(address: SocketAddr, method: &str, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    stream
}

/// Lets a client ask for a session and go away before it is there. Gives how many sessions there are in the end.
async fn created_without_a_client(fails: bool) -> usize {
    let home = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(&home.path().join("data")).unwrap().catalog;
    let project = catalog.add_project(home.path().to_str().unwrap()).await.unwrap().id;
    let slow = Arc::new(Slow {
        cli_type: CliType::parse("slow").unwrap(),
        status: watch::Sender::new(StatusReport::default()),
        begun: watch::Sender::new(0),
        gate: watch::Sender::new(false),
        fails,
        sessions: std::sync::Mutex::default(),
    });
    let registry = Registry::new([Arc::clone(&slow) as Arc<dyn Provider>]);
    let hub = Hub::start(catalog, Arc::new(SqliteJournal::in_memory().unwrap()), registry, ServerFacts::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let access = Access::new(Hosts::new(address, Vec::new()), None);
    let (stop, mut serving) = (CancellationToken::new(), JoinSet::new());
    let limits = server::Limits::for_open_files(256);
    serving.spawn(server::run(listener, access, Patience::default(), limits, hub.clone(), stop.clone()));

    let body = format!(r#"{{"cliType":"slow","projectId":"{project}"}}"#);
    let client = request(address, "POST", "/api/session/create", &body).await;
    let mut begun = slow.begun.subscribe();
    within("the agent to be asked", begun.wait_for(|begun| *begun == 1)).await.unwrap();
    // A reset, which the server notices at once.
    client.set_zero_linger().unwrap();
    drop(client);
    // The server serves others, and has seen the end of that connection by the time it has answered some of them.
    for _ in 0..20 {
        let mut other = request(address, "GET", "/api/health", "").await;
        let mut answer = [0; 12];
        within("an answer", other.read_exact(&mut answer)).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
    slow.gate.send_replace(true);
    // The server ends when all that is under way has come to its end.
    stop.cancel();
    within("the server to end", serving.join_next()).await.unwrap().unwrap();
    hub.list_sessions(&project).unwrap().len()
}

#[tokio::test]
async fn a_session_is_created_although_its_client_has_gone_and_one_that_fails_leaves_nothing() {
    assert_eq!(created_without_a_client(false).await, 1);
    assert_eq!(created_without_a_client(true).await, 0);
}
