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

/// Whether to open it without a request: only where a person uses a screen.
pub(crate) fn is_wanted(opening: &Opening) -> bool {
    opening.open || !opening.no_open && io::stdout().is_terminal() && has_display()
}

/// Whether the user would see a browser that is started here.
pub(crate) fn has_display() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    (cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) && !is_set("SSH_CONNECTION")
}

/// Where a browser is sent: the server itself, or a page in a file that leads there.
pub(crate) fn address(base_url: &str, path: &str, file: Option<&str>) -> String {
    match file {
        Some(file) => format!("file://{}", percent_encoded(file)),
        None => format!("{base_url}{path}"),
    }
}

/// A path as part of an address.
fn percent_encoded(path: &str) -> String {
    path.bytes().fold(String::with_capacity(path.len()), |mut text, byte| {
        match byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
        text
    })
}

/// `link` is on a command line that every user of the machine can read: it must not hold the secret.
pub(crate) fn open(link: &str) -> anyhow::Result<()> {
    let mut opener = Command::new(OPENER);
    opener.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    agent_process::with_original_open_files(opener.as_std_mut());
    opener.spawn().with_context(|| format!("could not open the browser with {OPENER}")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_given_as_an_address_and_a_ticket_only_where_there_is_none() {
        assert_eq!(address("http://127.0.0.1:3000", "/?token=once-1", None), "http://127.0.0.1:3000/?token=once-1");
        let file = address("http://127.0.0.1:3000", "/?token=once-1", Some("/home/a b/é#.html"));
        assert_eq!(file, "file:///home/a%20b/%C3%A9%23.html");
    }
}
