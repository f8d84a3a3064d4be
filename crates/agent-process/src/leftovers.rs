//! What is left of agents: waited for at the end of a server, and ended by the next one when a server and a guardian were
//! killed in one moment.
//!
//! Then the kernel ends the agent, but nobody is there to end what the agent had started. Linux only: elsewhere nobody
//! carries a mark that can be read.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal};
use tokio::time::Instant;

use crate::guardian;
use crate::procfs;

/// Who appears while we look is found by another look.
const LOOKS_MAX: usize = 10;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Ends every process that an agent of an earlier run of this program left behind: its server is gone, and no guardian
/// is there to end it. Returns how many there were. Blocks for a few milliseconds; meant for the start of a server.
pub fn end_leftovers() -> usize {
    let mut ended = 0;
    for _ in 0..LOOKS_MAX {
        let left = left_behind();
        if left.is_empty() {
            break;
        }
        ended += left.len();
        for pid in left {
            tracing::warn!(%pid, "ending a process that an agent of an earlier run left behind");
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        std::thread::park_timeout(LOOK_AGAIN);
    }
    ended
}

/// Waits until nothing that an agent of this server was is there any more: also of one whose start was given up, which its
/// guardian ends by itself. False if something is when the time is over.
pub async fn all_gone(deadline: Instant) -> bool {
    let (own, program) = (rustix::process::getpid(), own_program());
    let is_ours = |mark: &str| server_of(mark, &program).is_some_and(|server| server.pid == own && server.lives());
    let is_left = || procfs::all_marked().any(|(_, mark)| is_ours(&mark));
    while is_left() {
        if Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    true
}

fn left_behind() -> Vec<Pid> {
    let program = own_program();
    // Started by an agent ourselves, we carry a mark too.
    let own: Vec<Pid> = procfs::lineage(rustix::process::getpid()).collect();
    let is_guarded =
        |pid: Pid| procfs::lineage(pid).any(|parent| procfs::name(parent).as_deref() == Some(guardian::NAME));
    procfs::all_marked()
        .filter(|(_, mark)| server_of(mark, &program).is_some_and(|server| !server.lives()))
        .map(|(pid, _)| pid)
        .filter(|pid| !own.contains(pid) && procfs::shares_our_ids(*pid) && !is_guarded(*pid))
        .collect()
}

/// A mark unlike that of any other agent, of this server, one before it or one inside an agent.
pub(crate) fn new_mark() -> String {
    static AGENTS: AtomicU64 = AtomicU64::new(0);
    let number = AGENTS.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let started = procfs::started(rustix::process::getpid()).unwrap_or_default();
    format!("{}.{started}-{number}-{now}-{}", std::process::id(), own_program())
}

/// The server that made a mark. A process that has its number and began at another time is not it.
struct Server {
    pid: Pid,
    started: u64,
}

impl Server {
    fn lives(&self) -> bool {
        procfs::lives(self.pid) && procfs::started(self.pid) == Some(self.started)
    }
}

/// None if it was not this program.
fn server_of(mark: &str, program: &str) -> Option<Server> {
    let [server, _, _, of] = mark.splitn(4, '-').collect::<Vec<_>>().try_into().ok()?;
    let (pid, started) = server.split_once('.')?;
    let pid = Pid::from_raw(pid.parse().ok()?).filter(|_| of == program)?;
    Some(Server { pid, started: started.parse().ok()? })
}

fn own_program() -> String {
    std::env::current_exe().as_deref().unwrap_or(Path::new("")).to_string_lossy().into_owned()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_mark_tells_its_server_and_its_program() {
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
    fn another_process_under_the_number_of_a_server_is_not_that_server() {
        let program = own_program();
        let (pid, rest) = new_mark().split_once('.').map(|(pid, rest)| (pid.to_owned(), rest.to_owned())).unwrap();
        let (_, rest) = rest.split_once('-').unwrap();
        assert!(!server_of(&format!("{pid}.1-{rest}"), &program).unwrap().lives());
    }
}
