//! One man page for the program and one for each command.

use std::path::Path;

use anyhow::Context;
use clap::Command;

pub(crate) fn write(command: &Command, directory: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("could not make {}", directory.display()))?;
    clap_mangen::generate_to(command.clone(), directory).context("could not write the man pages")
}
