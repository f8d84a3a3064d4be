//! `/api/session/…`: the same session service the WebSocket has, for scripts.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use protocol::http::{CreateSessionBody, SendBody, SentBody, SessionBody, SessionListBody, SessionStatusBody};
use protocol::{ErrorCode, ProjectId, SessionId};
use serde::Deserialize;
use sessions::{SentMessage, ServiceError};

use super::body::JsonBody;
use crate::App;
use crate::error::Failure;

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        error.to_message().into()
    }
}

pub(crate) async fn create(
    State(app): State<App>,
    JsonBody(body): JsonBody<CreateSessionBody>,
) -> Result<(StatusCode, Json<SessionBody>), Failure> {
    let CreateSessionBody { cli_type, project_id, project_dir } = body;
    let session = app.hub.create_session(&cli_type, project_id.as_ref(), project_dir.as_deref()).await?;
    Ok((StatusCode::CREATED, Json(SessionBody { session_id: session.id, cli_type: session.cli_type })))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListQuery {
    project_id: Option<String>,
}

pub(crate) async fn list(
    State(app): State<App>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<SessionListBody>, Failure> {
    let Query(query) = query.map_err(|error| Failure::invalid("projectId", error.body_text()))?;
    let given = query.project_id.filter(|id| !id.is_empty());
    let given = given.ok_or_else(|| failure(ErrorCode::ProjectIdRequired))?;
    // What cannot be an id is the id of no project.
    let project = ProjectId::parse(given).map_err(|_| failure(ErrorCode::ProjectNotFound))?;
    Ok(Json(SessionListBody { sessions: app.hub.list_sessions(&project)? }))
}

pub(crate) async fn load(
    State(app): State<App>,
    SessionPath(session_id): SessionPath,
) -> Result<Json<SessionBody>, Failure> {
    app.hub.load_session(&session_id).await?;
    let cli_type = session_id.cli_type();
    Ok(Json(SessionBody { session_id, cli_type }))
}

pub(crate) async fn status(
    State(app): State<App>,
    SessionPath(session_id): SessionPath,
) -> Result<Json<SessionStatusBody>, Failure> {
    let (is_alive, state) = app.hub.session_status(&session_id)?;
    let cli_type = session_id.cli_type();
    Ok(Json(SessionStatusBody { session_id, cli_type, is_alive, state }))
}

pub(crate) async fn send(
    State(app): State<App>,
    SessionPath(id): SessionPath,
    JsonBody(body): JsonBody<SendBody>,
) -> Result<(StatusCode, Json<SentBody>), Failure> {
    let SentMessage { turn_id, recorded } = app.hub.send(&id, body.content.into()).await?;
    Ok((StatusCode::ACCEPTED, Json(SentBody { turn_id, recorded })))
}

pub(crate) async fn cancel(State(app): State<App>, SessionPath(id): SessionPath) -> Result<Json<Empty>, Failure> {
    app.hub.cancel(&id).await?;
    Ok(Json(Empty {}))
}

pub(crate) async fn kill(State(app): State<App>, SessionPath(id): SessionPath) -> Result<Json<Empty>, Failure> {
    app.hub.kill(&id).await?;
    Ok(Json(Empty {}))
}

/// `{}`: done, and nothing to return.
#[derive(serde::Serialize)]
pub(crate) struct Empty {}

/// The session that a path names. What cannot be an id is the id of no session.
pub(crate) struct SessionPath(pub(crate) SessionId);

impl<S: Send + Sync> FromRequestParts<S> for SessionPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let none = || failure(ErrorCode::SessionNotFound);
        let Path(id) = Path::<String>::from_request_parts(parts, state).await.map_err(|_| none())?;
        SessionId::parse(id).map(Self).map_err(|_| none())
    }
}

fn failure(code: ErrorCode) -> Failure {
    Failure::new(code, code.message(""))
}
