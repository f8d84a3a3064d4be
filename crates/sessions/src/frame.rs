//! Encoded messages, shared between windows, and which of them may overtake others.

use bytes::Bytes;
use protocol::{ServerFrame, ServerMessage, SessionId};
use serde::Serialize;

/// One text frame, ready to be written. Clones share the bytes.
#[derive(Clone, Debug)]
pub struct Frame(Bytes);

impl Frame {
    /// UTF-8, always: it was made by a JSON writer.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn of(message: ServerMessage, request_id: Option<String>) -> Self {
        Self::encode(&ServerFrame { message, request_id })
    }

    pub(crate) fn encode(value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(json) => Self(json.into()),
            Err(error) => {
                // Our own types with string keys always encode; if that ever broke, an empty object is ignored by
                // every client while the log says why.
                tracing::error!(%error, "a message could not be encoded");
                Self(Bytes::from_static(b"{}"))
            }
        }
    }
}

/// What a frame may not overtake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// What was told of this session.
    Session(SessionId),
    /// Anything; and nothing overtakes it.
    All,
    Nothing,
}

impl After {
    pub(crate) fn of(message: &ServerMessage) -> Self {
        match message {
            // What follows is told under an id that nobody knew before; what went before is of sessions that are gone now.
            ServerMessage::SessionRenamed { .. } | ServerMessage::ProjectRemoved { .. } => Self::All,
            ServerMessage::SessionCreated { session_id, .. }
            | ServerMessage::SessionHistory { session_id, .. }
            | ServerMessage::SessionUpsert { session_id, .. }
            | ServerMessage::SessionTurn { session_id, .. }
            | ServerMessage::SessionPage { session_id, .. }
            | ServerMessage::SessionOutput { session_id, .. }
            | ServerMessage::SessionArchived { session_id }
            | ServerMessage::SessionRestored { session_id, .. }
            | ServerMessage::SessionTitleUpdated { session_id, .. }
            | ServerMessage::SessionState { session_id, .. }
            | ServerMessage::SessionFacts { session_id, .. } => Self::Session(session_id.clone()),
            ServerMessage::AgentStatus { session_id, .. } => Self::one_of(session_id.as_ref()),
            ServerMessage::Error(error) => Self::one_of(error.session_id.as_ref()),
            ServerMessage::ServerHello { .. }
            | ServerMessage::ProjectList { .. }
            | ServerMessage::ProjectAdded { .. }
            | ServerMessage::SessionList { .. }
            | ServerMessage::PathCompletions { .. }
            | ServerMessage::AgentList { .. }
            | ServerMessage::Ack {} => Self::Nothing,
        }
    }

    pub(crate) fn one_of(session: Option<&SessionId>) -> Self {
        session.cloned().map_or(Self::Nothing, Self::Session)
    }
}
