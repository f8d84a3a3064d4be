//! `POST /api/ticket`: a one-time link to the page, for a browser that is about to be started.
//!
//! A browser's command line can be read by every user of the machine, so the secret must not be on it.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use protocol::http::TicketBody;

use super::browsers::not_saved;
use crate::App;
use crate::access::OneTimeLink;
use crate::error::Failure;

pub(crate) async fn issue(
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<(StatusCode, Json<TicketBody>), Failure> {
    let Some(keys) = app.access.keys else {
        return Ok((StatusCode::CREATED, Json(TicketBody { path: "/".into(), file: None })));
    };
    // The access check has accepted the host, so it is one of our names.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let base_url = format!("http://{host}");
    let issued = tokio::task::spawn_blocking(move || keys.issue_ticket(&base_url)).await;
    match issued {
        Ok(Ok(OneTimeLink { path, file })) => Ok((StatusCode::CREATED, Json(TicketBody { path, file }))),
        Ok(Err(error)) => Err(not_saved(&error)),
        Err(_) => Err(not_saved(&catalog::CatalogError::Stopped)),
    }
}
