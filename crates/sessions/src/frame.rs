//! Encoded messages, shared between windows, and which of them may overtake others.

use std::sync::{Arc, Weak};

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

    /// The same, and a way to find it again for as long as some window has it.
    pub(crate) fn shared(message: ServerMessage) -> (Self, WeakFrame) {
        let json = Arc::new(to_json(&ServerFrame { message, request_id: None }));
        let weak = WeakFrame(Arc::downgrade(&json));
        (Self(Bytes::from_owner(Shared(json))), weak)
    }

    pub(crate) fn encode(value: &impl Serialize) -> Self {
        Self(to_json(value).into())
    }
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_else(|error| {
        // Our own types with string keys always encode; if that ever broke, an empty object is ignored by every client
        // while the log says why.
        tracing::error!(%error, "a message could not be encoded");
        b"{}".to_vec()
    })
}

/// A frame that is there as long as some window has it. Keeps no memory itself.
#[derive(Debug)]
pub(crate) struct WeakFrame(Weak<Vec<u8>>);

impl WeakFrame {
    pub(crate) fn get(&self) -> Option<Frame> {
        self.0.upgrade().map(|json| Frame(Bytes::from_owner(Shared(json))))
    }
}

struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// What a frame may not overtake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Earlier frames of this session.
    Session(SessionId),
    /// Anything; and nothing overtakes it.
    All,
    Nothing,
}

impl After {
    pub(crate) fn of(message: &ServerMessage) -> Self {
        match message {
            // What was sent before it is of sessions that are gone now.
            ServerMessage::ProjectRemoved { .. } => Self::All,
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
            | ServerMessage::ServerNotices { .. }
            | ServerMessage::ProjectList { .. }
            | ServerMessage::ProjectAdded { .. }
            | ServerMessage::ProjectUpdated { .. }
            | ServerMessage::SessionList { .. }
            | ServerMessage::SettingsCurrent { .. }
            | ServerMessage::PathCompletions { .. }
            | ServerMessage::PathRecents { .. }
            | ServerMessage::AgentList { .. }
            | ServerMessage::AgentConfig { .. }
            | ServerMessage::AgentProbed { .. }
            | ServerMessage::Ack {} => Self::Nothing,
        }
    }

    pub(crate) fn one_of(session: Option<&SessionId>) -> Self {
        session.cloned().map_or(Self::Nothing, Self::Session)
    }
}
