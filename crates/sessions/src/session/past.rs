//! A session's past: what came of loading it, and its older stretches.

use protocol::Continuity;
use providers::{History, Loaded, ProviderError, ProviderEvent};

use super::{Command, Session};

impl Session {
    pub(super) fn loaded(&mut self, loaded: Loaded) {
        self.loading = false;
        self.watch.loading(false);
        self.watch.continuity(loaded.history.continuity);
        self.events = Some(loaded.session.events);
        self.facts.merge(loaded.history.facts.clone());
        if self.transcript.is_new() {
            self.transcript.load(loaded.history);
        }
        let agent_id = loaded.session.id;
        if agent_id != self.id.agent_session_id() {
            self.hear(ProviderEvent::IdChanged(agent_id));
        }
        self.publish_state();
        self.resume_waiting();
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
        self.loading = false;
        self.ended = self.transcript.is_new();
    }

    pub(super) fn older_came(&mut self, older: Result<History, ProviderError>) {
        self.fetching_older = false;
        match older {
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
