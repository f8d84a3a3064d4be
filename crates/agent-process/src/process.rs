//! Starting an agent under its guardian.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Pid;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::command::AgentCommand;
use crate::error::SpawnError;
use crate::guardian;
use crate::handle::{ProcessHandle, Shared};
use crate::leftovers::new_mark;
use crate::lifeline::{self, AgentStdio, GuardianEvent};
use crate::monitor::{Lifeline, Monitor, ProcessPhase};
use crate::open_files::{self, ProcessSlot};
use crate::procfs;
use crate::reader::{LineReader, Stdout};
use crate::stderr::Stderr;
use crate::writer::{self, LineWriter};

/// The time for the guardian to start and run the agent: milliseconds, unless the machine is overloaded.
const GUARDIAN_START: Duration = Duration::from_secs(30);

/// A running agent: what it reads, what it writes, and the handle to it.
#[derive(Debug)]
pub struct AgentProcess {
    pub pid: u32,
    pub stdin: LineWriter,
    pub stdout: LineReader,
    pub handle: ProcessHandle,
}

impl AgentProcess {
    /// Starts an agent. Returns once it runs or could not be run; only its first answer shows whether it works.
    ///
    /// Dropping the future ends what it has started.
    pub async fn spawn(command: AgentCommand) -> Result<Self, SpawnError> {
        let path = command.resolve()?;
        if !command.current_dir.is_dir() {
            return Err(SpawnError::NoDirectory { path: command.current_dir });
        }
        let program = command.program.to_string_lossy().into_owned();
        let slot = ProcessSlot::take().ok_or(SpawnError::TooMany)?;
        let mark = new_mark();
        let failed = |source| SpawnError::Guardian { program: program.clone(), source };
        let (ours, theirs) = pipes().map_err(failed)?;
        let (guardian, mut lifeline) = start_guardian(&command, &path, &mark, theirs).map_err(failed)?;

        let agent = match tokio::time::timeout(GUARDIAN_START, lifeline.event()).await {
            Ok(Some(GuardianEvent::Started(pid))) => {
                Pid::from_raw(pid).ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))
            }
            Ok(Some(GuardianEvent::Failed(errno))) => Err(refused(path, errno)),
            Ok(_) => Err(failed(io::Error::other("its program does not call guardian_entry, or it was killed"))),
            Err(_) => Err(failed(io::ErrorKind::TimedOut.into())),
        }?;
        let guarded = Guarded { agent, guardian, lifeline, mark, slot };
        Self::start_tasks(&command, &program, guarded, ours).map_err(failed)
    }

    /// The three parts, for the reader, the writer and the supervisor.
    pub fn split(self) -> (LineReader, LineWriter, ProcessHandle) {
        (self.stdout, self.stdin, self.handle)
    }

    /// Starts the tasks of a running agent; they end with the last handle.
    fn start_tasks(
        command: &AgentCommand,
        program: &str,
        Guarded { agent, guardian, lifeline, mark, slot }: Guarded,
        [stdin, stdout, stderr]: AgentStdio,
    ) -> io::Result<Self> {
        let (writer, writing, gate) = writer::open(stdin, command.stdin_patience)?;
        let stdout = Arc::new(Stdout::new(stdout)?);
        let stderr = Arc::new(Stderr::new(stderr, program.to_owned())?);
        let (stop_request, wishes) = watch::channel(None);
        let (phase, phases) = watch::channel(ProcessPhase::Running);
        let stopping = CancellationToken::new();
        let pid = agent.as_raw_pid().unsigned_abs();
        let guardian_pid = guardian.id().unwrap_or_default();

        let mut tasks = JoinSet::new();
        tasks.spawn(writing.run());
        tasks.spawn(drain(Arc::clone(&stdout), stopping.clone(), phases.clone()));
        tasks.spawn(read_stderr(Arc::clone(&stderr)));
        let monitor = Monitor {
            lifeline,
            guardian,
            agent,
            mark,
            stdin: gate,
            stderr: Arc::clone(&stderr),
            stop_request: wishes,
            stopping,
            phase,
        };
        tasks.spawn(monitor.run());
        let handle = ProcessHandle::new(Shared {
            pid,
            guardian_pid,
            stderr,
            stop_request,
            phase: phases,
            _tasks: tasks,
            _slot: slot,
        });
        Ok(Self { pid, stdin: writer, stdout: LineReader::new(stdout, command.line_bytes_max), handle })
    }
}

/// An agent that was started, before its tasks run. When dropped, the lifeline closes and the agent is ended.
struct Guarded {
    agent: Pid,
    guardian: Child,
    lifeline: Lifeline,
    mark: String,
    slot: ProcessSlot,
}

async fn drain(stdout: Arc<Stdout>, stopping: CancellationToken, mut phase: watch::Receiver<ProcessPhase>) {
    tokio::select! {
        drained = stdout.drain(stopping) => log_failure("stdout", drained),
        // No writer can be blocked any more; the remaining bytes stay in the pipe for the reader.
        _ = phase.wait_for(|phase| matches!(phase, ProcessPhase::Gone(_))) => {}
    }
}

async fn read_stderr(stderr: Arc<Stderr>) {
    log_failure("stderr", stderr.run().await);
}

/// Our ends of the agent's stdin, stdout and stderr, and the agent's.
fn pipes() -> io::Result<(AgentStdio, AgentStdio)> {
    let (stdin, to_stdin) = io::pipe()?;
    let (from_stdout, stdout) = io::pipe()?;
    let (from_stderr, stderr) = io::pipe()?;
    Ok(([to_stdin.into(), from_stdout.into(), from_stderr.into()], [stdin.into(), stdout.into(), stderr.into()]))
}

fn start_guardian(command: &AgentCommand, path: &Path, mark: &str, stdio: AgentStdio) -> io::Result<(Child, Lifeline)> {
    let (ours, theirs) = UnixStream::pair()?;
    lifeline::send_stdio(&ours, &stdio)?;
    ours.set_nonblocking(true)?;
    let lifeline = Lifeline::new(tokio::net::UnixStream::from_std(ours)?);

    let mut guardian = Command::new(std::path::absolute(&command.guardian)?);
    guardian
        .args(guardian::arguments(command.orphan_ladder, open_files::original_soft()))
        .arg(path)
        .args(&command.args);
    guardian.current_dir(&command.current_dir);
    for (name, value) in &command.env {
        match value {
            Some(value) => guardian.env(name, value),
            None => guardian.env_remove(name),
        };
    }
    guardian.env(procfs::MARK, mark);
    guardian.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    Ok((guardian.spawn()?, lifeline))
}

/// The program was found and looked executable, so something else is missing: its interpreter, for instance.
fn refused(path: PathBuf, errno: i32) -> SpawnError {
    match errno {
        libc::EACCES | libc::ENOEXEC => SpawnError::NotExecutable { path },
        errno => SpawnError::Failed { path, source: io::Error::from_raw_os_error(errno) },
    }
}

fn log_failure(what: &str, result: io::Result<()>) {
    if let Err(error) = result {
        tracing::warn!(%error, "an agent's {what} could not be read");
    }
}
