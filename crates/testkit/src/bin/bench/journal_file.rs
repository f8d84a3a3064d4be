//! A large journal: how fast the server starts over it, and how fast a page of a very long session comes.
//!
//! The file is written through the journal's own crate, in a temporary directory, and deleted afterwards.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use journal::{Batch, ItemChange, Journal, POSITION_GAP, SessionHead, SqliteJournal, TurnChange, TurnOrigin};
use protocol::{
    CallId, ItemId, Origin, SessionId, Timestamp, TurnId, TurnRecord, TurnRecordStatus, Upsert, UpsertBody,
    UpsertStatus,
};
use serde_json::json;
use tempfile::TempDir;

use crate::Effort;
use crate::client::Window;
use crate::row::{Row, Target, quantile};
use crate::server::{self, Server};

const ITEMS_PER_TURN: usize = 20;
/// Of the sessions that fill the file.
const FILLER_ITEMS: usize = 2_000;
const FILLER_TEXT_BYTES: usize = 4_000;
const LONG_TEXT_BYTES: usize = 600;
const PAGE_ITEMS: usize = 100;
/// Pages from the top that are read.
const TOP_PAGES: usize = 20;
/// 15 November 2026.
const NOON_MS: i64 = 1_794_744_000_000;

pub(crate) async fn rows(program: &Path, effort: Effort) -> anyhow::Result<Vec<Row>> {
    let server = Server::start(program).await?;
    let session = Window::open(&server).await?.create().await?;
    let home = server.stop().await?;
    let bytes = fill(&home, &session, effort).await?;
    let size = format!("{:.1} GB", bytes as f64 / 1e9);
    let what = format!("cold start to listening, journal of {size}");
    let mut rows = Vec::from(server::cold_start_in(program, effort.starts, home.path(), &what).await?);
    rows.extend(pages(program, effort, home, &session).await?);
    Ok(rows)
}

/// Returns how large the file is.
async fn fill(home: &TempDir, session: &str, effort: Effort) -> anyhow::Result<u64> {
    let room = rustix::fs::statvfs(home.path())?;
    let free_bytes = room.f_bavail * room.f_frsize;
    ensure!(
        free_bytes > effort.journal_bytes * 2,
        "only {free_bytes} bytes are free; the large journal needs twice its size"
    );
    let data_dir = home.path().join(".liminal-builder");
    let opened = SqliteJournal::open(&data_dir)?.journal;
    write_session(&opened, session, effort.journal_items, LONG_TEXT_BYTES).await?;
    let file = data_dir.join("journal.db");
    for number in 0.. {
        if std::fs::metadata(&file)?.len() >= effort.journal_bytes {
            break;
        }
        write_session(&opened, &format!("codex:filler-{number}"), FILLER_ITEMS, FILLER_TEXT_BYTES).await?;
    }
    opened.close().await;
    Ok(std::fs::metadata(&file)?.len())
}

async fn write_session(journal: &SqliteJournal, session: &str, items: usize, text_bytes: usize) -> anyhow::Result<()> {
    let session = SessionId::parse(session)?;
    let head = journal.take_over(&session).await?;
    let SessionHead { key, mut seq, mut position, .. } = head;
    let turns: Vec<usize> = (0..items.div_ceil(ITEMS_PER_TURN)).collect();
    // Many turns in one transaction: this is not what is measured.
    for turns in turns.chunks(50) {
        let mut batch = Batch {
            session: key,
            confirmed: false,
            items: Vec::new(),
            turns: Vec::new(),
            marks: Vec::new(),
            facts: None,
            completes: true,
        };
        for turn in turns {
            let turn_id = TurnId::parse(format!("turn-{turn}"))?;
            position += POSITION_GAP;
            seq += 1;
            batch.turns.push(turn_change(turn_id.clone(), position, seq));
            for number in turn * ITEMS_PER_TURN..((turn + 1) * ITEMS_PER_TURN).min(items) {
                position += POSITION_GAP;
                seq += 1;
                let upsert = item(&session, &turn_id, number, text_bytes)?;
                batch.items.push(ItemChange { upsert, text_from: 0, position, first: seq, last: seq });
            }
        }
        journal.append(batch).await.context("the journal has ended")??;
    }
    Ok(())
}

