//! How a process ended.

use std::fmt;

/// How the process itself ended; its descendants do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// It exited with this code.
    Code(i32),
    /// It was ended by this signal.
    Signal(i32),
    /// Unknown: the guardian was killed, and the agent with it.
    Lost,
}

/// How an agent ended, and the end of its stderr.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitReport {
    pub status: ExitStatus,
    /// The end of stderr, [`STDERR_TAIL_BYTES`](crate::STDERR_TAIL_BYTES) at most.
    pub stderr_tail: String,
}

impl ExitReport {
    /// Whether it exited with code 0.
    pub fn is_success(&self) -> bool {
        self.status == ExitStatus::Code(0)
    }

    /// The last non-blank line of stderr: most often the reason.
    pub fn last_stderr_line(&self) -> Option<&str> {
        self.stderr_tail.lines().map(str::trim).rfind(|line| !line.is_empty())
    }
}

impl fmt::Display for ExitReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.status)?;
        match self.last_stderr_line() {
            Some(text) => write!(out, ": {text}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(out, "exit code {code}"),
            Self::Signal(libc::SIGKILL) => out.write_str("killed"),
            Self::Signal(libc::SIGTERM) => out.write_str("terminated"),
            Self::Signal(signal) => write!(out, "signal {signal}"),
            Self::Lost => out.write_str("lost with its guardian"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: ExitStatus, stderr: &str, expected: &str) {
        assert_eq!(ExitReport { status, stderr_tail: stderr.into() }.to_string(), expected);
    }

    #[test]
    fn a_report_shows_the_status_and_the_last_line_of_stderr() {
        check(ExitStatus::Code(0), "", "exit code 0");
        check(ExitStatus::Code(2), "warning\nbad flag --x\n\n", "exit code 2: bad flag --x");
        check(ExitStatus::Signal(libc::SIGKILL), "\n", "killed");
        check(ExitStatus::Signal(libc::SIGSEGV), "", "signal 11");
    }
}
