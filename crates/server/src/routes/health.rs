//! `GET /api/health`: that the server runs, and which one it is.

use axum::Json;
use axum::extract::State;
use protocol::http::HealthBody;

use crate::App;

pub(crate) async fn health(State(app): State<App>) -> Json<HealthBody> {
    Json(HealthBody {
        status: "ok".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        uptime_ms: u64::try_from(app.started.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}
