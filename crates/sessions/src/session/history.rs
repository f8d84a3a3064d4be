//! A session's history: loading it, its older pages, and what our own record adds to it.

use std::sync::Arc;

use catalog::{LastTurn, TurnEnd};
use protocol::{
    Continuity, ItemId, Origin, SessionFacts, SessionId, TurnId, TurnRecord, TurnRecordStatus, UpsertStatus,
};
use providers::{History, HistoryCursor, LoadedSession, OpenedSession, ProviderError, StoredSession};
use upserts::{ItemBody, ItemUpdate};

use super::phases::{Lifetime, Link};
use super::{CallResult, OlderRead, SessionActor, SessionCommand, now};

/// Between our time of a message and the agent's.
const CLOCKS_DIFFER_MS: i64 = 1_000;

/// A page of history with its items in their final state.
#[derive(Debug, Default)]
pub(crate) struct HistoryPage {
    pub(crate) items: Vec<ItemUpdate>,
    pub(crate) turns: Vec<TurnRecord>,
    pub(crate) facts: SessionFacts,
    pub(crate) older: Option<HistoryCursor>,
    pub(crate) continuity: Continuity,
}

impl From<History> for HistoryPage {
    /// Takes as long as the page is long: call it beside the session's loop.
    fn from(History { events, turns, facts, older, continuity }: History) -> Self {
        Self { items: upserts::fold(events, now()), turns, facts, older, continuity }
    }
}

impl SessionActor {
    pub(super) fn load(&mut self, mut stored: StoredSession) {
        self.link = Link::Loading;
        self.shown.watch.loading(true);
        self.persist.complete(&mut stored);
        let provider = Arc::clone(&self.provider);
        self.calls.spawn(async move {
            let loaded = provider.load_session(stored).await;
            CallResult::Loaded(loaded.map(|LoadedSession { opened, history }| (opened, history.into())))
        });
    }

    pub(super) fn load_ended(&mut self, loaded: Result<(OpenedSession, HistoryPage), ProviderError>) {
        let is_wanted = matches!((&self.link, &self.lifetime), (Link::Loading, Lifetime::Open));
        match loaded {
            Ok((opened, page)) if is_wanted => self.loaded(opened, page),
            Err(error) if is_wanted => self.load_failed(error),
            Ok((opened, _)) => self.discard(opened.session),
            Err(error) => {
                tracing::debug!(session = %self.id, %error, "a session that was ended could not be loaded");
                self.discarded();
            }
        }
    }

    fn loaded(&mut self, opened: OpenedSession, mut page: HistoryPage) {
        self.shown.watch.loading(false);
        self.shown.watch.continuity(page.continuity);
        let agent_id = opened.agent_id.clone();
        self.attach(opened);
        self.facts.merge(page.facts.clone());
        if self.transcript.is_new() {
            if let Some(last) = self.hub.catalog().session(&self.id).and_then(|record| record.last_turn) {
                complete_last_turn(&mut page, &self.id, last);
            }
            for (seq, cell) in self.transcript.load(page) {
                // To windows that were here before it could be loaded.
                for (_, outbox) in &self.members {
                    outbox.push_item(&self.id, seq, &cell);
                }
            }
        }
        self.agent_id_changed(agent_id);
        self.publish_state();
        self.resume_waiting();
    }

    pub(super) fn load_failed(&mut self, error: ProviderError) {
        tracing::warn!(session = %self.id, %error, "could not load");
        self.shown.watch.loading(false);
        if !self.transcript.is_new() {
            // What we have stays, marked as a copy.
            self.shown.watch.continuity(Continuity::Copy);
        }
        self.publish_state();
        let failure = match error {
            // These say more than "could not load": what to install, or how to log in.
            ProviderError::NotInstalled { .. }
            | ProviderError::Handshake { .. }
            | ProviderError::LoginRequired { .. } => error,
            other => ProviderError::LoadFailed { detail: other.to_string() },
        };
        let failure = failure.into();
        for command in std::mem::take(&mut self.inbox.waiting) {
            command.refuse(&failure, Some(&self.id));
        }
        self.link = self.without_agent();
        self.end_if_useless();
    }

    /// Reads an older page, unless one is being read already.
    pub(super) fn read_older(&mut self, limit: usize) {
        if self.reads.older == OlderRead::Running {
            return;
        }
        let (Some(agent), Some(cursor)) = (self.link.agent().cloned(), self.transcript.older().cloned()) else {
            return;
        };
        self.reads.older = OlderRead::Running;
        self.calls.spawn(async move {
            let older = agent.older_history(&cursor, limit).await;
            CallResult::Older(older.map(Into::into))
        });
    }

    pub(super) fn older_ended(&mut self, older: Result<HistoryPage, ProviderError>) {
        self.reads.older = OlderRead::Idle;
        match older {
            // Without a cursor, what it would stand in front of was evicted meanwhile.
            Ok(_) if self.transcript.older().is_none() => {}
            Ok(page) => self.transcript.prepend(page),
            Err(error) => {
                // Who wanted it gets the error, and may ask again. Who waits for something else goes on waiting.
                tracing::warn!(session = %self.id, %error, "older history could not be read");
                let failure = ProviderError::LoadFailed { detail: error.to_string() }.into();
                let wants_it = |command: &mut SessionCommand| {
                    matches!(command, SessionCommand::Open { .. } | SessionCommand::Page { .. })
                };
                for command in self.inbox.waiting.extract_if(.., wants_it) {
                    command.refuse(&failure, Some(&self.id));
                }
            }
        }
        self.resume_waiting();
    }

    pub(super) fn resume_waiting(&mut self) {
        // One by one: if one of them panics, the others are still here to be refused.
        for _ in 0..self.inbox.waiting.len() {
            if self.inbox.waiting.is_empty() {
                return;
            }
            let command = self.inbox.waiting.remove(0);
            self.handle(command);
        }
    }
}

/// Our own record has what no agent's has: that the server ended in the middle of a turn. It also knows when the turn was
/// and how it ended, which some agents do not keep. A turn that was cut short and that the agent has no record of is shown
/// as far as we have it.
fn complete_last_turn(history: &mut HistoryPage, session: &SessionId, ours: LastTurn) {
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
