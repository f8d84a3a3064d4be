//! Requests of windows and of the HTTP API, and how a session answers them. No arm waits: what takes time is called beside
//! the loop.

use std::collections::HashSet;
use std::sync::Arc;

use journal::{JournalError, Page, Read, TurnOrigin};
use protocol::{ItemId, TurnRecord};
use providers::{AgentSession, ProviderError};
use tokio::task::Id as CallId;
use upserts::ItemUpdate;

use super::command::{CallReply, CancelReply, DoneReply, OpenCursor, SessionCommand};
use super::phases::Link;
use super::reads::PageFor;
use super::{CallResult, SessionActor, has_room, leave_after};
use crate::error::ServiceError;
use crate::hub::Requester;
use crate::item::ItemCell;
use crate::outbox::WindowKind;
use crate::snapshot::{Snapshot, SnapshotBody};
use crate::transcript::Span;

/// Newest items a `view` window gets at once.
const HISTORY_ITEMS_VIEW: usize = 200;
/// Newest items a window of the plain contract gets, which is sent all there is. A year of daily work has fewer; beyond it
/// the answer says that there are more.
const HISTORY_ITEMS_PLAIN: usize = 50_000;
/// A window that missed more changed items than this is shown the session anew.
const SINCE_ITEMS_MAX: usize = 2_000;

impl SessionActor {
    pub(super) fn handle(&mut self, command: SessionCommand) {
        let command = match command {
            SessionCommand::Leave { window } => return self.leave(window),
            SessionCommand::Seen => {
                self.shown.watch.seen();
                return self.publish_state();
            }
            SessionCommand::Drain { settled } => {
                self.inbox.drain = Some(settled);
                return self.cancel(CancelReply::Nobody);
            }
            SessionCommand::Close { accepted } => return self.close(accepted),
            other => other,
        };
        if command.needs_actor() && self.hub.is_stopping() && (command.asks_agent() || self.is_unloaded()) {
            return command.refuse(&ServiceError::ShuttingDown, Some(&self.id));
        }
        if command.needs_actor() && self.link.is_closed() {
            // Commands are handled before events: the loop may not have seen yet that the provider is gone.
            self.receive_all();
            self.lose_agent();
        }
        if self.must_wait(&command) {
            return self.hold(command);
        }
        let needs_loading = command.needs_actor() && self.is_unloaded();
        if needs_loading || command.asks_agent() && matches!(self.link, Link::Detached) {
            return self.load_for(command);
        }
        match command {
            SessionCommand::Open { requester, since } => self.open(requester, since),
            SessionCommand::Send { prompt, reply } => self.send(prompt, reply),
            SessionCommand::Cancel { reply } => self.cancel(reply),
            SessionCommand::Page { requester, before, limit } => self.page(requester, before, limit),
            SessionCommand::Item { item, reply } => self.give_item(item, reply),
            SessionCommand::SetOption { option, value, reply } => {
                self.call(reply, move |agent| async move { agent.set_option(&option, &value).await });
            }
            SessionCommand::Reconnect { reply } => {
                self.call(reply, move |agent| async move { agent.reconnect().await });
            }
            // Whoever reads the journal next finds all of it there.
            SessionCommand::Ready { .. } if !self.recorder.is_settled() || self.reads.is_importing() => {
                self.hold(command);
            }
            SessionCommand::Ready { reply } => drop(reply.send(Ok(()))),
            SessionCommand::Kill { reply } => self.kill(reply),
            // Done above.
            SessionCommand::Leave { .. }
            | SessionCommand::Seen
            | SessionCommand::Drain { .. }
            | SessionCommand::Close { .. } => {}
        }
    }

    fn is_unloaded(&self) -> bool {
        matches!(self.link, Link::Unloaded)
    }

