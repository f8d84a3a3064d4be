//! A session's past: what came of loading it, and its older stretches.

use std::sync::Arc;

use protocol::{Continuity, ErrorCode, Origin, SessionId, Timestamp, TurnRecordStatus};
use providers::{History, Loaded, ProviderError, ProviderEvent};
use upserts::ItemBody;

use super::{Command, Session};

/// Between our note of a message and the agent's.
const CLOCKS_DIFFER_MS: i64 = 1_000;

impl Session {
    pub(super) fn loaded(&mut self, loaded: Loaded) {
        if self.unwanted {
            let (provider, id) = (Arc::clone(&self.provider), loaded.session.id);
            self.hub.tasks().spawn(async move { provider.kill_session(&id).await.ok() });
            return self.load_failed(ProviderError::LoadFailed { detail: "the session was ended".into() });
        }
        self.loading = false;
        self.watch.loading(false);
        self.watch.continuity(loaded.history.continuity);
        self.events = Some(loaded.session.events);
        self.facts.merge(loaded.history.facts.clone());
        if self.transcript.is_new() {
            let mut history = loaded.history;
            if let Some((message, sent_at)) = self.hub.unanswered(&self.id) {
                mark_cut_short(&mut history, &message, sent_at);
            }
            self.transcript.load(history);
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
        self.events = None;
        let (provider, agent_id) = (Arc::clone(&self.provider), new.agent_session_id());
        self.hub.tasks().spawn(async move { provider.kill_session(&agent_id).await.ok() });
        self.load_failed(ProviderError::LoadFailed { detail: format!("its new id could not be saved: {error}") });
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
        for command in std::mem::take(&mut self.waiting) {
            command.refuse(&failure, Some(&self.id));
        }
        // With nothing to show the session leaves, and the next one who opens it tries again.
        (self.loading, self.unwanted) = (false, false);
        self.ended = self.leaving || self.transcript.is_new();
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
                let failure = ProviderError::LoadFailed { detail: error.to_string() };
                let wants_it = |command: &mut Command| matches!(command, Command::Open { .. } | Command::Page { .. });
                for command in self.waiting.extract_if(.., wants_it) {
                    command.refuse(&failure, Some(&self.id));
                }
            }
        }
        self.resume_waiting();
    }

    pub(super) fn resume_waiting(&mut self) {
        for command in std::mem::take(&mut self.waiting) {
            self.obey(command);
        }
    }
}

/// The server ended in the middle of the turn that this message began, which no agent's record says. If it is the last one,
/// it did not come to its end.
fn mark_cut_short(history: &mut History, message: &str, sent_at: Timestamp) {
    let Some(last) = history.turns.last_mut() else { return };
    let mut its_items = history.items.iter().filter(|item| item.turn_id == last.turn_id);
    let asked = its_items.find_map(|item| match &item.body {
        ItemBody::Message { text, origin: Origin::User } => Some(catalog::title_from(&text.to_string())),
        _ => None,
    });
    let is_it = match asked {
        Some(asked) => asked == message,
        // Of a long turn only the end is loaded.
        None => history.older.is_some() && history.items.first().is_some_and(|item| item.turn_id == last.turn_id),
    };
    // The same words may have begun an earlier turn, which came to its end.
    let is_earlier = last.started_at.unix_ms() + CLOCKS_DIFFER_MS < sent_at.unix_ms();
    if is_it && !is_earlier {
        last.status = TurnRecordStatus::Error;
        last.error_code = Some(ErrorCode::ProcessCrash.as_str().into());
        last.error_message = Some("Liminal Builder stopped in the middle of this turn".into());
    }
}
