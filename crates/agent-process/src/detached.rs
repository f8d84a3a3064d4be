//! Programs of the user's own that are started and left alone: an editor, a terminal.
//!
//! Comes in: a program and its arguments as words. Goes out: that it runs, or why it does not. It gets a session of its
//! own and no stream of ours, so it neither ends with us nor writes into our terminal, and no guardian watches it.
//!
//! A new session can only be made by the child itself, between fork and exec. So that this needs no unsafe hook, this program
//! is executed again: [`detached_entry`] makes the session and becomes the program.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;

use crate::command::{find_program, own_program};

/// The first argument by which a program knows that it is to become another one.
const ARGUMENT: &str = "__detached";
/// A program that fails within this time was started in vain; one that runs longer has shown its window.
const EARLY_END: Duration = Duration::from_secs(1);
/// What a shell says of a command that it cannot find.
const NOT_STARTED: i32 = 127;
/// For the system to execute it. Only a disk that hangs takes longer.
const START_TIME_MAX: Duration = Duration::from_secs(10);

/// Why a program of the user's was not started.
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

/// Starts a program in this directory, with our environment, and returns when it runs. It may go on for ever. The first
/// word is the program: a name to look up in `PATH`, or a path.
pub async fn start_detached(words: &[String], directory: &Path) -> Result<(), DetachedError> {
    let name = words.first().cloned().unwrap_or_default();
    let program = find_program(&name).ok_or_else(|| DetachedError::NotFound(name.clone()))?;
    let not_started = |source| DetachedError::NotStarted { program: name.clone(), source };
    // When this handle is dropped the runtime still reaps the child.
    let mut child = tokio::process::Command::new(own_program())
        .arg(ARGUMENT)
        .arg(program)
        .args(&words[1..])
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
        // Many a program hands its work to one that runs already and is done.
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

/// Becomes the program to start and never returns, if this process was executed for that; otherwise does nothing.
///
/// Belongs beside [`guardian_entry`](crate::guardian_entry), before any runtime and any thread.
pub fn detached_entry() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == ARGUMENT) {
        become_program(arguments);
        std::process::exit(NOT_STARTED);
    }
}

/// Returns only when that failed, and has said so to whoever started us.
fn become_program(mut words: impl Iterator<Item = OsString>) {
    // Closed by the system in the moment in which the program is executed.
    let Ok(report) = io::stdout().as_fd().try_clone_to_owned() else { return };
    // It fails only for who leads a group already, and a child that was just made does not.
    let _ = rustix::process::setsid();
    let Some(program) = words.next() else { return };
    let error = std::process::Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .exec();
    let code = error.raw_os_error().unwrap_or(libc::EIO);
    let _ = writeln!(std::fs::File::from(report), "{code}");
}
