//! Where the log goes: to standard error, for people at a terminal or as JSON for machines.

use std::io::{self, IsTerminal};

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::settings::Files;

pub(crate) fn start(files: &Files) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&files.log).with_context(|| format!("{:?} is not a log filter", files.log))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    if files.log_json {
        log.json().init();
    } else {
        log.with_ansi(io::stderr().is_terminal()).compact().init();
    }
    Ok(())
}
