//! What the system allows a server that is started from here.

use super::Finding;

const OPEN_FILES: &str = "Open files";
/// Below this a few dozen agents can be too many. Systems of today allow more.
const OPEN_FILES_FEW: u64 = 1024;

/// `limit` is how many files the server may have open once it has raised its limit as far as it may.
pub(super) fn open_files(limit: u64) -> Finding {
    let agents = agent_process::processes_max(limit);
    match limit {
        u64::MAX => Finding::ok(OPEN_FILES, "no limit"),
        OPEN_FILES_FEW.. => Finding::ok(OPEN_FILES, format!("at most {limit}")),
        _ => Finding::note(
            OPEN_FILES,
            format!("at most {limit}, which is few: room for {agents} agents and terminals at once"),
            "Raise the hard limit before you start Liminal Builder: `ulimit -n 4096` in the shell, or \
             `LimitNOFILE=4096` in a systemd unit.",
        ),
    }
}
