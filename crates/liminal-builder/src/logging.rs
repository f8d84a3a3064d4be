//! Where the log goes: to standard error, for people at a terminal or as JSON for machines.

use std::io::{self, IsTerminal};

use anyhow::Context;
// We log with `tracing`. Libraries that use `log` are not shown: this disables it in release builds.
use log as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, registry};

use crate::settings::Files;

pub(crate) fn start(files: &Files) -> anyhow::Result<()> {
    let filter: Targets = files.log.parse().with_context(|| format!("{:?} is not a log filter", files.log))?;
    let lines = fmt::layer().with_writer(io::stderr);
    let lines = match files.log_json {
        true => lines.json().boxed(),
        false => lines.with_ansi(io::stderr().is_terminal()).compact().boxed(),
    };
    registry().with(lines.with_filter(filter)).init();
    Ok(())
}
