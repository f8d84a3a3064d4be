//! What windows and the HTTP API ask of a session, and how it answers. No arm waits: what takes time is called beside the
//! loop.

use std::sync::Arc;

use protocol::{ItemId, ServerMessage, TurnId};
use providers::{Provider, ProviderError};
use tokio::sync::oneshot;

use super::{
    Command, Done, HISTORY_ITEMS_FETCHED, HISTORY_ITEMS_PLAIN, HISTORY_ITEMS_VIEW, Link, Reply, Session, has_room,
    leave_after, now,
};
use crate::error::ServiceError;
use crate::hub::Requester;
use crate::outbox::WindowKind;
use crate::snapshot::{Snapshot, SnapshotBody};

impl Session {
    pub(super) fn obey(&mut self, command: Command) {
        let command = match command {
            Command::Leave { window } => return self.leave(window),
            Command::Seen => {
                self.watch.seen();
                return self.publish_state();
            }
            Command::Drain { settled } => {
                self.drain = Some(settled);
                // Whether that works is seen by the turn's end.
                return self.cancel(None, oneshot::channel().0);
            }
            Command::Close { accepted } => return self.close(accepted),
            other => other,
        };
        if command.needs_actor() && self.hub.is_stopping() && (command.asks_agent() || self.is_unloaded()) {
            return command.refuse(&ServiceError::ShuttingDown, Some(&self.id));
        }
        if command.needs_actor() && self.link.is_closed() {
            // Commands are taken before events: a provider that is gone may not have been noticed yet.
            self.hear_rest();
            self.lose_provider();
        }
        if self.must_wait(&command) {
            return self.hold(command);
        }
        let needs_loading = command.needs_actor() && self.is_unloaded();
        if needs_loading || command.asks_agent() && matches!(self.link, Link::Detached) {
            return self.wake(command);
        }
        match command {
            Command::Open { requester, since } => self.open(requester, since),
            Command::Send { content, requester, reply } => self.send(content, requester, reply),
            Command::Cancel { requester, reply } => self.cancel(requester, reply),
            Command::Page { requester, before, limit } => self.page(requester, before, limit),
            Command::Item { item, reply } => {
                let found = self.transcript.get(&item).cloned();
                let none = ServiceError::Invalid { field: "itemId", reason: "no such item" };
                drop(reply.send(found.ok_or(none)));
            }
            Command::SetOption { option, value, reply } => {
                let id = self.id.agent_session_id();
                self.call(reply, move |provider| async move { provider.set_option(&id, &option, &value).await });
            }
            Command::Reconnect { reply } => {
                let id = self.id.agent_session_id();
                self.call(reply, move |provider| async move { provider.reconnect(Some(&id)).await });
            }
            Command::Ready { reply } => drop(reply.send(Ok(()))),
            Command::Kill { reply } => self.kill(reply),
            // Done above.
            Command::Leave { .. } | Command::Seen | Command::Drain { .. } | Command::Close { .. } => {}
        }
    }

    fn is_unloaded(&self) -> bool {
        matches!(self.link, Link::Unloaded)
    }

    /// Whether it cannot be done yet: the history is not here, what runs is being ended, or this actor is.
    fn must_wait(&self, command: &Command) -> bool {
        let is_kill = matches!(command, Command::Kill { .. });
        let waits_for_end = command.asks_agent() || command.needs_actor() && self.is_unloaded();
        // What is ended is ended under the id it has.
        self.closing || self.renaming || self.link.is_under_way() && !is_kill || self.ending.is_some() && waits_for_end
    }

    /// Keeps it until it can be done, if there is room for it.
    pub(super) fn hold(&mut self, command: Command) {
        if has_room(&self.waiting, &command) {
            self.waiting.push(command);
        } else {
            command.refuse(&ServiceError::TooManyWait, Some(&self.id));
        }
    }

    /// The window wants nothing more of the session. Of what it asked before and still waits, the answer comes first.
    fn leave(&mut self, window: u64) {
        self.members.retain(|(member, _)| *member != window);
        leave_after(&mut self.waiting, window);
    }

    /// The session is opened again because something is asked of it. What was said stays.
    fn wake(&mut self, command: Command) {
        self.hold(command);
        match self.hub.place_of(&self.id) {
            Ok(place) => {
                self.load(place);
                self.publish_state();
            }
            Err(error) => {
                let failure = ProviderError::LoadFailed { detail: error.to_string() };
                self.load_failed(failure);
            }
        }
    }

