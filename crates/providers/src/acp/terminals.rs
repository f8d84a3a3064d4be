//! Commands an agent runs through us (`terminal/*`), with a bound on what is kept of their output.
//!
//! They run under a guardian of their own, so they are gone when they are released, when their turn ends, when the
//! agent ends, and when we do.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use agent_process::{AgentCommand, AgentProcess, ExitReport, ExitStatus, LineReader, ProcessHandle, StopLadder};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::files;
use super::router::{AgentInput, SessionLink};

/// What is kept of a command's output when the agent does not state it.
const OUTPUT_BYTES_DEFAULT: usize = 1024 * 1024;
const OUTPUT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What is kept of the output of all terminals of one agent: a few of the longest, or all of them with what is usual.
const OUTPUTS_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What stays of an output when that is exceeded. Of all terminals together it must fit.
const CUT_BYTES: usize = 64 * 1024;
/// Of one agent.
const TERMINALS_MAX: usize = 64;
const _: () = assert!(TERMINALS_MAX * CUT_BYTES < OUTPUTS_BYTES_MAX);
/// A killed command gets a moment to clean up.
const KILL: StopLadder = StopLadder { grace_eof: Duration::ZERO, grace_term: Duration::from_secs(1) };

#[derive(Debug, Default)]
pub(crate) struct Terminals {
    next: AtomicU64,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    running: HashMap<String, Arc<Terminal>>,
    /// Those whose command is just being started, by their id: whose they are, and how they learn that they are not
    /// wanted any more.
    starting: HashMap<String, (String, CancellationToken)>,
}

/// A terminal to be. Its command must not outlive a turn that ends before the command has begun.
#[derive(Debug)]
pub(crate) struct Starting {
    terminals: Arc<Terminals>,
    number: u64,
    id: String,
    session: String,
    released: CancellationToken,
}

#[derive(Debug)]
pub(crate) struct Terminal {
    /// Counts up: who has a lower one was opened before.
    number: u64,
    session: String,
    /// Those it shares the room for outputs with.
    all: Weak<Terminals>,
    handle: ProcessHandle,
    output: Mutex<OutputTail>,
    exit: watch::Sender<Option<acp::TerminalExitStatus>>,
    /// The command is not wanted any more.
    released: CancellationToken,
}

/// The end of an output, at most so many bytes of it.
#[derive(Debug)]
struct OutputTail {
    bytes: VecDeque<u8>,
    limit_bytes: usize,
    truncated: bool,
}

