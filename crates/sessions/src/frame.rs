//! Encoded messages, shared between windows.

use bytes::Bytes;
use protocol::{ServerFrame, ServerMessage};
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
