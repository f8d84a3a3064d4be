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
    /// None under `nohup`: who started us ignored it, so that the end of the terminal is not ours.
    hang_up: Option<Signal>,
}

impl Signals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        // Asked before anything is installed: afterwards the answer is gone.
        let hang_up = match agent_process::is_ignored(SignalKind::hangup().as_raw_value()) {
            true => None,
            false => Some(signal(SignalKind::hangup())?),
        };
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())?, hang_up })
    }

    /// Ctrl-C, a polite kill, or the end of the terminal.
    pub(crate) async fn next(&mut self) -> Asked {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            () = hung_up(self.hang_up.as_mut()) => SignalKind::hangup(),
        };
        Asked { number: u8::try_from(kind.as_raw_value()).unwrap_or_default() }
    }
}

async fn hung_up(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

impl Asked {
    /// As a shell reports a program that a signal ended.
    pub(crate) fn exit_code(self) -> ExitCode {
        ExitCode::from(128 + self.number)
    }
}
