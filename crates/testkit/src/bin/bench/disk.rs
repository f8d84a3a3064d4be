//! What a confirmed change costs: it is on the disk before it is confirmed.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde_json::json;

use crate::Effort;
use crate::client::Window;
use crate::clock::nanoseconds;
use crate::row::{Row, Target, quantile};
use crate::server::Server;

const MILLISECONDS: f64 = 1e6;

/// A project is added; the floor is a file of the same length, written beside it, synced and renamed.
pub(crate) async fn change(program: &Path, effort: Effort) -> anyhow::Result<[Row; 2]> {
    let server = Server::start(program).await?;
    let mut window = Window::open(&server).await?;
    let file = server.home.path().join(".liminal-builder/projects.json");
    let (mut product, mut floor) = (Vec::new(), Vec::new());
    for number in 0..effort.changes {
        let directory = server.home.path().join(format!("project-{number}"));
        std::fs::create_dir(&directory)?;
        let begun = nanoseconds();
        window.call(json!({"type": "project:add", "path": directory})).await?;
        product.push((nanoseconds() - begun) as f64 / MILLISECONDS);
        let bytes = std::fs::read(&file)?;
        let begun = nanoseconds();
        write_bare(server.home.path(), &bytes)?;
        floor.push((nanoseconds() - begun) as f64 / MILLISECONDS);
    }
    server.end().await?;
    let mut row = |name: &str, part| Row {
        name: format!("a change confirmed, and so on the disk, {name}"),
        value: quantile(&mut product, part),
        unit: "ms",
        target: Target::None,
        floor: Some(quantile(&mut floor, part)),
    };
    Ok([row("p50", 0.5), row("p95", 0.95)])
}

/// As carefully as the product does it: the directory is synced too.
fn write_bare(directory: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let (new, place) = (directory.join("bare.new"), directory.join("bare"));
    let mut file = File::create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(new, place)?;
    Ok(File::open(directory)?.sync_all()?)
}
