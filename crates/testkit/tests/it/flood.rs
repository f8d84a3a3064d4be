//! Clients that send too much, too little, or nonsense.

use protocol::{ClientMessage, ErrorCode, ServerMessage};
use testkit::{TestApp, exchange, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

/// What a frame may hold.
const LIMIT: usize = 1024 * 1024;

fn invalid(message: &ServerMessage) -> bool {
    matches!(message, ServerMessage::Error(error) if error.code == ErrorCode::InvalidMessage)
}

/// Memory of the server in KiB.
fn resident_kib(app: &TestApp) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", app.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches("kB").trim().parse().unwrap()
}

#[tokio::test]
async fn a_frame_of_a_hundred_megabytes_is_answered_and_neither_kept_nor_the_end() {
    let app = TestApp::start().await;
    let mut window = app.window().await;
    window.call(&ClientMessage::ProjectList {}).await;
    let before = resident_kib(&app);
    window.send(Message::text("x".repeat(100_000_000))).await;
    let answer = window.until("an error", |frame| invalid(&frame.message)).await;
    let ServerMessage::Error(error) = answer.message else { unreachable!() };
    assert!(error.message.contains("1048576"), "{}", error.message);
    // The same connection goes on, and so do new ones.
    window.call(&ClientMessage::ProjectList {}).await;
    app.window().await.call(&ClientMessage::ProjectList {}).await;
    let grown = resident_kib(&app) - before;
    assert!(grown < 20_000, "the peak grew by {grown} KiB");
}

#[tokio::test]
async fn the_limit_is_one_mebibyte_sharp() {
    let app = TestApp::start().await;
    let mut window = app.window().await;
    let padded = |length: usize| {
        let json = r#"{"type":"project:list","requestId":"padded","pad":""}"#;
        json.replace("\"pad\":\"", &format!("\"pad\":\"{}", "x".repeat(length - json.len())))
    };
    window.send(Message::text(padded(LIMIT))).await;
    let frame = window.until("the answer", |frame| frame.request_id.as_deref() == Some("padded")).await;
    assert!(matches!(frame.message, ServerMessage::ProjectList { .. }));
    window.send(Message::text(padded(LIMIT + 1))).await;
    window.until("an error", |frame| invalid(&frame.message)).await;
}

#[tokio::test]
async fn ten_thousand_malformed_frames_are_each_answered() {
    const FRAMES: usize = 10_000;
    let app = TestApp::start().await;
    let mut window = app.window().await;
    let malformed = [
        "",
        "{",
        "null",
        "[]",
        "\u{0}",
        "{}",
        r#"{"type":"no:such"}"#,
        r#"{"type":"project:add"}"#,
        r#"{"type":"project:add","path":7}"#,
    ];
    for round in 0..FRAMES / 100 {
        for number in 0..100 {
            window.send(Message::text(malformed[(round + number) % malformed.len()])).await;
        }
        for _ in 0..100 {
            window.until("an error", |frame| invalid(&frame.message)).await;
        }
    }
    window.call(&ClientMessage::ProjectList {}).await;
}

#[tokio::test]
async fn ten_thousand_malformed_frames_in_one_go_are_each_answered() {
    const FRAMES: usize = 10_000;
    let app = TestApp::start().await;
    let window = app.window().await;
    // A masked text frame that is no JSON, ten thousand times, while nobody reads the answers.
    let mut stream = window.into_stream();
    let frames = [0x81, 0x81, 0, 0, 0, 0, b'{'].repeat(FRAMES);
    let (mut reading, mut writing) = stream.split();
    let answers = async {
        let (mut bytes, mut seen, mut buffer) = (Vec::new(), 0, vec![0; 65_536]);
        while seen < FRAMES {
            let read = reading.read(&mut buffer).await.unwrap();
            assert!(read > 0, "the server gave the connection up after {seen} answers");
            bytes.extend_from_slice(&buffer[..read]);
            let whole = bytes.iter().rposition(|byte| *byte == b'}').map_or(0, |last| last + 1);
            seen += bytes.drain(..whole).collect::<Vec<u8>>().windows(15).filter(|w| w == b"INVALID_MESSAGE").count();
        }
    };
    within("ten thousand answers", async {
        let written = async { writing.write_all(&frames).await.unwrap() };
        // The writer is polled first and alone until the pipe is full.
        tokio::join!(biased; written, answers);
    })
    .await;
    app.window().await.call(&ClientMessage::ProjectList {}).await;
}

#[tokio::test]
async fn binary_frames_are_answered_with_an_error() {
    let app = TestApp::start().await;
    let mut window = app.window().await;
    window.send(Message::binary(vec![0, 1, 2])).await;
    window.until("an error", |frame| invalid(&frame.message)).await;
    window.call(&ClientMessage::ProjectList {}).await;
}

#[tokio::test]
async fn a_broken_frame_ends_its_own_connection_and_no_other() {
    let app = TestApp::start().await;
    let mut bystander = app.window().await;
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x81, 0x05], &[0xff; 64], &[0x81, 0x82, 0, 0, 0, 0, 0xff, 0xfe]] {
        let mut stream = app.window().await.into_stream();
        stream.write_all(garbage).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        within("the end of a broken connection", stream.read_to_end(&mut rest)).await.ok();
    }
    bystander.call(&ClientMessage::ProjectList {}).await;
}

#[tokio::test]
async fn half_open_connections_keep_nobody_out() {
    let app = TestApp::start().await;
    let mut window = app.window().await;
    let host = app.host();
    let mut idlers = Vec::new();
    for number in 0..700 {
        let mut idler = TcpStream::connect(app.address()).await.unwrap();
        // Some send nothing at all, some begin a request and never end it.
        if number % 2 == 0 {
            idler.write_all(b"GET / HTTP/1.1\r\nHost: ").await.ok();
        }
        idlers.push(idler);
        if number % 100 == 99 {
            let health = exchange(app.address(), "GET", "/api/health", &[("host", &host)], b"").await;
            assert_eq!(health.status, 200, "after {number} half-open connections");
        }
    }
    // Those that were there first have been shown out, and those that stay are, when their time is up.
    for mut idler in idlers {
        let mut rest = Vec::new();
        within("a half-open connection to be closed", idler.read_to_end(&mut rest)).await.ok();
    }
    window.call(&ClientMessage::ProjectList {}).await;
    app.window().await.call(&ClientMessage::ProjectList {}).await;
}
