//! `GET /api/openapi.json`: the HTTP API, described for machines.

use axum::http::header;
use axum::response::IntoResponse;

/// Written by hand beside the routes; tests hold the two together.
pub(crate) const DOCUMENT: &str = include_str!("../../openapi.json");

pub(crate) async fn document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT)
}
