//! The one table from error codes to HTTP statuses, and the one place that writes an error response.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use protocol::http::ErrorBody;
use protocol::{ErrorCode, ErrorMessage, InvalidMessage};

/// The response to a request that failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    /// Boxed, so that the good path of every `Result` stays small.
    error: Box<ErrorMessage>,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        ErrorMessage::new(code, message).into()
    }

    /// A body or a parameter that is not valid for the route. `field` is empty when the whole body is invalid.
    pub(crate) fn invalid(field: &str, reason: impl Into<String>) -> Self {
        ErrorMessage::from(InvalidMessage { request_id: None, field: field.into(), reason: reason.into() }).into()
    }

    /// A request to something that does not exist here, with its own message, because there is no payload to name.
    pub(crate) fn no_such(reason: impl Into<String>, status: StatusCode) -> Self {
        Self::new(ErrorCode::InvalidMessage, reason).with_status(status)
    }

    /// The same failure with a more specific status.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn code(&self) -> ErrorCode {
        self.error.code
    }

    pub(crate) fn message(&self) -> &str {
        &self.error.message
    }
}

impl From<ErrorMessage> for Failure {
    fn from(error: ErrorMessage) -> Self {
        Self { status: status(error.code), error: Box::new(error) }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, Json(ErrorBody { error: *self.error })).into_response()
    }
}

/// Exhaustive on purpose: a new code has to choose its status.
fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::InvalidMessage
        | ErrorCode::ProjectPathInvalid
        | ErrorCode::ProjectIdRequired
        | ErrorCode::UnsupportedCliType => StatusCode::BAD_REQUEST,
        // Not 401: that would ask browsers and scripts for a name and a password, which do not exist here.
        ErrorCode::Unauthorized | ErrorCode::Forbidden => StatusCode::FORBIDDEN,
        ErrorCode::ProjectNotFound | ErrorCode::SessionNotFound => StatusCode::NOT_FOUND,
        ErrorCode::ProjectDuplicate
        | ErrorCode::TurnInProgress
        | ErrorCode::AgentsFileChanged
        | ErrorCode::AgentsFileUnusable => StatusCode::CONFLICT,
        ErrorCode::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorCode::SessionLoadFailed
        | ErrorCode::SessionCreateFailed
        | ErrorCode::AgentHandshakeFailed
        | ErrorCode::AgentProtocolError
        | ErrorCode::OpenFailed
        | ErrorCode::ProcessCrash => StatusCode::BAD_GATEWAY,
        ErrorCode::AgentNotInstalled | ErrorCode::AgentUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::StorageFailed => StatusCode::INSUFFICIENT_STORAGE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_an_error_status() {
        for code in ErrorCode::ALL {
            assert!(status(code).is_client_error() || status(code).is_server_error(), "{code:?}");
        }
    }

    #[test]
    fn every_code_is_described() {
        let document: serde_json::Value = serde_json::from_str(crate::routes::openapi::DOCUMENT).unwrap();
        let codes = &document["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"]["enum"];
        assert_eq!(*codes, serde_json::to_value(ErrorCode::ALL).unwrap());
    }
}
