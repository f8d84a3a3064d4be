//! The state of a session at one moment, to be encoded for a window that joins.

use std::sync::Arc;

use protocol::{ServerMessage, SessionFacts, SessionId, SessionSummary, TurnRecord};

use crate::frame::Frame;
use crate::item::{ItemCell, Sent};
use crate::outbox::{SentItems, WindowKind};

#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) session: SessionId,
    pub(crate) cells: Vec<Arc<ItemCell>>,
    pub(crate) turns: Vec<TurnRecord>,
    pub(crate) body: SnapshotBody,
    pub(crate) request_id: Option<String>,
}

#[derive(Debug)]
pub(crate) enum SnapshotBody {
    History {
        journal_id: String,
        epoch: u64,
        seq: u64,
        more: bool,
        since: Option<u64>,
        facts: Box<SessionFacts>,
        summary: Box<SessionSummary>,
    },
    Page {
        more: bool,
    },
}

impl Snapshot {
    /// Renders and encodes. May take long for a long history: call it off the async threads.
    pub(crate) fn encode(self, kind: WindowKind) -> (Frame, SentItems) {
        let mut sent_items = Vec::new();
        let mut entries = Vec::with_capacity(self.cells.len());
        for cell in &self.cells {
            let mut sent = Sent::default();
            entries.push(cell.entry(kind, &mut sent));
            if kind == WindowKind::View && !sent.is_over {
                sent_items.push(((self.session.clone(), cell.id().clone()), sent));
            }
        }
        let (session_id, turns) = (self.session, self.turns);
        let message = match self.body {
            SnapshotBody::History { journal_id, epoch, seq, more, since, facts, summary } => {
                ServerMessage::SessionHistory {
                    session_id,
                    entries,
                    journal_id,
                    epoch,
                    seq,
                    more,
                    since,
                    turns,
                    facts: *facts,
                    session: *summary,
                }
            }
            SnapshotBody::Page { more } => ServerMessage::SessionPage { session_id, entries, more, turns },
        };
        (Frame::of(message, self.request_id), sent_items)
    }
}
