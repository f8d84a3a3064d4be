//! One owner per session, also among processes that are not ours.
//!
//! Two Claude Code processes on one session silently fork its history, and the program itself does not look. Ours are
//! told apart by the provider. Others are found here: what is left of a server that was killed (the program with its
//! guardian, on their way out), and the user's own `claude` in a terminal. Each running program keeps a record of which
//! session it has (`sessions/<process id>.json` beside its settings), also after `/clear`, `claude -c` and the picker; one
//! without a record, because it is older or just starting, is known by its command line only.
//!
//! What cannot be known: a program with other settings directories, in a container or under another user; one without a
//! record that was not given its session as an option; one that takes the session up after we have looked. Linux only:
//! elsewhere nobody is seen.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use protocol::AgentSessionId;
use serde::Deserialize;

/// For the program of a killed server to leave: its guardian takes six seconds at the most.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// A record is a line; what is longer is none.
const RECORD_BYTES_MAX: u64 = 64 * 1024;

/// Waits until no other process has the session. The process that still has it, if that takes too long.
pub(super) async fn alone_with(id: &AgentSessionId, config_dir: &Path) -> Result<(), i32> {
    let alone = async {
        while other(id, config_dir).await.is_some() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    match tokio::time::timeout(PATIENCE, alone).await {
        Ok(()) => Ok(()),
        Err(_) => other(id, config_dir).await.map_or(Ok(()), Err),
    }
}

/// Reads on a thread that may wait: a machine can have thousands of processes.
async fn other(id: &AgentSessionId, config_dir: &Path) -> Option<i32> {
    let (id, records) = (id.as_str().to_owned(), config_dir.join("sessions"));
    tokio::task::spawn_blocking(move || find(&records, &id)).await.ok()?
}

fn find(records: &Path, id: &str) -> Option<i32> {
    let recorded = recorded(records);
    if let Some((pid, _)) = recorded.iter().find(|(_, session)| *session == id) {
        return Some(*pid);
    }
    // Their command lines, and those of their guardians, say what they began with.
    let guardians: Vec<i32> = recorded.keys().filter_map(|pid| Some(Stat::of(*pid)?.parent)).collect();
    std::fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        if recorded.contains_key(&pid) || guardians.contains(&pid) {
            return None;
        }
        let command_line = std::fs::read(entry.path().join("cmdline")).ok()?;
        has_session(&command_line, id).then_some(pid)
    })
}

/// Which session each running program has, in its own words. A record that its program left behind is not one.
fn recorded(records: &Path) -> HashMap<i32, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Record {
        pid: i32,
        session_id: String,
        /// As the kernel counts it, so that another process under the same number is told apart.
        #[serde(default)]
        proc_start: Option<String>,
    }
    let read = |entry: std::fs::DirEntry| {
        let path = entry.path();
        let is_record = path.extension().is_some_and(|extension| extension == "json");
        if !is_record || entry.metadata().ok()?.len() > RECORD_BYTES_MAX {
            return None;
        }
        let record: Record = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        let stat = Stat::of(record.pid)?;
        let is_its = record.proc_start.is_none_or(|start| start == stat.started);
        is_its.then_some((record.pid, record.session_id))
    };
    std::fs::read_dir(records).into_iter().flatten().flatten().filter_map(read).collect()
}

/// What the kernel says of a process that has not ended.
struct Stat {
    parent: i32,
    started: String,
}

impl Stat {
    fn of(pid: i32) -> Option<Self> {
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        // The name may hold anything, also brackets.
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
        if matches!(*fields.first()?, "Z" | "X") {
            return None;
        }
        Some(Self { parent: fields.get(1)?.parse().ok()?, started: (*fields.get(19)?).to_owned() })
    }
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

    const ID: &str = "1f111111-1111-4111-8111-111111111111";

    fn has(words: &[&str]) -> bool {
        has_session(words.join("\0").as_bytes(), ID)
    }

    #[test]
    fn a_program_is_known_by_its_own_record_whatever_its_command_line_says() {
        let records = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("sh")
            .args(["-c", "read line", "--session-id", ID])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let other = "33333333-3333-4333-8333-333333333333";
        assert_eq!((find(records.path(), ID), find(records.path(), other)), (Some(pid), None));
        let write = |session: &str, started: &str| {
            let record = serde_json::json!({"pid": pid, "sessionId": session, "procStart": started, "more": 1});
            std::fs::write(records.path().join(format!("{pid}.json")), record.to_string()).unwrap();
        };
        let started = Stat::of(pid).unwrap().started;
        write(other, &started);
        assert_eq!((find(records.path(), ID), find(records.path(), other)), (None, Some(pid)));
        // Somebody else's, who had the number before.
        write(other, "1");
        assert_eq!(find(records.path(), other), None);
        write(other, &started);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((find(records.path(), ID), find(records.path(), other)), (None, None));
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
