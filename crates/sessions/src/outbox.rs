//! What waits to be written to one window.
//!
//! Comes in: ordered frames, items and snapshots. Goes out: the same order, each item once, in its newest state. While
//! a long frame of one session is made, frames of other sessions overtake it. Kept out: sockets, and what a message
//! means. The queue is bounded: a window that fills it is closed, and gets a snapshot on reconnect.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use protocol::{ItemId, SessionId};
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::frame::{After, Frame};
use crate::item::{ItemCell, NotNow, Sent};
use crate::renderers;
use crate::snapshot::Snapshot;

/// Waiting things that are not yet superseded. A window that keeps up has a handful; one that never reads reaches this
/// after some thousand items and is closed.
const SLOTS_MAX: usize = 8192;
/// Bytes of encoded frames that may wait. Items wait unencoded and cost nothing here.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// How often a busy item yields before it goes to a render thread: another frame of it is made by then,
/// unless it is a long one.
const LOOKS_MAX: usize = 8;
/// Long things made at once for one window, each of another session. Each may be as long as a message can be.
const MAKING_MAX: usize = 2;
/// The time at shutdown for frames still being made. A client that reconnects gets them again.
const LAST_FRAMES_TIME_MAX: Duration = Duration::from_secs(1);

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
    state: Mutex<OutboxState>,
    ready: Notify,
    gone: CancellationToken,
    over: CancellationToken,
}

#[derive(Debug, Default)]
struct OutboxState {
    queue: VecDeque<Slot>,
    waiting: HashSet<(SessionId, ItemId)>,
    /// The news in the queue.
    news: HashSet<(NewsKind, SessionId)>,
    /// What the window has of items that are still growing.
    sent: HashMap<(SessionId, ItemId), Sent>,
    bytes: usize,
}

/// What is sent of a session besides its items, each as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum NewsKind {
    State,
    Facts,
}

#[derive(Debug)]
enum Slot {
    Frame { after: After, frame: Frame },
    News { kind: NewsKind, session: SessionId, frame: Frame },
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

    pub(crate) fn push(&self, after: After, frame: Frame) {
        let mut state = self.lock();
        state.bytes += frame.len();
        // One frame may be larger than the bound: a history is as long as it is.
        let full = state.bytes > BYTES_MAX && !state.queue.is_empty();
        state.queue.push_back(Slot::Frame { after, frame });
        self.pushed(state, full);
    }

    /// A newer state of a session: the one still waiting is left out.
    pub(crate) fn push_state(&self, session: &SessionId, frame: Frame) {
        self.push_news(session, NewsKind::State, |_| frame);
    }

    /// More facts of a session. If earlier ones still wait, all facts replace them.
    pub(crate) fn push_facts(&self, session: &SessionId, more: Frame, all: impl FnOnce() -> Frame) {
        self.push_news(session, NewsKind::Facts, |are_waiting| if are_waiting { all() } else { more });
    }

    fn push_news(&self, session: &SessionId, kind: NewsKind, frame: impl FnOnce(bool) -> Frame) {
        let mut state = self.lock();
        let are_waiting = !state.news.insert((kind, session.clone()));
        if are_waiting {
            let is_it = |slot: &Slot| matches!(slot, Slot::News { kind: other, session: of, .. } if *other == kind && of == session);
            let earlier = state.queue.iter().rposition(is_it).and_then(|place| state.queue.remove(place));
            if let Some(Slot::News { frame, .. }) = earlier {
                state.bytes -= frame.len();
            }
        }
        let frame = frame(are_waiting);
        state.bytes += frame.len();
        let full = state.bytes > BYTES_MAX && !state.queue.is_empty();
        state.queue.push_back(Slot::News { kind, session: session.clone(), frame });
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

    fn pushed(&self, mut state: MutexGuard<'_, OutboxState>, full: bool) {
        if self.gone.is_cancelled() {
            // Nobody reads any more; a session that has not noticed yet must not fill it again.
            *state = OutboxState::default();
            return;
        }
        let full = full || state.queue.len() > SLOTS_MAX;
        drop(state);
        if full {
            tracing::warn!("a window does not read; it is closed");
            self.close();
        }
        self.ready.notify_one();
    }

    /// The window no longer watches a session.
    pub(crate) fn forget(&self, session: &SessionId) {
        self.lock().sent.retain(|(of, _), _| of != session);
    }

    /// Closes the window: what waits is dropped, the socket is to be closed.
    pub(crate) fn close(&self) {
        self.gone.cancel();
        *self.lock() = OutboxState::default();
        self.ready.notify_one();
    }

    /// Nothing more comes: the window is closed once it has read what waits.
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

    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Frame { after: After::Session(session), .. }
            | Self::News { session, .. }
            | Self::Item { session, .. } => Some(session),
            Self::Frame { .. } => None,
            Self::Snapshot(snapshot) => Some(&snapshot.session),
        }
    }

    fn is_after_all(&self) -> bool {
        matches!(self, Self::Frame { after: After::All, .. })
    }
}

