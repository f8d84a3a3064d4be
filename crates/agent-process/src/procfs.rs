//! The process tree and marked processes, from the kernel.
//!
//! Only Linux has this; on other systems both lists are empty and only the process group can be reached.

use rustix::process::Pid;

/// An environment variable of an agent and all its descendants, with a unique value for each agent. It identifies the
/// descendants when the guardian was killed.
pub(crate) const MARK: &str = "LIMINAL_AGENT_MARK";

/// Every living descendant of a process.
pub(crate) fn descendants(root: Pid) -> Vec<Pid> {
    let parents: Vec<(Pid, Pid)> = processes().filter_map(|pid| Some((pid, living_parent(pid)?))).collect();
    let mut found = vec![root];
    let mut looked_at = 0;
    while let Some(parent) = found.get(looked_at).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        looked_at += 1;
    }
    found.split_off(1)
}

/// Every living process that was started with this value of [`MARK`].
pub(crate) fn marked(mark: &str) -> Vec<Pid> {
    all_marked().filter(|(_, found)| found == mark).map(|(pid, _)| pid).collect()
}

/// Every living process with a mark, and the mark.
pub(crate) fn all_marked() -> impl Iterator<Item = (Pid, String)> {
    let mark = |pid: Pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let value = environment
            .split(|byte| *byte == 0)
            .find_map(|entry| entry.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
        Some((pid, String::from_utf8_lossy(value).into_owned()))
    };
    processes().filter_map(mark).filter(|(pid, _)| living_parent(*pid).is_some())
}

/// A process and its ancestors, nearest first.
pub(crate) fn lineage(pid: Pid) -> impl Iterator<Item = Pid> {
    std::iter::successors(Some(pid), |pid| living_parent(*pid))
}

/// The process name known to the kernel.
pub(crate) fn name(pid: Pid) -> Option<String> {
    Some(std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned())
}

/// Whether a process has the same pid namespace as we: it is not in a container.
pub(crate) fn shares_our_ids(pid: Pid) -> bool {
    let ours = std::fs::read_link("/proc/self/ns/pid").ok();
    ours.is_some() && std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok() == ours
}

pub(crate) fn lives(pid: Pid) -> bool {
    living_parent(pid).is_some()
}

/// The start time of a process. Together with the pid it is unique until the next boot.
pub(crate) fn started(pid: Pid) -> Option<u64> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    String::from_utf8_lossy(&stat).rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = cfg!(target_os = "linux").then(|| std::fs::read_dir("/proc").ok()).flatten();
    entries.into_iter().flatten().flatten().filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

/// The parent of a process; `None` if the process is gone or a zombie.
fn living_parent(pid: Pid) -> Option<Pid> {
    parse_stat(&String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat")).ok()?))
}

/// `pid (name) state parent …`; the name may contain any characters, including brackets.
fn parse_stat(stat: &str) -> Option<Pid> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    match fields.next()? {
        "Z" | "X" => None,
        _ => Pid::from_raw(fields.next()?.parse().ok()?),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_hide_the_parent() {
        assert_eq!(parse_stat("7 (a) Z 1 (b)) S 42 7 7 0").map(Pid::as_raw_pid), Some(42));
        assert_eq!(parse_stat("7 (a) Z 42 7 7 0"), None);
    }

    #[test]
    fn a_child_is_found_by_descent_and_by_mark() {
        let mark = format!("test-{}", std::process::id());
        let mut child = Command::new("cat").env(MARK, &mark).stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        assert!(descendants(rustix::process::getpid()).contains(&pid));
        // A process shows no environment for a moment after exec.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while marked(&mark).is_empty() && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(marked(&mark), [pid]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(marked(&mark), []);
    }
}
