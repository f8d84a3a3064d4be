//! The journal as the hub uses it: where sessions continue in it, and what windows learn of its health.

use std::sync::Arc;

use journal::{FailureKind, Health, Journal, JournalError, SessionHead, SessionKey};
use protocol::{ServerMessage, SessionFacts, SessionId};
use tokio_util::sync::CancellationToken;

use super::{Hub, HubCore, lock};

impl Hub {
    pub fn journal(&self) -> Arc<dyn Journal> {
        Arc::clone(&self.core.journal)
    }
}

impl HubCore {
    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Where the session continues in the journal, and whether this server has taken it over. If the journal cannot be
    /// written, that is tried again when something is recorded.
    pub(crate) async fn head(&self, id: &SessionId) -> Result<(SessionHead, bool), JournalError> {
        if let Some(head) = lock(&self.heads).get(id).cloned() {
            return Ok((head, true));
        }
        let error = match self.take_over(id).await {
            Ok(head) => return Ok((head, true)),
            Err(error) => error,
        };
        tracing::error!(session = %id, %error, "the session is not recorded for now");
        match self.journal.find(id).await? {
            Some(head) => Ok((SessionHead { epoch: head.epoch + 1, ..head }, false)),
            None => Ok((new_head(), false)),
        }
    }

    pub(crate) async fn take_over(&self, id: &SessionId) -> Result<SessionHead, JournalError> {
        let head = self.journal.take_over(id).await?;
        lock(&self.heads).insert(id.clone(), head.clone());
        Ok(head)
    }

    /// Where the next actor of the session goes on.
    pub(crate) fn keep_head(&self, id: &SessionId, head: SessionHead) {
        lock(&self.heads).insert(id.clone(), head);
    }

    /// The session is taken over again by its next actor.
    pub(crate) fn forget_head(&self, id: &SessionId) {
        lock(&self.heads).remove(id);
    }

    /// What every window shows above everything else.
    pub(crate) fn notices(&self) -> Vec<String> {
        let mut notices = self.facts.notices.clone();
        notices.extend(self.agents.notices());
        notices.extend(health_notice(&self.journal.health().borrow()));
        notices
    }
}

/// A session that the journal has nothing of.
pub(crate) fn new_head() -> SessionHead {
    SessionHead {
        key: SessionKey(0),
        epoch: 1,
        seq: 0,
        position: 0,
        items: 0,
        epoch_ends: Vec::new(),
        facts: SessionFacts::default(),
        is_complete: false,
    }
}

fn health_notice(health: &Health) -> Option<String> {
    let Health::Failing { kind, detail } = health else { return None };
    let (what, next) = match kind {
        FailureKind::DiskFull => ("The disk is full", "Free some space"),
        FailureKind::ReadOnly => ("The journal cannot be written: it is read-only", "Make it writable"),
        FailureKind::Locked => ("Another program has locked the journal", "Close that program"),
        FailureKind::Damaged => ("The journal is damaged", "Run `liminal-builder journal check`, then restart"),
        FailureKind::Other => ("The journal cannot be written", "See the log"),
    };
    Some(format!(
        "{what}, so what is said now is kept in memory only. {next}; it is then recorded by itself. ({detail})"
    ))
}

/// Notifies every window when the journal fails and when it works again.
pub(super) async fn report_health(core: Arc<HubCore>, stop: CancellationToken) {
    // The first look opens the file for reading: nobody should wait for that.
    if let Ok(nobody) = SessionId::parse("none:none") {
        core.journal.find(&nobody).await.ok();
    }
    let mut health = core.journal.health();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            changed = health.changed() => if changed.is_err() { return },
        }
        health.borrow_and_update();
        core.broadcast(ServerMessage::ServerNotices { notices: core.notices() });
    }
}
