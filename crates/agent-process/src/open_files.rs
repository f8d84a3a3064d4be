//! The limit on open files of this process, and the share of it that agents may use.
//!
//! Shells and service managers often set the soft limit to 1024, on macOS to 256, and a program may raise it to the
//! hard limit. The server does so once at its start. Its children get the original soft limit: some programs iterate
//! over every possible descriptor, and `select` cannot use numbers above 1023.

use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The server never needs more than this, and macOS refuses more than its `OPEN_MAX`, which is this number, even when
/// it reports an infinite hard limit.
const RAISED_MAX: u64 = 10_240;
/// The descriptors for one agent process: three pipes, the lifeline, the descriptor of its guardian, and one spare
/// because the start briefly needs more.
const FILES_PER_PROCESS: u64 = 6;
/// So many processes are allowed, however low the limit is.
const PROCESSES_MIN: u64 = 4;

/// The soft limit this process was started with, once it has been raised.
static ORIGINAL_SOFT: OnceLock<u64> = OnceLock::new();
/// Agent processes that run or are being started.
static PROCESSES: AtomicUsize = AtomicUsize::new(0);

/// Raises the soft limit as much as is useful and allowed, and returns the new limit. Meant for the start of the
/// server, before anything is opened.
pub fn raise_open_files() -> u64 {
    let limits = getrlimit(Resource::Nofile);
    let soft = limits.current.unwrap_or(u64::MAX);
    let wanted = reachable(limits);
    if wanted > soft {
        match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limits.maximum }) {
            Ok(()) => {
                let _ = ORIGINAL_SOFT.set(soft);
            }
            Err(error) => tracing::warn!("the limit on open files stays at {soft}: {error}"),
        }
    }
    in_force()
}

/// The limit that a server would have if it were started like this process.
pub fn reachable_open_files() -> u64 {
    reachable(getrlimit(Resource::Nofile))
}

/// Gives a program other than an agent the original soft limit. For agents the guardian does this.
pub fn with_original_open_files(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    let Some(soft) = original_soft() else { return };
    // SAFETY: between fork and exec only async-signal-safe work is allowed. The hook makes two system calls and
    // allocates nothing.
    #[expect(unsafe_code, reason = "a limit of the child alone can only be set by the child itself")]
    unsafe {
        command.pre_exec(move || {
            set_soft(soft);
            Ok(())
        });
    }
}

/// The limit that a guardian has to set for its agent, if it differs from the inherited one.
pub(crate) fn original_soft() -> Option<u64> {
    ORIGINAL_SOFT.get().copied()
}

/// Lowers the soft limit of this process. The hard limit stays, so that it can be raised again.
pub(crate) fn set_soft(soft: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(soft), maximum });
}

/// A slot for one agent process, released on drop.
#[derive(Debug)]
pub(crate) struct ProcessSlot(());

impl ProcessSlot {
    /// `None` when one more process could use the last descriptors that the server needs for connections and files.
    pub(crate) fn take() -> Option<Self> {
        let max = processes_max(in_force());
        let one_more = |processes: usize| (processes < max).then_some(processes + 1);
        PROCESSES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok().map(|_| Self(()))
    }
}

impl Drop for ProcessSlot {
    fn drop(&mut self) {
        PROCESSES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The maximum number of agent processes under a limit: half of the descriptors are for them.
pub fn processes_max(open_files: u64) -> usize {
    usize::try_from((open_files / 2 / FILES_PER_PROCESS).max(PROCESSES_MIN)).unwrap_or(usize::MAX)
}

fn in_force() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

fn reachable(limits: Rlimit) -> u64 {
    let (soft, hard) = (limits.current.unwrap_or(u64::MAX), limits.maximum.unwrap_or(u64::MAX));
    soft.max(hard.min(RAISED_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_is_allowed_and_useful_and_never_lowered() {
        let reached = |current, maximum| reachable(Rlimit { current, maximum });
        assert_eq!(reached(Some(256), None), RAISED_MAX, "macOS calls its hard limit infinite");
        assert_eq!(reached(Some(1024), Some(4096)), 4096);
        assert_eq!(reached(Some(256), Some(256)), 256);
        assert_eq!(reached(Some(1_000_000), Some(1_000_000)), 1_000_000);
        assert_eq!(reached(None, None), u64::MAX);
    }

    #[test]
    fn agents_get_half_of_the_files_and_always_a_few() {
        assert_eq!(processes_max(256), 21);
        assert_eq!(processes_max(10_240), 853);
        assert_eq!(processes_max(16), 4);
        assert!(processes_max(u64::MAX) > 1_000_000);
    }
}
