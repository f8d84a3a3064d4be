//! What the journal costs while sessions stream, what it writes, and what it writes when nothing happens.
//!
//! The same program with `--journal off` takes turns with it, if it has that option, and a bare append to a file stands
//! beside both.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use journal::{Journal, SqliteJournal};
use tokio::process::Command;

use crate::Effort;
use crate::agent::{item_arguments, item_text};
use crate::client::{Window, latencies};
use crate::row::{Row, Target, quantile};
use crate::server::{Server, settle};

const SESSIONS: usize = 10;
const ITEMS: usize = 2_000;
const CHUNKS_PER_SECOND: f64 = 200.0;
/// Short turns in the place of each long one.
const TURNS_PER_ROUND: usize = 5;
/// The tick on which the journal commits.
const TICK: Duration = Duration::from_millis(25);
const WRITE_BYTES: usize = 32 * 1024;
const IDLE: Duration = Duration::from_secs(3);

/// The program with the journal on, and with the journal off.
struct Pair {
    on: (Server, Window, Vec<String>),
    off: Option<(Server, Window, Vec<String>)>,
}

impl Pair {
    async fn start(program: &Path, sessions: usize) -> anyhow::Result<Self> {
        let off = match knows_off(program).await? {
            true => Some(begin(program, sessions, &["--journal", "off"]).await?),
            false => None,
        };
        Ok(Self { on: begin(program, sessions, &[]).await?, off })
    }

    async fn end(self) -> anyhow::Result<()> {
        self.on.0.end().await?;
        match self.off {
            Some((server, ..)) => server.end().await,
            None => Ok(()),
        }
    }
}

async fn begin(program: &Path, sessions: usize, args: &[&str]) -> anyhow::Result<(Server, Window, Vec<String>)> {
    let server = Server::start_with(program, tempfile::tempdir()?, args).await?;
    let mut window = Window::open(&server).await?;
    let mut ids = Vec::new();
    for _ in 0..sessions {
        ids.push(window.create().await?);
    }
    Ok((server, window, ids))
}

async fn knows_off(program: &Path) -> anyhow::Result<bool> {
    let help = Command::new(program).arg("--help").output().await?;
    Ok(String::from_utf8_lossy(&help.stdout).contains("--journal"))
}

/// Pieces a second, with every commit in it. None may be lost.
pub(crate) async fn throughput(program: &Path, effort: Effort, sessions: usize) -> anyhow::Result<[Row; 2]> {
    let pieces = effort.full_speed_chunks / sessions;
    let content = format!("full {pieces}");
    let mut pair = Pair::start(program, sessions).await?;
    let (mut on, mut off, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        for (rates, side) in [(&mut off, pair.off.as_mut()), (&mut on, Some(&mut pair.on))] {
            let Some((_, window, ids)) = side else { continue };
            let received = window.converse(ids, &content).await?;
            latencies(&received, sessions, pieces)?;
            rates.push((sessions * pieces) as f64 / received.seconds());
        }
        bare.push(append_rate(pair.on.0.home.path(), sessions * pieces)?);
    }
    pair.end().await?;
    let count = if sessions == 1 { "one session".to_owned() } else { format!("{sessions} sessions") };
    let value = quantile(&mut on, 0.5);
    let row = |floor_name: &str, floor| Row {
        name: format!("throughput with the journal, {count}, none lost (floor: {floor_name})"),
        value,
        unit: "chunks/s",
        target: Target::Least(150_000.0),
        floor,
    };
    Ok([
        row("--journal off", (!off.is_empty()).then(|| quantile(&mut off, 0.5))),
        row("bare append", Some(quantile(&mut bare, 0.5))),
    ])
}

/// The same text appended to a file and synced on the same tick.
fn append_rate(directory: &Path, pieces: usize) -> anyhow::Result<f64> {
    let path = directory.join("bare-append");
    let mut file = File::create(&path)?;
    let begun = Instant::now();
    let (mut synced, mut text) = (begun, Vec::with_capacity(WRITE_BYTES + 64));
    for number in 0..pieces {
        write!(text, "{number}@{number:016x} ")?;
        if text.len() >= WRITE_BYTES || synced.elapsed() >= TICK {
            file.write_all(&text)?;
            text.clear();
        }
        if synced.elapsed() >= TICK {
            file.sync_data()?;
            synced = Instant::now();
        }
    }
    file.write_all(&text)?;
    file.sync_data()?;
    let seconds = begun.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    Ok(pieces as f64 / seconds)
}

