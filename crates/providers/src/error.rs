//! Why a call to a provider failed: what callers branch on, and what people read.

use protocol::{AgentSessionId, CliType, ErrorCode, ErrorMessage};

/// Why a call failed. `name` is the agent's, `detail` what it or the system reported.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProviderError {
    #[error("agent type not supported: {0}")]
    UnsupportedCliType(CliType),
    #[error("{name} is not installed: {detail}")]
    NotInstalled { name: String, install_hint: Option<String>, detail: String },
    #[error("{name} did not complete its handshake: {detail}")]
    Handshake { name: String, detail: String },
    #[error("{name} wants a login: {detail}")]
    LoginRequired { name: String, detail: String },
    #[error("{name} is not connected")]
    Unavailable { name: String },
    #[error("{name} answered with an error: {message}")]
    Protocol { name: String, message: String },
    #[error("{name} stopped: {detail}")]
    Crashed { name: String, detail: String },
    #[error("no session {0}")]
    SessionNotFound(AgentSessionId),
    #[error("could not load the session: {detail}")]
    LoadFailed { detail: String },
    #[error("could not create the session: {detail}")]
    CreateFailed { detail: String },
    #[error("a turn is running")]
    TurnInProgress,
    #[error("{0}")]
    Internal(String),
}

impl ProviderError {
    /// Exhaustive on purpose: a new variant has to choose its wire code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::UnsupportedCliType(_) => ErrorCode::UnsupportedCliType,
            Self::NotInstalled { .. } => ErrorCode::AgentNotInstalled,
            Self::Handshake { .. } => ErrorCode::AgentHandshakeFailed,
            Self::LoginRequired { .. } | Self::Protocol { .. } => ErrorCode::AgentProtocolError,
            Self::Unavailable { .. } => ErrorCode::AgentUnavailable,
            Self::Crashed { .. } => ErrorCode::ProcessCrash,
            Self::SessionNotFound(_) => ErrorCode::SessionNotFound,
            Self::Internal(_) => ErrorCode::InternalError,
            Self::LoadFailed { .. } => ErrorCode::SessionLoadFailed,
            Self::CreateFailed { .. } => ErrorCode::SessionCreateFailed,
            Self::TurnInProgress => ErrorCode::TurnInProgress,
        }
    }

    /// What the user reads, with what the agent reported beside it.
    pub fn to_message(&self) -> ErrorMessage {
        let (subject, detail, hint) = match self {
            Self::UnsupportedCliType(cli_type) => (cli_type.as_str(), None, None),
            Self::NotInstalled { name, install_hint, detail } => (name.as_str(), Some(detail), install_hint.clone()),
            Self::Handshake { name, detail } | Self::Crashed { name, detail } => (name.as_str(), Some(detail), None),
            Self::LoginRequired { detail, .. } => (detail.as_str(), None, None),
            Self::Unavailable { name } => (name.as_str(), None, None),
            Self::Protocol { message, .. } => (message.as_str(), None, None),
            Self::LoadFailed { detail } | Self::CreateFailed { detail } | Self::Internal(detail) => {
                ("", Some(detail), None)
            }
            Self::SessionNotFound(_) | Self::TurnInProgress => ("", None, None),
        };
        let mut message = ErrorMessage::new(self.code(), self.code().message(subject));
        message.detail = detail.filter(|detail| !detail.is_empty()).cloned();
        message.install_hint = hint;
        message
    }
}
