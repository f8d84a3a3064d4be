//! Requests that change something run to completion, also when the client disconnects.
//!
//! A handler belongs to its connection: when that is lost, the handler is dropped at any await. A session would be
//! created halfway, with an agent that is not listed. So the handler runs in its own task.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use protocol::ErrorCode;

use crate::App;
use crate::error::Failure;

/// The most such requests at once, including those whose connection is lost: one may wait for an agent for minutes.
/// Half of all connections, so that there are always some for other requests.
const CHANGES_MAX: usize = 256;

pub(super) async fn run_to_completion(State(app): State<App>, request: Request, next: Next) -> Response {
    if app.changes.is_closed() || app.changes.len() >= CHANGES_MAX {
        let message = "Too many requests are under way, or the server is stopping. Try again in a moment.";
        return Failure::new(ErrorCode::InternalError, message)
            .with_status(StatusCode::SERVICE_UNAVAILABLE)
            .into_response();
    }
    app.changes.spawn(next.run(request)).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a request panicked");
        Failure::new(ErrorCode::InternalError, ErrorCode::InternalError.message("")).into_response()
    })
}
