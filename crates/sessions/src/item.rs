//! One item of a transcript, shared between its session and the windows that show it.
//!
//! The session writes the newest state; a window reads it when it is ready to write, so a slow window skips what was
//! superseded and a fast one loses nothing. Rendering happens on first reading and is shared by all windows. The session
//! never waits for it: what is known of an item and what was made of it have a lock each.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

use protocol::{
    ItemId, Origin, ServerMessage, SessionId, Timestamp, ToolDetail, TurnId, Upsert, UpsertBody, UpsertStatus,
    UpsertView,
};
use rendering::Mark;
use upserts::{ItemBody, ItemUpdate, Text};

use crate::frame::{Frame, WeakFrame};
use crate::outbox::WindowKind;
use crate::view::{self, Rendered};
use providers::catch_panic::catch_panic_now;

/// Final items whose rendering is cached, for windows that read the same and for the next one that opens the
/// session. Older ones are rendered again when someone needs them.
const RENDERINGS_KEPT: usize = 64;
/// Bytes of text whose rendering is cached: what was made of it takes several times as much.
const RENDERED_BYTES_KEPT: usize = 1024 * 1024;
/// Text that is made into a frame where others wait for the thread: a millisecond's work.
const BYTES_AT_ONCE: usize = 64 * 1024;
/// An item that took longer the last time is expected to do so again.
const MAKING_TIME_SHORT: Duration = Duration::from_millis(4);
/// Output of a tool that is made into a frame where others wait for the thread.
const OUTPUT_BYTES_AT_ONCE: usize = 4 * 1024;

/// The items of a session that were rendered last.
#[derive(Debug, Default)]
pub(crate) struct RenderingCache(Mutex<VecDeque<Weak<ItemCell>>>);

#[derive(Debug)]
pub(crate) struct ItemCell {
    id: ItemId,
    /// Its place in the display order.
    position: i64,
    /// Held for a look, never while something is made.
    state: Mutex<ItemState>,
    /// Held while something is made, by whoever writes to a window. Taken before `state`, never after it.
    making: Mutex<Making>,
    cache: Arc<RenderingCache>,
    this: Weak<Self>,
}

#[derive(Clone, Debug)]
struct ItemState {
    update: ItemUpdate,
    /// The session's `seq` at the last change.
    seq: u64,
}

impl ItemState {
    /// Whether a window that is sent this state in place of change `seq` is sent nothing more. A frame is made of the newest
    /// state: if that is of a later change, the later change has a place in the queue too.
    fn is_last_at(&self, seq: u64) -> bool {
        self.update.status.is_final() && self.seq <= seq
    }
}

#[derive(Debug, Default)]
struct Making {
    /// The renderer failed on this item: it is shown as plain text from then on.
    is_plain: bool,
    /// Large, and not there for most items of a long session.
    made: Option<Box<Made>>,
    /// How often it was made: a mark is of one rendering.
    times_made: u32,
    /// How long the last frame took.
    took: Duration,
    /// The last long frame for plain windows, as long as one of them has it. Windows that read it late, or never, share its
    /// bytes, however many there are and whatever was rendered since.
    long_plain: Option<((u64, u64), WeakFrame)>,
    code: CodeSearch,
}

/// Whether a text has code in it, up to where it was searched.
#[derive(Debug, Default)]
struct CodeSearch {
    seen: Option<Text>,
    is_found: bool,
}

/// Why a frame is not made at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotNow {
    /// Someone else makes one of the same item.
    Busy,
    /// It may take long: not where others wait for the thread.
    Long,
}

/// What was made of an item for windows.
#[derive(Debug, Default)]
struct Made {
    rendered: Rendered,
    /// What the item weighed when it was rendered last.
    rendered_bytes: usize,
    /// The frame made last for each kind of window. Windows that keep up all ask for the same one.
    last_plain: Option<((u64, u64), Frame)>,
    last_view: Option<(ViewKey, Sent, Frame)>,
}

/// What a frame for a `view` window depends on.
#[derive(Clone, Debug, PartialEq)]
struct ViewKey {
    seq: u64,
    state_seq: u64,
    text_from: usize,
    mark: Mark,
    sections: usize,
}

impl ViewKey {
    fn of(seq: u64, state_seq: u64, sent: &Sent) -> Self {
        Self {
            seq,
            state_seq,
            text_from: sent.text.as_ref().map_or(0, Text::len),
            mark: sent.mark,
            sections: sent.sections.as_ref().map_or(0, |detail| Arc::as_ptr(detail) as usize),
        }
    }
}