fn item_id(number: usize) -> String {
    format!("019a-7f2e-4c1d-{number:012}")
}

fn item(session: &SessionId, turn_id: &TurnId, number: usize, text_bytes: usize) -> anyhow::Result<Upsert> {
    let at = Timestamp::from_unix_ms(NOON_MS + number as i64 * 1000);
    let text = format!("Part {number} of the **work** is done; `item_{number}` holds what came of it. ");
    let text = text.repeat(text_bytes / text.len() + 1);
    let body = match number % ITEMS_PER_TURN {
        0 => UpsertBody::Message { content: text, origin: Origin::User },
        odd if odd % 2 == 1 => UpsertBody::Message { content: text, origin: Origin::Agent },
        _ => UpsertBody::ToolCall {
            tool_name: "shell".into(),
            tool_arguments: Arc::new([("command".to_owned(), "cargo test".into())].into_iter().collect()),
            call_id: CallId::parse(format!("call-{number}"))?,
            tool_output: Some(text),
            tool_output_is_error: Some(false),
            tool: None,
        },
    };
    Ok(Upsert {
        turn_id: turn_id.clone(),
        session_id: Some(session.clone()),
        item_id: ItemId::parse(item_id(number))?,
        source_timestamp: at,
        emitted_at: at,
        status: UpsertStatus::Complete,
        error_code: None,
        error_message: None,
        parent_item_id: None,
        body,
        view: Default::default(),
    })
}

fn turn_change(turn_id: TurnId, position: i64, seq: u64) -> TurnChange {
    let record = TurnRecord {
        turn_id,
        status: TurnRecordStatus::Completed,
        started_at: Timestamp::from_unix_ms(NOON_MS),
        ended_at: Some(Timestamp::from_unix_ms(NOON_MS + 1000)),
        model_id: None,
        usage: None,
        error_code: None,
        error_message: None,
        forgotten: false,
    };
    TurnChange { record, origin: TurnOrigin::Live, position, first: seq, last: seq }
}

/// The newest page, right after a start and again, and pages at the top. The floor is the shortest question there is.
async fn pages(program: &Path, effort: Effort, mut home: TempDir, session: &str) -> anyhow::Result<Vec<Row>> {
    let (mut first, mut again, mut top, mut floor) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.starts.div_ceil(3) {
        let server = Server::start_in(program, home).await?;
        let mut window = Window::open(&server).await?;
        let (newest, took_ms) = window.timed_call(json!({"type": "session:open", "sessionId": session})).await?;
        first.push(took_ms);
        let entries = newest["entries"].as_array().context("no entries")?;
        let last = entries.last().context("no items")?;
        ensure!(last["itemId"] == item_id(effort.journal_items - 1), "the last item is {}", last["itemId"]);
        again.push(window.timed_call(json!({"type": "session:open", "sessionId": session})).await?.1);
        for page in 1..=TOP_PAGES {
            let before = item_id(page * PAGE_ITEMS);
            let request = json!({"type": "session:page", "sessionId": session, "before": before, "limit": PAGE_ITEMS});
            let (answer, took_ms) = window.timed_call(request).await?;
            ensure!(answer["entries"].as_array().map(Vec::len) == Some(PAGE_ITEMS), "page {page} is not whole");
            ensure!(answer["entries"][0]["itemId"] == item_id((page - 1) * PAGE_ITEMS), "page {page} begins elsewhere");
            top.push(took_ms);
        }
        floor.push(window.timed_call(json!({"type": "session:seen", "sessionId": session})).await?.1);
        home = server.stop().await?;
    }
    let floor = quantile(&mut floor, 0.5);
    let items = effort.journal_items;
    let row = |what: &str, samples: &mut [f64], part, most| Row {
        name: format!("{what} of a session of {items} items, at the socket"),
        value: quantile(samples, part),
        unit: "ms",
        target: Target::Most(most),
        floor: Some(floor),
    };
    Ok(vec![
        row("newest page, first after a start, p50,", &mut first, 0.5, 5.0),
        row("newest page, again, p50,", &mut again, 0.5, 5.0),
        row("a page at the top, p50,", &mut top, 0.5, 50.0),
        row("a page at the top, p99,", &mut top, 0.99, 50.0),
    ])
}