impl Terminals {
    /// Takes a place for a terminal; from now on it can be released.
    pub(crate) fn reserve(self: &Arc<Self>, session: &str) -> Result<Starting, String> {
        let mut open = self.lock();
        if open.running.len() + open.starting.len() >= TERMINALS_MAX {
            return Err(format!("{TERMINALS_MAX} terminals are open: release one first"));
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("terminal-{number}");
        let released = CancellationToken::new();
        open.starting.insert(id.clone(), (session.to_owned(), released.clone()));
        Ok(Starting { terminals: Arc::clone(self), number, id, session: session.to_owned(), released })
    }

    pub(crate) fn get(&self, session: &str, id: &str) -> Option<Arc<Terminal>> {
        self.lock().running.get(id).filter(|terminal| terminal.session == session).cloned()
    }

    /// Ends the command, if it runs, and forgets its output.
    pub(crate) fn release(&self, session: &str, id: &str) -> Option<Arc<Terminal>> {
        let mut open = self.lock();
        open.running.get(id).filter(|terminal| terminal.session == session)?;
        let terminal = open.running.remove(id)?;
        terminal.released.cancel();
        Some(terminal)
    }

    /// Ends and forgets all of a session's terminals.
    pub(crate) fn release_session(&self, session: &str) {
        self.release_where(|of| of == session);
    }

    pub(crate) fn release_all(&self) {
        self.release_where(|_| true);
    }

    fn release_where(&self, is_meant: impl Fn(&str) -> bool) {
        let mut open = self.lock();
        for (_, released) in open.starting.values().filter(|(session, _)| is_meant(session)) {
            released.cancel();
        }
        open.running.retain(|_, terminal| {
            let released = is_meant(&terminal.session);
            if released {
                terminal.released.cancel();
            }
            !released
        });
    }

    /// Cuts outputs until they fit together: first those of commands that have ended, then the others, each time the
    /// oldest first. What is left is marked as cut.
    fn make_room(&self) {
        let open = self.lock();
        let mut terminals: Vec<_> = open.running.values().collect();
        let mut kept_bytes: usize = terminals.iter().map(|terminal| terminal.kept().size_bytes()).sum();
        if kept_bytes <= OUTPUTS_BYTES_MAX {
            return;
        }
        terminals.sort_by_key(|terminal| (terminal.exit.borrow().is_none(), terminal.number));
        for terminal in terminals {
            let mut kept = terminal.kept();
            kept_bytes -= kept.size_bytes();
            kept.cut(CUT_BYTES);
            kept_bytes += kept.size_bytes();
            if kept_bytes <= OUTPUTS_BYTES_MAX {
                return;
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Starting {
    /// Starts the command. Its output has to be read by [`pump`].
    pub(crate) async fn start(
        self,
        request: acp::CreateTerminalRequest,
        link: &SessionLink,
        like: &AgentCommand,
    ) -> Result<(String, Arc<Terminal>, LineReader), String> {
        let directory =
            files::working_directory(request.cwd.as_deref(), &link.directory).map_err(|error| error.to_string())?;
        let limit_bytes = request
            .output_byte_limit
            .map_or(OUTPUT_BYTES_DEFAULT, |limit| usize::try_from(limit).unwrap_or(usize::MAX).min(OUTPUT_BYTES_MAX));
        let command = command(request).current_dir(directory).guardian(&like.guardian);
        let process = AgentProcess::spawn(command).await.map_err(|error| error.to_string())?;
        let (reader, stdin, handle) = process.split();
        stdin.close();
        let terminal = Arc::new(Terminal {
            number: self.number,
            session: self.session.clone(),
            all: Arc::downgrade(&self.terminals),
            handle,
            output: Mutex::new(OutputTail { bytes: VecDeque::new(), limit_bytes, truncated: false }),
            exit: watch::Sender::new(None),
            released: self.released.clone(),
        });
        let mut open = self.terminals.lock();
        // Dropped, the command is ended with all it has begun.
        if self.released.is_cancelled() {
            return Err("its turn is over".to_owned());
        }
        open.running.insert(self.id.clone(), Arc::clone(&terminal));
        drop(open);
        Ok((self.id.clone(), terminal, reader))
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.terminals.lock().starting.remove(&self.id);
    }
}

impl Terminal {
    pub(crate) fn output(&self) -> acp::TerminalOutputResponse {
        let kept = self.kept();
        let bytes: Vec<u8> = kept.bytes.iter().copied().collect();
        acp::TerminalOutputResponse::new(String::from_utf8_lossy(&bytes), kept.truncated)
            .exit_status(self.exit.borrow().clone())
    }

    fn keep(&self, text: &str) {
        self.kept().push(text.as_bytes());
        if let Some(all) = self.all.upgrade() {
            all.make_room();
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, OutputTail> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
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
    let mut letters = Letters::default();
    loop {
        let chunk = tokio::select! {
            () = terminal.released.cancelled() => break,
            chunk = reader.next_chunk() => chunk,
        };
        let (text, is_over) = match chunk {
            Ok(Some(chunk)) => (letters.take(&chunk), false),
            Ok(None) | Err(_) => (letters.finish(), true),
        };
        if text.is_empty() {
            match is_over {
                true => break,
                false => continue,
            }
        }
        terminal.keep(&text);
        let room = link.room_for(text.len()).await;
        drop(link.inputs.send(AgentInput::Terminal { id: id.clone(), text, room }).await);
        if is_over {
            break;
        }
    }
    let report = tokio::select! {
        () = terminal.released.cancelled() => handle.stop(KILL).await,
        report = handle.exited() => report,
    };
    terminal.exit.send_replace(Some(exit_status(&report)));
}

impl OutputTail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.keep_last(self.limit_bytes);
    }

    /// Gives the memory of all but the end back.
    fn cut(&mut self, bytes: usize) {
        self.keep_last(bytes);
        self.bytes.shrink_to_fit();
    }

    /// In memory, which may be more than is filled.
    fn size_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    fn keep_last(&mut self, bytes: usize) {
        let excess = self.bytes.len().saturating_sub(bytes);
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

/// Bytes in any chunks as text: a letter that is cut by the end of a chunk waits for the rest of it.
#[derive(Debug, Default)]
struct Letters(Vec<u8>);

impl Letters {
    fn take(&mut self, chunk: &[u8]) -> String {
        self.0.extend_from_slice(chunk);
        let rest = self.0.split_off(self.0.len() - cut_bytes(&self.0));
        String::from_utf8_lossy(&std::mem::replace(&mut self.0, rest)).into_owned()
    }

    fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.0)).into_owned()
    }
}

/// How many bytes at the end are the beginning of a letter.
fn cut_bytes(bytes: &[u8]) -> usize {
    let is_first = |byte: u8| byte & 0b1100_0000 != 0b1000_0000;
    let tails = (1..=bytes.len().min(3)).map(|length| &bytes[bytes.len() - length..]);
    match tails.into_iter().find(|tail| is_first(tail[0])) {
        Some(tail) if std::str::from_utf8(tail).is_err_and(|error| error.error_len().is_none()) => tail.len(),
        _ => 0,
    }
}

/// Its errors are part of its output, so a shell ties the two together; the arguments stay separate. Some agents put a
/// whole line into the command, which is what shells are for.
fn command(request: acp::CreateTerminalRequest) -> AgentCommand {
    let is_line = request.args.is_empty() && request.command.contains(char::is_whitespace);
    let command = if is_line {
        AgentCommand::new("/bin/sh").args(["-c", "exec 2>&1; eval \"$1\"", "sh"]).arg(request.command)
    } else {
        AgentCommand::new("/bin/sh").args(["-c", "exec \"$@\" 2>&1", "sh"]).arg(request.command).args(request.args)
    };
    let command = command.orphan_ladder(KILL);
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
    fn any_chunking_gives_the_same_text() {
        let output = "aé€🦀".bytes().chain([0xff, b'x', 0xe2, 0x82]).collect::<Vec<u8>>();
        let whole = String::from_utf8_lossy(&output);
        for size in 1..=output.len() {
            let mut letters = Letters::default();
            let mut text: String = output.chunks(size).map(|chunk| letters.take(chunk)).collect();
            text += &letters.finish();
            assert_eq!(text, whole, "{size} bytes at once");
        }
    }

    #[test]
    fn the_end_of_an_output_is_kept_and_no_letter_is_cut() {
        let mut kept = OutputTail { bytes: VecDeque::new(), limit_bytes: 6, truncated: false };
        kept.push("aé€".as_bytes());
        assert!(!kept.truncated);
        kept.push(b"xy");
        assert!(kept.truncated);
        let bytes: Vec<u8> = kept.bytes.into_iter().collect();
        assert_eq!(String::from_utf8(bytes).unwrap(), "€xy");
    }
}
