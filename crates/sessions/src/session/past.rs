//! A session's past: what came of loading it, and its older stretches.

use catalog::{LastTurn, TurnEnd};
use protocol::{Continuity, ItemId, Origin, SessionId, TurnId, TurnRecord, TurnRecordStatus, UpsertStatus};
use providers::{History, Loaded, ProviderError, ProviderEvent};
use upserts::{ItemBody, ItemUpdate};

use super::{Command, Link, Session};

/// Between our note of a message and the agent's.
const CLOCKS_DIFFER_MS: i64 = 1_000;

impl Session {
    pub(super) fn load_ended(&mut self, loaded: Result<Loaded, ProviderError>) {
        let is_wanted = !matches!(self.link, Link::Loading { unwanted: true });
        let is_wanted = is_wanted && !self.closing && self.ending.is_none();
        match loaded {
            Ok(loaded) if is_wanted => self.loaded(loaded),
            Err(error) if is_wanted => self.load_failed(error),
            Ok(loaded) => self.discard(loaded.session.id),
            Err(error) => {
                tracing::debug!(session = %self.id, %error, "a session that was ended could not be loaded");
                self.discarded();
            }
        }
    }

    fn loaded(&mut self, loaded: Loaded) {
        self.watch.loading(false);
        self.watch.continuity(loaded.history.continuity);
        self.link = Link::Attached(loaded.session.events);
        self.facts.merge(loaded.history.facts.clone());
        if self.transcript.is_new() {
            let mut history = loaded.history;
            if let Some(last) = self.hub.catalog().session(&self.id).and_then(|record| record.last_turn) {
                complete_last_turn(&mut history, &self.id, last);
            }
            for (seq, cell) in self.transcript.load(history) {
                // To windows that were here before it could be loaded.
                for (_, outbox) in &self.members {
                    outbox.push_item(&self.id, seq, &cell);
                }
            }
        }
        let agent_id = loaded.session.id;
        if agent_id != self.id.agent_session_id() {
            self.hear(ProviderEvent::IdChanged(agent_id));
        }
        self.publish_state();
        if !self.renaming {
            self.resume_waiting();
        }
    }

    /// What would be said under the new id could not be found again, so the agent is not spoken to.
    pub(super) fn rename_failed(&mut self, new: &SessionId, error: &catalog::CatalogError) {
        self.renaming = false;
        self.hub.give_up_rename(&self.id, new);
        self.load_failed(ProviderError::LoadFailed { detail: format!("its new id could not be saved: {error}") });
        self.ended = false;
        self.discard(new.agent_session_id());
    }

