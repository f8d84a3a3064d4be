//! How a command can fail, and with which exit code. Scripts act on the code; the table is in `EXIT_CODES` and in README.md.

use std::io;
use std::process::ExitCode;

use protocol::{ErrorCode, ErrorMessage};
use serde_json::{Value, json};

use crate::terminal::{Stream, Style, harmless};

/// For `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit status: 0 done, 1 failed, 2 wrong usage, 3 no server is running, 4 the secret was refused, 5 no such session,
6 the agent is still working, 7 the turn was cancelled, 9 the journal is damaged, 130 ended by Ctrl-C,
141 whoever read the answer has left.";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Failed = 1,
    Usage = 2,
    NoServer = 3,
    Refused = 4,
    NoSession = 5,
    Busy = 6,
    Cancelled = 7,
    Damaged = 9,
    Interrupted = 130,
    /// As a shell reports a program that wrote to a closed pipe.
    ReaderGone = 141,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    code: String,
    message: String,
    detail: Option<String>,
}

impl Failure {
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, code: code.into(), message: message.into(), detail: None }
    }

    pub(crate) fn with_exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// What to do, or what the agent or the system reported.
    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into()).filter(|detail| !detail.is_empty());
        self
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidMessage.as_str(), message).with_exit(Exit::Usage)
    }

    pub(crate) fn not_written(error: &io::Error) -> Self {
        let failure = Self::new("NOT_WRITTEN", format!("Could not write the answer: {error}"));
        match error.kind() {
            io::ErrorKind::BrokenPipe => failure.with_exit(Exit::ReaderGone),
            _ => failure,
        }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Reports the failure to the person or the script, and returns the exit code.
    pub(crate) fn report(self, as_json: bool) -> ExitCode {
        // The reader has closed the pipe. The answer cannot be written, and neither can this error.
        let _ = match (self.exit, as_json) {
            (Exit::ReaderGone, _) => Ok(()),
            (_, true) => Stream::Out.line(&self.to_json().to_string()),
            (_, false) => {
                let mut text =
                    format!("{} {}", Stream::Error.paint(Style::Bad, "liminal-builder:"), harmless(&self.message));
                if let Some(detail) = &self.detail {
                    text += &format!("\n{}", harmless(detail));
                }
                Stream::Error.line(&text)
            }
        };
        self.exit.into()
    }

    fn to_json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(detail) = &self.detail {
            error["detail"] = detail.as_str().into();
        }
        json!({ "error": error })
    }
}

impl From<ErrorMessage> for Failure {
    fn from(error: ErrorMessage) -> Self {
        let exit = match error.code {
            ErrorCode::SessionNotFound => Exit::NoSession,
            ErrorCode::TurnInProgress => Exit::Busy,
            ErrorCode::Unauthorized => Exit::Refused,
            ErrorCode::InvalidMessage => Exit::Usage,
            _ => Exit::Failed,
        };
        let hint = match error.code {
            ErrorCode::TurnInProgress => {
                Some("`liminal-builder attach --wait` waits for it, `liminal-builder cancel` stops it.".to_owned())
            }
            _ => error.install_hint.map(|hint| format!("Install it with: {hint}")),
        };
        let detail: Vec<String> = error.detail.into_iter().chain(hint).collect();
        Self::new(error.code.as_str(), error.message).with_exit(exit).with_detail(detail.join("\n"))
    }
}
