//! The ways to ask this program to stop.

use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What was asked, and the status to leave with when it is asked a second time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    number: u8,
}

#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Ctrl-C, a polite kill, or the end of the terminal.
    pub(crate) async fn next(&mut self) -> Asked {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hang_up.recv() => SignalKind::hangup(),
        };
        Asked { number: u8::try_from(kind.as_raw_value()).unwrap_or_default() }
    }
}

impl Asked {
    /// As a shell reports a program that a signal ended.
    pub(crate) fn exit_code(self) -> ExitCode {
        ExitCode::from(128 + self.number)
    }
}
