//! `GET /api/usage`: tokens and cost per session and day, as the agents reported them.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use protocol::http::UsageBody;
use serde::Deserialize;

use crate::App;
use crate::error::Failure;

#[derive(Deserialize)]
pub(crate) struct UsageQuery {
    days: Option<u32>,
}

pub(crate) async fn usage(
    State(app): State<App>,
    query: Result<Query<UsageQuery>, QueryRejection>,
) -> Result<Json<UsageBody>, Failure> {
    let Query(query) = query.map_err(|error| Failure::invalid("days", error.body_text()))?;
    if query.days == Some(0) {
        return Err(Failure::invalid("days", "must be at least 1"));
    }
    Ok(Json(app.hub.usage(query.days)))
}
