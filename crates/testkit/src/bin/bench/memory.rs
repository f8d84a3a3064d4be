//! What the server holds when the sessions are long.

use std::path::Path;

use crate::client::Window;
use crate::row::{Row, Target};
use crate::server::{Server, settle};

const SESSIONS: usize = 10;

/// Ten live sessions of so many items, all open in one window, each in so many turns. The floor is the same server before
/// the first message.
pub(crate) async fn ten_long_sessions(
    program: &Path,
    items: usize,
    turns: usize,
    most: f64,
) -> anyhow::Result<[Row; 2]> {
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
        for _ in 0..turns {
            window.converse(std::slice::from_ref(session), &format!("items {}", items / turns)).await?;
        }
    }
    settle().await;
    let watched = server.resident_mebibytes()?;
    drop(window);
    settle().await;
    let left = server.resident_mebibytes()?;
    server.end().await?;
    let row = |name: String, value, target| Row { name, value, unit: "MiB", target, floor: Some(idle) };
    let each = if turns == 1 { "one turn".to_owned() } else { format!("{turns} turns") };
    Ok([
        row(format!("memory, 10 live sessions of {items} items in {each}"), watched, Target::Most(most)),
        row(format!("memory, the same when no window is open ({items} in {each})"), left, Target::None),
    ])
}
