//! `/api/browsers`: lists and revokes authorized browsers.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use catalog::CatalogError;
use protocol::http::{BrowserListBody, RevokeBody, RevokedBody};

use super::body::JsonBody;
use crate::App;
use crate::access::Client;
use crate::error::Failure;

pub(crate) async fn list(State(app): State<App>, client: Option<Extension<Client>>) -> Json<BrowserListBody> {
    let current = match &client {
        Some(Extension(Client::Browser(access))) => Some(access.id.as_str()),
        _ => None,
    };
    Json(match &app.access.keys {
        Some(keys) => BrowserListBody { is_required: true, browsers: keys.browsers.list(current) },
        None => BrowserListBody { is_required: false, browsers: Vec::new() },
    })
}

pub(crate) async fn revoke(
    State(app): State<App>,
    JsonBody(body): JsonBody<RevokeBody>,
) -> Result<Json<RevokedBody>, Failure> {
    let id = match (&body.id, body.all) {
        (Some(id), false) => Some(id.as_str()),
        (None, true) => None,
        _ => return Err(Failure::invalid("id", "give the id of one browser, or all: true")),
    };
    let revoked = match &app.access.keys {
        Some(keys) => keys.browsers.revoke(|known| id.is_none_or(|id| id == known)).await,
        None => Ok(Vec::new()),
    };
    match revoked.map_err(|error| not_saved(&error))? {
        none if none.is_empty() && id.is_some() => {
            Err(Failure::no_such("No browser has this id.", StatusCode::NOT_FOUND))
        }
        revoked => Ok(Json(RevokedBody { revoked })),
    }
}

pub(super) fn not_saved(error: &CatalogError) -> Failure {
    tracing::warn!("{error}");
    Failure::new(error.code(), format!("{} It holds only until the server ends.", error.code().message("")))
}
