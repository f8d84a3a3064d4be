//! Processes left by agents: waited for when the server shuts down, and ended by the next server when a server and a
//! guardian were killed at the same time.
//!
//! In that case the kernel kills the agent, but nothing ends the descendants of the agent. Linux only: other systems do
//! not show the environment of a process, which holds the mark.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal};
use tokio::time::Instant;

use crate::guardian;
use crate::procfs;

/// A process that appears during one scan is found by the next.
const SCANS_MAX: usize = 10;
const SCAN_INTERVAL: Duration = Duration::from_millis(20);

/// Ends every process that an agent of an earlier run of this program left behind: its server is gone, and it has no
/// guardian. Returns their number. Blocks for a few milliseconds; meant for the start of the server.
pub fn end_leftovers() -> usize {
    let mut ended = 0;
    for _ in 0..SCANS_MAX {
        let left = left_behind();
        if left.is_empty() {
            break;
        }
        ended += left.len();
        for pid in left {
            tracing::warn!(%pid, "ending a process that an agent of an earlier run left behind");
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        std::thread::park_timeout(SCAN_INTERVAL);
    }
    ended
}

/// Waits until no process of this server's agents is left, including agents whose start was abandoned, which their
/// guardian ends. Returns false if some are left at the deadline.
pub async fn all_gone(deadline: Instant) -> bool {
    let (own, program) = (rustix::process::getpid(), own_program());
    let is_ours = |mark: &str| server_of(mark, &program).is_some_and(|server| server.pid == own && server.lives());
    let is_left = || procfs::all_marked().any(|(_, mark)| is_ours(&mark));
    while is_left() {
        if Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(SCAN_INTERVAL).await;
    }
    true
}

fn left_behind() -> Vec<Pid> {
    let program = own_program();
    // If an agent started this server, the server carries a mark too.
    let own: Vec<Pid> = procfs::lineage(rustix::process::getpid()).collect();
    let is_guarded =
        |pid: Pid| procfs::lineage(pid).any(|parent| procfs::name(parent).as_deref() == Some(guardian::NAME));
    procfs::all_marked()
        .filter(|(_, mark)| server_of(mark, &program).is_some_and(|server| !server.lives()))
        .map(|(pid, _)| pid)
        .filter(|pid| !own.contains(pid) && procfs::shares_our_ids(*pid) && !is_guarded(*pid))
        .collect()
}

/// A mark that no other agent has, of this server, an earlier one, or one that runs inside an agent.
pub(crate) fn new_mark() -> String {
    static AGENTS: AtomicU64 = AtomicU64::new(0);
    let number = AGENTS.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let started = procfs::started(rustix::process::getpid()).unwrap_or_default();
    format!("{}.{started}-{number}-{now}-{}", std::process::id(), own_program())
}

/// The server that created a mark. A process with its pid but another start time is a different process.
struct MarkedServer {
    pid: Pid,
    started: u64,
}

impl MarkedServer {
    fn lives(&self) -> bool {
        procfs::lives(self.pid) && procfs::started(self.pid) == Some(self.started)
    }
}

/// `None` if it was another program.
fn server_of(mark: &str, program: &str) -> Option<MarkedServer> {
    let [server, _, _, of] = mark.splitn(4, '-').collect::<Vec<_>>().try_into().ok()?;
    let (pid, started) = server.split_once('.')?;
    let pid = Pid::from_raw(pid.parse().ok()?).filter(|_| of == program)?;
    Some(MarkedServer { pid, started: started.parse().ok()? })
}

fn own_program() -> String {
    std::env::current_exe().as_deref().unwrap_or(Path::new("")).to_string_lossy().into_owned()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_its_server_and_its_program() {
        let program = own_program();
        let mark = new_mark();
        let server = server_of(&mark, &program).unwrap();
        assert_eq!(server.pid, rustix::process::getpid());
        assert!(server.lives());
        assert!(server_of(&mark, "/another/program").is_none());
        for nonsense in ["", "1", "1-2-3", "1-2-3-/p", "x.1-2-3-/p", "-1.1-2-3-/p", "0.1-1-2-/p"] {
            assert!(server_of(nonsense, "/p").is_none(), "{nonsense}");
        }
    }

    #[test]
    fn another_process_with_the_pid_of_a_server_is_not_that_server() {
        let program = own_program();
        let (pid, rest) = new_mark().split_once('.').map(|(pid, rest)| (pid.to_owned(), rest.to_owned())).unwrap();
        let (_, rest) = rest.split_once('-').unwrap();
        assert!(!server_of(&format!("{pid}.1-{rest}"), &program).unwrap().lives());
    }
}
