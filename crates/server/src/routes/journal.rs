//! `/api/journal…`: how much is recorded, whether it is sound, and deleting what is old.

use std::time::SystemTime;

use axum::Json;
use axum::extract::State;
use journal::{CheckReport, JournalError, Pruned, SessionStats, Stats};
use protocol::http::{JournalCheckBody, JournalSession, JournalStatsBody, PruneBody, PrunedBody};
use protocol::{ErrorCode, ErrorMessage, Timestamp};

use super::body::JsonBody;
use crate::App;
use crate::error::Failure;

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        tracing::warn!(%error, "a request to the journal failed");
        let mut message = ErrorMessage::new(ErrorCode::StorageFailed, "The journal could not be read or changed.");
        message.detail = Some(format!("{error}. `liminal-builder doctor` checks the journal and its disk."));
        message.into()
    }
}

pub(crate) async fn stats(State(app): State<App>) -> Result<Json<JournalStatsBody>, Failure> {
    let Stats { path, file_bytes, free_bytes, disk_free_bytes, format, items, turns, sessions } =
        app.hub.journal().stats().await?;
    let row = |stats: SessionStats| JournalSession {
        title: app.hub.catalog().session(&stats.session).map(|record| record.title),
        session_id: stats.session,
        items: stats.items,
        turns: stats.turns,
        said_bytes: stats.said_bytes,
        first_at: stats.first_at,
        last_at: stats.last_at,
    };
    Ok(Json(JournalStatsBody {
        path: path.map(|path| path.display().to_string()),
        file_bytes,
        free_bytes,
        disk_free_bytes,
        format,
        items,
        turns,
        sessions: sessions.into_iter().map(row).collect(),
    }))
}

pub(crate) async fn check(State(app): State<App>) -> Result<Json<JournalCheckBody>, Failure> {
    let CheckReport { damage, contradictions, items } = app.hub.journal().check().await?;
    Ok(Json(JournalCheckBody { damage, contradictions, items }))
}

pub(crate) async fn prune(
    State(app): State<App>,
    JsonBody(body): JsonBody<PruneBody>,
) -> Result<Json<PrunedBody>, Failure> {
    let now = Timestamp::from(SystemTime::now());
    let before = match (body.older_than_ms, body.before) {
        (Some(ms), None) => {
            let ms = i64::try_from(ms).unwrap_or(i64::MAX);
            Timestamp::from_unix_ms(now.unix_ms().saturating_sub(ms))
        }
        (None, Some(before)) => before,
        (None, None) => return Err(Failure::invalid("olderThanMs", "olderThanMs or before is missing")),
        (Some(_), Some(_)) => return Err(Failure::invalid("before", "only one of olderThanMs and before is allowed")),
    };
    let Pruned { turns, items, freed_bytes } = app.hub.journal().prune(before).await?;
    Ok(Json(PrunedBody { turns, items, freed_bytes }))
}
