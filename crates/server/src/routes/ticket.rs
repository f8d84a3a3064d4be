//! `POST /api/ticket`: a way into the page that works once, for a browser that is about to be opened.
//!
//! A browser's command line can be read by every user of the machine, so the secret must not be on it.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use protocol::http::TicketBody;

use super::browsers::not_saved;
use crate::App;
use crate::access::Opening;
use crate::error::Failure;

pub(crate) async fn issue(
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<(StatusCode, Json<TicketBody>), Failure> {
    let Some(keys) = app.access.keys else {
        return Ok((StatusCode::CREATED, Json(TicketBody { path: "/".into(), file: None })));
    };
    // One of our own names, or the request would not have come this far.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let base_url = format!("http://{host}");
    let issued = tokio::task::spawn_blocking(move || keys.issue_ticket(&base_url)).await;
    match issued {
        Ok(Ok(Opening { path, file })) => Ok((StatusCode::CREATED, Json(TicketBody { path, file }))),
        Ok(Err(error)) => Err(not_saved(&error)),
        Err(_) => Err(not_saved(&catalog::CatalogError::Stopped)),
    }
}
