//! The guardian: one small process between us and each agent, so that nothing the agent starts is ever left behind.
//!
//! It is this program executed again. Its stdin is the lifeline, a socket over which it receives the agent's pipes. It
//! starts the agent on these pipes in its own process group, closes its copies, and waits. On request, when the server
//! is gone, or when the agent has exited, it goes through the [ladder] until no descendant is left, and exits last.
//!
//! On Linux the guardian is the subreaper of its descendants: a process that forks away from the agent, even into
//! another session, becomes a child of the guardian and is found. The kernel also kills the agent when the guardian is
//! killed. Other systems have neither: there the agent's process group is ended, and a process that has left the group
//! is not found.
//!
//! Kept out: tokio and the code of the server. It has two threads, a poll and a few signals.

mod agent;
mod ladder;
mod reaper;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use self::ladder::{Action, Ladder};
use crate::command::StopLadder;
use crate::lifeline::{self, EVENT_BYTES, GuardianEvent, STOP_BYTES};
use crate::{open_files, procfs};

/// Shown by `ps` and `top`. It differs from the server's name, so that killing the server by name leaves the guardian
/// to clean up.
pub(crate) const NAME: &str = "agent-guardian";

/// The first argument that marks a process as a guardian.
pub(crate) const ARGUMENT: &str = "__guardian";
/// In place of a limit on open files: the agent has the same limit as the server.
const AS_INHERITED: &str = "inherited";

/// Runs the guardian and never returns, if this process was executed as one; otherwise does nothing.
///
/// Has to be the first thing in `main` of every program that starts agents, before any runtime and any thread.
///
/// On Linux no process of an agent survives the server or the guardian: processes that fork away are adopted and found,
/// the agent is killed with its guardian, and the server ends the remaining ones. Only if both are killed at the same
/// time, descendants of the agent stay until the next server ends them with [`end_leftovers`](crate::end_leftovers). On
/// other systems the agent's process group is ended, also when the server is killed; a descendant that has left the
/// group is not found.
pub fn guardian_entry() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == ARGUMENT) {
        std::process::exit(i32::from(run(arguments).is_err()));
    }
}

/// The first arguments of a guardian: its mark, the grace times in milliseconds, and the soft limit on open files of
/// the agent (or [`AS_INHERITED`]). The agent's command follows.
pub(crate) fn arguments(orphan_ladder: StopLadder, open_files: Option<u64>) -> [OsString; 4] {
    let milliseconds = |grace: Duration| grace.as_millis().min(u32::MAX.into()).to_string().into();
    let open_files = open_files.map_or(AS_INHERITED.into(), |limit| limit.to_string().into());
    [ARGUMENT.into(), milliseconds(orphan_ladder.grace_eof), milliseconds(orphan_ladder.grace_term), open_files]
}

fn run(mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    let mut grace = || {
        let milliseconds: u32 = arguments.next()?.to_str()?.parse().ok()?;
        Some(Duration::from_millis(milliseconds.into()))
    };
    let (Some(grace_eof), Some(grace_term)) = (grace(), grace()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let open_files = arguments.next().ok_or(io::ErrorKind::InvalidInput)?;
    // The guardian needs only a few descriptors, so it can use the agent's limit.
    if let Some(limit) = open_files.to_str().and_then(|limit| limit.parse().ok()) {
        open_files::set_soft(limit);
    }
    agent::isolate()?;
    let mut lifeline = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let stdio = lifeline::receive_stdio(&lifeline)?;
    let agent = match agent::start(arguments, stdio) {
        Ok(agent) => agent,
        Err(error) => {
            return lifeline.write_all(&GuardianEvent::Failed(error.raw_os_error().unwrap_or(libc::EIO)).encode());
        }
    };
    let reaper = reaper::start(agent)?;
    // From here on errors are ignored: a server that cannot be notified must not prevent the cleanup.
    let _ = lifeline.write_all(&GuardianEvent::Started(agent.as_raw_pid()).encode());
    Guardian { agent, reaper, lifeline: Some(lifeline), ladder: Ladder::new(StopLadder { grace_eof, grace_term }) }
        .watch();
    Ok(())
}

struct Guardian {
    /// Also the id of its process group.
    agent: Pid,
    /// Reports how the agent ended. Its end of file means that no child is left.
    reaper: io::PipeReader,
    /// `None` once the server is gone.
    lifeline: Option<UnixStream>,
    ladder: Ladder,
}

impl Guardian {
    /// Returns when no descendant of the agent is left.
    fn watch(mut self) {
        let mut received = Vec::new();
        let mut any_child = true;
        while any_child || group_exists(self.agent) {
            let (from_server, from_reaper) = self.wait(any_child);
            if from_reaper {
                any_child = self.on_reaper();
            }
            if from_server {
                self.on_server(&mut received);
            }
            match self.ladder.due(Instant::now()) {
                Some(Action::Terminate) => self.terminate(),
                Some(Action::Kill) => self.kill(),
                None => {}
            }
        }
    }

    /// Waits for the server, the reaper or the next step of the ladder. Returns whether the server and the reaper have
    /// sent something.
    fn wait(&self, any_child: bool) -> (bool, bool) {
        let left = self.ladder.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let reaper = any_child.then_some(&self.reaper);
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(2);
        fds.extend(self.lifeline.as_ref().map(|lifeline| PollFd::new(lifeline, PollFlags::IN)));
        fds.extend(reaper.map(|reaper| PollFd::new(reaper, PollFlags::IN)));
        // After an interruption the caller polls again.
        if rustix::event::poll(&mut fds, timeout.as_ref()).is_err() {
            return (false, false);
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let from_server = self.lifeline.is_some() && ready.next().unwrap_or(false);
        (from_server, ready.next().unwrap_or(false))
    }

    /// False when the last child is gone.
    fn on_reaper(&mut self) -> bool {
        let mut event = [0; EVENT_BYTES];
        if self.reaper.read_exact(&mut event).is_err() {
            return false;
        }
        if let Some(lifeline) = &mut self.lifeline {
            let _ = lifeline.write_all(&event);
        }
        self.ladder.agent_ended(Instant::now());
        true
    }

    fn on_server(&mut self, received: &mut Vec<u8>) {
        let Some(lifeline) = &mut self.lifeline else { return };
        let mut bytes = [0; STOP_BYTES];
        match lifeline.read(&mut bytes) {
            Ok(read @ 1..) => received.extend_from_slice(&bytes[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => {
                self.lifeline = None;
                self.ladder.stop_as_orphan(Instant::now());
            }
        }
        while let Some((message, remaining)) = received.split_first_chunk() {
            self.ladder.stop(lifeline::decode_stop(*message), Instant::now());
            *received = remaining.to_vec();
        }
    }

    /// The agent ends its own children in its own way. Children that outlive it get the signal from us.
    fn terminate(&self) {
        self.signal_group(Signal::TERM);
        if self.ladder.is_agent_gone() {
            self.signal_descendants(Signal::TERM);
        }
        // A stopped process receives the signal only when it is continued.
        self.signal_group(Signal::CONT);
    }

    fn kill(&self) {
        self.signal_group(Signal::KILL);
        self.signal_descendants(Signal::KILL);
    }

    fn signal_group(&self, signal: Signal) {
        let _ = rustix::process::kill_process_group(self.agent, signal);
    }

    fn signal_descendants(&self, signal: Signal) {
        for pid in procfs::descendants(rustix::process::getpid()) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

fn group_exists(group: Pid) -> bool {
    rustix::process::test_kill_process_group(group) != Err(Errno::SRCH)
}
