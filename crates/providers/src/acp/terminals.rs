//! Commands an agent runs through us (`terminal/*`), with a bound on what is kept of their output.
//!
//! They run under a guardian of their own, so they are gone when they are released, when their turn ends, when the
//! agent ends, and when we do.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use agent_process::{
    AgentCommand, AgentProcess, ExitReport, ExitStatus, LineError, LineReader, ProcessHandle, StopLadder,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::files;
use super::router::{SessionInput, SessionLink};

/// What is kept of a command's output when the agent does not say.
const OUTPUT_BYTES_DEFAULT: usize = 1024 * 1024;
const OUTPUT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A command that never ends its line.
const LINE_BYTES_MAX: usize = 1024 * 1024;
const TERMINALS_MAX: usize = 64;
/// A killed command gets a moment to clean up.
const KILL: StopLadder = StopLadder { grace_eof: Duration::ZERO, grace_term: Duration::from_secs(1) };

#[derive(Debug, Default)]
pub(crate) struct Terminals {
    next: AtomicU64,
    running: Mutex<HashMap<String, Arc<Terminal>>>,
}

#[derive(Debug)]
pub(crate) struct Terminal {
    session: String,
    handle: ProcessHandle,
    output: Mutex<Kept>,
    exit: watch::Sender<Option<acp::TerminalExitStatus>>,
    /// The command is not wanted any more.
    released: CancellationToken,
}

/// The end of an output, at most so many bytes of it.
#[derive(Debug)]
struct Kept {
    bytes: VecDeque<u8>,
    limit_bytes: usize,
    truncated: bool,
}

impl Terminals {
    /// Starts a command. Its output has to be read by [`pump`].
    pub(crate) async fn create(
        &self,
        request: acp::CreateTerminalRequest,
        link: &SessionLink,
        like: &AgentCommand,
    ) -> Result<(String, Arc<Terminal>, LineReader), String> {
        if self.lock().len() >= TERMINALS_MAX {
            return Err(format!("more than {TERMINALS_MAX} terminals are open"));
        }
        let directory =
            files::working_directory(request.cwd.as_deref(), &link.directory).map_err(|error| error.to_string())?;
        let limit_bytes = request
            .output_byte_limit
            .map_or(OUTPUT_BYTES_DEFAULT, |limit| usize::try_from(limit).unwrap_or(usize::MAX).min(OUTPUT_BYTES_MAX));
        let session = request.session_id.0.to_string();
        let command = command(request).current_dir(directory).guardian(&like.guardian);
        let process = AgentProcess::spawn(command).await.map_err(|error| error.to_string())?;
        let (reader, stdin, handle) = process.split();
        stdin.close();
        let id = format!("terminal-{}", self.next.fetch_add(1, Ordering::Relaxed) + 1);
        let output = Mutex::new(Kept { bytes: VecDeque::new(), limit_bytes, truncated: false });
        let terminal = Arc::new(Terminal {
            session,
            handle,
            output,
            exit: watch::Sender::new(None),
            released: CancellationToken::new(),
        });
        self.lock().insert(id.clone(), Arc::clone(&terminal));
        Ok((id, terminal, reader))
    }

    pub(crate) fn get(&self, session: &str, id: &str) -> Option<Arc<Terminal>> {
        self.lock().get(id).filter(|terminal| terminal.session == session).cloned()
    }

    /// Ends the command, if it runs, and forgets its output.
    pub(crate) fn release(&self, session: &str, id: &str) -> Option<Arc<Terminal>> {
        let mut running = self.lock();
        running.get(id).filter(|terminal| terminal.session == session)?;
        let terminal = running.remove(id)?;
        terminal.released.cancel();
        Some(terminal)
    }

    /// Ends and forgets all of a session's terminals.
    pub(crate) fn release_session(&self, session: &str) {
        self.release_where(|terminal| terminal.session == session);
    }

    pub(crate) fn release_all(&self) {
        self.release_where(|_| true);
    }

