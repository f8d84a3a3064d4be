//! What to run, where, and with which environment.
//!
//! Comes in: a program by name or path, or a command line. Goes out: the absolute path of an executable, or the reason
//! why there is none, before any process exists. Kept out: shells; nothing is expanded.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Access;

use crate::error::{ParseError, SpawnError};
use crate::framing::LINE_BYTES_MAX;

/// The grace times for stopping an agent: its stdin is closed, then SIGTERM is sent, then SIGKILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopLadder {
    /// From closing its stdin to SIGTERM.
    pub grace_eof: Duration,
    /// From SIGTERM to SIGKILL; also the grace time for descendants once the agent itself has exited.
    pub grace_term: Duration,
}

impl StopLadder {
    /// SIGKILL at once.
    pub const AT_ONCE: Self = Self { grace_eof: Duration::ZERO, grace_term: Duration::ZERO };
}

impl Default for StopLadder {
    /// Idle agents exit within two seconds after their stdin closes. The additional time lets a turn finish.
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
    /// The agent's working directory.
    pub current_dir: PathBuf,
    /// Variables to set, or to remove (`None`), on top of our own environment.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// The program that is executed as the guardian; its `main` has to begin with
    /// [`guardian_entry`](crate::guardian_entry). By default this program.
    pub guardian: PathBuf,
    /// How the agent is stopped without a request: the server was killed, or all handles were dropped.
    pub orphan_ladder: StopLadder,
    /// The longest accepted line of its stdout.
    pub line_bytes_max: usize,
    /// How long a line for its stdin may wait for space before the agent counts as stalled.
    pub stdin_patience: Duration,
}

impl AgentCommand {
    /// A program without arguments, in our own working directory and environment.
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

    /// Parses a command line. Quotes and backslashes work as in a POSIX shell; nothing is expanded, piped or run.
    pub fn parse(command_line: &str) -> Result<Self, ParseError> {
        let mut arguments = split(command_line)?.into_iter();
        let program = arguments.next().ok_or(ParseError::Empty)?;
        Ok(Self::new(program).args(arguments))
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

    /// The absolute path of the program. A relative path starts at our working directory, not at the agent's. Names are
    /// looked up in the agent's `PATH`. Symbolic links are not resolved: version managers depend on the name.
    pub fn resolve(&self) -> Result<PathBuf, SpawnError> {
        let path = match self.env.iter().rev().find(|(name, _)| name == "PATH") {
            Some((_, path)) => path.clone(),
            None => std::env::var_os("PATH"),
        };
        resolve(&self.program, path.as_deref())
    }
}

/// Leaves out the values of the environment, because they contain API keys.
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

/// The absolute path of the executable with this name in our `PATH`, or of this path if it is executable.
pub fn find_program(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    resolve(name.as_ref(), std::env::var_os("PATH").as_deref()).ok()
}

/// Splits a command line into the program and its arguments.
fn split(command_line: &str) -> Result<Vec<String>, ParseError> {
    let arguments = shell_words::split(command_line).map_err(|_| ParseError::OpenQuote)?;
    // All quotes are closed, so a backslash at the end stands outside of them and has nothing to escape. `shell_words`
    // would pass it on as a character.
    let backslashes = command_line.len() - command_line.trim_end_matches('\\').len();
    if backslashes % 2 == 1 { Err(ParseError::TrailingBackslash) } else { Ok(arguments) }
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

/// On Linux the link `/proc/self/exe` still points to this program after an upgrade has replaced its file.
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

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_is_looked_up_in_the_path_of_the_agent() {
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
    fn a_relative_path_starts_at_our_directory() {
        assert_eq!(
            AgentCommand::new("./src").current_dir("/").resolve().unwrap_err().to_string(),
            format!("`{}` is not executable", std::env::current_dir().unwrap().join("src").display())
        );
    }

    #[test]
    fn a_missing_program_is_not_found() {
        for program in ["", "no-such-program", "./no-such-program", "/no/such/program"] {
            assert!(matches!(AgentCommand::new(program).resolve(), Err(SpawnError::NotFound { .. })), "{program}");
        }
        assert_eq!(find_program("no-such-program"), None);
        assert!(find_program("sh").is_some_and(|path| path.is_absolute()));
    }

    #[test]
    fn the_debug_output_of_a_command_hides_its_secrets() {
        let shown = format!("{:?}", AgentCommand::new("agent").env("API_KEY", "hunter2"));
        assert!(shown.contains("API_KEY") && !shown.contains("hunter2"), "{shown}");
    }

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(split(text).as_deref(), Ok(&expected.iter().map(|part| part.to_string()).collect::<Vec<_>>()[..]));
    }

    #[test]
    fn a_command_line_is_split_at_white_space_outside_quotes() {
        check("  codex-acp\t--model  gpt ", &["codex-acp", "--model", "gpt"]);
        check(r#""/opt/My Agents/claude" --name='it is' a\ b"#, &["/opt/My Agents/claude", "--name=it is", "a b"]);
    }

    #[test]
    fn quotes_join_their_neighbours_and_may_be_empty() {
        check(r#"a"b"'c' '' "#, &["abc", ""]);
    }

    #[test]
    fn backslashes_in_double_quotes_escape_only_what_a_shell_escapes() {
        check(r#""\"\\\$\n" '\"'"#, &[r#""\$\n"#, r#"\""#]);
    }

    #[test]
    fn nothing_is_expanded() {
        check("$HOME/*.sh | ~", &["$HOME/*.sh", "|", "~"]);
    }

    #[test]
    fn an_incomplete_command_line_is_an_error() {
        assert_eq!(AgentCommand::parse(" \n").unwrap_err(), ParseError::Empty);
        assert_eq!(split("a 'b"), Err(ParseError::OpenQuote));
        assert_eq!(split("a \"b\\\""), Err(ParseError::OpenQuote));
        assert_eq!(split("a \\"), Err(ParseError::TrailingBackslash));
    }

    proptest! {
        #[test]
        fn quoted_arguments_survive_a_round_trip(arguments in prop::collection::vec("[ -~]*", 1..6)) {
            let quoted: Vec<String> = arguments.iter().map(|argument| format!("'{}'", argument.replace('\'', r"'\''"))).collect();
            prop_assert_eq!(split(&quoted.join(" ")), Ok(arguments));
        }
    }
}
