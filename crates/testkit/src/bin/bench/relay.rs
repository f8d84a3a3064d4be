//! The floor: an agent's lines to a WebSocket and a client's frames to the agent, without a look at either.
//!
//! It is a process of its own with the same runtime, the same WebSocket library and the same way of reading and flushing as
//! the product, so that what stands between the two is the product's own work.

use std::process::Stdio;

use anyhow::Context;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

const READ_BYTES: usize = 64 * 1024;

/// Prints where it listens and serves one client.
pub(crate) async fn run() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    let (mut sink, mut frames) = accept_async(stream).await?.split();
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("agent").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut agent = command.spawn()?;
    let mut stdin = agent.stdin.take().context("no standard input")?;
    let mut stdout = agent.stdout.take().context("no standard output")?;
    let to_agent = async {
        while let Some(Ok(Message::Text(text))) = frames.next().await {
            stdin.write_all(format!("{text}\n").as_bytes()).await?;
        }
        anyhow::Ok(())
    };
    let to_client = async {
        let (mut buffer, mut held) = (vec![0; READ_BYTES], Vec::new());
        loop {
            let read = stdout.read(&mut buffer).await?;
            if read == 0 {
                return anyhow::Ok(());
            }
            held.extend_from_slice(&buffer[..read]);
            let whole = held.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
            for line in held[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                sink.feed(Message::Text(Utf8Bytes::from(std::str::from_utf8(line)?))).await?;
            }
            held.drain(..whole);
            sink.flush().await?;
        }
    };
    tokio::select! {
        done = to_agent => done,
        done = to_client => done,
    }
}