    /// Snapshot and membership in one turn of the loop, so no event falls between the two.
    pub(super) fn open(&mut self, requester: Requester, since: Option<u64>) {
        let since = since.filter(|since| self.transcript.can_go_on_from(*since));
        let (cells, more) = match (since, requester.outbox.kind()) {
            (Some(since), _) => (self.transcript.since(since), false),
            (None, WindowKind::View) => self.transcript.newest(HISTORY_ITEMS_VIEW),
            (None, WindowKind::Plain) => {
                let (cells, more) = self.transcript.newest(HISTORY_ITEMS_PLAIN);
                let missing = HISTORY_ITEMS_PLAIN - cells.len();
                if missing > 0 && self.transcript.older().is_some() && !self.transcript.is_heavy() {
                    // One stretch after the other: no call asks for all there is.
                    return self.after_older(Command::Open { requester, since }, missing.min(HISTORY_ITEMS_FETCHED));
                }
                (cells, more)
            }
        };
        let Some(summary) = self.hub.summary(&self.id) else {
            requester.fail(&ServiceError::SessionNotFound(self.id.clone()));
            return;
        };
        requester.outbox.push_snapshot(Snapshot {
            session: self.id.clone(),
            cells,
            body: SnapshotBody::History {
                seq: self.transcript.seq(),
                more,
                since,
                turns: self.transcript.turns().to_vec(),
                facts: Box::new(self.facts.clone()),
                summary: Box::new(summary),
            },
            request_id: requester.request_id.clone(),
        });
        self.join(&requester);
        self.read_branch();
    }

    pub(super) fn send(&mut self, content: String, requester: Option<Requester>, reply: Reply<TurnId>) {
        // A message whose turn was not heard of yet is answered before another is taken.
        if self.is_working() || self.sender.is_some() {
            drop(reply.send(Err(ServiceError::TurnInProgress)));
            return;
        }
        if let Some(requester) = &requester {
            // Before anything is said of it: the window gets its own message and all that follows.
            self.join(requester);
        }
        self.sends += 1;
        let number = self.sends;
        self.sending = Some(number);
        self.sender = requester;
        self.hub.catalog().turn_begins(&self.id, now(), &content);
        let (hub, provider, id) = (Arc::clone(&self.hub), Arc::clone(&self.provider), self.id.clone());
        self.calls.spawn(async move {
            hub.title_by(&id, &content).await;
            let sent = provider.send_message(&id.agent_session_id(), &content).await;
            if sent.is_ok() {
                hub.was_prompted(&id).await;
            }
            Done::Sent(number, sent, reply)
        });
    }

    pub(super) fn cancel(&mut self, requester: Option<Requester>, reply: Reply<()>) {
        if !self.is_working() {
            if let Some(requester) = requester {
                requester.answer(ServerMessage::Ack {});
            }
            drop(reply.send(Ok(())));
            return;
        }
        // Each of several who cancel is answered by the turn's end.
        self.cancellers.extend(requester.clone());
        let (provider, id) = (Arc::clone(&self.provider), self.id.agent_session_id());
        self.calls.spawn(async move { Done::Cancelled(provider.cancel_turn(&id).await, requester, reply) });
    }

    pub(super) fn page(&mut self, requester: Requester, before: ItemId, limit: usize) {
        let (cells, more) = match (self.transcript.before(&before, limit), self.transcript.let_go_notice()) {
            (Some(found), _) => found,
            // It may be one of those that were let go while a window still shows it.
            (None, Some(notice)) => (vec![Arc::clone(notice)], false),
            (None, None) => {
                return requester.fail(&ServiceError::Invalid { field: "before", reason: "no such item" });
            }
        };
        if more && cells.len() < limit && self.transcript.older().is_some() {
            return self.after_older(Command::Page { requester, before, limit }, limit);
        }
        requester.outbox.push_snapshot(Snapshot {
            session: self.id.clone(),
            cells,
            body: SnapshotBody::Page { more },
            request_id: requester.request_id,
        });
    }

    /// Obeys once an older stretch is there. A provider that let the session go takes it up first.
    fn after_older(&mut self, command: Command, limit: usize) {
        match self.link {
            // It is asked again when that has come to its end.
            _ if self.ending.is_some() => return self.hold(command),
            Link::Detached if !self.hub.is_stopping() => return self.wake(command),
            _ => self.hold(command),
        }
        self.fetch_older(limit);
    }

    fn fetch_older(&mut self, limit: usize) {
        if self.fetching_older {
            return;
        }
        let Some(cursor) = self.transcript.older().cloned() else { return };
        self.fetching_older = true;
        let (provider, id) = (Arc::clone(&self.provider), self.id.agent_session_id());
        self.calls.spawn(async move { Done::Older(provider.older_history(&id, &cursor, limit).await) });
    }

    pub(super) fn call<F, C>(&mut self, reply: Reply<()>, call: C)
    where
        C: FnOnce(Arc<dyn Provider>) -> F,
        F: Future<Output = Result<(), ProviderError>> + Send + 'static,
    {
        let answer = call(Arc::clone(&self.provider));
        self.calls.spawn(async move { Done::Answered(answer.await, reply) });
    }
}