/// The reading side, held by the socket's writer.
#[derive(Debug)]
pub struct Frames {
    outbox: Arc<Outbox>,
    /// The item whose turn it is.
    item: Option<Box<QueuedItem>>,
    /// Long frames are made off the async threads.
    making: JoinSet<Result<(SessionId, Frame, SentItems), JoinError>>,
    /// Long frames not started yet.
    to_make: VecDeque<Long>,
    /// The sessions of both. Their other frames wait.
    busy: Vec<SessionId>,
    /// The deadline for frames still being made, once nothing more comes.
    give_up_at: Option<Instant>,
}

#[derive(Debug)]
enum Long {
    Item(Box<QueuedItem>),
    Snapshot(Box<Snapshot>),
}

/// An item that was taken out of the queue, and what the window knows of it.
#[derive(Debug)]
struct QueuedItem {
    key: (SessionId, ItemId),
    seq: u64,
    cell: Arc<ItemCell>,
    sent: Sent,
    looks: usize,
}

/// What a window has of items that are still growing.
pub(crate) type SentItems = Vec<((SessionId, ItemId), Sent)>;

impl Frames {
    pub(crate) fn new(outbox: Arc<Outbox>) -> Self {
        let (making, to_make) = (JoinSet::new(), VecDeque::new());
        Self { outbox, item: None, making, to_make, busy: Vec::new(), give_up_at: None }
    }

