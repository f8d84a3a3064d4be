//! Helpers: start agents of the fixture, and wait for visible results.

use std::future::Future;
use std::time::Duration;

use agent_process::{AgentCommand, AgentProcess, LineReader, StopLadder};

pub(crate) const FIXTURE: &str = env!("CARGO_BIN_EXE_agent-process-fixture");

/// Generous: it only decides how long a failing test takes.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// Short grace times, for agents that will use them up.
pub(crate) const QUICK: StopLadder =
    StopLadder { grace_eof: Duration::from_millis(200), grace_term: Duration::from_millis(200) };

/// Grace times that only a hanging test can use up.
pub(crate) const PATIENT: StopLadder = StopLadder { grace_eof: DEADLINE, grace_term: DEADLINE };

/// The fixture as an agent, with its behaviour and arguments.
pub(crate) fn agent(arguments: &[&str]) -> AgentCommand {
    AgentCommand::new(FIXTURE).args(arguments).guardian(FIXTURE).orphan_ladder(QUICK)
}

pub(crate) async fn spawn(arguments: &[&str]) -> AgentProcess {
    AgentProcess::spawn(agent(arguments)).await.unwrap()
}

/// The value, or a failed test after the deadline.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("within the deadline")
}

/// Waits until the condition holds.
pub(crate) async fn until(what: &str, mut seen: impl FnMut() -> bool) {
    let mut look = tokio::time::interval(Duration::from_millis(10));
    let poll_until_seen = async {
        while !seen() {
            look.tick().await;
        }
    };
    assert!(tokio::time::timeout(DEADLINE, poll_until_seen).await.is_ok(), "never seen: {what}");
}

/// The next line; its absence fails the test.
pub(crate) async fn line(reader: &mut LineReader) -> String {
    soon(reader.next_line()).await.unwrap().expect("a line").to_str_lossy().into_owned()
}

/// Process ids, one per line, up to the line `ready`.
pub(crate) async fn pids_until_ready(reader: &mut LineReader) -> Vec<u32> {
    let mut pids = Vec::new();
    loop {
        match line(reader).await.as_str() {
            "ready" => return pids,
            pid => pids.push(pid.parse().unwrap()),
        }
    }
}

/// Whether a process exists and is not a zombie.
pub(crate) fn lives(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        let stat = String::from_utf8_lossy(&stat).into_owned();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    })
}

pub(crate) fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
