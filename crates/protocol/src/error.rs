//! The one table of error codes and of what people read.

use serde::{Deserialize, Serialize};

/// One list of codes, so that none can be left out of `ALL`.
macro_rules! error_codes {
    ($($code:ident = $written:literal,)+) => {
        /// Stable names of everything that can go wrong, as browsers and scripts see them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
        pub enum ErrorCode {
            $($code,)+
        }

        impl ErrorCode {
            pub const ALL: [Self; [$($written),+].len()] = [$(Self::$code),+];

            /// The code as it is written on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $written,)+
                }
            }
        }
    };
}

error_codes! {
    InvalidMessage = "INVALID_MESSAGE",
    ProjectPathInvalid = "PROJECT_PATH_INVALID",
    ProjectDuplicate = "PROJECT_DUPLICATE",
    ProjectNotFound = "PROJECT_NOT_FOUND",
    SessionNotFound = "SESSION_NOT_FOUND",
    SessionLoadFailed = "SESSION_LOAD_FAILED",
    SessionCreateFailed = "SESSION_CREATE_FAILED",
    TurnInProgress = "TURN_IN_PROGRESS",
    UnsupportedCliType = "UNSUPPORTED_CLI_TYPE",
    AgentNotInstalled = "AGENT_NOT_INSTALLED",
    AgentHandshakeFailed = "AGENT_HANDSHAKE_FAILED",
    AgentUnavailable = "AGENT_UNAVAILABLE",
    AgentProtocolError = "AGENT_PROTOCOL_ERROR",
    ProcessCrash = "PROCESS_CRASH",
    ProjectIdRequired = "PROJECT_ID_REQUIRED",
    StorageFailed = "STORAGE_FAILED",
    OpenFailed = "OPEN_FAILED",
    AgentsFileChanged = "AGENTS_FILE_CHANGED",
    AgentsFileUnusable = "AGENTS_FILE_UNUSABLE",
    Forbidden = "FORBIDDEN",
    Unauthorized = "UNAUTHORIZED",
    InternalError = "INTERNAL_ERROR",
}

impl ErrorCode {
    /// What a person reads. `subject` is the agent's name, the agent type or the agent's own message, where the text has a
    /// place for it.
    pub fn message(self, subject: &str) -> String {
        match self {
            Self::InvalidMessage => "Invalid request payload.".into(),
            Self::ProjectPathInvalid => "Directory does not exist".into(),
            Self::ProjectDuplicate => "Project already added".into(),
            Self::ProjectNotFound => "Project not found".into(),
            Self::SessionNotFound => "Session not found".into(),
            Self::SessionLoadFailed => "Could not load session".into(),
            Self::SessionCreateFailed => "Could not create session".into(),
            Self::TurnInProgress => "The agent is still working".into(),
            Self::UnsupportedCliType => format!("Agent type not supported: {subject}"),
            Self::AgentNotInstalled => format!("Could not start {subject}. Check that it's installed."),
            Self::AgentHandshakeFailed => format!("Could not connect to {subject}"),
            Self::AgentUnavailable => format!("Connection to {subject} lost. Reconnecting..."),
            Self::AgentProtocolError => subject.into(),
            Self::ProcessCrash => format!("{subject} stopped unexpectedly"),
            Self::ProjectIdRequired => "projectId is required".into(),
            Self::StorageFailed => "Could not save the change. Check the data directory's disk and permissions.".into(),
            Self::OpenFailed => subject.into(),
            Self::AgentsFileChanged => {
                "agents.json was changed by somebody else, so nothing was saved. The list shows it as it is now.".into()
            }
            Self::AgentsFileUnusable => "agents.json cannot be changed here, so nothing was saved.".into(),
            Self::Forbidden => "This request is not allowed.".into(),
            Self::Unauthorized => "Open the link that Liminal Builder printed when it started.".into(),
            Self::InternalError => "Unexpected server error.".into(),
        }
    }
}

/// A code and the message for it, inside stream events and turns. Agents have codes of their own, so it is a string.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ErrorDetail {
    pub code: String,
    pub message: String,
}

impl ErrorDetail {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code: code.as_str().into(), message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_written_as_serde_writes_it_and_has_a_message() {
        for code in ErrorCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert!(!code.message("Codex").is_empty());
        }
    }
}
