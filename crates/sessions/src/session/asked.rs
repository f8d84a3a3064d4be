//! What windows and the HTTP API ask of a session, and how it answers. No arm waits: what takes time is called beside the
//! loop.

use std::sync::Arc;

use protocol::{ItemId, ServerMessage, TurnId};
use providers::{Provider, ProviderError};
use tokio::sync::oneshot;

use super::{Command, Done, HISTORY_ITEMS_FETCHED, HISTORY_ITEMS_PLAIN, HISTORY_ITEMS_VIEW, Reply, Session, now};
use crate::error::ServiceError;
use crate::hub::Requester;
use crate::outbox::WindowKind;
use crate::snapshot::{Snapshot, SnapshotBody};

impl Session {
    pub(super) fn obey(&mut self, command: Command) {
        let asks_agent = matches!(
            command,
            Command::Send { .. } | Command::SetOption { .. } | Command::Reconnect { .. } | Command::Ready { .. }
        );
        if asks_agent && self.hub.is_stopping() {
            return command.refuse(&ProviderError::Internal("the server is shutting down".into()), Some(&self.id));
        }
        let waits_for_nothing =
            matches!(command, Command::Leave { .. } | Command::Seen | Command::Kill { .. } | Command::Drain { .. });
        // What is ended is ended under the id it has.
        let waits_for_id = self.renaming && (!waits_for_nothing || matches!(command, Command::Kill { .. }));
        if waits_for_id || self.loading && !waits_for_nothing {
            self.waiting.push(command);
            return;
        }
        if self.events.is_none() && !self.loading && asks_agent {
            self.wake(command);
            return;
        }
        match command {
            Command::Open { requester, since } => self.open(requester, since),
            Command::Leave { window } => self.members.retain(|(member, _)| *member != window),
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
            Command::Seen => {
                self.watch.seen();
                self.publish_state();
            }
            Command::Ready { reply } => drop(reply.send(Ok(()))),
            Command::Kill { end, reply } => {
                self.leaving |= end;
                self.killing = true;
                let (provider, id) = (Arc::clone(&self.provider), self.id.agent_session_id());
                self.calls.spawn(async move {
                    provider.cancel_turn(&id).await.ok();
                    Done::Killed(provider.kill_session(&id).await, reply)
                });
            }
            Command::Drain { settled } => {
                self.drain = Some(settled);
                // Whether that works is seen by the turn's end.
                self.cancel(None, oneshot::channel().0);
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
            request_id: requester.request_id,
        });
        if !self.members.iter().any(|(window, _)| *window == requester.window) {
            self.members.push((requester.window, requester.outbox));
        }
    }

    pub(super) fn send(&mut self, content: String, requester: Option<Requester>, reply: Reply<TurnId>) {
        if self.is_working() {
            drop(reply.send(Err(ServiceError::TurnInProgress)));
            return;
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
        if self.events.is_none() && !self.hub.is_stopping() {
            return self.wake(command);
        }
        self.waiting.push(command);
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
