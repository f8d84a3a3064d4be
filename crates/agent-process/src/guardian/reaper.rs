//! Waits for children, the agent and whoever it left to us, so that none stays a zombie.
//!
//! Goes out, over a pipe: how the agent ended; then, by the pipe's own end, that no child is left. Nobody can be added
//! after that: only descendants become children, and there is none.

use std::io::{self, PipeReader, PipeWriter, Write, pipe};

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};

use crate::exit::ExitStatus;
use crate::lifeline::Event;

/// It only waits; the default stack would be two megabytes of nothing per agent.
const STACK_BYTES: usize = 64 * 1024;

/// A thread because waiting for a child and for a socket cannot be one call without signal handlers.
pub(super) fn start(agent: Pid) -> io::Result<PipeReader> {
    let (reader, writer) = pipe()?;
    std::thread::Builder::new().name("reaper".into()).stack_size(STACK_BYTES).spawn(move || reap(agent, writer))?;
    Ok(reader)
}

fn reap(agent: Pid, mut reports: PipeWriter) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == agent => {
                let _ = reports.write_all(&Event::Exited(exit_status(status)).encode());
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
