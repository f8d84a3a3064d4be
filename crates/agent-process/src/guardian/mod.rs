//! The guardian: one small process between us and each agent, so that nothing the agent starts is ever left behind.
//!
//! It is this program executed again. Its stdin is the lifeline, over which the agent's pipes arrive; it starts the
//! agent on them in a group of its own, keeps none of them, and waits. When asked to, when we are gone or when the
//! agent has ended by itself it walks down the [ladder] until no descendant is left, and leaves last.
//!
//! On Linux it is the reaper of all its descendants: who forks away from the agent, even into another session, becomes
//! the guardian's child and is found; and the agent dies with the guardian if that is killed. Elsewhere there is
//! neither: the agent's group is ended, and who has left the group is not found.
//!
//! Kept out: tokio and all the rest of the server. Two threads, a poll and a few signals.

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
use crate::lifeline::{self, EVENT_BYTES, Event, STOP_BYTES};
use crate::{open_files, procfs};

/// Shown by `ps` and `top`. Another name than the server's, so that who ends the server by name leaves us to clear up.
pub(crate) const NAME: &str = "agent-guardian";

/// The first argument by which a program knows that it is to be the guardian.
pub(crate) const ARGUMENT: &str = "__guardian";
/// In place of a limit on open files: the agent's is the same as the server's.
const AS_INHERITED: &str = "inherited";

/// Runs the guardian and never returns, if this process was executed as one; otherwise does nothing.
///
/// Has to be the first thing in `main` of every program that starts agents, before any runtime and any thread.
///
/// On Linux nothing an agent started survives the server or the guardian: what forks away is adopted and found, the agent
/// dies with a guardian that is killed, and the server ends the rest. Only if both are killed at once, what the agent
/// itself had started stays until the next server ends it with [`end_leftovers`](crate::end_leftovers). On other systems
/// the agent's process group is ended, also when we are killed; a descendant that has left the group is not found there.
pub fn guardian_entry() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == ARGUMENT) {
        std::process::exit(i32::from(run(arguments).is_err()));
    }
}

/// The arguments after the first: the graces in milliseconds, the soft limit on open files that the agent gets (or
/// [`AS_INHERITED`]), then the agent's command.
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
    // The guardian itself needs a handful, so it may as well have the agent's limit.
    if let Some(limit) = open_files.to_str().and_then(|limit| limit.parse().ok()) {
        open_files::set_soft(limit);
    }
    agent::stand_apart()?;
    let mut lifeline = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let stdio = lifeline::receive_stdio(&lifeline)?;
    let agent = match agent::start(arguments, stdio) {
        Ok(agent) => agent,
        Err(error) => {
            return lifeline.write_all(&Event::Failed(error.raw_os_error().unwrap_or(libc::EIO)).encode());
        }
    };
    let reaper = reaper::start(agent)?;
    // From here on nothing is an error: whoever cannot be told does not keep us from clearing up.
    let _ = lifeline.write_all(&Event::Started(agent.as_raw_pid()).encode());
    Guardian { agent, reaper, lifeline: Some(lifeline), ladder: Ladder::new(StopLadder { grace_eof, grace_term }) }
        .watch();
    Ok(())
}

struct Guardian {
    /// Also the id of its group.
    agent: Pid,
    /// Says how the agent ended, and by its own end that no child is left.
    reaper: io::PipeReader,
    /// None once the server is gone.
    lifeline: Option<UnixStream>,
    ladder: Ladder,
}

impl Guardian {
    /// Returns when nothing that descends from the agent is left.
    fn watch(mut self) {
        let mut asked = Vec::new();
        let mut any_child = true;
        while any_child || group_lives(self.agent) {
            let (server_spoke, reaper_spoke) = self.wait(any_child);
            if reaper_spoke {
                any_child = self.hear_reaper();
            }
            if server_spoke {
                self.hear_server(&mut asked);
            }
            match self.ladder.due(Instant::now()) {
                Some(Action::Terminate) => self.terminate(),
                Some(Action::Kill) => self.kill(),
                None => {}
            }
        }
    }

    /// Until somebody speaks or the ladder is due.
    fn wait(&self, any_child: bool) -> (bool, bool) {
        let left = self.ladder.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let reaper = any_child.then_some(&self.reaper);
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(2);
        fds.extend(self.lifeline.as_ref().map(|lifeline| PollFd::new(lifeline, PollFlags::IN)));
        fds.extend(reaper.map(|reaper| PollFd::new(reaper, PollFlags::IN)));
        // An interruption looks like silence and is asked again.
        if rustix::event::poll(&mut fds, timeout.as_ref()).is_err() {
            return (false, false);
        }
        let mut spoke = fds.iter().map(|fd| !fd.revents().is_empty());
        let server_spoke = self.lifeline.is_some() && spoke.next().unwrap_or(false);
        (server_spoke, spoke.next().unwrap_or(false))
    }

    /// False when the last child is gone.
    fn hear_reaper(&mut self) -> bool {
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

    fn hear_server(&mut self, asked: &mut Vec<u8>) {
        let Some(lifeline) = &mut self.lifeline else { return };
        let mut bytes = [0; STOP_BYTES];
        match lifeline.read(&mut bytes) {
            Ok(read @ 1..) => asked.extend_from_slice(&bytes[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => {
                self.lifeline = None;
                self.ladder.stop_as_orphan(Instant::now());
            }
        }
        while let Some((message, rest)) = asked.split_first_chunk() {
            self.ladder.stop(lifeline::decode_stop(*message), Instant::now());
            *asked = rest.to_vec();
        }
    }

    /// The agent ends its own children in its own way; what is left of them once it is gone hears it from us.
    fn terminate(&self) {
        self.signal_group(Signal::TERM);
        if self.ladder.is_agent_gone() {
            self.signal_descendants(Signal::TERM);
        }
        // Who is stopped would hear of it only when continued.
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

fn group_lives(group: Pid) -> bool {
    rustix::process::test_kill_process_group(group) != Err(Errno::SRCH)
}