    /// The next frame to write; none when the window is to be closed or nothing more comes. Nothing is lost when the
    /// future is dropped.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.making.try_join_next().and_then(|done| self.made(done.flatten())) {
                return Some(frame);
            }
            if self.outbox.gone.is_cancelled() {
                return None;
            }
            if let Some(item) = self.item.take() {
                match self.make(item) {
                    Some(frame) => return Some(frame),
                    None if self.item.is_some() => tokio::task::yield_now().await,
                    None => {}
                }
                continue;
            }
            match self.take() {
                Some(Taken::Frame(frame)) => return Some(frame),
                Some(Taken::Item(item)) => self.item = Some(item),
                Some(Taken::Snapshot(snapshot)) => self.make_beside(Long::Snapshot(snapshot)),
                None if self.busy.is_empty() && self.outbox.over.is_cancelled() => return None,
                None => {
                    let give_up_at = self.give_up_at();
                    tokio::select! {
                        Some(done) = self.making.join_next() => if let Some(frame) = self.made(done.flatten()) {
                            return Some(frame);
                        },
                        () = self.outbox.ready.notified() => {}
                        () = until(give_up_at) => return None,
                    }
                }
            }
        }
    }

    /// A text that takes long must not delay the end of the server.
    fn give_up_at(&mut self) -> Option<Instant> {
        let is_over = self.outbox.over.is_cancelled();
        is_over.then(|| *self.give_up_at.get_or_insert_with(|| Instant::now() + LAST_FRAMES_TIME_MAX))
    }

    fn made(&mut self, done: Result<(SessionId, Frame, SentItems), JoinError>) -> Option<Frame> {
        match done {
            Ok((session, frame, sent_items)) => {
                self.busy.retain(|busy| *busy != session);
                self.start_making();
                self.outbox.lock().sent.extend(sent_items);
                Some(frame)
            }
            Err(error) => {
                // A panic in the renderer: the window is closed and comes back to a fresh snapshot.
                tracing::error!(%error, "a frame could not be made");
                self.outbox.close();
                None
            }
        }
    }

    /// The item's frame if it can be made at once. If not, it is made on a render thread, or tried again later.
    fn make(&mut self, mut item: Box<QueuedItem>) -> Option<Frame> {
        let kind = self.outbox.kind;
        let QueuedItem { key, seq, cell, sent, looks } = &mut *item;
        match cell.frame_at_once(&key.0, *seq, kind, sent) {
            Ok(frame) => {
                let sent_items = item.into_sent(kind);
                self.outbox.lock().sent.extend(sent_items);
                return Some(frame);
            }
            Err(NotNow::Busy) if *looks < LOOKS_MAX => {
                *looks += 1;
                self.item = Some(item);
            }
            Err(NotNow::Busy | NotNow::Long) => self.make_beside(Long::Item(item)),
        }
        None
    }

    fn make_beside(&mut self, long: Long) {
        self.busy.push(long.session().clone());
        self.to_make.push_back(long);
        self.start_making();
    }

    fn start_making(&mut self) {
        while self.making.len() < MAKING_MAX
            && let Some(long) = self.to_make.pop_front()
        {
            let kind = self.outbox.kind;
            self.making.spawn(renderers::run(move || {
                let session = long.session().clone();
                let (frame, sent_items) = long.make(kind);
                (session, frame, sent_items)
            }));
        }
    }

    /// The first that need not wait for what is being made.
    fn take(&self) -> Option<Taken> {
        let mut state = self.outbox.lock();
        let mut ahead = state.queue.iter().take_while(|slot| self.busy.is_empty() || !slot.is_after_all());
        let place = ahead.position(|slot| slot.session().is_none_or(|session| !self.busy.contains(session)))?;
        match state.queue.remove(place)? {
            Slot::Frame { frame, .. } => {
                state.bytes -= frame.len();
                Some(Taken::Frame(frame))
            }
            Slot::News { kind, session, frame } => {
                state.bytes -= frame.len();
                state.news.remove(&(kind, session));
                Some(Taken::Frame(frame))
            }
            Slot::Snapshot(snapshot) => Some(Taken::Snapshot(snapshot)),
            Slot::Item { session, seq, cell } => {
                let key = (session, cell.id().clone());
                state.waiting.remove(&key);
                let sent = state.sent.remove(&key).unwrap_or_default();
                Some(Taken::Item(Box::new(QueuedItem { key, seq, cell, sent, looks: 0 })))
            }
        }
    }
}

impl Long {
    fn session(&self) -> &SessionId {
        match self {
            Self::Item(item) => &item.key.0,
            Self::Snapshot(snapshot) => &snapshot.session,
        }
    }

    fn make(self, kind: WindowKind) -> (Frame, SentItems) {
        match self {
            Self::Item(mut item) => {
                let QueuedItem { key, seq, cell, sent, .. } = &mut *item;
                let frame = cell.frame(&key.0, *seq, kind, sent);
                (frame, item.into_sent(kind).into_iter().collect())
            }
            Self::Snapshot(snapshot) => snapshot.encode(kind),
        }
    }
}

impl QueuedItem {
    /// What the window need not be sent again, as long as the item grows.
    fn into_sent(self, kind: WindowKind) -> Option<((SessionId, ItemId), Sent)> {
        (kind == WindowKind::View && !self.sent.is_over).then_some((self.key, self.sent))
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

enum Taken {
    Frame(Frame),
    Item(Box<QueuedItem>),
    Snapshot(Box<Snapshot>),
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
