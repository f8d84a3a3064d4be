//! Sessions that go on under another id: an agent that has nothing of a session begins it anew, and names it anew. Who
//! holds the id from before still reaches it, until the end of this run.

use std::collections::VecDeque;

use protocol::{ServerMessage, SessionId};

use super::{HubCore, lock};

/// Ids from before that are remembered; the oldest are forgotten first.
const RENAMED_MAX: usize = 512;

/// From one id to the next, in the order it happened.
#[derive(Debug, Default)]
pub(super) struct Renamed(VecDeque<(SessionId, SessionId)>);

impl HubCore {
    /// The id that a session has now.
    pub(crate) fn current(&self, id: &SessionId) -> SessionId {
        if self.catalog.session(id).is_some() {
            return id.clone();
        }
        let renamed = lock(&self.renamed);
        // Later ids come later, so one look through them follows a session through all of its own.
        renamed.0.iter().fold(id, |current, (old, new)| if old == current { new } else { current }).clone()
    }

    /// The id that a session had before it got this one, if it changed in this run.
    pub(super) fn id_before(&self, id: &SessionId) -> Option<SessionId> {
        lock(&self.renamed).0.iter().rev().find(|(_, new)| new == id).map(|(old, _)| old.clone())
    }

    /// A session's new id is about to be saved. From here on it is found by both, whichever the catalog has.
    pub(crate) fn begin_rename(&self, old: &SessionId, new: &SessionId) {
        // Under this lock: who looks the session up finds it before and after, by either id.
        let _sessions = lock(&self.sessions);
        let mut renamed = lock(&self.renamed);
        renamed.0.push_back((old.clone(), new.clone()));
        if renamed.0.len() > RENAMED_MAX {
            renamed.0.pop_front();
        }
    }

    /// The agent goes on under another id; so do the list, the state and every window.
    pub(crate) fn rename_session(&self, old: &SessionId, new: &SessionId) {
        let mut sessions = lock(&self.sessions);
        if let Some(entry) = sessions.remove(old) {
            sessions.insert(new.clone(), entry);
        }
        drop(sessions);
        let mut states = lock(&self.states);
        if let Some(state) = states.remove(old) {
            states.insert(new.clone(), state);
        }
        drop(states);
        self.broadcast(ServerMessage::SessionRenamed { session_id: old.clone(), new_session_id: new.clone() });
    }

    /// The new id could not be saved, so the old one stays.
    pub(crate) fn give_up_rename(&self, old: &SessionId, new: &SessionId) {
        let _sessions = lock(&self.sessions);
        lock(&self.renamed).0.retain(|(from, to)| (from, to) != (old, new));
    }
}
