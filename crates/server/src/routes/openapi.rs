//! `GET /api/openapi.json`: the HTTP API, described for machines.

use axum::http::header;
use axum::response::IntoResponse;

/// Maintained manually next to the routes; tests compare the two.
pub(crate) const DOCUMENT: &str = include_str!("../../openapi.json");

pub(crate) async fn document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT)
}