    pub(super) fn load_failed(&mut self, error: ProviderError) {
        tracing::warn!(session = %self.id, %error, "could not load");
        self.watch.loading(false);
        if !self.transcript.is_new() {
            // What we have stays, and says what it is.
            self.watch.continuity(Continuity::Copy);
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
        for command in std::mem::take(&mut self.waiting) {
            command.refuse(&failure, Some(&self.id));
        }
        self.link = self.without_agent();
        self.end_if_useless();
    }

    pub(super) fn older_came(&mut self, older: Result<History, ProviderError>) {
        self.fetching_older = false;
        match older {
            // Without a cursor, what it would stand in front of was let go meanwhile.
            Ok(_) if self.transcript.older().is_none() => {}
            Ok(history) => self.transcript.prepend(history),
            Err(error) => {
                // Who wanted it is told, and may ask again. Who waits for something else goes on waiting.
                tracing::warn!(session = %self.id, %error, "older history could not be read");
                let failure = ProviderError::LoadFailed { detail: error.to_string() }.into();
                let wants_it = |command: &mut Command| matches!(command, Command::Open { .. } | Command::Page { .. });
                for command in self.waiting.extract_if(.., wants_it) {
                    command.refuse(&failure, Some(&self.id));
                }
            }
        }
        self.resume_waiting();
    }

    pub(super) fn resume_waiting(&mut self) {
        // One by one: if one of them breaks the session, the others are still here to be refused.
        for _ in 0..self.waiting.len() {
            if self.waiting.is_empty() {
                return;
            }
            let command = self.waiting.remove(0);
            self.obey(command);
        }
    }
}

/// Our own record knows what no agent's does: that the server ended in the middle of a turn. It also knows when the turn was
/// and how it ended, which some agents do not keep. A turn that was cut short and that the agent has no record of is shown
/// as far as we have it.
fn complete_last_turn(history: &mut History, session: &SessionId, ours: LastTurn) {
    match matching_turn(history, &ours) {
        Some(turn) => complete(history, &turn, ours),
        None if ours.end != TurnEnd::Completed && !may_be_recorded(history, &ours) => append(history, session, ours),
        None => {}
    }
}

fn is_asked(item: &ItemUpdate) -> bool {
    matches!(item.body, ItemBody::Message { origin: Origin::User, .. })
}

fn asks(item: &ItemUpdate, message: &str) -> bool {
    let text = item.body.text().filter(|_| is_asked(item));
    text.is_some_and(|text| catalog::title_from(&text.to_string()) == message)
}

/// Whether a turn of the agent's history began before ours. One whose time is not known may be ours.
fn is_earlier(turn: &TurnRecord, ours: &LastTurn) -> bool {
    !turn.started_at.is_unset() && turn.started_at.unix_ms() + CLOCKS_DIFFER_MS < ours.started_at.unix_ms()
}

/// The turn of the agent's history that our record is about.
fn matching_turn(history: &History, ours: &LastTurn) -> Option<TurnId> {
    // An agent may have said something of its own after it.
    let turn = match history.items.iter().rfind(|item| is_asked(item)) {
        Some(item) if asks(item, &ours.message) => &item.turn_id,
        Some(_) => return None,
        // Of a long turn only the end is loaded.
        None => &history.items.first().filter(|_| history.older.is_some())?.turn_id,
    };
    let last = history.turns.iter().rfind(|record| record.turn_id == *turn)?;
    // The same words may have begun another turn, before ours or after it, which came to its own end.
    let is_later = ours.ended_at.is_some_and(|ended| last.started_at.unix_ms() > ended.unix_ms() + CLOCKS_DIFFER_MS);
    (!is_earlier(last, ours) && !is_later).then(|| turn.clone())
}

/// The user may have gone on with the session elsewhere, and of a long history only the end is here.
fn may_be_recorded(history: &History, ours: &LastTurn) -> bool {
    let is_cut = history.older.is_some() && history.turns.last().is_some_and(|last| !is_earlier(last, ours));
    let recent = history.turns.iter().filter(|turn| !is_earlier(turn, ours)).map(|turn| &turn.turn_id);
    let recent: Vec<_> = recent.collect();
    is_cut || history.items.iter().any(|item| asks(item, &ours.message) && recent.contains(&&item.turn_id))
}

fn complete(history: &mut History, turn: &TurnId, ours: LastTurn) {
    let Some(last) = history.turns.iter_mut().rfind(|record| record.turn_id == *turn) else { return };
    if last.started_at.is_unset() {
        (last.started_at, last.ended_at) = (ours.started_at, ours.ended_at);
        let asked = history.items.iter_mut().rfind(|item| item.turn_id == *turn && is_asked(item));
        if let Some(asked) = asked.filter(|item| item.source_timestamp.is_unset()) {
            asked.source_timestamp = ours.started_at;
        }
    }
    match ours.end {
        TurnEnd::Completed => {}
        TurnEnd::Cancelled if last.status == TurnRecordStatus::Completed => last.status = TurnRecordStatus::Cancelled,
        TurnEnd::Cancelled => {}
        TurnEnd::Error { error_code, error_message } => {
            last.status = TurnRecordStatus::Error;
            // The agent's own words, where it kept any, say at least as much.
            last.error_code.get_or_insert(error_code);
            last.error_message.get_or_insert(error_message);
        }
    }
}

/// Shows the beginning of the message, which is all our record has, and how its turn ended.
fn append(history: &mut History, session: &SessionId, ours: LastTurn) {
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
    });
}
