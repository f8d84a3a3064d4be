//! What a release holds beside the program: shell completions, man pages, and the licences of what is built in.
//!
//! Comes in: a directory to write to. Goes out: files made from the program's own definition of its flags and from the
//! lock file. A program of its own, so that the shipped one does not carry it; `scripts/release` runs it.

mod completions;
mod manual;
mod notices;

use std::path::PathBuf;

use anyhow::{Context, bail};

const PROGRAM: &str = "liminal-builder";

fn main() -> anyhow::Result<()> {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        bail!("usage: packaging DIRECTORY");
    };
    std::fs::create_dir_all(&directory).with_context(|| format!("could not make {}", directory.display()))?;
    let command = liminal_builder::command_line();
    completions::write(&command, &directory.join("completions"))?;
    manual::write(&command, &directory.join("man"))?;
    notices::write(&directory.join("THIRD-PARTY-NOTICES.txt"))
}