    /// Whether it cannot be done yet: the history is not here, what runs is being ended, or this actor is.
    fn must_wait(&self, command: &SessionCommand) -> bool {
        let is_kill = matches!(command, SessionCommand::Kill { .. });
        // A cancel belongs to the message that waits in front of it.
        let is_cancel = matches!(command, SessionCommand::Cancel { .. });
        let needs_agent = command.asks_agent() || is_cancel || !self.transcript.is_ready();
        let waits_for_end = command.asks_agent() || command.needs_actor() && self.is_unloaded();
        // A snapshot must not show what is not on the disk yet.
        let is_read = matches!(command, SessionCommand::Open { .. } | SessionCommand::Page { .. });
        self.lifetime.is_closing()
            || self.link.is_under_way() && needs_agent && !is_kill
            || self.lifetime.is_ending_agent() && waits_for_end
            || is_read && self.recorder.is_holding()
    }

    /// Keeps it until it can be done, if there is room for it.
    fn hold(&mut self, command: SessionCommand) {
        if has_room(&self.inbox.waiting, &command) {
            self.inbox.waiting.push(command);
        } else {
            command.refuse(&ServiceError::TooManyWait, Some(&self.id));
        }
    }

    /// A window that opens the session now stays, although it left before and a message of it still waits.
    pub(super) fn forget_leave(&mut self, command: &SessionCommand) {
        if let SessionCommand::Open { requester, .. } = command
            && !self.must_wait(command)
        {
            let window = requester.window;
            let is_its = |command: &SessionCommand| matches!(command, SessionCommand::Leave { window: other } if *other == window);
            self.inbox.waiting.retain(|command| !is_its(command));
            self.reads.came_back(window);
        }
    }

    /// The window wants nothing more of the session. Its requests that still wait are answered first.
    fn leave(&mut self, window: u64) {
        self.members.retain(|(member, _)| *member != window);
        self.reads.left(window);
        leave_after(&mut self.inbox.waiting, window);
    }

    /// The session is opened again for a request. Its transcript stays.
    fn load_for(&mut self, command: SessionCommand) {
        self.hold(command);
        if self.is_unloaded() {
            return self.read_history();
        }
        match self.hub.stored_session(&self.id) {
            Ok(stored) => {
                self.load(stored);
                self.publish_state();
            }
            Err(error) => {
                let failure = ProviderError::LoadFailed { detail: error.to_string() };
                self.load_failed(failure);
            }
        }
    }

    /// Snapshot and membership in one round of the loop, so no event falls between the two.
    fn open(&mut self, requester: Requester, since: Option<OpenCursor>) {
        let since = since.and_then(|cursor| self.recorder.since(&cursor, self.transcript.seq()));
        if let Some(seq) = since {
            if self.transcript.covers(seq) {
                let (cells, turns) = (self.transcript.since(seq), self.transcript.turns_since(seq));
                return self.answer_open(&requester, Shown { cells, turns, more: false, since });
            }
            return self.read_page(Read::Since { seq, limit: SINCE_ITEMS_MAX }, PageFor::Since { requester, seq });
        }
        let limit = match requester.outbox.kind() {
            WindowKind::View => HISTORY_ITEMS_VIEW,
            WindowKind::Plain => HISTORY_ITEMS_PLAIN,
        };
        if requester.outbox.kind() == WindowKind::Plain && self.reads.is_importing() {
            return self.hold(SessionCommand::Open { requester, since: None });
        }
        let Span { cells, read_before, more } = self.transcript.newest(limit);
        match read_before {
            None => {
                let turns = self.transcript.turns();
                self.answer_open(
                    &requester,
                    Shown { cells, turns, more: more || self.reads.is_importing(), since: None },
                );
            }
            Some(position) => {
                let read = Read::Before { position, limit: limit - cells.len() };
                self.read_page(read, PageFor::Open { requester });
            }
        }
    }

    fn answer_open(&mut self, requester: &Requester, shown: Shown) {
        self.answer_at(requester, shown, self.transcript.seq());
    }

    /// `seq`: the window has seen all up to this number then.
    fn answer_at(&mut self, requester: &Requester, shown: Shown, seq: u64) {
        let Some(summary) = self.hub.summary(&self.id) else {
            return requester.fail(&ServiceError::SessionNotFound(self.id.clone()));
        };
        let Shown { cells, turns, more, since } = shown;
        requester.outbox.push_snapshot(Snapshot {
            session: self.id.clone(),
            cells,
            turns,
            body: SnapshotBody::History {
                journal_id: self.hub.journal().id().to_owned(),
                epoch: self.recorder.epoch(),
                seq,
                more,
                since,
                facts: Box::new(self.facts.clone()),
                summary: Box::new(summary),
            },
            request_id: requester.request_id.clone(),
        });
        self.join(requester);
        self.read_branch();
    }

