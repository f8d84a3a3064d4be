//! A message on its way: how long a piece takes, how many a second, and what a long answer costs.
//!
//! The product and the bare relay take turns, so that both meet the same weather.

use std::path::Path;

use crate::Effort;
use crate::client::{Bare, ReceivedFrame, Window, latencies};
use crate::clock::nanoseconds;
use crate::row::{Row, Target, quantile};
use crate::server::{Relay, Server};

const CHUNKS_PER_SECOND: f64 = 200.0;
/// 48 KB of text.
const LONG_ANSWER_PIECES: usize = 2_000;
const LONG_ANSWER_BYTES: f64 = 48_000.0;
const MILLISECONDS: f64 = 1e6;

/// Turns with both, one after the other.
struct Runs {
    product: Vec<ReceivedFrame>,
    relay: Vec<ReceivedFrame>,
}

async fn alternate(program: &Path, rounds: usize, sessions: usize, content: &str) -> anyhow::Result<Runs> {
    let server = Server::start(program).await?;
    let mut window = Window::open(&server).await?;
    let relay = Relay::start().await?;
    let mut bare = Bare::open(&relay).await?;
    let (mut in_product, mut in_relay) = (Vec::new(), Vec::new());
    for _ in 0..sessions {
        in_product.push(window.create().await?);
        in_relay.push(bare.create().await?);
    }
    let mut runs = Runs { product: Vec::new(), relay: Vec::new() };
    for _ in 0..rounds {
        runs.relay.push(bare.converse(&in_relay, content).await?);
        runs.product.push(window.converse(&in_product, content).await?);
    }
    relay.end().await?;
    server.end().await?;
    Ok(runs)
}

impl Runs {
    fn latency_rows(&self, what: &str, pieces: usize, targets: [Target; 3]) -> anyhow::Result<Vec<Row>> {
        let all = |runs: &[ReceivedFrame]| {
            let runs: anyhow::Result<Vec<_>> = runs.iter().map(|received| latencies(received, 1, pieces)).collect();
            runs.map(|runs| runs.concat())
        };
        let (mut product, mut relay) = (all(&self.product)?, all(&self.relay)?);
        let parts = [("p50", 0.50), ("p95", 0.95), ("p99", 0.99)];
        let row = |((name, part), target): ((&str, f64), Target)| Row {
            name: format!("agent's line → frame, {what}, {name}"),
            value: quantile(&mut product, part),
            unit: "ms",
            target,
            floor: Some(quantile(&mut relay, part)),
        };
        Ok(parts.into_iter().zip(targets).map(row).collect())
    }

    /// Pieces a second, the median of the rounds. None may be lost.
    fn throughput_row(&self, sessions: usize, pieces: usize) -> anyhow::Result<Row> {
        let rate = |runs: &[ReceivedFrame]| {
            let mut rates = Vec::new();
            for received in runs {
                latencies(received, sessions, pieces)?;
                rates.push((sessions * pieces) as f64 / received.seconds());
            }
            anyhow::Ok(quantile(&mut rates, 0.5))
        };
        let count = if sessions == 1 { "one session".to_owned() } else { format!("{sessions} sessions") };
        Ok(Row {
            name: format!("throughput, {count}, none lost"),
            value: rate(&self.product)?,
            unit: "chunks/s",
            target: Target::Least(100_000.0),
            floor: Some(rate(&self.relay)?),
        })
    }
}

pub(crate) async fn paced(program: &Path, effort: Effort) -> anyhow::Result<Vec<Row>> {
    let pieces = effort.paced_chunks;
    let runs = alternate(program, effort.rounds, 1, &format!("paced {CHUNKS_PER_SECOND} {pieces}")).await?;
    let targets = [Target::TimesFloor(3.0), Target::None, Target::Most(10.0)];
    runs.latency_rows("200 chunks/s", pieces, targets)
}

pub(crate) async fn full_speed(program: &Path, effort: Effort) -> anyhow::Result<Vec<Row>> {
    let pieces = effort.full_speed_chunks;
    let runs = alternate(program, effort.rounds, 1, &format!("full {pieces}")).await?;
    let mut rows = runs.latency_rows("full speed", pieces, [Target::None; 3])?;
    rows.push(runs.throughput_row(1, pieces)?);
    Ok(rows)
}

pub(crate) async fn throughput(program: &Path, effort: Effort, sessions: usize) -> anyhow::Result<Row> {
    let pieces = effort.full_speed_chunks / sessions;
    alternate(program, effort.rounds, sessions, &format!("full {pieces}")).await?.throughput_row(sessions, pieces)
}

/// What a page is sent for a long answer that is written steadily.
pub(crate) async fn bytes(program: &Path) -> anyhow::Result<Vec<Row>> {
    let server = Server::start(program).await?;
    let mut window = Window::open(&server).await?;
    let mut rows = Vec::new();
    for (shape, name) in [("paragraph", "one paragraph"), ("code", "one code block"), ("mixed", "mixed")] {
        let session = window.create().await?;
        let received = window.converse(&[session], &format!("shaped {shape} {LONG_ANSWER_PIECES}")).await?;
        rows.push(Row {
            name: format!("bytes to a page, 48 KB in 2,000 chunks, {name}"),
            value: received.bytes as f64 / 1000.0,
            unit: "KB",
            target: Target::Most(500.0),
            floor: Some(LONG_ANSWER_BYTES / 1000.0),
        });
    }
    server.end().await?;
    Ok(rows)
}

/// From the request to the answer, the agent's own start with it. The floor is the agent's own start alone.
pub(crate) async fn new_session(program: &Path, effort: Effort) -> anyhow::Result<Row> {
    let (mut product, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..effort.starts.div_ceil(10) {
        let relay = Relay::start().await?;
        let begun = nanoseconds();
        Bare::open(&relay).await?.create().await?;
        floor.push((nanoseconds() - begun) as f64 / MILLISECONDS);
        relay.end().await?;
        let server = Server::start(program).await?;
        let mut window = Window::open(&server).await?;
        let begun = nanoseconds();
        window.create().await?;
        product.push((nanoseconds() - begun) as f64 / MILLISECONDS);
        server.end().await?;
    }
    Ok(Row {
        name: "new session usable, its agent started for it, p50".into(),
        value: quantile(&mut product, 0.5),
        unit: "ms",
        target: Target::Most(2_000.0),
        floor: Some(quantile(&mut floor, 0.5)),
    })
}
