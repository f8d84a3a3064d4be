//! The server by itself: how big, how quick to start, how much memory when nothing happens.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::row::Row;

const STARTS: usize = 60;
/// Long enough for everything that runs once after the start.
const SETTLE: Duration = Duration::from_secs(2);
const MEGABYTE: f64 = 1_000_000.0;
const MEBIBYTE_KIB: f64 = 1024.0;

pub(crate) fn binary_size(program: &Path) -> anyhow::Result<Row> {
    let bytes = std::fs::metadata(program)?.len();
    Ok(Row { name: "release binary, UI inside", value: bytes as f64 / MEGABYTE, unit: "MB", most: Some(12.0) })
}

/// From the call that starts the process to the moment it says where it listens.
pub(crate) async fn cold_start(program: &Path) -> anyhow::Result<[Row; 2]> {
    let home = tempfile::tempdir()?;
    start(program, home.path()).await?; // The first start also makes the data directory and the secret.
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let begun = Instant::now();
        let child = start(program, home.path()).await?;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
        end(child).await?;
    }
    times.sort_by(f64::total_cmp);
    let row = |name, value, most| Row { name, value, unit: "ms", most };
    Ok([
        row("cold start to listening, p50", times[STARTS / 2], Some(15.0)),
        row("cold start to listening, p95", times[STARTS * 95 / 100], None),
    ])
}

pub(crate) async fn idle_memory(program: &Path) -> anyhow::Result<Row> {
    let home = tempfile::tempdir()?;
    let child = start(program, home.path()).await?;
    tokio::time::sleep(SETTLE).await;
    let pid = child.id().context("the server ended by itself")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = resident.trim().trim_end_matches("kB").trim().parse()?;
    end(child).await?;
    Ok(Row { name: "idle memory (resident)", value: kib / MEBIBYTE_KIB, unit: "MiB", most: Some(12.0) })
}

/// Returns when it listens.
async fn start(program: &Path, home: &Path) -> anyhow::Result<Child> {
    let mut command = Command::new(program);
    command.args(["--port", "0", "--no-open", "--log", "error"]);
    command.env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
    while let Some(line) = lines.next_line().await? {
        if line.starts_with("Open http://") {
            return Ok(child);
        }
    }
    bail!("the server ended with {} before it listened", child.wait().await?)
}

async fn end(mut child: Child) -> anyhow::Result<()> {
    child.kill().await.context("the server could not be ended")
}
