//! What our own record adds to an agent's history: how the last turn ended, which some agents do not keep.

use catalog::{LastTurn, TurnEnd};
use protocol::{ItemId, Origin, SessionId, TurnId, TurnRecord, TurnRecordStatus, UpsertStatus};
use upserts::{ItemBody, ItemUpdate};

use super::HistoryPage;

/// Between our time of a message and the agent's.
const CLOCKS_DIFFER_MS: i64 = 1_000;

/// Our own record has what no agent's has: that the server ended in the middle of a turn. It also knows when the turn was
/// and how it ended, which some agents do not keep. A turn that was cut short and that the agent has no record of is shown
/// as far as we have it.
pub(super) fn complete_last_turn(history: &mut HistoryPage, session: &SessionId, ours: LastTurn) {
    match matching_turn(history, &ours) {
        Some(turn) => complete(history, &turn, ours),
        None if ours.end != TurnEnd::Completed && !may_be_recorded(history, &ours) => append(history, session, ours),
        None => {}
    }
}

fn is_prompt(item: &ItemUpdate) -> bool {
    matches!(item.body, ItemBody::Message { origin: Origin::User, .. })
}

fn has_prompt(item: &ItemUpdate, message: &str) -> bool {
    let text = item.body.text().filter(|_| is_prompt(item));
    text.is_some_and(|text| catalog::title_from(&text.to_string()) == message)
}

/// Whether a turn of the agent's history began before ours. One whose time is not known may be ours.
fn is_earlier(turn: &TurnRecord, ours: &LastTurn) -> bool {
    !turn.started_at.is_unset() && turn.started_at.unix_ms() + CLOCKS_DIFFER_MS < ours.started_at.unix_ms()
}

/// The turn of the agent's history that our record is about.
fn matching_turn(history: &HistoryPage, ours: &LastTurn) -> Option<TurnId> {
    // The agent may have begun a turn of its own after it.
    let turn = match history.items.iter().rfind(|item| is_prompt(item)) {
        Some(item) if has_prompt(item, &ours.message) => &item.turn_id,
        Some(_) => return None,
        // Of a long turn only the end is loaded.
        None => &history.items.first().filter(|_| history.older.is_some())?.turn_id,
    };
    let last = history.turns.iter().rfind(|record| record.turn_id == *turn)?;
    // The same message may have begun another turn, before ours or after it, which came to its own end.
    let is_later = ours.ended_at.is_some_and(|ended| last.started_at.unix_ms() > ended.unix_ms() + CLOCKS_DIFFER_MS);
    (!is_earlier(last, ours) && !is_later).then(|| turn.clone())
}

/// The user may have gone on with the session elsewhere, and of a long history only the end is here.
fn may_be_recorded(history: &HistoryPage, ours: &LastTurn) -> bool {
    let is_cut = history.older.is_some() && history.turns.last().is_some_and(|last| !is_earlier(last, ours));
    let recent = history.turns.iter().filter(|turn| !is_earlier(turn, ours)).map(|turn| &turn.turn_id);
    let recent: Vec<_> = recent.collect();
    is_cut || history.items.iter().any(|item| has_prompt(item, &ours.message) && recent.contains(&&item.turn_id))
}

fn complete(history: &mut HistoryPage, turn: &TurnId, ours: LastTurn) {
    let Some(last) = history.turns.iter_mut().rfind(|record| record.turn_id == *turn) else { return };
    if last.started_at.is_unset() {
        (last.started_at, last.ended_at) = (ours.started_at, ours.ended_at);
        let prompt = history.items.iter_mut().rfind(|item| item.turn_id == *turn && is_prompt(item));
        if let Some(prompt) = prompt.filter(|item| item.source_timestamp.is_unset()) {
            prompt.source_timestamp = ours.started_at;
        }
    }
    match ours.end {
        TurnEnd::Completed => {}
        TurnEnd::Cancelled if last.status == TurnRecordStatus::Completed => last.status = TurnRecordStatus::Cancelled,
        TurnEnd::Cancelled => {}
        TurnEnd::Error { error_code, error_message } => {
            last.status = TurnRecordStatus::Error;
            // The agent's own message, where it has one, says at least as much.
            last.error_code.get_or_insert(error_code);
            last.error_message.get_or_insert(error_message);
        }
    }
}

/// Shows the beginning of the message, which is all our record has, and how its turn ended.
fn append(history: &mut HistoryPage, session: &SessionId, ours: LastTurn) {
    let turn_id = TurnId::from_foreign(&format!("unanswered.{}", ours.started_at.unix_ms()));
    history.items.push(ItemUpdate {
        item_id: ItemId::from_foreign(turn_id.as_str()),
        turn_id: turn_id.clone(),
        session_id: session.clone(),
        parent_item_id: None,
        source_timestamp: ours.started_at,
        emitted_at: ours.started_at,
        status: UpsertStatus::Complete,
        error: None,
        body: ItemBody::Message { text: ours.message.as_str().into(), origin: Origin::User },
    });
    let (status, error_code, error_message) = match ours.end {
        TurnEnd::Completed => (TurnRecordStatus::Completed, None, None),
        TurnEnd::Cancelled => (TurnRecordStatus::Cancelled, None, None),
        TurnEnd::Error { error_code, error_message } => {
            (TurnRecordStatus::Error, Some(error_code), Some(error_message))
        }
    };
    history.turns.push(TurnRecord {
        turn_id,
        status,
        started_at: ours.started_at,
        ended_at: ours.ended_at,
        model_id: None,
        usage: None,
        error_code,
        error_message,
        forgotten: false,
    });
}
