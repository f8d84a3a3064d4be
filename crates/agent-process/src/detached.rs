//! Programs that are started for the user and then left alone: an editor, a terminal.
//!
//! Comes in: a program and its arguments. Goes out: that it runs, or why it does not. It gets its own session and none
//! of our streams, so it does not end with us and does not write into our terminal. No guardian watches it.
//!
//! Only the child itself can create a new session, between fork and exec. To avoid an unsafe hook there, this program
//! is executed again: [`detached_entry`] creates the session and then executes the requested program.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;

use crate::command::{find_program, own_program};

/// The first argument that marks a process as the starter of a detached program.
const ARGUMENT: &str = "__detached";
/// A program that fails within this time counts as not started; one that runs longer has opened its window.
const EARLY_END: Duration = Duration::from_secs(1);
/// The exit code of a shell for a command that it cannot find.
const NOT_STARTED: i32 = 127;
/// The time for the system to execute the program. Only a hanging disk takes longer.
const START_TIME_MAX: Duration = Duration::from_secs(10);

/// Why a detached program was not started.
#[derive(Debug, thiserror::Error)]
pub enum DetachedError {
    #[error("`{0}` was not found")]
    NotFound(String),
    #[error("`{program}` could not be started: {source}")]
    NotStarted {
        program: String,
        #[source]
        source: io::Error,
    },
    #[error("`{program}` ended at once ({status})")]
    EndedAtOnce { program: String, status: ExitStatus },
}

/// Starts a program in this directory, with our environment, and returns when it runs. The first element of `command`
/// is the program: a name to look up in `PATH`, or a path.
pub async fn start_detached(command: &[String], directory: &Path) -> Result<(), DetachedError> {
    let name = command.first().cloned().unwrap_or_default();
    let program = find_program(&name).ok_or_else(|| DetachedError::NotFound(name.clone()))?;
    let not_started = |source| DetachedError::NotStarted { program: name.clone(), source };
    // When this handle is dropped the runtime still reaps the child.
    let mut child = tokio::process::Command::new(own_program())
        .arg(ARGUMENT)
        .arg(program)
        .args(&command[1..])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(not_started)?;
    // The pipe closes when the program is executed; before that only a failure is written to it.
    let mut failure = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        let read = tokio::time::timeout(START_TIME_MAX, pipe.read_to_string(&mut failure)).await;
        read.map_err(|_| not_started(io::ErrorKind::TimedOut.into()))?.map_err(not_started)?;
    }
    if let Ok(code) = failure.trim().parse() {
        return Err(not_started(io::Error::from_raw_os_error(code)));
    }
    match tokio::time::timeout(EARLY_END, child.wait()).await {
        Ok(Ok(status)) if !status.success() => Err(DetachedError::EndedAtOnce { program: name, status }),
        Ok(Err(error)) => Err(not_started(error)),
        // Many programs pass their work to an instance that already runs, and exit.
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

/// Executes the requested program and never returns, if this process was started for that; otherwise does nothing.
///
/// Belongs next to [`guardian_entry`](crate::guardian_entry), before any runtime and any thread.
pub fn detached_entry() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == ARGUMENT) {
        execute(arguments);
        std::process::exit(NOT_STARTED);
    }
}

/// Returns only after a failure, which it has reported to the parent process.
fn execute(mut command: impl Iterator<Item = OsString>) {
    // The system closes this descriptor when the program is executed.
    let Ok(report) = io::stdout().as_fd().try_clone_to_owned() else { return };
    // This fails only for the leader of a process group, and a new child is not one.
    let _ = rustix::process::setsid();
    let Some(program) = command.next() else { return };
    let error = std::process::Command::new(program)
        .args(command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .exec();
    let code = error.raw_os_error().unwrap_or(libc::EIO);
    let _ = writeln!(std::fs::File::from(report), "{code}");
}
