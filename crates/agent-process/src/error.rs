//! What can go wrong with an agent's process, in the words of those who act on it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::exit::ExitReport;
use crate::framing::TooLong;

/// Why an agent did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// Nothing of that name; it has to be installed.
    #[error("`{program}` was not found")]
    NotFound { program: String },
    /// It is there but cannot be run: no permission, a directory, no program at all.
    #[error("`{}` is not executable", path.display())]
    NotExecutable { path: PathBuf },
    /// The directory it should work in is not there.
    #[error("`{}` is not a directory", path.display())]
    NoDirectory { path: PathBuf },
    /// Their pipes would take the descriptors that the rest of the server needs.
    #[error(
        "so many agents and terminals are open that the limit on open files allows no more. Close sessions, or raise \
         the limit (`ulimit -n`) and restart Liminal Builder"
    )]
    TooMany,
    /// The system refused to run it; a script whose interpreter is missing ends here too.
    #[error("`{}` could not be run", path.display())]
    Failed {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The guardian did not come up, so the agent was not tried.
    #[error("the guardian of `{program}` could not be run")]
    Guardian {
        program: String,
        #[source]
        source: io::Error,
    },
}

/// Why a command line could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("the command is empty")]
    Empty,
    #[error("a quote is not closed")]
    OpenQuote,
    #[error("the command ends in a backslash")]
    TrailingBackslash,
}

/// Why a read gave no line. After [`TooLong`](Self::TooLong) the next line follows; after the others none does.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error(transparent)]
    TooLong(#[from] TooLong),
    #[error("the agent's output could not be read")]
    Io(#[from] io::Error),
}

/// Why a line was not accepted for an agent's stdin. None of it reached the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Stdin is closed: by us, by the agent, or because it is gone.
    #[error("the agent takes no more input")]
    Closed,
    /// The agent stopped reading, and what waits for it has reached its bound.
    #[error("the agent has not read its input for {} s", waited.as_secs_f32())]
    Stalled { waited: Duration },
    /// Now there is no room; it was not waited for.
    #[error("the agent has too much input to read")]
    Full,
    /// A newline inside would make two lines of it.
    #[error("a line may not contain a newline")]
    Newline,
}

/// Why an answer did not come.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NoAnswer {
    /// It ended first; the report says how.
    #[error("the agent stopped before it answered ({0})")]
    Exited(ExitReport),
    /// It lives and is silent.
    #[error("the agent did not answer within {} s", within.as_secs_f32())]
    Silent { within: Duration, stderr_tail: String },
}