    fn release_where(&self, is_meant: impl Fn(&Terminal) -> bool) {
        self.lock().retain(|_, terminal| {
            let released = is_meant(terminal);
            if released {
                terminal.released.cancel();
            }
            !released
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Terminal>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Terminal {
    pub(crate) fn output(&self) -> acp::TerminalOutputResponse {
        let kept = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.bytes.iter().copied().collect();
        acp::TerminalOutputResponse::new(String::from_utf8_lossy(&bytes), kept.truncated)
            .exit_status(self.exit.borrow().clone())
    }

    pub(crate) async fn wait(&self) -> acp::TerminalExitStatus {
        let mut exit = self.exit.subscribe();
        match exit.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(status)) => status.clone(),
            _ => acp::TerminalExitStatus::new(),
        }
    }

    pub(crate) async fn kill(&self) {
        self.handle.stop(KILL).await;
    }
}

/// Reads a command's output to its end, keeps the last of it and shows it to the session. Ends the command when
/// its terminal is released.
pub(crate) async fn pump(id: String, terminal: Arc<Terminal>, mut reader: LineReader, link: SessionLink) {
    let handle = &terminal.handle;
    loop {
        let line = tokio::select! {
            () = terminal.released.cancelled() => break,
            line = reader.next_line() => line,
        };
        let line = match line {
            Ok(Some(line)) => line,
            Ok(None) | Err(LineError::Io(_)) => break,
            Err(LineError::TooLong(error)) => {
                tracing::info!(%error, "a command's line was left out");
                continue;
            }
        };
        let mut text = line.to_str_lossy().into_owned();
        if line.is_ended() {
            text.push('\n');
        }
        terminal.output.lock().unwrap_or_else(PoisonError::into_inner).push(text.as_bytes());
        let room = link.room_for(text.len()).await;
        drop(link.inputs.send(SessionInput::Terminal { id: id.clone(), text, room }).await);
    }
    let report = tokio::select! {
        () = terminal.released.cancelled() => handle.stop(KILL).await,
        report = handle.exited() => report,
    };
    terminal.exit.send_replace(Some(exit_status(&report)));
}

impl Kept {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let excess = self.bytes.len().saturating_sub(self.limit_bytes);
        if excess > 0 {
            self.truncated = true;
            self.bytes.drain(..excess);
            // Half a letter is no letter.
            while self.bytes.front().is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000) {
                self.bytes.pop_front();
            }
        }
    }
}

/// Its errors are part of its output, so a shell ties the two together; the words stay words. Some agents put a whole
/// line into the command, which is what shells are for.
fn command(request: acp::CreateTerminalRequest) -> AgentCommand {
    let is_line = request.args.is_empty() && request.command.contains(char::is_whitespace);
    let command = if is_line {
        AgentCommand::new("/bin/sh").args(["-c", "exec 2>&1; eval \"$1\"", "sh"]).arg(request.command)
    } else {
        AgentCommand::new("/bin/sh").args(["-c", "exec \"$@\" 2>&1", "sh"]).arg(request.command).args(request.args)
    };
    let command = command.line_bytes_max(LINE_BYTES_MAX).orphan_ladder(KILL);
    request.env.into_iter().fold(command, |command, variable| command.env(variable.name, variable.value))
}

fn exit_status(report: &ExitReport) -> acp::TerminalExitStatus {
    let status = acp::TerminalExitStatus::new();
    match report.status {
        ExitStatus::Code(code) => status.exit_code(u32::try_from(code).ok()),
        ExitStatus::Signal(signal) => status.signal(signal.to_string()),
        ExitStatus::Lost => status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_output_is_kept_and_no_letter_is_cut() {
        let mut kept = Kept { bytes: VecDeque::new(), limit_bytes: 6, truncated: false };
        kept.push("aé€".as_bytes());
        assert!(!kept.truncated);
        kept.push(b"xy");
        assert!(kept.truncated);
        let bytes: Vec<u8> = kept.bytes.into_iter().collect();
        assert_eq!(String::from_utf8(bytes).unwrap(), "€xy");
    }
}