    /// Shows every window the turns that changed after a number.
    pub(super) fn show_turns(&mut self, since: u64, seq: u64) {
        for (window, outbox) in self.members.clone() {
            let (session, turns) = (Some(self.id.clone()), self.transcript.turns_since(since));
            let requester = Requester { window, outbox, request_id: None, session, _permit: None };
            self.answer_at(&requester, Shown { cells: Vec::new(), turns, more: false, since: Some(since) }, seq);
        }
    }

    /// Shows every window the session as it is now. Until it has that, a window gets nothing of what follows: its cursor
    /// would pass what was put between items that it has.
    pub(super) fn refresh_members(&mut self) {
        for (window, outbox) in std::mem::take(&mut self.members) {
            let session = Some(self.id.clone());
            let requester = Requester { window, outbox, request_id: None, session, _permit: None };
            self.handle(SessionCommand::Open { requester, since: None });
        }
    }

    fn page(&mut self, requester: Requester, before: ItemId, limit: usize) {
        match self.transcript.before(&before, limit) {
            Some(Span { cells, read_before: None, .. }) if cells.is_empty() && self.reads.is_importing() => {
                // There will be more.
                self.hold(SessionCommand::Page { requester, before, limit });
            }
            Some(Span { cells, read_before: None, more }) => {
                let turns = self.transcript.turns_of(&cells);
                self.answer_page(&requester, cells, turns, more || self.reads.is_importing());
            }
            Some(Span { cells, read_before: Some(position), .. }) => {
                let read = Read::Before { position, limit: limit - cells.len() };
                self.read_page(read, PageFor::Page { requester, before, limit });
            }
            None => {
                let read = Read::BeforeItem { item: before.clone(), limit };
                self.read_page(read, PageFor::Page { requester, before, limit });
            }
        }
    }

    fn answer_page(&self, requester: &Requester, cells: Vec<Arc<ItemCell>>, turns: Vec<TurnRecord>, more: bool) {
        requester.outbox.push_snapshot(Snapshot {
            session: self.id.clone(),
            cells,
            turns,
            body: SnapshotBody::Page { more },
            request_id: requester.request_id.clone(),
        });
    }

    /// Reads a page of the journal beside the loop. Until it is there nothing is evicted, so that no gap opens between it
    /// and what is in memory.
    fn read_page(&mut self, read: Read, purpose: PageFor) {
        let (journal, key) = (Arc::clone(self.hub.journal()), self.recorder.head().key);
        let call = self.calls.spawn(async move { CallResult::PageRead(journal.read(key, read).await) });
        self.reads.pages.insert(call.id(), purpose);
    }

    pub(super) fn page_read(&mut self, call: CallId, read: Result<Page, JournalError>) {
        let Some(purpose) = self.reads.pages.remove(&call) else { return };
        let window = purpose.requester().window;
        if self.recorder.is_holding() {
            // Something new is on its way to the disk; a snapshot must not show it before.
            return self.hold(purpose.into_command());
        }
        self.answer_page_read(purpose, read);
        if self.reads.has_left(window) {
            self.leave(window);
        }
    }

    fn answer_page_read(&mut self, purpose: PageFor, read: Result<Page, JournalError>) {
        let page = match read {
            Ok(page) => page,
            Err(JournalError::UnknownItem(_)) => {
                let unknown = ServiceError::Invalid { field: "before", reason: "no such item" };
                return purpose.requester().fail(&unknown);
            }
            Err(error) => {
                tracing::error!(session = %self.id, %error, "a page could not be read");
                if let PageFor::Open { requester } = &purpose
                    && requester.request_id.is_none()
                {
                    // It was to be shown what it has anew, and keeps that.
                    self.join(requester);
                }
                return purpose.requester().fail(&ServiceError::Journal(error.to_string()));
            }
        };
        match purpose {
            PageFor::Since { requester, seq } => self.answer_since(requester, seq, page),
            PageFor::Open { requester } => {
                // All that is in memory follows: it may have grown since the read began.
                let (cells, turns, more) = self.joined(page, self.transcript.newest(usize::MAX));
                self.answer_open(&requester, Shown { cells, turns, more, since: None });
            }
            PageFor::Page { requester, before, limit } => {
                let span = self.transcript.before(&before, usize::MAX).unwrap_or_default();
                let (cells, turns, more) = self.joined(page, span);
                if cells.is_empty() && self.reads.is_importing() {
                    // The agent's history is still being read; there will be more.
                    return self.hold(SessionCommand::Page { requester, before, limit });
                }
                self.answer_page(&requester, cells, turns, more);
            }
        }
    }

