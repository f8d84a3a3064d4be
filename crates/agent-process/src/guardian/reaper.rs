//! Waits for all children, the agent and adopted descendants, so that none stays a zombie.
//!
//! Goes out, over a pipe: how the agent ended, then end of file when no child is left. No child can appear after that,
//! because only descendants become children.

use std::io::{self, PipeReader, PipeWriter, Write, pipe};

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};

use crate::exit::ExitStatus;
use crate::lifeline::GuardianEvent;

/// The thread only waits; the default stack would reserve two megabytes per agent.
const STACK_BYTES: usize = 64 * 1024;

/// This is a thread because one call cannot wait for both a child and a socket without signal handlers.
pub(super) fn start(agent: Pid) -> io::Result<PipeReader> {
    let (reader, writer) = pipe()?;
    std::thread::Builder::new().name("reaper".into()).stack_size(STACK_BYTES).spawn(move || reap(agent, writer))?;
    Ok(reader)
}

fn reap(agent: Pid, mut reports: PipeWriter) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == agent => {
                let _ = reports.write_all(&GuardianEvent::Exited(exit_status(status)).encode());
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn exit_status(status: WaitStatus) -> ExitStatus {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ExitStatus::Code(code),
        (None, Some(signal)) => ExitStatus::Signal(signal),
        (None, None) => ExitStatus::Lost,
    }
}
