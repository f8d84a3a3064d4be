//! Measures the program that lies beside this one over real pipes and sockets, and prints a table; `--json FILE` writes
//! the same for machines. `--quick` measures less, to see that it works. `--and FILE` adds rows that were measured
//! elsewhere, in a browser. `--journal` measures only the rows of the journal.
//!
//! A row is one figure with its target. Where it makes sense, the floor stands beside it: the same work done in the same
//! run by a bare relay, which passes each line of the agent to a WebSocket without looking at it, or by a bare write of a
//! file.
//! To add a row, write a function that measures it and list it in `measure`.

mod agent;
mod client;
mod clock;
mod comeback;
mod disk;
mod journal_file;
mod journal_load;
mod memory;
mod relay;
mod row;
mod server;
mod streaming;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use row::Row;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    pub(crate) starts: usize,
    /// Turns with the product and with the relay, in turn, so that both meet the same weather.
    pub(crate) rounds: usize,
    pub(crate) paced_chunks: usize,
    pub(crate) full_speed_chunks: usize,
    /// Changes of the list of projects.
    pub(crate) changes: usize,
    /// Of ten live sessions each.
    pub(crate) most_items: usize,
    /// Of the longest session in the large journal.
    pub(crate) journal_items: usize,
    /// How large the large journal is.
    pub(crate) journal_bytes: u64,
}

const WHOLE: Effort = Effort {
    starts: 60,
    rounds: 3,
    paced_chunks: 1_000,
    full_speed_chunks: 300_000,
    changes: 200,
    most_items: 20_000,
    journal_items: 100_000,
    journal_bytes: 5_000_000_000,
};
const QUICK: Effort = Effort {
    starts: 5,
    rounds: 1,
    paced_chunks: 100,
    full_speed_chunks: 20_000,
    changes: 20,
    most_items: 2_500,
    journal_items: 5_000,
    journal_bytes: 50_000_000,
};

/// Which rows are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    All,
    Journal,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let done = match args.next().as_deref() {
        Some("agent") => agent::run(),
        Some("relay") => run(relay::run()),
        first => run(bench(first.map(str::to_owned).into_iter().chain(args))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(future: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(future)
}

async fn bench(mut args: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let (mut json, mut effort, mut part, mut rows) = (None, WHOLE, Part::All, Vec::new());
    while let Some(arg) = args.next() {
        let mut file = || args.next().map(PathBuf::from).with_context(|| format!("{arg} needs the name of a file"));
        match arg.as_str() {
            "--json" => json = Some(file()?),
            "--and" => rows.extend(rows_in(&file()?)?),
            "--quick" => effort = QUICK,
            "--journal" => part = Part::Journal,
            other => bail!("{other} is not known: there are --json FILE, --and FILE, --journal and --quick"),
        }
    }
    rows.splice(0..0, row::json(&measure(&program()?, effort, part).await?));
    print!("{}", row::table(&rows));
    if let Some(file) = json {
        let text = serde_json::to_string_pretty(&rows)? + "\n";
        std::fs::write(&file, text).with_context(|| format!("could not write {}", file.display()))?;
    }
    Ok(())
}

fn rows_in(file: &Path) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read(file).with_context(|| format!("could not read {}", file.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} holds no rows", file.display()))
}

async fn measure(program: &Path, effort: Effort, part: Part) -> anyhow::Result<Vec<Row>> {
    if part == Part::Journal {
        return journal_rows(program, effort).await;
    }
    let mut rows = vec![server::binary_size(program)?];
    rows.extend(server::cold_start(program, effort.starts).await?);
    rows.push(server::idle_memory(program).await?);
    rows.extend(disk::change(program, effort).await?);
    rows.push(streaming::new_session(program, effort).await?);
    rows.extend(comeback::rows(program, effort).await?);
    rows.extend(streaming::paced(program, effort).await?);
    rows.extend(streaming::full_speed(program, effort).await?);
    rows.push(streaming::throughput(program, effort, 10).await?);
    rows.extend(streaming::bytes(program).await?);
    rows.extend(journal_rows(program, effort).await?);
    Ok(rows)
}

async fn journal_rows(program: &Path, effort: Effort) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (items, turns, most) in
        [(2_000, 1, 40.0), (2_000, 10, 40.0), (effort.most_items, 1, 45.0), (effort.most_items, 100, 45.0)]
    {
        rows.extend(memory::ten_long_sessions(program, items, turns, most).await?);
    }
    for sessions in [1, 10] {
        rows.extend(journal_load::throughput(program, effort, sessions).await?);
    }
    rows.extend(journal_load::latency(program, effort).await?);
    rows.extend(journal_load::size(program, effort).await?);
    rows.push(journal_load::idle_writes(program).await?);
    rows.extend(journal_file::rows(program, effort).await?);
    Ok(rows)
}

fn program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("where is this program?")?;
    let program = own.with_file_name("liminal-builder");
    ensure!(program.exists(), "{} is missing: build it first", program.display());
    Ok(program)
}
