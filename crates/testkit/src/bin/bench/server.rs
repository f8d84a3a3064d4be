//! The server by itself: how big, how quick to start, how much memory when nothing happens. And the bare relay beside it.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::row::{Row, Target, quantile};

/// Long enough for everything that runs once after the start, and for memory to be given back.
const SETTLE: Duration = Duration::from_secs(2);
const MEGABYTE: f64 = 1_000_000.0;
const MEBIBYTE_KIB: f64 = 1024.0;

/// A running server with a home of its own. Its Codex is the agent of this benchmark.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    pub(crate) token: String,
    pub(crate) home: TempDir,
}

impl Server {
    pub(crate) async fn start(program: &Path) -> anyhow::Result<Self> {
        Self::start_in(program, tempfile::tempdir()?).await
    }

    /// Over the data that is there.
    pub(crate) async fn start_in(program: &Path, home: TempDir) -> anyhow::Result<Self> {
        Self::start_with(program, home, &[]).await
    }

    pub(crate) async fn start_with(program: &Path, home: TempDir, args: &[&str]) -> anyhow::Result<Self> {
        let (child, link) = start(program, home.path(), args).await?;
        let token =
            std::fs::read_to_string(home.path().join(".liminal-builder/token")).context("there is no secret")?;
        Ok(Self { child, address: link.trim_end_matches('/').to_owned(), token: token.trim().to_owned(), home })
    }

    pub(crate) fn resident_mebibytes(&self) -> anyhow::Result<f64> {
        resident_mebibytes(&self.child)
    }

    /// What it has had written to a disk so far.
    pub(crate) fn written_bytes(&self) -> anyhow::Result<u64> {
        let pid = self.child.id().context("the process ended by itself")?;
        let counters = std::fs::read_to_string(format!("/proc/{pid}/io"))?;
        let written = counters.lines().find_map(|line| line.strip_prefix("write_bytes: ")).context("no write_bytes")?;
        Ok(written.parse()?)
    }

    /// Ends it and keeps its data.
    pub(crate) async fn stop(self) -> anyhow::Result<TempDir> {
        end(self.child).await?;
        Ok(self.home)
    }

    pub(crate) async fn end(self) -> anyhow::Result<()> {
        end(self.child).await
    }
}

/// A running relay.
#[derive(Debug)]
pub(crate) struct Relay {
    child: Child,
    pub(crate) address: String,
}

impl Relay {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("relay").stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        let address = lines.next_line().await?.context("the relay does not listen")?;
        Ok(Self { child, address })
    }

    pub(crate) async fn end(self) -> anyhow::Result<()> {
        end(self.child).await
    }
}

pub(crate) fn binary_size(program: &Path) -> anyhow::Result<Row> {
    let bytes = std::fs::metadata(program)?.len();
    Ok(Row {
        name: "release binary, UI inside".into(),
        value: bytes as f64 / MEGABYTE,
        unit: "MB",
        target: Target::Most(16.0),
        floor: None,
    })
}

/// From the call that starts the process to the moment it prints where it listens.
pub(crate) async fn cold_start(program: &Path, starts: usize) -> anyhow::Result<[Row; 2]> {
    let home = tempfile::tempdir()?;
    start(program, home.path(), &[]).await?; // The first start also makes the data directory and the secret.
    cold_start_in(program, starts, home.path(), "cold start to listening").await
}

/// The same over the data that is there.
pub(crate) async fn cold_start_in(program: &Path, starts: usize, home: &Path, what: &str) -> anyhow::Result<[Row; 2]> {
    let (mut times, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..starts {
        let begun = Instant::now();
        let relay = Relay::start().await?;
        floor.push(begun.elapsed().as_secs_f64() * 1000.0);
        relay.end().await?;
        let begun = Instant::now();
        let (child, _) = start(program, home, &[]).await?;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
        end(child).await?;
    }
    let mut row = |name: &str, part, target| Row {
        name: format!("{what}, {name}"),
        value: quantile(&mut times, part),
        unit: "ms",
        target,
        floor: Some(quantile(&mut floor, part)),
    };
    Ok([row("p50", 0.5, Target::Most(15.0)), row("p95", 0.95, Target::None)])
}

pub(crate) async fn idle_memory(program: &Path) -> anyhow::Result<Row> {
    let (server, relay) = (Server::start(program).await?, Relay::start().await?);
    settle().await;
    let row = Row {
        name: "idle memory (resident)".into(),
        value: server.resident_mebibytes()?,
        unit: "MiB",
        target: Target::Most(12.0),
        floor: Some(resident_mebibytes(&relay.child)?),
    };
    relay.end().await?;
    server.end().await?;
    Ok(row)
}

pub(crate) async fn settle() {
    tokio::time::sleep(SETTLE).await;
}

fn resident_mebibytes(child: &Child) -> anyhow::Result<f64> {
    let pid = child.id().context("the process ended by itself")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = resident.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / MEBIBYTE_KIB)
}

/// Returns when it listens, with the address it gives.
async fn start(program: &Path, home: &Path, args: &[&str]) -> anyhow::Result<(Child, String)> {
    let mut command = Command::new(program);
    command.args(["--port", "0", "--no-open", "--log", "error"]).args(args);
    command.env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("CODEX_ACP_CMD", format!("'{}' agent", std::env::current_exe()?.display()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some(link) = line.strip_prefix("Listening on http://") {
            return Ok((child, link.to_owned()));
        }
    }
    bail!("the server ended with {} before it listened", child.wait().await?)
}

async fn end(mut child: Child) -> anyhow::Result<()> {
    child.kill().await.context("the process could not be ended")
}
