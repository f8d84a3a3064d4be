//! Measures what must not grow: processes, handles, memory.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio_util::sync::CancellationToken;

use crate::within;

/// Open handles of a process.
pub(super) fn handles(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

pub(super) async fn until_handles(pid: u32, most: usize) {
    until(&format!("{} handles to become {most}", handles(pid)), || handles(pid) <= most).await;
}

/// The most memory it ever had.
pub(super) fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    peak.and_then(|peak| peak.trim().parse().ok()).unwrap_or_else(|| panic!("process {pid} is not there"))
}

/// Agents are known by their state directory, and so is everything they started.
pub(super) async fn until_no_process_has(state: &Path) {
    let state = state.to_string_lossy().into_owned();
    until("every agent to be gone", || processes_with(&state).is_empty()).await;
}

fn processes_with(pattern: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap_or_else(|error| panic!("{error}"));
    let has = |environment: &[u8]| environment.windows(pattern.len()).any(|at| at == pattern.as_bytes());
    processes
        .filter_map(Result::ok)
        .filter(|process| std::fs::read(process.path().join("environ")).is_ok_and(|environment| has(&environment)))
        .map(|process| process.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Kills the agent that writes this log, now and then. Returns how often.
pub(super) async fn kill_agents(log: &Path, mut random: fastrand::Rng, over: &CancellationToken) -> usize {
    let mut killed = 0;
    while pause(random.u64(500..4000), over).await {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let newest = text.lines().filter_map(|line| line.strip_prefix("start ")).next_back();
        let pid = newest.and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
        killed += usize::from(pid.is_some_and(|pid| is_agent(pid) && kill_process(pid, Signal::KILL).is_ok()));
    }
    killed
}

/// Nobody else's process may be hit because it got the number of one that is gone.
fn is_agent(pid: Pid) -> bool {
    let command = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    String::from_utf8_lossy(&command).contains("scripted-agent")
}

/// False when it is over meanwhile.
pub(super) async fn pause(milliseconds: u64, over: &CancellationToken) -> bool {
    let pause = tokio::time::sleep(Duration::from_millis(milliseconds));
    over.run_until_cancelled(pause).await.is_some()
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    within(what, async {
        while !is_so() {
            looks.tick().await;
        }
    })
    .await;
}
