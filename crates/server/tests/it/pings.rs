//! Is the client still there?

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use catalog::Catalog;
use futures_util::{SinkExt, StreamExt};
use journal::SqliteJournal;
use providers::Registry;
use server::{Access, Hosts, Patience};
use sessions::{Hub, ServerFacts};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};
use tokio_util::sync::CancellationToken;

const DEADLINE: Duration = Duration::from_secs(60);
/// As long as the tests run.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// A server without a secret. It goes when this is dropped.
struct Edge {
    address: SocketAddr,
    _serving: JoinSet<()>,
    _home: TempDir,
}

impl Edge {
    async fn start(patience: Patience) -> Self {
        let home = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(home.path()).unwrap().catalog;
        let facts = ServerFacts {
            version: "0".into(),
            instance: "test".into(),
            home: String::new(),
            notices: Vec::new(),
            has_display: false,
        };
        let hub = Hub::start(catalog, Arc::new(SqliteJournal::in_memory().unwrap()), Registry::new([]), facts);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let access = Access::new(Hosts::new(address, Vec::new()), None);
        let mut serving = JoinSet::new();
        serving.spawn(server::run(
            listener,
            access,
            patience,
            server::Limits::for_open_files(256),
            hub,
            CancellationToken::new(),
        ));
        Self { address, _serving: serving, _home: home }
    }

    async fn window(&self) -> WebSocketStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        client_async(format!("ws://{}/ws", self.address), stream).await.unwrap().0
    }
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("waited too long for {what}"))
}

#[test]
fn a_client_is_asked_every_twenty_seconds_and_may_miss_two() {
    let patience = Patience::default();
    assert_eq!(patience.ping_every, Duration::from_secs(20));
    assert!(patience.silence_max > 2 * patience.ping_every && patience.silence_max <= 3 * patience.ping_every);
}

#[tokio::test]
async fn a_client_is_asked_again_and_again_and_one_that_answers_stays() {
    let ping_every = Duration::from_millis(50);
    let edge = Edge::start(Patience { ping_every, silence_max: Duration::from_secs(20) }).await;
    let mut window = edge.window().await;
    let mut pings = 0;
    within("pings", async {
        while pings < 10 {
            match window.next().await.unwrap().unwrap() {
                Message::Ping(_) => pings += 1,
                Message::Text(_) => {}
                other => panic!("{other:?}"),
            }
        }
    })
    .await;
    window.send(Message::text(r#"{"type":"project:list","requestId":"r1"}"#)).await.unwrap();
    within("an answer", async {
        while !window.next().await.unwrap().unwrap().to_text().unwrap_or_default().contains("\"r1\"") {}
    })
    .await;
}

#[tokio::test]
async fn a_client_that_answers_nothing_is_disconnected_with_a_reason() {
    let edge = Edge::start(Patience { ping_every: FOR_EVER, silence_max: Duration::from_millis(200) }).await;
    // Below the WebSocket, so that nothing answers on its own.
    let mut silent = edge.window().await.into_inner();
    let mut received = Vec::new();
    within("the end of the connection", silent.read_to_end(&mut received)).await.unwrap();
    let reason = b"no answer to pings";
    assert!(received.windows(reason.len()).any(|window| window == reason), "{:?}", String::from_utf8_lossy(&received));
}

#[tokio::test]
async fn answering_pings_is_enough_to_stay() {
    let patience = Patience { ping_every: Duration::from_millis(50), silence_max: Duration::from_secs(3) };
    let edge = Edge::start(patience).await;
    let (mut silent, mut window) = (edge.window().await.into_inner(), edge.window().await);
    // The one that answers is still there when the one that does not has been disconnected.
    let silence = async {
        let mut received = Vec::new();
        silent.read_to_end(&mut received).await.unwrap();
    };
    let answering = async {
        loop {
            assert!(matches!(window.next().await, Some(Ok(Message::Ping(_) | Message::Text(_)))));
        }
    };
    within("the silent one to be disconnected", async {
        tokio::select! {
            () = silence => {}
            () = answering => {}
        }
    })
    .await;
    window.send(Message::text(r#"{"type":"project:list","requestId":"r1"}"#)).await.unwrap();
    within("an answer", async {
        while !window.next().await.unwrap().unwrap().to_text().unwrap_or_default().contains("\"r1\"") {}
    })
    .await;
}
