//! `GET /api/session/{id}/export`: a session as one file, streamed from the journal.
//!
//! It is always an attachment: HTML that holds the text of agents is never shown under our own origin.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use export::{Exporter, Format, Header, Redaction, file_stem};
use journal::{Journal, JournalError, Read, SessionKey};
use protocol::{Timestamp, TurnRecord, Upsert};
use serde::Deserialize;
use sessions::ServiceError;

use super::session::SessionPath;
use crate::App;
use crate::error::Failure;

/// Items that are read and written at a time.
const PAGE_ITEMS: usize = 100;

#[derive(Deserialize)]
pub(crate) struct ExportQuery {
    format: Option<String>,
    redact: Option<String>,
}

pub(crate) async fn export(
    State(app): State<App>,
    SessionPath(id): SessionPath,
    query: Result<Query<ExportQuery>, QueryRejection>,
) -> Result<Response, Failure> {
    let Query(query) = query.map_err(|error| Failure::invalid("format", error.body_text()))?;
    let (format, redaction) = parse(&query)?;
    let record = app.hub.catalog().session(&id).ok_or(ServiceError::SessionNotFound(id))?;
    let journal = app.hub.journal();
    let head = match journal.find(&record.id).await? {
        Some(head) if head.is_complete => Some(head),
        // From before the journal: opening it reads the agent's own history into the journal.
        known => match app.hub.load_session(&record.id).await {
            Ok(()) => journal.find(&record.id).await?,
            // What is here is written, and the file says that earlier parts are missing.
            Err(error) => Some(known.filter(|head| head.items > 0).ok_or(error)?),
        },
    };
    let is_complete = head.as_ref().is_none_or(|head| head.is_complete);
    let pages = match head {
        Some(head) => Pages::find(journal, head.key).await?,
        None => Pages::none(journal),
    };
    let header = Header {
        agent: app.hub.agent_name(&record.cli_type),
        project_path: app.hub.catalog().project(&record.project_id).map(|project| project.path),
        session_id: record.id,
        title: record.title,
        created_at: record.created_at,
        exported_at: Timestamp::from(SystemTime::now()),
        is_complete,
    };
    let name = match redaction {
        Redaction::None => file_stem(&header.title),
        Redaction::Secrets => file_stem(&export::redact::text(&header.title)),
    };
    let export = Export { exporter: Exporter::new(format, redaction, header), pages, step: Step::Begin };
    let body = Body::from_stream(futures_util::stream::try_unfold(export, Export::next));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(format.content_type())),
        (header::CONTENT_DISPOSITION, disposition(&format!("{name}.{}", format.name()))),
    ];
    Ok((headers, body).into_response())
}

fn parse(query: &ExportQuery) -> Result<(Format, Redaction), Failure> {
    let format = match query.format.as_deref() {
        None => Format::Markdown,
        Some(name) => Format::from_name(name).ok_or_else(|| Failure::invalid("format", "must be md, json or html"))?,
    };
    let redaction = match query.redact.as_deref() {
        None | Some("false" | "0") => Redaction::None,
        // Anything that is not understood must not lead to a file with secrets in it.
        Some("true" | "1" | "") => Redaction::Secrets,
        Some(_) => return Err(Failure::invalid("redact", "must be true or false")),
    };
    Ok((format, redaction))
}

/// The name in ASCII for old clients, and in full for the others. It holds letters, digits, hyphens and one dot.
fn disposition(name: &str) -> HeaderValue {
    let ascii: String = name.chars().map(|letter| if letter.is_ascii() { letter } else { '_' }).collect();
    let encoded: String = name
        .bytes()
        .map(|byte| match byte {
            b'-' | b'.' => char::from(byte).to_string(),
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    HeaderValue::from_str(&format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{encoded}"))
        .unwrap_or(HeaderValue::from_static("attachment"))
}

/// A file that is being written. Dropped when the client has left.
struct Export {
    exporter: Exporter,
    pages: Pages,
    step: Step,
}

#[derive(Clone, Copy)]
enum Step {
    Begin,
    Pages,
    Over,
}

/// Why a file breaks off. The client notices that the answer has no end.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Export {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, BoxError> {
        let page = match self.step {
            Step::Begin => None,
            Step::Pages => self.pages.next().await.map_err(interrupted)?,
            Step::Over => return Ok(None),
        };
        // Rendering takes long, and must not hold up other requests.
        let written = tokio::task::spawn_blocking(move || {
            let mut out = Vec::new();
            match (self.step, &page) {
                (Step::Begin, _) => {
                    self.exporter.begin(&mut out)?;
                    self.step = Step::Pages;
                }
                (_, Some(page)) => self.exporter.page(&page.turns, &page.items, &mut out)?,
                (_, None) => {
                    self.exporter.end(&mut out)?;
                    self.step = Step::Over;
                }
            }
            Ok::<_, std::io::Error>((Bytes::from(out), self))
        });
        Ok(Some(written.await.map_err(interrupted)??))
    }
}

fn interrupted(error: impl std::error::Error + Send + Sync + 'static) -> BoxError {
    tracing::warn!(%error, "an export was interrupted");
    error.into()
}

/// A session's items from the first to the last. The journal reads backwards, so the places where pages begin are found
/// first; what is recorded later is not part of the file.
struct Pages {
    journal: Arc<dyn Journal>,
    key: SessionKey,
    /// Where each page ends, the newest page first. A page begins where the next one in this list ends.
    ends: Vec<i64>,
    start: i64,
}

struct ExportPage {
    turns: Vec<TurnRecord>,
    items: Vec<Upsert>,
}

impl Pages {
    fn none(journal: Arc<dyn Journal>) -> Self {
        Self { journal, key: SessionKey(0), ends: Vec::new(), start: i64::MIN }
    }

    async fn find(journal: Arc<dyn Journal>, key: SessionKey) -> Result<Self, JournalError> {
        let mut ends = Vec::new();
        let mut page = journal.read(key, Read::Newest { limit: PAGE_ITEMS }).await?;
        if let Some(last) = page.items.last() {
            ends.push(last.position.saturating_add(1));
        }
        while let Some(first) = page.items.first().filter(|_| page.more) {
            let position = first.position;
            ends.push(position);
            page = journal.read(key, Read::Before { position, limit: PAGE_ITEMS }).await?;
        }
        Ok(Self { journal, key, ends, start: i64::MIN })
    }

    /// The next items and their turns. None after the last.
    async fn next(&mut self) -> Result<Option<ExportPage>, JournalError> {
        let Some(end) = self.ends.pop() else { return Ok(None) };
        let start = std::mem::replace(&mut self.start, end);
        let mut found = ExportPage { turns: Vec::new(), items: Vec::new() };
        let mut position = end;
        // Usually one read; more if turns of the agent's own history were inserted meanwhile.
        loop {
            let page = self.journal.read(self.key, Read::Before { position, limit: PAGE_ITEMS }).await?;
            let Some(first) = page.items.first().map(|item| item.position) else { break };
            let mut items: Vec<Upsert> =
                page.items.into_iter().filter(|item| item.position >= start).map(|item| item.upsert).collect();
            items.append(&mut found.items);
            found.items = items;
            found.turns.extend(page.turns.into_iter().map(|turn| turn.record));
            if first <= start || !page.more {
                break;
            }
            position = first;
        }
        Ok(Some(found))
    }
}