/// The way of a piece from the agent's line to the frame, beside the same without the journal. Both take many short turns,
/// because the difference is small and the machine is not always the same.
pub(crate) async fn latency(program: &Path, effort: Effort) -> anyhow::Result<Vec<Row>> {
    let pieces = effort.paced_chunks / TURNS_PER_ROUND;
    let content = format!("paced {CHUNKS_PER_SECOND} {pieces}");
    let mut pair = Pair::start(program, 1).await?;
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for round in 0..effort.rounds * TURNS_PER_ROUND {
        let mut sides = [(&mut off, pair.off.as_mut()), (&mut on, Some(&mut pair.on))];
        if round % 2 == 1 {
            sides.reverse();
        }
        for (times, side) in sides {
            let Some((_, window, ids)) = side else { continue };
            times.extend(latencies(&window.converse(ids, &content).await?, 1, pieces)?);
        }
    }
    pair.end().await?;
    let mut row = |name: &str, part, target| Row {
        name: format!("agent's line → frame with the journal, {name} (floor: --journal off)"),
        value: quantile(&mut on, part),
        unit: "ms",
        target,
        floor: (!off.is_empty()).then(|| quantile(&mut off, part)),
    };
    Ok(vec![row("p50", 0.5, Target::TimesFloor(1.1)), row("p99", 0.99, Target::None)])
}

/// The file beside the bytes of text, arguments and outputs that the agent sent.
pub(crate) async fn size(program: &Path, effort: Effort) -> anyhow::Result<[Row; 2]> {
    let (server, mut window, ids) = begin(program, SESSIONS, &[]).await?;
    for session in &ids {
        window.converse(std::slice::from_ref(session), &format!("items {ITEMS}")).await?;
    }
    let arguments = item_arguments().to_string().len();
    let said: usize = (0..ITEMS).map(|number| item_text(number).len() + (number % 2) * arguments).sum();
    let items = size_row("items of 300 bytes", server, said * SESSIONS).await?;

    let (server, mut window, ids) = begin(program, 1, &[]).await?;
    let pieces = effort.full_speed_chunks;
    let received = window.converse(&ids, &format!("full {pieces}")).await?;
    latencies(&received, 1, pieces)?;
    // A number, a sign, sixteen digits and a space; an empty line now and then.
    let said: usize =
        (0..pieces).map(|number| number.to_string().len() + 18 + if number % 40 == 39 { 2 } else { 0 }).sum();
    Ok([items, size_row("one streamed text", server, said).await?])
}

async fn size_row(what: &str, server: Server, said: usize) -> anyhow::Result<Row> {
    settle().await;
    let home = server.stop().await?;
    let data_dir = home.path().join(".liminal-builder");
    // Moves what is in the log into the file, as the next server would.
    SqliteJournal::open(&data_dir)?.journal.close().await;
    let bytes = std::fs::metadata(data_dir.join("journal.db")).context("there is no journal")?.len();
    Ok(Row {
        name: format!("size of the journal, {what} (floor: what was said)"),
        value: bytes as f64 / 1000.0,
        unit: "KB",
        target: Target::TimesFloor(1.5),
        floor: Some(said as f64 / 1000.0),
    })
}

/// Ten live sessions at rest.
pub(crate) async fn idle_writes(program: &Path) -> anyhow::Result<Row> {
    let (server, mut window, ids) = begin(program, SESSIONS, &[]).await?;
    window.converse(&ids, "items 20").await?;
    settle().await;
    let log = server.home.path().join(".liminal-builder/journal.db-wal");
    let (bytes, changed) = (server.written_bytes()?, std::fs::metadata(&log)?.modified()?);
    tokio::time::sleep(IDLE).await;
    let written = server.written_bytes()? - bytes;
    let is_touched = std::fs::metadata(&log)?.modified()? != changed;
    server.end().await?;
    Ok(Row {
        name: "written while ten sessions are idle, in 3 s".into(),
        // A write that a counter missed counts as a byte.
        value: if is_touched { written.max(1) as f64 } else { written as f64 },
        unit: "B",
        target: Target::Most(0.0),
        floor: None,
    })
}
