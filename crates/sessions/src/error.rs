//! Why a request of a window or of the HTTP API failed.

use protocol::{ErrorCode, ErrorMessage, ProjectId, SessionId};

use providers::catch_panic::Panic;

/// What people read when a session has too many requests waiting.
const TOO_MANY_WAIT: &str = "Too many requests are waiting for this session. Try again when it has opened.";

/// And when it was archived, or its project removed, before they were handled.
const CLOSED: &str = "The session was closed before this was done. Restore it and try again.";

/// A variant exists because some caller acts on it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ServiceError {
    #[error("no project {0}")]
    ProjectNotFound(ProjectId),
    #[error("no session {0}")]
    SessionNotFound(SessionId),
    #[error("a turn is running")]
    TurnInProgress,
    #[error("the session ended before it answered")]
    SessionEnded,
    /// As many requests as may wait for a session that loads or closes do so already.
    #[error("too many requests wait for the session")]
    TooManyWait,
    /// The session was archived, or its project removed, before this was done.
    #[error("the session was closed before this was done")]
    Closed,
    #[error("the server is shutting down")]
    ShuttingDown,
    /// A panic; its message is in the log.
    #[error("something in the server failed")]
    Panic,
    /// An editor or a terminal was not opened; the sentence says why and what to do.
    #[error("{0}")]
    OpenFailed(String),
    #[error("a request lacks {field}")]
    Invalid { field: &'static str, reason: &'static str },
    /// A definition of an agent that cannot be used; the sentence says why and what to do.
    #[error("{field}: {sentence}")]
    AgentInvalid { field: &'static str, sentence: String },
    /// The journal could not be read.
    #[error("{0}")]
    Journal(String),
    #[error(transparent)]
    Catalog(#[from] catalog::CatalogError),
    #[error(transparent)]
    Provider(#[from] providers::ProviderError),
}

impl ServiceError {
    /// Exhaustive on purpose: a new variant has to choose its wire code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::ProjectNotFound(_) => ErrorCode::ProjectNotFound,
            Self::SessionNotFound(_) => ErrorCode::SessionNotFound,
            Self::TurnInProgress => ErrorCode::TurnInProgress,
            Self::TooManyWait => ErrorCode::AgentUnavailable,
            Self::Closed => ErrorCode::SessionNotFound,
            Self::SessionEnded | Self::ShuttingDown | Self::Panic | Self::Journal(_) => ErrorCode::InternalError,
            Self::OpenFailed(_) => ErrorCode::OpenFailed,
            Self::Invalid { .. } | Self::AgentInvalid { .. } => ErrorCode::InvalidMessage,
            Self::Catalog(error) => error.code(),
            Self::Provider(error) => error.code(),
        }
    }

    pub(crate) fn panic(panic: &Panic) -> Self {
        tracing::error!(%panic, "a request failed");
        Self::Panic
    }

    /// What the user reads.
    pub fn to_message(&self) -> ErrorMessage {
        match self {
            Self::Provider(error) => error.to_message(),
            Self::OpenFailed(sentence) => ErrorMessage::new(self.code(), self.code().message(sentence)),
            Self::Catalog(catalog::CatalogError::CommandInvalid { field, reason }) => {
                let mut message = ErrorMessage::new(self.code(), format!("The command for the {field} {reason}."));
                message.field = Some((*field).to_string());
                message
            }
            Self::Invalid { field, reason } => {
                let text = self.code().message("");
                let mut message = ErrorMessage::new(self.code(), format!("{text} {field}: {reason}"));
                message.field = Some((*field).to_string());
                message
            }
            Self::AgentInvalid { field, sentence } => {
                let mut message = ErrorMessage::new(self.code(), sentence.clone());
                message.field = Some((*field).to_string());
                message
            }
            Self::TooManyWait => ErrorMessage::new(self.code(), TOO_MANY_WAIT),
            Self::Closed => ErrorMessage::new(self.code(), CLOSED),
            other => {
                let mut message = ErrorMessage::new(other.code(), other.code().message(""));
                if matches!(
                    other,
                    Self::Catalog(_) | Self::SessionEnded | Self::ShuttingDown | Self::Panic | Self::Journal(_)
                ) {
                    message.detail = Some(chain(other));
                }
                message
            }
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}
