//! `POST /api/ticket`: a way into the page that works once, for a browser that is about to be opened.
//!
//! A browser's command line can be read by every user of the machine, so the secret must not be on it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use protocol::http::TicketBody;

use crate::App;

pub(crate) async fn issue(State(app): State<App>) -> (StatusCode, Json<TicketBody>) {
    let path = match &app.access.secret {
        Some(_) => format!("/?token={}", app.access.ticket.issue().reveal()),
        None => "/".to_owned(),
    };
    (StatusCode::CREATED, Json(TicketBody { path }))
}
