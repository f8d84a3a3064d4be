//! One owner per session, also among processes that are not ours.
//!
//! Two Claude Code processes on one session silently fork its history, and the program itself does not look. Ours are
//! told apart by the provider. What is left of a server that was killed (the program with its guardian, on their way out),
//! and the user's own `claude --resume` in a terminal, are found here by their command lines. Linux only: elsewhere
//! nobody is seen.

use std::path::Path;
use std::time::Duration;

use protocol::AgentSessionId;

/// For the program of a killed server to leave: its guardian takes six seconds at the most.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Waits until no other process has the session. The process that still has it, if that takes too long.
pub(super) async fn alone_with(id: &AgentSessionId) -> Result<(), i32> {
    let alone = async {
        while other(id).await.is_some() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    match tokio::time::timeout(PATIENCE, alone).await {
        Ok(()) => Ok(()),
        Err(_) => other(id).await.map_or(Ok(()), Err),
    }
}

/// Reads on a thread that may wait: a machine can have thousands of processes.
async fn other(id: &AgentSessionId) -> Option<i32> {
    let id = id.as_str().to_owned();
    tokio::task::spawn_blocking(move || find(Path::new("/proc"), &id)).await.ok()?
}

fn find(processes: &Path, id: &str) -> Option<i32> {
    std::fs::read_dir(processes).ok()?.flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let command_line = std::fs::read(entry.path().join("cmdline")).ok()?;
        has_session(&command_line, id).then_some(pid)
    })
}

/// A command line as the kernel gives it: each word ended by a zero byte.
fn has_session(command_line: &[u8], id: &str) -> bool {
    let options: [&[u8]; 3] = [b"--session-id", b"--resume", b"-r"];
    let mut before: &[u8] = b"";
    for word in command_line.split(|byte| *byte == 0) {
        let (option, value) = match memchr::memchr(b'=', word) {
            Some(at) => (&word[..at], &word[at + 1..]),
            None => (before, word),
        };
        if value == id.as_bytes() && options.contains(&option) {
            return true;
        }
        before = word;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "11111111-1111-4111-8111-111111111111";

    fn has(words: &[&str]) -> bool {
        has_session(words.join("\0").as_bytes(), ID)
    }

    #[test]
    fn who_has_a_session_says_so_in_its_command_line() {
        assert!(has(&["claude", "-p", "--session-id", ID]));
        assert!(has(&["liminal-builder", "__guardian", "claude", "--resume", ID, "--verbose"]));
        assert!(has(&["claude", "-r", ID]) && has(&["claude", &format!("--resume={ID}")]));
        assert!(!has(&["grep", ID, "file"]) && !has(&["less", &format!("{ID}.jsonl")]) && !has(&[""]));
        assert!(!has(&["claude", "--resume", "22222222-2222-4222-8222-222222222222"]));
    }
}