    /// A page of the journal and what follows it in memory.
    fn joined(&self, page: Page, span: Span) -> (Vec<Arc<ItemCell>>, Vec<TurnRecord>, bool) {
        let more = page.more || self.reads.is_importing();
        let mut turns: Vec<_> = page.turns.into_iter().map(|turn| turn.record).collect();
        let mut cells = self.transcript.overlay(&self.id, page.items);
        let known: HashSet<ItemId> = span.cells.iter().map(|cell| cell.id().clone()).collect();
        cells.retain(|cell| !known.contains(cell.id()));
        cells.extend(span.cells);
        let newer = self.transcript.turns_of(&cells);
        turns.retain(|turn| newer.iter().all(|known| known.turn_id != turn.turn_id));
        turns.extend(newer);
        (cells, turns, more)
    }

    fn answer_since(&mut self, requester: Requester, seq: u64, page: Page) {
        // What was put between items that the window has is not found by its place at the end.
        let is_inserted = page.turns.iter().any(|turn| turn.origin == TurnOrigin::Agent);
        if page.more || is_inserted {
            return self.open(requester, None);
        }
        let here = self.transcript.since(seq);
        let known: HashSet<ItemId> = here.iter().map(|cell| cell.id().clone()).collect();
        let mut cells = self.transcript.overlay(&self.id, page.items);
        cells.retain(|cell| !known.contains(cell.id()));
        cells.extend(here);
        cells.sort_by_key(|cell| cell.position());
        let newer = self.transcript.turns_since(seq);
        let mut turns: Vec<_> = page.turns.into_iter().map(|turn| turn.record).collect();
        turns.retain(|turn| newer.iter().all(|known| known.turn_id != turn.turn_id));
        turns.extend(newer);
        self.answer_open(&requester, Shown { cells, turns, more: false, since: Some(seq) });
    }

    /// Gives an item out, from memory or from the journal.
    fn give_item(&mut self, item: ItemId, reply: CallReply<Arc<ItemCell>>) {
        let none = ServiceError::Invalid { field: "itemId", reason: "no such item" };
        if let Some(cell) = self.transcript.get(&item) {
            return drop(reply.send(Ok(Arc::clone(cell))));
        }
        let (journal, key, id) = (Arc::clone(self.hub.journal()), self.recorder.head().key, self.id.clone());
        self.hub.tasks().spawn(async move {
            let found = match journal.item(key, &item).await {
                Ok(Some(stored)) => {
                    let update = ItemUpdate::from_upsert(stored.upsert, id);
                    Ok(ItemCell::new(update, stored.last, stored.position, &Arc::default()))
                }
                Ok(None) => Err(none),
                Err(error) => Err(ServiceError::Journal(error.to_string())),
            };
            drop(reply.send(found));
        });
    }

    fn call<F, C>(&mut self, reply: DoneReply, call: C)
    where
        C: FnOnce(Arc<dyn AgentSession>) -> F,
        F: Future<Output = Result<(), ProviderError>> + Send + 'static,
    {
        let Some(agent) = self.link.agent().cloned() else {
            drop(reply.send(Err(ServiceError::SessionEnded)));
            return;
        };
        let answer = call(agent);
        self.spawn_in_order(async move { CallResult::Done(answer.await, reply) });
    }
}

/// What a window is shown when it opens a session.
struct Shown {
    cells: Vec<Arc<ItemCell>>,
    turns: Vec<TurnRecord>,
    more: bool,
    since: Option<u64>,
}
