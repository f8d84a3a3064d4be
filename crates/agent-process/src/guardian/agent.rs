//! The guardian's own standing among processes, and the start of its agent.
//!
//! The one place with `unsafe`: two handlers for signals and one hook between fork and exec have no safe form.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::Pid;

use crate::lifeline::AgentStdio;

/// A session without a terminal, deaf to what is meant for the server, adopting all descendants.
pub(super) fn stand_apart() -> io::Result<()> {
    // Without a terminal a tool that asks for a password fails instead of waiting for ever, and Ctrl-C is the server's.
    // It fails for the leader of a group, who has left the server's already.
    let _ = rustix::process::setsid();
    stay_when_asked_to_leave();
    #[cfg(target_os = "linux")]
    {
        if let Ok(name) = std::ffi::CString::new(super::NAME) {
            let _ = rustix::thread::set_name(&name);
        }
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    }
    Ok(())
}

/// Starts the agent in a group of its own on the given pipes, of which none stays with us.
pub(super) fn start(mut command: impl Iterator<Item = OsString>, stdio: AgentStdio) -> io::Result<Pid> {
    let program = command.next().ok_or(io::ErrorKind::InvalidInput)?;
    let [stdin, stdout, stderr] = stdio.map(Stdio::from);
    let mut agent = Command::new(program);
    agent.args(command).stdin(stdin).stdout(stdout).stderr(stderr).process_group(0);
    die_with_us(&mut agent);
    let agent = agent.spawn()?;
    Ok(Pid::from_child(&agent))
}

/// The kernel ends the agent when the thread that started it ends: our main thread, which leaves last.
#[cfg(target_os = "linux")]
fn die_with_us(agent: &mut Command) {
    let guardian = rustix::process::getpid();
    let hook = move || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // Killed before that call, we could not have been noticed.
        if rustix::process::getppid() != Some(guardian) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe work is allowed. The hook makes two system calls and
    // allocates nothing; at this point the guardian has one thread, so no lock can be held by another.
    #[expect(unsafe_code, reason = "the death signal can only be set by the child itself")]
    unsafe {
        agent.pre_exec(hook);
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_us(_: &mut Command) {}

/// A service manager that ends the whole family at once would otherwise end us before the agents' descendants.
fn stay_when_asked_to_leave() {
    extern "C" fn stay(_: libc::c_int) {}
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: the handler does nothing, so it is safe at any moment. A handler and not SIG_IGN: the agent would
        // inherit that, while exec puts a handled signal back to its default.
        #[expect(unsafe_code, reason = "signal handlers have no safe form")]
        unsafe {
            libc::signal(signal, stay as extern "C" fn(libc::c_int) as libc::sighandler_t);
        }
    }
}
