//! One owner per session, also among processes that are not ours.
//!
//! Two Claude Code processes on one session silently fork its history, and the program itself does not look. Ours are
//! kept apart by the provider. Others are found here: what is left of a server that was killed (the program with its
//! guardian, while they exit), and the user's own `claude` in a terminal. Each running program keeps a record of which
//! session it has (`sessions/<process id>.json` beside its settings), also after `/clear`, `claude -c` and the picker;
//! one without a record, because it is older or just starting, is known by its command line only. The same arguments
//! are found with processes that are not it (the terminal multiplexer that once started it, a shell, an editor), so
//! they count only if the process runs Claude Code.
//!
//! What cannot be known: a program with other settings directories, in a container or under another user; one without a
//! record that was not given its session as an option, or is neither called `claude` nor run as we run it; one that
//! resumes the session after we have looked. Linux only: elsewhere nobody is seen.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_process::AgentCommand;
use protocol::AgentSessionId;
use serde::Deserialize;

use super::ClaudeConfig;
use super::process::base_command;

/// For the program of a killed server to exit: its guardian takes six seconds at the most.
const FREE_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A record is a line; what is longer is none.
const RECORD_BYTES_MAX: u64 = 64 * 1024;
/// What runs the program where it is a script.
const SCRIPT_RUNNERS: [&str; 4] = ["node", "nodejs", "bun", "deno"];

/// Waits until no other process has the session. The process that still has it, if that takes too long.
pub(super) async fn wait_until_free(id: &AgentSessionId, config: &ClaudeConfig) -> Result<(), i32> {
    let free = async {
        while other(id, config).await.is_some() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    match tokio::time::timeout(FREE_TIMEOUT, free).await {
        Ok(()) => Ok(()),
        Err(_) => other(id, config).await.map_or(Ok(()), Err),
    }
}

/// Reads on a thread that may wait: a machine can have thousands of processes.
async fn other(id: &AgentSessionId, config: &ClaudeConfig) -> Option<i32> {
    let (id, records) = (id.as_str().to_owned(), config.config_dir().join("sessions"));
    let command = base_command(config).ok().map(|mut command| {
        command.env.extend(config.env.iter().cloned());
        command
    });
    tokio::task::spawn_blocking(move || find(&records, &id, &ConfiguredProgram::new(command.as_ref()))).await.ok()?
}

fn find(records: &Path, id: &str, configured: &ConfiguredProgram) -> Option<i32> {
    let recorded = recorded(records, configured);
    if let Some((pid, _)) = recorded.iter().find(|(_, session)| *session == id) {
        return Some(*pid);
    }
    // Their command lines, and those of their parents, name the session they began with, which may not be theirs any
    // more.
    let known: HashSet<i32> = recorded.keys().flat_map(|pid| lineage(*pid)).collect();
    std::fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        if known.contains(&pid) {
            return None;
        }
        let command_line = std::fs::read(entry.path().join("cmdline")).ok()?;
        (has_session(&command_line, id) && configured.is_run_by(&ProcessStat::of(pid)?, &command_line)).then_some(pid)
    })
}

/// How the user has us run Claude Code.
struct ConfiguredProgram {
    /// Links followed; none if it is not installed.
    program: Option<PathBuf>,
    args: Vec<Vec<u8>>,
}

impl ConfiguredProgram {
    fn new(command: Option<&AgentCommand>) -> Self {
        let program = command.and_then(|command| command.resolve().ok()?.canonicalize().ok());
        let args = command.map(|command| command.args.iter().map(|arg| arg.as_bytes().to_owned()).collect());
        Self { program, args: args.unwrap_or_default() }
    }

    /// Whether a process is Claude Code, by what it runs and not by what it calls itself: that may be anything.
    fn is_run_by(&self, process: &ProcessStat, command_line: &[u8]) -> bool {
        let program = std::fs::read_link(format!("/proc/{}/exe", process.pid)).ok();
        let name = program.as_deref().and_then(Path::file_stem);
        if process.name == "claude" || name == Some(OsStr::new("claude")) {
            return true;
        }
        let mut args = command_line.split(|byte| *byte == 0).skip(1);
        // With the same arguments: a shell or a runner that is configured runs other things too.
        let mut first = args.clone();
        if program.is_some() && program == self.program && self.args.iter().all(|arg| first.next() == Some(arg)) {
            return true;
        }
        let script = args.find(|arg| !arg.starts_with(b"-")).map(|arg| Path::new(OsStr::from_bytes(arg)));
        let is_claude = |script: &Path| {
            let is_configured = || script.is_absolute() && script.canonicalize().ok() == self.program;
            let mut parts = script.iter();
            parts.any(|part| part == "claude" || part == "claude-code") || self.program.is_some() && is_configured()
        };
        SCRIPT_RUNNERS.iter().any(|runner| name == Some(OsStr::new(runner))) && script.is_some_and(is_claude)
    }
}

/// Which session each running program has, as it records it. A record that its program left behind is not one.
fn recorded(records: &Path, configured: &ConfiguredProgram) -> HashMap<i32, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Record {
        pid: i32,
        session_id: String,
        /// As the kernel counts it, so that another process under the same number is distinguished.
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
        let stat = ProcessStat::of(record.pid)?;
        let is_its = match record.proc_start {
            Some(start) => start == stat.started,
            None => configured.is_run_by(&stat, &std::fs::read(format!("/proc/{}/cmdline", record.pid)).ok()?),
        };
        is_its.then_some((record.pid, record.session_id))
    };
    std::fs::read_dir(records).into_iter().flatten().flatten().filter_map(read).collect()
}

