//! The signals that ask this program to stop, watched on a thread of their own.
//!
//! Comes in: SIGINT, SIGTERM, SIGHUP. Goes out: stop requests to the server. Kept out: how it stops. The thread has its
//! own small runtime, so that a busy server delays no signal. The thread ends the process in any case: soon after a
//! second signal, and after a first one when the time to stop is over.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Requests that wait for the server. It takes two; more change nothing.
const REQUESTS_MAX: usize = 4;
/// The time the server has to exit by itself after its stop time is over, or after a second signal.
const LEAVING_TIME_MAX: Duration = Duration::from_secs(1);

/// A stop request, and the exit status to use if it is the second one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StopRequest {
    number: u8,
}

/// The receiving side.
#[derive(Debug)]
pub(crate) struct Signals {
    requests: mpsc::Receiver<StopRequest>,
}

#[derive(Debug)]
struct Watched {
    interrupt: Signal,
    terminate: Signal,
    /// `None` under `nohup`: the parent process ignored the signal, so the end of the terminal does not stop us.
    hang_up: Option<Signal>,
}

impl Signals {
    /// Starts the thread. From a first request on, the server has `stop_time_max` to stop.
    pub(crate) fn listen(stop_time_max: Duration) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let watched = {
            let _entered = runtime.enter();
            Watched::install()?
        };
        let (sender, requests) = mpsc::channel(REQUESTS_MAX);
        let watch = move || runtime.block_on(watched.watch(sender, stop_time_max));
        std::thread::Builder::new().name("signals".into()).spawn(watch).context("could not start a thread")?;
        Ok(Self { requests })
    }

    /// The next request to stop.
    pub(crate) async fn next(&mut self) -> StopRequest {
        match self.requests.recv().await {
            Some(request) => request,
            // The thread lives as long as the process.
            None => std::future::pending().await,
        }
    }
}

impl Watched {
    fn install() -> std::io::Result<Self> {
        // Read before any handler is installed: afterwards the original setting is lost.
        let hang_up = match agent_process::is_ignored(SignalKind::hangup().as_raw_value()) {
            true => None,
            false => Some(signal(SignalKind::hangup())?),
        };
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())?, hang_up })
    }

    async fn watch(mut self, requests: mpsc::Sender<StopRequest>, stop_time_max: Duration) {
        let mut exit_time: Option<(Instant, u8)> = None;
        loop {
            tokio::select! {
                request = self.next() => {
                    // The second request: the server exits at once, with this status.
                    let (time, status) = match exit_time {
                        None => (stop_time_max, 1),
                        Some(_) => (Duration::ZERO, request.status()),
                    };
                    exit_time = Some((Instant::now() + time + LEAVING_TIME_MAX, status));
                    // When the channel is full, the server has enough requests.
                    requests.try_send(request).ok();
                }
                status = exit_at(exit_time) => std::process::exit(status.into()),
            }
        }
    }

    /// Ctrl-C, a polite kill, or the end of the terminal.
    async fn next(&mut self) -> StopRequest {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            () = hung_up(self.hang_up.as_mut()) => SignalKind::hangup(),
        };
        StopRequest { number: u8::try_from(kind.as_raw_value()).unwrap_or_default() }
    }
}

async fn exit_at(at: Option<(Instant, u8)>) -> u8 {
    match at {
        Some((moment, status)) => {
            sleep_until(moment).await;
            status
        }
        None => std::future::pending().await,
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

impl StopRequest {
    /// As a shell reports a program that a signal ended.
    fn status(self) -> u8 {
        128 + self.number
    }

    pub(crate) fn exit_code(self) -> ExitCode {
        ExitCode::from(self.status())
    }
}
