//! Measures the program that lies beside this one and prints a table, or JSON with `--json`.
//!
//! A row is one figure of the specification with its target. To add one, write a function that measures it and list it
//! in `measure`.

mod row;
mod server;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use row::Row;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let as_json = std::env::args().skip(1).any(|arg| arg == "--json");
    let program = program()?;
    let rows = measure(&program).await?;
    if as_json {
        println!("{}", serde_json::to_string_pretty(&row::json(&rows))?);
    } else {
        print!("{}", row::table(&rows));
    }
    Ok(())
}

async fn measure(program: &Path) -> anyhow::Result<Vec<Row>> {
    let mut rows = vec![server::binary_size(program)?];
    rows.extend(server::cold_start(program).await?);
    rows.push(server::idle_memory(program).await?);
    Ok(rows)
}

fn program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("where is this program?")?;
    let program = own.with_file_name("liminal-builder");
    ensure!(program.exists(), "{} is missing: build it first", program.display());
    Ok(program)
}
