//! Opens the page in the user's browser, where there is one.

use std::io::{self, IsTerminal};
use std::process::Stdio;

use anyhow::Context;
use tokio::process::Command;

use crate::settings::Opening;

#[cfg(target_os = "macos")]
const OPENER: &str = "open";
#[cfg(not(target_os = "macos"))]
const OPENER: &str = "xdg-open";

/// Should it be opened without being asked? Only where a person sits in front of a screen.
pub(crate) fn is_wanted(opening: &Opening) -> bool {
    opening.open || !opening.no_open && io::stdout().is_terminal() && has_display()
}

/// Would the user see a browser that is started here?
pub(crate) fn has_display() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    (cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) && !is_set("SSH_CONNECTION")
}

/// `link` is on a command line that every user of the machine can read: it must not hold the secret.
pub(crate) fn open(link: &str) -> anyhow::Result<()> {
    let quiet = Command::new(OPENER).arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    quiet.with_context(|| format!("could not open the browser with {OPENER}")).map(drop)
}
