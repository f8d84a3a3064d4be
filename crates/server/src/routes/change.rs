//! Requests that change something run to their end, also when the client goes away.
//!
//! A handler belongs to its connection: when that is lost, the handler is dropped wherever it stands. A session that was
//! being created would be half made, with an agent that nobody lists. So it runs as a task of its own.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use protocol::ErrorCode;

use crate::App;
use crate::error::Failure;

/// Such requests at once, those included whose connection is lost: one may wait for an agent for minutes. Half as many as
/// there can be connections, so that there are always some for all else.
const CHANGES_MAX: usize = 256;

pub(super) async fn to_its_end(State(app): State<App>, request: Request, next: Next) -> Response {
    if app.changes.is_closed() || app.changes.len() >= CHANGES_MAX {
        let words = "Too many requests are under way, or the server is stopping. Try again in a moment.";
        return Failure::new(ErrorCode::InternalError, words)
            .with_status(StatusCode::SERVICE_UNAVAILABLE)
            .into_response();
    }
    app.changes.spawn(next.run(request)).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a request broke");
        Failure::new(ErrorCode::InternalError, ErrorCode::InternalError.message("")).into_response()
    })
}
