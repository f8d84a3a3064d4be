//! Completions for bash, zsh and fish, under the names those shells look for.

use std::path::Path;

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;

pub(crate) fn write(command: &Command, directory: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("could not make {}", directory.display()))?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command.clone(), crate::PROGRAM, directory)
            .with_context(|| format!("could not write the completions for {shell}"))?;
    }
    Ok(())
}
