//! What waits to be written to one window.
//!
//! Comes in: ordered frames, items and snapshots. Goes out: the same order, each item once and in its newest state.
//! Kept out: sockets and JSON text of others. The queue is bounded: a window that lets it fill is let go, and comes
//! back to a snapshot.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::{ItemId, SessionId};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::frame::Frame;
use crate::item::{ItemCell, Sent};
use crate::snapshot::Snapshot;

/// Waiting things that are not yet superseded. A window that keeps up has a handful; one that never reads reaches this
/// after some thousand items and is let go.
const SLOTS_MAX: usize = 8192;
/// Bytes of encoded frames that may wait. Items wait unencoded and cost nothing here.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// How a window wants its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowKind {
    /// The plain contract: the whole text in each upsert, the whole history.
    Plain,
    /// Our own page: offsets and rendered blocks, the newest part of the history.
    View,
}

/// The sending side, held by the hub and by every session the window watches.
#[derive(Debug)]
pub(crate) struct Outbox {
    kind: WindowKind,
    state: Mutex<State>,
    ready: Notify,
    gone: CancellationToken,
    over: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Slot>,
    waiting: HashSet<(SessionId, ItemId)>,
    /// Sessions whose state waits.
    states: HashSet<SessionId>,
    /// What the window was told of items that are still growing.
    sent: HashMap<(SessionId, ItemId), Sent>,
    bytes: usize,
}

#[derive(Debug)]
enum Slot {
    Frame(Frame),
    State { session: SessionId, frame: Frame },
    Item { session: SessionId, seq: u64, cell: Arc<ItemCell> },
    Snapshot(Box<Snapshot>),
}

impl Outbox {
    pub(crate) fn new(kind: WindowKind) -> Arc<Self> {
        let (gone, over) = (CancellationToken::new(), CancellationToken::new());
        Arc::new(Self { kind, state: Mutex::default(), ready: Notify::new(), gone, over })
    }

    pub(crate) fn kind(&self) -> WindowKind {
        self.kind
    }

    pub(crate) fn push(&self, frame: Frame) {
        let mut state = self.lock();
        state.bytes += frame.len();
        // One frame may be larger than the bound: a history is as long as it is.
        let full = state.bytes > BYTES_MAX && !state.queue.is_empty();
        state.queue.push_back(Slot::Frame(frame));
        self.pushed(state, full);
    }

    /// A newer state of a session: the one still waiting is left out.
    pub(crate) fn push_state(&self, session: &SessionId, frame: Frame) {
        let mut state = self.lock();
        if !state.states.insert(session.clone()) {
            let is_it = |slot: &Slot| matches!(slot, Slot::State { session: of, .. } if of == session);
            let earlier = state.queue.iter().rposition(is_it).and_then(|place| state.queue.remove(place));
            if let Some(Slot::State { frame, .. }) = earlier {
                state.bytes -= frame.len();
            }
        }
        state.bytes += frame.len();
        let full = state.bytes > BYTES_MAX && !state.queue.is_empty();
        state.queue.push_back(Slot::State { session: session.clone(), frame });
        self.pushed(state, full);
    }

    /// A newer state of an item: takes the place of the one still waiting.
    pub(crate) fn push_item(&self, session: &SessionId, seq: u64, cell: &Arc<ItemCell>) {
        let mut state = self.lock();
        if !state.waiting.insert((session.clone(), cell.id().clone())) {
            return;
        }
        state.queue.push_back(Slot::Item { session: session.clone(), seq, cell: Arc::clone(cell) });
        self.pushed(state, false);
    }

    pub(crate) fn push_snapshot(&self, snapshot: Snapshot) {
        let mut state = self.lock();
        state.queue.push_back(Slot::Snapshot(Box::new(snapshot)));
        self.pushed(state, false);
    }

    fn pushed(&self, mut state: MutexGuard<'_, State>, full: bool) {
        if self.gone.is_cancelled() {
            // Nobody reads any more; a session that has not noticed yet must not fill it again.
            *state = State::default();
            return;
        }
        let full = full || state.queue.len() > SLOTS_MAX;
        drop(state);
        if full {
            tracing::warn!("a window does not read; it is let go");
            self.close();
        }
        self.ready.notify_one();
    }

    /// The window no longer watches a session.
    pub(crate) fn forget(&self, session: &SessionId) {
        self.lock().sent.retain(|(of, _), _| of != session);
    }

    /// Lets the window go: what waits is dropped, the socket is to be closed.
    pub(crate) fn close(&self) {
        self.gone.cancel();
        *self.lock() = State::default();
        self.ready.notify_one();
    }

    /// Nothing more comes: the window is let go once it has read what waits.
    pub(crate) fn finish(&self) {
        self.over.cancel();
        self.ready.notify_one();
    }

    pub(crate) fn over(&self) -> &CancellationToken {
        &self.over
    }

    pub(crate) fn gone(&self) -> &CancellationToken {
        &self.gone
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reading side, held by the socket's writer.
#[derive(Debug)]
pub struct Frames {
    outbox: Arc<Outbox>,
    /// A snapshot being rendered off the async threads.
    rendering: Option<JoinHandle<(Frame, SnapshotSent)>>,
}

/// What a window has been told by a snapshot.
pub(crate) type SnapshotSent = Vec<((SessionId, ItemId), Sent)>;

impl Frames {
    pub(crate) fn new(outbox: Arc<Outbox>) -> Self {
        Self { outbox, rendering: None }
    }

    /// The next frame to write; none when the window is to be let go or nothing more comes. Nothing is lost when the
    /// future is dropped.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(rendering) = &mut self.rendering {
                let done = rendering.await;
                self.rendering = None;
                match done {
                    Ok((frame, sent)) => {
                        self.outbox.lock().sent.extend(sent);
                        return Some(frame);
                    }
                    Err(error) => {
                        // A panic in the renderer: the window is let go and comes back to a fresh snapshot.
                        tracing::error!(%error, "a snapshot could not be rendered");
                        self.outbox.close();
                    }
                }
            }
            if self.outbox.gone.is_cancelled() {
                return None;
            }
            match self.take() {
                Some(Taken::Frame(frame)) => return Some(frame),
                Some(Taken::Snapshot(snapshot)) => {
                    let kind = self.outbox.kind;
                    self.rendering = Some(tokio::task::spawn_blocking(move || snapshot.encode(kind)));
                }
                None if self.outbox.over.is_cancelled() => return None,
                None => self.outbox.ready.notified().await,
            }
        }
    }

    fn take(&self) -> Option<Taken> {
        let mut state = self.outbox.lock();
        match state.queue.pop_front()? {
            Slot::Frame(frame) => {
                state.bytes -= frame.len();
                Some(Taken::Frame(frame))
            }
            Slot::State { session, frame } => {
                state.bytes -= frame.len();
                state.states.remove(&session);
                Some(Taken::Frame(frame))
            }
            Slot::Snapshot(snapshot) => Some(Taken::Snapshot(snapshot)),
            Slot::Item { session, seq, cell } => {
                let key = (session, cell.id().clone());
                state.waiting.remove(&key);
                let mut sent = state.sent.remove(&key).unwrap_or_default();
                // Rendering may take a while; pushers must not wait for it.
                drop(state);
                let frame = cell.frame(&key.0, seq, self.outbox.kind, &mut sent);
                if self.outbox.kind == WindowKind::View && !cell.is_final() {
                    self.outbox.lock().sent.insert(key, sent);
                }
                Some(Taken::Frame(frame))
            }
        }
    }
}

enum Taken {
    Frame(Frame),
    Snapshot(Box<Snapshot>),
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
