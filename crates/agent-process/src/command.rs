//! What to run, where, and with which environment.
//!
//! Comes in: a program by name or path. Goes out: an absolute path that can be executed, or the reason why not, before
//! any process exists. Kept out: shells; arguments are words and stay words.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Access;

use crate::error::{ParseError, SpawnError};
use crate::framing::LINE_BYTES_MAX;
use crate::words;

/// How patiently an agent is stopped: stdin is closed, SIGTERM follows, then SIGKILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopLadder {
    /// From the end of its stdin to SIGTERM.
    pub grace_eof: Duration,
    /// From SIGTERM to SIGKILL; also what is left to descendants once the agent itself is gone.
    pub grace_term: Duration,
}

impl StopLadder {
    /// SIGKILL without delay.
    pub const AT_ONCE: Self = Self { grace_eof: Duration::ZERO, grace_term: Duration::ZERO };
}

impl Default for StopLadder {
    /// Idle agents leave within two seconds of the end of their stdin; more would be time to finish a turn.
    fn default() -> Self {
        Self { grace_eof: Duration::from_secs(5), grace_term: Duration::from_secs(2) }
    }
}

/// An agent to start.
#[derive(Clone)]
pub struct AgentCommand {
    /// A name to look up in `PATH`, or a path.
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Where the agent works.
    pub current_dir: PathBuf,
    /// Variables to set, or with `None` to remove, on top of our own environment.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// The program that is executed as the guardian; its `main` has to begin with
    /// [`guardian_entry`](crate::guardian_entry). This program, unless said otherwise.
    pub guardian: PathBuf,
    /// How the agent is stopped when nobody asks: we were killed, or all handles were dropped.
    pub orphan_ladder: StopLadder,
    /// The longest line of its stdout.
    pub line_bytes_max: usize,
    /// How long a line for its stdin may wait for room before the agent counts as stalled.
    pub stdin_patience: Duration,
}

impl AgentCommand {
    /// A program without arguments, in our own directory and environment.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            current_dir: PathBuf::from("."),
            env: Vec::new(),
            guardian: own_program(),
            orphan_ladder: StopLadder::default(),
            line_bytes_max: LINE_BYTES_MAX,
            stdin_patience: Duration::from_secs(30),
        }
    }

    /// A program and its arguments as a person writes them; quotes work as in a shell, nothing is expanded.
    pub fn parse(command_line: &str) -> Result<Self, ParseError> {
        let mut words = words::split(command_line)?.into_iter();
        let program = words.next().ok_or(ParseError::Empty)?;
        Ok(Self::new(program).args(words))
    }

    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    #[must_use]
    pub fn args<I: IntoIterator<Item: Into<OsString>>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    #[must_use]
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.current_dir = directory.into();
        self
    }

    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    #[must_use]
    pub fn env_remove(mut self, name: impl Into<OsString>) -> Self {
        self.env.push((name.into(), None));
        self
    }

    #[must_use]
    pub fn guardian(mut self, program: impl Into<PathBuf>) -> Self {
        self.guardian = program.into();
        self
    }

    #[must_use]
    pub fn orphan_ladder(mut self, ladder: StopLadder) -> Self {
        self.orphan_ladder = ladder;
        self
    }

    #[must_use]
    pub fn line_bytes_max(mut self, bytes: usize) -> Self {
        self.line_bytes_max = bytes;
        self
    }

    #[must_use]
    pub fn stdin_patience(mut self, patience: Duration) -> Self {
        self.stdin_patience = patience;
        self
    }

    /// The absolute path of the program. A relative one counts from our directory, not from the agent's, and names are
    /// looked up in the `PATH` the agent will have. Links are not followed: version managers go by the name.
    pub fn resolve(&self) -> Result<PathBuf, SpawnError> {
        let path = match self.env.iter().rev().find(|(name, _)| name == "PATH") {
            Some((_, path)) => path.clone(),
            None => std::env::var_os("PATH"),
        };
        resolve(&self.program, path.as_deref())
    }
}

/// The environment stays out of it: that is where the keys are.
impl fmt::Debug for AgentCommand {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AgentCommand")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("current_dir", &self.current_dir)
            .field("env", &self.env.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// The absolute path of an executable of that name in our `PATH`, or of a path if it is executable.
pub fn find_program(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    resolve(name.as_ref(), std::env::var_os("PATH").as_deref()).ok()
}

fn resolve(program: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, SpawnError> {
    let not_found = || SpawnError::NotFound { program: program.to_string_lossy().into_owned() };
    if program.is_empty() {
        return Err(not_found());
    }
    let candidates = if program.as_encoded_bytes().contains(&b'/') {
        vec![PathBuf::from(program)]
    } else {
        path.map(std::env::split_paths).into_iter().flatten().map(|directory| directory.join(program)).collect()
    };
    let mut unusable = None;
    for candidate in candidates {
        let Ok(candidate) = std::path::absolute(candidate) else { continue };
        match candidate.metadata() {
            Ok(found) if found.is_file() && rustix::fs::access(&candidate, Access::EXEC_OK).is_ok() => {
                return Ok(candidate);
            }
            Ok(_) => unusable = unusable.or(Some(candidate)),
            Err(_) => {}
        }
    }
    Err(unusable.map_or_else(not_found, |path| SpawnError::NotExecutable { path }))
}

/// The link, where there is one, still leads to this program when an upgrade has replaced its file.
pub(crate) fn own_program() -> PathBuf {
    let link = Path::new("/proc/self/exe");
    if cfg!(target_os = "linux") && link.exists() {
        return link.into();
    }
    std::env::current_exe().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_name_is_found_in_the_path_the_agent_will_have() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("agent");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        let command = AgentCommand::new("agent").env("PATH", directory.path());
        assert!(matches!(command.resolve(), Err(SpawnError::NotExecutable { path }) if path == program));

        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(command.resolve().unwrap(), program);
        assert!(matches!(command.env_remove("PATH").resolve(), Err(SpawnError::NotFound { .. })));
    }

    #[test]
    fn a_relative_path_counts_from_our_directory() {
        assert_eq!(
            AgentCommand::new("./src").current_dir("/").resolve().unwrap_err().to_string(),
            format!("`{}` is not executable", std::env::current_dir().unwrap().join("src").display())
        );
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for program in ["", "no-such-program", "./no-such-program", "/no/such/program"] {
            assert!(matches!(AgentCommand::new(program).resolve(), Err(SpawnError::NotFound { .. })), "{program}");
        }
        assert_eq!(find_program("no-such-program"), None);
        assert!(find_program("sh").is_some_and(|path| path.is_absolute()));
    }

    #[test]
    fn a_command_shown_for_debugging_keeps_its_secrets() {
        let shown = format!("{:?}", AgentCommand::new("agent").env("API_KEY", "hunter2"));
        assert!(shown.contains("API_KEY") && !shown.contains("hunter2"), "{shown}");
    }
}
