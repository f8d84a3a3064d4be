//! Errors of an agent's process.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::exit::ExitReport;
use crate::framing::TooLong;

/// Why an agent did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no program of this name; it has to be installed.
    #[error("`{program}` was not found")]
    NotFound { program: String },
    /// It exists but cannot be run: missing permission, a directory, or not a program.
    #[error("`{}` is not executable", path.display())]
    NotExecutable { path: PathBuf },
    /// The working directory does not exist.
    #[error("`{}` is not a directory", path.display())]
    NoDirectory { path: PathBuf },
    /// Another agent would use descriptors that the rest of the server needs.
    #[error(
        "so many agents and terminals are open that the limit on open files allows no more. Close sessions, or raise \
         the limit (`ulimit -n`) and restart Liminal Builder"
    )]
    TooMany,
    /// The system refused to run it. A script whose interpreter is missing ends up here too.
    #[error("`{}` could not be run", path.display())]
    Failed {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The guardian did not start, so the agent was not started either.
    #[error("the guardian of `{program}` could not be run")]
    Guardian {
        program: String,
        #[source]
        source: io::Error,
    },
}

/// Why a command line could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("the command is empty")]
    Empty,
    #[error("a quote is not closed")]
    OpenQuote,
    #[error("the command ends in a backslash")]
    TrailingBackslash,
}

/// Why a read returned no line. After [`TooLong`](Self::TooLong) the next line can be read; after the others none can.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error(transparent)]
    TooLong(#[from] TooLong),
    #[error("the agent's output could not be read")]
    Io(#[from] io::Error),
}

/// Why a line was not accepted for an agent's stdin. No part of it reached the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Stdin is closed: by us, by the agent, or because the agent has exited.
    #[error("the agent takes no more input")]
    Closed,
    /// The agent stopped reading, and the queue of input for it is full.
    #[error("the agent has not read its input for {} s", waited.as_secs_f32())]
    Stalled { waited: Duration },
    /// The queue is full, and the caller did not want to wait.
    #[error("the agent has too much input to read")]
    Full,
    /// A newline inside would split it into two lines.
    #[error("a line may not contain a newline")]
    Newline,
}

/// Why there was no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NoAnswer {
    /// The agent exited first; the report says how.
    #[error("the agent stopped before it answered ({0})")]
    Exited(ExitReport),
    /// The agent runs but is silent.
    #[error("the agent did not answer within {} s", within.as_secs_f32())]
    Silent { within: Duration, stderr_tail: String },
}