impl CodeSearch {
    /// Whether a fence stands in the text. Of a text that grows only what was added is read.
    fn is_in(&mut self, text: &Text) -> bool {
        let seen = self.seen.replace(text.clone()).filter(|seen| text.continues(seen));
        let bytes_seen = seen.map_or(0, |seen| seen.len());
        self.is_found &= bytes_seen > 0;
        if !self.is_found {
            // A fence has three marks, of which two may have been there.
            let is_fence = |marks: &[u8]| matches!(marks, b"```" | b"~~~");
            self.is_found =
                text.with_str(|text| text.as_bytes()[bytes_seen.saturating_sub(2)..].windows(3).any(is_fence));
        }
        self.is_found
    }
}

/// What one window has of one item.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) text: Option<Text>,
    pub(crate) mark: Mark,
    /// Which rendering the mark is of.
    times_made: u32,
    /// The tool detail whose sections it has; kept, so that its address stays its identity.
    pub(crate) sections: Option<Arc<ToolDetail>>,
    /// It has the final state: nothing more comes.
    pub(crate) is_over: bool,
}

impl Sent {
    /// The window gets the whole of this rendering.
    pub(crate) fn start_over(&mut self) {
        *self = Self { times_made: self.times_made, ..Self::default() };
    }
}

impl ItemCell {
    pub(crate) fn new(update: ItemUpdate, seq: u64, position: i64, cache: &Arc<RenderingCache>) -> Arc<Self> {
        let id = update.item_id.clone();
        let (state, making) = (Mutex::new(ItemState { update, seq }), Mutex::default());
        Arc::new_cyclic(|this| Self { id, position, state, making, cache: Arc::clone(cache), this: Weak::clone(this) })
    }

    pub(crate) fn position(&self) -> i64 {
        self.position
    }

    pub(crate) fn turn_id(&self) -> TurnId {
        self.lock().update.turn_id.clone()
    }

    pub(crate) fn id(&self) -> &ItemId {
        &self.id
    }

    pub(crate) fn seq(&self) -> u64 {
        self.lock().seq
    }

    pub(crate) fn is_final(&self) -> bool {
        self.lock().update.status.is_final()
    }

    pub(crate) fn replace(&self, update: ItemUpdate, seq: u64) {
        let mut state = self.lock();
        let earlier = std::mem::replace(&mut *state, ItemState { update, seq });
        drop(state);
        // It may be the last that holds a long text.
        drop(earlier);
    }

    pub(crate) fn weight_bytes(&self) -> usize {
        self.lock().update.weight_bytes()
    }

    pub(crate) fn update(&self) -> ItemUpdate {
        self.lock().update.clone()
    }

    /// Forgets the rendering; it is made again when someone needs it. False when someone is just making it.
    pub(crate) fn forget_rendering(&self) -> bool {
        let Ok(mut making) = try_lock(&self.making) else { return false };
        let made = making.made.take();
        drop(making);
        drop(made);
        true
    }

    /// The frame that brings a window from what it has to the newest state. `seq` is the place of the frame in
    /// the window's queue, so that a window which saw it has seen all that was numbered before. May take long.
    pub(crate) fn frame(&self, session: &SessionId, seq: u64, kind: WindowKind, sent: &mut Sent) -> Frame {
        self.make(lock(&self.making), |making, state| making.frame(&state, session, seq, kind, sent))
    }

    /// The same, if it takes no time to speak of.
    pub(crate) fn frame_at_once(
        &self,
        session: &SessionId,
        seq: u64,
        kind: WindowKind,
        sent: &mut Sent,
    ) -> Result<Frame, NotNow> {
        let mut making = try_lock(&self.making)?;
        // Cloning it copies no text.
        let state = self.lock().clone();
        if let Some(frame) = making.known_view(&state, seq, kind, sent) {
            return Ok(frame);
        }
        if making.takes_long(&state.update, kind, sent) {
            return Err(NotNow::Long);
        }
        // Of the state that was judged: a newer one, which waits in the queue again, may have code in it.
        Ok(self.make(making, |making, _| making.frame(&state, session, seq, kind, sent)))
    }

    /// The state for a snapshot, as the kind of window wants it. May take long.
    pub(crate) fn entry(&self, kind: WindowKind, sent: &mut Sent) -> Upsert {
        if kind == WindowKind::Plain {
            return self.update().to_upsert();
        }
        self.make(lock(&self.making), |making, state| {
            *sent = Sent { is_over: state.update.status.is_final(), ..Sent::default() };
            making.align(sent);
            making.view_upsert(&state.update, sent)
        })
    }

