//! Completions for bash, zsh and fish, under the names those shells look for.

use std::path::Path;

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;

pub(crate) fn write(command: &Command, directory: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("could not make {}", directory.display()))?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let written = clap_complete::generate_to(shell, &mut command.clone(), crate::PROGRAM, directory)
            .with_context(|| format!("could not write the completions for {shell}"))?;
        if shell == Shell::Bash {
            fix_program_name(&written)?;
        }
    }
    Ok(())
}

/// The generator spells the name of a program with a dash in two ways, so that the options of its commands are never found
/// (clap_complete 4.6.11).
fn fix_program_name(file: &Path) -> anyhow::Result<()> {
    let context = || format!("could not rewrite {}", file.display());
    let text = std::fs::read_to_string(file).with_context(context)?;
    let (wrong, right) = (crate::PROGRAM.replace('-', "__subcmd__"), crate::PROGRAM.replace('-', "__"));
    std::fs::write(file, text.replace(&wrong, &right)).with_context(context)
}
