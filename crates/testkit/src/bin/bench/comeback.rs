//! What a page waits for on the server's side: the history of a session, and a server that comes back.

use std::path::Path;

use serde_json::json;

use crate::Effort;
use crate::client::{Bare, Window};
use crate::clock::nanoseconds;
use crate::row::{Row, Target, quantile};
use crate::server::{Relay, Server};

const MILLISECONDS: f64 = 1e6;
const ITEMS: [usize; 2] = [2_000, 20_000];

pub(crate) async fn rows(program: &Path, effort: Effort) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for items in ITEMS {
        rows.push(history(program, effort, items).await?);
    }
    rows.push(restart(program, effort).await?);
    Ok(rows)
}

/// From the request to the answer at the socket. The floor is the shortest question there is.
async fn history(program: &Path, effort: Effort, items: usize) -> anyhow::Result<Row> {
    let server = Server::start(program).await?;
    let mut window = Window::open(&server).await?;
    let session = window.create().await?;
    window.converse(std::slice::from_ref(&session), &format!("items {items}")).await?;
    let (mut product, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..effort.starts {
        let begun = nanoseconds();
        window.call(json!({"type": "session:open", "sessionId": session})).await?;
        product.push((nanoseconds() - begun) as f64 / MILLISECONDS);
        let begun = nanoseconds();
        window.call(json!({"type": "session:seen", "sessionId": session})).await?;
        floor.push((nanoseconds() - begun) as f64 / MILLISECONDS);
    }
    server.end().await?;
    Ok(Row {
        name: format!("history of {items} items, request → answer at the socket, p50"),
        value: quantile(&mut product, 0.5),
        unit: "ms",
        target: Target::Most(if items == ITEMS[0] { 300.0 } else { 1_500.0 }),
        floor: Some(quantile(&mut floor, 0.5)),
    })
}

/// From the start of a new server over the same data to a window that shows a list again. The floor is the bare relay.
async fn restart(program: &Path, effort: Effort) -> anyhow::Result<Row> {
    let (mut product, mut floor) = (Vec::new(), Vec::new());
    let mut server = Server::start(program).await?;
    for _ in 0..effort.starts {
        let begun = nanoseconds();
        let relay = Relay::start().await?;
        Bare::open(&relay).await?;
        floor.push((nanoseconds() - begun) as f64 / MILLISECONDS);
        relay.end().await?;
        let home = server.stop().await?;
        let begun = nanoseconds();
        server = Server::start_in(program, home).await?;
        Window::open(&server).await?.call(json!({"type": "project:list"})).await?;
        product.push((nanoseconds() - begun) as f64 / MILLISECONDS);
    }
    server.end().await?;
    Ok(Row {
        name: "a server is started again until a window shows its lists, p50".into(),
        value: quantile(&mut product, 0.5),
        unit: "ms",
        target: Target::Most(2_000.0),
        floor: Some(quantile(&mut floor, 0.5)),
    })
}
