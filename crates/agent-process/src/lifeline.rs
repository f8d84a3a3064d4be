//! The socket between the server and a guardian: its messages, and how the agent's pipes are passed.
//!
//! The server requests a stop; the guardian reports that the agent started, failed to start, or ended. Neither has to
//! report its own end: the other one reads end of file.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

use crate::command::StopLadder;
use crate::exit::ExitStatus;

/// The agent's ends of its stdin, stdout and stderr.
pub(crate) type AgentStdio = [OwnedFd; 3];

/// An event from the guardian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuardianEvent {
    /// The agent runs under this process id, which is also the id of its group.
    Started(i32),
    /// The system refused to run it, with this error number.
    Failed(i32),
    Exited(ExitStatus),
}

pub(crate) const EVENT_BYTES: usize = 5;
pub(crate) const STOP_BYTES: usize = 8;

impl GuardianEvent {
    pub(crate) fn encode(self) -> [u8; EVENT_BYTES] {
        let (tag, value) = match self {
            Self::Started(pid) => (b'S', pid),
            Self::Failed(errno) => (b'F', errno),
            Self::Exited(ExitStatus::Code(code)) => (b'C', code),
            Self::Exited(ExitStatus::Signal(signal)) => (b'K', signal),
            Self::Exited(ExitStatus::Lost) => (b'L', 0),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [tag, a, b, c, d]
    }

    pub(crate) fn decode([tag, a, b, c, d]: [u8; EVENT_BYTES]) -> Option<Self> {
        let value = i32::from_le_bytes([a, b, c, d]);
        Some(match tag {
            b'S' => Self::Started(value),
            b'F' => Self::Failed(value),
            b'C' => Self::Exited(ExitStatus::Code(value)),
            b'K' => Self::Exited(ExitStatus::Signal(value)),
            b'L' => Self::Exited(ExitStatus::Lost),
            _ => return None,
        })
    }
}

/// A request to the guardian: stop the agent like this. A second request can make it faster.
pub(crate) fn encode_stop(ladder: StopLadder) -> [u8; STOP_BYTES] {
    let milliseconds = |grace: Duration| u32::try_from(grace.as_millis()).unwrap_or(u32::MAX).to_le_bytes();
    let mut message = [0; STOP_BYTES];
    message[..4].copy_from_slice(&milliseconds(ladder.grace_eof));
    message[4..].copy_from_slice(&milliseconds(ladder.grace_term));
    message
}

pub(crate) fn decode_stop([a, b, c, d, e, f, g, h]: [u8; STOP_BYTES]) -> StopLadder {
    let duration = |bytes| Duration::from_millis(u32::from_le_bytes(bytes).into());
    StopLadder { grace_eof: duration([a, b, c, d]), grace_term: duration([e, f, g, h]) }
}

/// Sends the agent's pipes over the socket. They wait in the socket until the guardian reads them, so they are sent
/// before the guardian is started, and starting it needs no code between fork and exec.
pub(crate) fn send_stdio(socket: impl AsFd, stdio: &AgentStdio) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds = stdio.each_ref().map(AsFd::as_fd);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::empty())?;
    Ok(())
}

/// Receives the pipes sent by [`send_stdio`].
pub(crate) fn receive_stdio(socket: impl AsFd) -> io::Result<AgentStdio> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    // The agent must not inherit these descriptors a second time: it would keep its own stdin open for ever.
    #[cfg(target_os = "linux")]
    let flags = RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = RecvFlags::empty();
    rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut [0])], &mut ancillary, flags)?;
    let fds: Vec<OwnedFd> = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    #[cfg(not(target_os = "linux"))]
    for fd in &fds {
        rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC)?;
    }
    fds.try_into().map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write, pipe};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn messages_survive_a_round_trip() {
        for event in [
            GuardianEvent::Started(4_194_304),
            GuardianEvent::Failed(libc::ENOEXEC),
            GuardianEvent::Exited(ExitStatus::Code(-1)),
            GuardianEvent::Exited(ExitStatus::Signal(9)),
            GuardianEvent::Exited(ExitStatus::Lost),
        ] {
            assert_eq!(GuardianEvent::decode(event.encode()), Some(event));
        }
        assert_eq!(GuardianEvent::decode([0; EVENT_BYTES]), None);
        let ladder = StopLadder { grace_eof: Duration::from_millis(5), grace_term: Duration::from_secs(70_000) };
        assert_eq!(decode_stop(encode_stop(ladder)), ladder);
    }

    #[test]
    fn pipes_pass_through_the_socket() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (stdin, mut to_stdin) = pipe().unwrap();
        let (mut from_stdout, stdout) = pipe().unwrap();
        let (_, stderr) = pipe().unwrap();
        send_stdio(&ours, &[stdin.into(), stdout.into(), stderr.into()]).unwrap();

        let [stdin, stdout, _] = receive_stdio(&theirs).unwrap();
        to_stdin.write_all(b"in").unwrap();
        drop(to_stdin);
        std::fs::File::from(stdout).write_all(b"out").unwrap();
        assert_eq!(std::io::read_to_string(std::fs::File::from(stdin)).unwrap(), "in");
        let mut out = [0; 3];
        from_stdout.read_exact(&mut out).unwrap();
        assert_eq!(&out, b"out");
    }
}