    /// Does what may render the item; then another that was rendered long ago is forgotten.
    fn make<T>(&self, mut making: MutexGuard<'_, Making>, make: impl FnOnce(&mut Making, ItemState) -> T) -> T {
        let begun = Instant::now();
        let was_made = making.made.is_some();
        // Cloning it copies no text.
        let state = self.lock().clone();
        let made = make(&mut making, state);
        let is_new = !was_made && making.made.is_some();
        making.took = begun.elapsed();
        // Never two items' locks at once.
        drop(making);
        if is_new {
            self.cache.keep(&self.this);
        }
        made
    }

    fn lock(&self) -> MutexGuard<'_, ItemState> {
        lock(&self.state)
    }
}

/// A panic while rendering leaves a state that is still whole: every field is replaced, never half written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, NotNow> {
    match mutex.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(NotNow::Busy),
    }
}

impl RenderingCache {
    /// Each that comes lets up to two go, so that a crowd of items which grew at once becomes fewer again.
    fn keep(&self, cell: &Weak<ItemCell>) {
        self.lock().push_back(Weak::clone(cell));
        for _ in 0..2 {
            let mut cells = self.lock();
            let bytes = || cells.iter().filter_map(Weak::upgrade).map(|cell| cell.weight_bytes()).sum::<usize>();
            let is_full = cells.len() > RENDERINGS_KEPT || cells.len() > 1 && bytes() > RENDERED_BYTES_KEPT;
            let oldest = if is_full { cells.pop_front() } else { None };
            drop(cells);
            if let Some(item) = oldest.as_ref().and_then(Weak::upgrade)
                && !(item.is_final() && item.forget_rendering())
            {
                // It still grows, or someone reads it; its turn comes again.
                self.lock().extend(oldest);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Weak<ItemCell>>> {
        lock(&self.0)
    }
}

impl Making {
    /// The frame that was made last, if it is the one this window needs.
    fn known_view(&self, state: &ItemState, seq: u64, kind: WindowKind, sent: &mut Sent) -> Option<Frame> {
        if kind != WindowKind::View {
            return None;
        }
        let (known, after, frame) = self.made.as_ref()?.last_view.as_ref()?;
        if *known != ViewKey::of(seq, state.seq, &self.aligned(sent)) {
            return None;
        }
        *sent = Sent { is_over: state.is_last_at(seq), ..after.clone() };
        Some(frame.clone())
    }

    /// Whether a frame of this state may take long to make: there is code to highlight, an edit to compare, or much to be
    /// rendered or sent.
    fn takes_long(&mut self, update: &ItemUpdate, kind: WindowKind, sent: &Sent) -> bool {
        let known = match kind {
            WindowKind::Plain => 0,
            WindowKind::View => {
                let known = sent.text.as_ref().map_or(0, Text::len);
                self.made.as_ref().map_or(0, |made| made.rendered_bytes).min(known)
            }
        };
        let bytes = update.weight_bytes().saturating_sub(known);
        let is_costly = kind == WindowKind::View
            && match &update.body {
                ItemBody::Message { text, origin: Origin::Agent } | ItemBody::Thinking { text, .. } => {
                    self.code.is_in(text)
                }
                ItemBody::Message { .. } => false,
                ItemBody::ToolCall { output, tool, .. } => {
                    let lacks = |tool: &Arc<ToolDetail>| {
                        !tool.content.is_empty() && !sent.sections.as_ref().is_some_and(|has| Arc::ptr_eq(has, tool))
                    };
                    let printed = output.as_ref().map_or(0, Text::len);
                    tool.as_ref().is_some_and(lacks) || printed.saturating_sub(known) > OUTPUT_BYTES_AT_ONCE
                }
            };
        is_costly || bytes > BYTES_AT_ONCE || self.took > MAKING_TIME_SHORT
    }

    fn frame(&mut self, state: &ItemState, session: &SessionId, seq: u64, kind: WindowKind, sent: &mut Sent) -> Frame {
        let frame = self.frame_of(state, session, seq, kind, sent);
        // By the state that was sent, not by the one the item may have reached since.
        sent.is_over = state.is_last_at(seq);
        frame
    }

    fn frame_of(
        &mut self,
        state: &ItemState,
        session: &SessionId,
        seq: u64,
        kind: WindowKind,
        sent: &mut Sent,
    ) -> Frame {
        let message =
            |payload| Frame::of(ServerMessage::SessionUpsert { session_id: session.clone(), seq, payload }, None);
        match kind {
            WindowKind::Plain => {
                let key = (seq, state.seq);
                if let Some((known, frame)) = &self.made().last_plain
                    && *known == key
                {
                    return frame.clone();
                }
                if state.update.weight_bytes() > BYTES_AT_ONCE {
                    return self.long_plain_frame(state, session, seq);
                }
                let frame = message(state.update.to_upsert());
                self.made().last_plain = Some((key, frame.clone()));
                frame
            }
            WindowKind::View => {
                self.align(sent);
                let key = ViewKey::of(seq, state.seq, sent);
                if let Some((known, after, frame)) = &self.made().last_view
                    && *known == key
                {
                    *sent = after.clone();
                    return frame.clone();
                }
                let frame = message(self.view_upsert(&state.update, sent));
                self.made().last_view = Some((key, sent.clone(), frame.clone()));
                frame
            }
        }
    }

    /// Made once for all who want it now. Too long to be cached for later readers.
    fn long_plain_frame(&mut self, state: &ItemState, session: &SessionId, seq: u64) -> Frame {
        let key = (seq, state.seq);
        let known = self.long_plain.as_ref().filter(|(known, _)| *known == key);
        if let Some(frame) = known.and_then(|(_, frame)| frame.get()) {
            return frame;
        }
        let payload = state.update.to_upsert();
        let (frame, weak) = Frame::shared(ServerMessage::SessionUpsert { session_id: session.clone(), seq, payload });
        self.long_plain = Some((key, weak));
        frame
    }

    fn made(&mut self) -> &mut Made {
        if self.made.is_none() {
            self.times_made += 1;
        }
        self.made.get_or_insert_default()
    }

    /// A window that has an earlier rendering gets the whole of this one.
    fn align(&mut self, sent: &mut Sent) {
        self.made();
        *sent = self.aligned(sent);
    }

    /// What a window has of the rendering there is.
    fn aligned(&self, sent: &Sent) -> Sent {
        let sent = sent.clone();
        if sent.times_made == self.times_made {
            return sent;
        }
        Sent { mark: Mark::default(), sections: None, times_made: self.times_made, ..sent }
    }

    fn view_upsert(&mut self, update: &ItemUpdate, sent: &mut Sent) -> Upsert {
        let view = self.rendered_view(update, sent);
        // Most frames are updates, and small: what is sent when the item begins or ends is left out.
        let is_growth = update.status == UpsertStatus::Update && view.content_from.is_some();
        let unless_growth = |time: Timestamp| if is_growth { Timestamp::default() } else { time };
        Upsert {
            turn_id: update.turn_id.clone(),
            session_id: (!is_growth).then(|| update.session_id.clone()),
            item_id: update.item_id.clone(),
            source_timestamp: unless_growth(update.source_timestamp),
            emitted_at: unless_growth(update.emitted_at),
            status: update.status,
            error_code: update.error.as_ref().map(|error| error.code.clone()),
            error_message: update.error.as_ref().map(|error| error.message.clone()),
            parent_item_id: update.parent_item_id.clone(),
            body: view_body(update, &view),
            view,
        }
    }

    /// One item that cannot be rendered must not take a window, and every other session in it, with it.
    fn rendered_view(&mut self, update: &ItemUpdate, sent: &mut Sent) -> UpsertView {
        if !self.is_plain {
            let made = self.made.get_or_insert_default();
            made.rendered_bytes = update.weight_bytes();
            match catch_panic_now(|| made.rendered.bring_up_to_date(update, sent)) {
                Ok(view) => return view,
                Err(panic) => tracing::error!(item = %update.item_id, %panic, "an item could not be rendered"),
            }
            self.is_plain = true;
            self.made = None;
        }
        *sent = Sent::default();
        view::unrendered(update)
    }
}

/// The item as our own page wants it: only the text that was added, and no content that comes rendered.
fn view_body(update: &ItemUpdate, view: &UpsertView) -> UpsertBody {
    let added = |text: &Text| text.from_utf16(view.content_from.unwrap_or(0));
    match &update.body {
        ItemBody::Message { text, origin } => UpsertBody::Message { content: added(text), origin: *origin },
        ItemBody::Thinking { text, provider_id } => {
            UpsertBody::Thinking { content: added(text), provider_id: provider_id.to_string() }
        }
        ItemBody::ToolCall { name, arguments, call_id, output: _, is_error, tool } => UpsertBody::ToolCall {
            tool_name: name.to_string(),
            tool_arguments: view::short_arguments(arguments),
            call_id: call_id.clone(),
            tool_output: None,
            tool_output_is_error: *is_error,
            tool: tool.as_ref().map(view::without_content),
        },
    }
}

#[cfg(test)]
#[path = "item_tests.rs"]
pub(crate) mod tests;