/// What the kernel reports of a process that has not ended.
struct ProcessStat {
    pid: i32,
    /// Of the file that was executed, unless the process has changed it.
    name: String,
    parent: i32,
    started: String,
}

impl ProcessStat {
    fn of(pid: i32) -> Option<Self> {
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        // The name may hold anything, also brackets.
        let (before, after) = text.rsplit_once(") ")?;
        let name = before.split_once(" (")?.1.to_owned();
        let fields: Vec<&str> = after.split(' ').collect();
        if matches!(*fields.first()?, "Z" | "X") {
            return None;
        }
        Some(Self { pid, name, parent: fields.get(1)?.parse().ok()?, started: (*fields.get(19)?).to_owned() })
    }
}

/// A process and those it descends from.
fn lineage(pid: i32) -> impl Iterator<Item = i32> {
    std::iter::successors(Some(pid), |pid| ProcessStat::of(*pid).map(|stat| stat.parent).filter(|parent| *parent > 0))
}

/// A command line as the kernel gives it: each argument ended by a zero byte.
fn has_session(command_line: &[u8], id: &str) -> bool {
    let options: [&[u8]; 3] = [b"--session-id", b"--resume", b"-r"];
    let mut before: &[u8] = b"";
    for arg in command_line.split(|byte| *byte == 0) {
        let (option, value) = match memchr::memchr(b'=', arg) {
            Some(at) => (&arg[..at], &arg[at + 1..]),
            None => (before, arg),
        };
        if value == id.as_bytes() && options.contains(&option) {
            return true;
        }
        before = arg;
    }
    false
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};
    use std::time::Instant;

    use super::*;

    const ID: &str = "1f111111-1111-4111-8111-111111111111";

    fn has(args: &[&str]) -> bool {
        has_session(args.join("\0").as_bytes(), ID)
    }

    fn configured(command_line: &str) -> ConfiguredProgram {
        ConfiguredProgram::new(Some(&AgentCommand::parse(command_line).unwrap()))
    }

    /// A process that stays until it is dropped.
    struct StayingProcess(Child);

    impl StayingProcess {
        /// Once it can be seen that it has the session: it is started a moment before it has its arguments.
        fn new(command: &mut Command, id: &str) -> Self {
            let staying = Self(command.stdin(Stdio::piped()).spawn().unwrap());
            let deadline = Instant::now() + Duration::from_secs(60);
            while !has_session(&std::fs::read(format!("/proc/{}/cmdline", staying.pid())).unwrap(), id) {
                assert!(Instant::now() < deadline, "it does not have its arguments");
                std::thread::yield_now();
            }
            staying
        }

        fn pid(&self) -> i32 {
            i32::try_from(self.0.id()).unwrap()
        }
    }

    impl Drop for StayingProcess {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_program_is_known_by_its_own_record_whatever_its_command_line_says() {
        let records = tempfile::tempdir().unwrap();
        let child = StayingProcess::new(Command::new("sh").args(["-c", "read line", "--session-id", ID]), ID);
        let pid = child.pid();
        let other = "33333333-3333-4333-8333-333333333333";
        let ours = configured("sh -c 'read line'");
        let find = |id: &str| find(records.path(), id, &ours);
        assert_eq!((find(ID), find(other)), (Some(pid), None));
        let write = |session: &str, started: Option<&str>| {
            let record = serde_json::json!({"pid": pid, "sessionId": session, "procStart": started, "more": 1});
            std::fs::write(records.path().join(format!("{pid}.json")), record.to_string()).unwrap();
        };
        let started = ProcessStat::of(pid).unwrap().started;
        write(other, Some(&started));
        assert_eq!((find(ID), find(other)), (None, Some(pid)));
        // Somebody else's, who had the number before.
        write(other, Some("1"));
        assert_eq!(find(other), None);
        // Nobody knows whose, but for what the process runs.
        write(other, None);
        assert_eq!(find(other), Some(pid));
        assert_eq!(super::find(records.path(), other, &configured("claude")), None);
        write(other, Some(&started));
        drop(child);
        assert_eq!((find(ID), find(other)), (None, None));
    }

    #[test]
    fn a_process_with_the_command_line_of_claude_code_that_does_not_run_it_does_not_count() {
        let records = tempfile::tempdir().unwrap();
        let id = "44444444-4444-4444-8444-444444444444";
        let find = |command: &str| find(records.path(), id, &configured(command));
        let args = ["-c", "read line", "claude", "--resume", id];
        // As a multiplexer keeps the command line of what it once started, and as anyone may call itself.
        let _shell = StayingProcess::new(Command::new("sh").args(args), id);
        let _renamed = StayingProcess::new(Command::new("sh").arg0("claude").args(args), id);
        assert_eq!((find("claude"), find("sh -c other")), (None, None));

        let directory = tempfile::tempdir().unwrap();
        let claude = directory.path().join("claude");
        std::os::unix::fs::symlink(agent_process::find_program("sh").unwrap(), &claude).unwrap();
        let real = StayingProcess::new(Command::new(claude).args(args), id);
        assert_eq!(find("claude"), Some(real.pid()));
    }

    #[test]
    fn the_session_of_a_process_is_in_its_command_line() {
        assert!(has(&["claude", "-p", "--session-id", ID]));
        assert!(has(&["node", "/usr/bin/claude", "--resume", ID, "--verbose"]));
        assert!(has(&["claude", "-r", ID]) && has(&["claude", &format!("--resume={ID}")]));
        assert!(!has(&["grep", ID, "file"]) && !has(&["less", &format!("{ID}.jsonl")]) && !has(&[""]));
        assert!(!has(&["claude", "--resume", "22222222-2222-4222-8222-222222222222"]));
    }
}
