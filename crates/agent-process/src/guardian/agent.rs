//! Isolates the guardian from the server's session and starts its agent.
//!
//! The `unsafe` code of the guardian: signal handlers and a hook between fork and exec have no safe form.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::Pid;

use crate::lifeline::AgentStdio;

/// Gives the guardian a session without a terminal, ignores signals meant for the server, adopts all descendants.
pub(super) fn isolate() -> io::Result<()> {
    // Without a terminal a tool that asks for a password fails instead of waiting for ever, and Ctrl-C reaches only the
    // server. The call fails for the leader of a group, which has already left the server's group.
    let _ = rustix::process::setsid();
    ignore_termination_signals();
    #[cfg(target_os = "linux")]
    {
        if let Ok(name) = std::ffi::CString::new(super::NAME) {
            let _ = rustix::thread::set_name(&name);
        }
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    }
    Ok(())
}

/// Starts the agent in its own process group on the given pipes. The guardian keeps none of them open.
pub(super) fn start(mut command: impl Iterator<Item = OsString>, stdio: AgentStdio) -> io::Result<Pid> {
    let program = command.next().ok_or(io::ErrorKind::InvalidInput)?;
    let [stdin, stdout, stderr] = stdio.map(Stdio::from);
    let mut agent = Command::new(program);
    agent.args(command).stdin(stdin).stdout(stdout).stderr(stderr).process_group(0);
    kill_with_guardian(&mut agent);
    let agent = agent.spawn()?;
    Ok(Pid::from_child(&agent))
}

/// The kernel kills the agent when the thread that started it ends: our main thread, which ends last.
#[cfg(target_os = "linux")]
fn kill_with_guardian(agent: &mut Command) {
    let guardian = rustix::process::getpid();
    let hook = move || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // If the guardian was killed before this call, no signal would arrive.
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
fn kill_with_guardian(_: &mut Command) {}

/// A service manager may send SIGTERM to all processes at once. Without this the guardian would exit before the agent's
/// descendants have ended.
fn ignore_termination_signals() {
    extern "C" fn do_nothing(_: libc::c_int) {}
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: the handler does nothing, so it is safe at any time. It is a handler and not SIG_IGN because the
        // agent would inherit SIG_IGN, while exec resets a handled signal to its default.
        #[expect(unsafe_code, reason = "signal handlers have no safe form")]
        unsafe {
            libc::signal(signal, do_nothing as extern "C" fn(libc::c_int) as libc::sighandler_t);
        }
    }
}
