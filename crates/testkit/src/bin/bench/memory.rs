//! What the server holds when the sessions are long.

use std::path::Path;

use crate::client::Window;
use crate::row::{Row, Target};
use crate::server::{Server, settle};

const SESSIONS: usize = 10;
const ITEMS: usize = 2_000;

/// Ten live sessions of 2,000 items, all open in one window. The floor is the same server before the first message.
pub(crate) async fn ten_long_sessions(program: &Path) -> anyhow::Result<[Row; 2]> {
    let server = Server::start(program).await?;
    settle().await;
    let idle = server.resident_mebibytes()?;
    let mut window = Window::open(&server).await?;
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(window.create().await?);
    }
    // One after the other: a window that gets 20,000 items at once may fall behind and is closed.
    for session in &sessions {
        window.converse(std::slice::from_ref(session), &format!("items {ITEMS}")).await?;
    }
    settle().await;
    let watched = server.resident_mebibytes()?;
    drop(window);
    settle().await;
    let left = server.resident_mebibytes()?;
    server.end().await?;
    let row = |name: &str, value, target| Row { name: name.into(), value, unit: "MiB", target, floor: Some(idle) };
    Ok([
        row("memory, 10 live sessions of 2,000 items", watched, Target::Most(80.0)),
        row("memory, the same when no window is open", left, Target::None),
    ])
}
