//! Requests of windows and of the HTTP API, and how a session answers them. No arm waits: what takes time is called beside
//! the loop.

use std::sync::Arc;

use protocol::ItemId;
use providers::{AgentSession, ProviderError};

use super::command::{CancelReply, DoneReply, SessionCommand};
use super::phases::Link;
use super::{CallResult, SessionActor, has_room, leave_after};
use crate::error::ServiceError;
use crate::hub::Requester;
use crate::outbox::WindowKind;
use crate::snapshot::{Snapshot, SnapshotBody};

/// Newest items a `view` window gets at once.
const HISTORY_ITEMS_VIEW: usize = 200;
/// Newest items a window of the plain contract gets, which is sent all there is. A year of daily work has fewer; beyond it
/// the answer says that there are more.
const HISTORY_ITEMS_PLAIN: usize = 50_000;
/// Items read of an agent's history at once when a window wants more than is here.
const HISTORY_ITEMS_READ: usize = 2_000;

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
            SessionCommand::Item { item, reply } => {
                let found = self.transcript.get(&item).cloned();
                let none = ServiceError::Invalid { field: "itemId", reason: "no such item" };
                drop(reply.send(found.ok_or(none)));
            }
            SessionCommand::SetOption { option, value, reply } => {
                self.call(reply, move |agent| async move { agent.set_option(&option, &value).await });
            }
            SessionCommand::Reconnect { reply } => {
                self.call(reply, move |agent| async move { agent.reconnect().await });
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
        let waits_for_end = command.asks_agent() || command.needs_actor() && self.is_unloaded();
        self.lifetime.is_closing()
            || self.link.is_under_way() && !is_kill
            || self.lifetime.is_ending_agent() && waits_for_end
    }

    /// Keeps it until it can be done, if there is room for it.
    fn hold(&mut self, command: SessionCommand) {
        if has_room(&self.inbox.waiting, &command) {
            self.inbox.waiting.push(command);
        } else {
            command.refuse(&ServiceError::TooManyWait, Some(&self.id));
        }
    }

    /// The window wants nothing more of the session. Its requests that still wait are answered first.
    fn leave(&mut self, window: u64) {
        self.members.retain(|(member, _)| *member != window);
        leave_after(&mut self.inbox.waiting, window);
    }

    /// The session is opened again for a request. Its transcript stays.
    fn load_for(&mut self, command: SessionCommand) {
        self.hold(command);
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
    fn open(&mut self, requester: Requester, since: Option<u64>) {
        let since = since.filter(|since| self.transcript.can_go_on_from(*since));
        let (cells, more) = match (since, requester.outbox.kind()) {
            (Some(since), _) => (self.transcript.since(since), false),
            (None, WindowKind::View) => self.transcript.newest(HISTORY_ITEMS_VIEW),
            (None, WindowKind::Plain) => {
                let (cells, more) = self.transcript.newest(HISTORY_ITEMS_PLAIN);
                let missing = HISTORY_ITEMS_PLAIN - cells.len();
                if missing > 0 && self.transcript.older().is_some() && !self.transcript.is_heavy() {
                    // One page after the other: no call asks for all there is.
                    let command = SessionCommand::Open { requester, since };
                    return self.after_older(command, missing.min(HISTORY_ITEMS_READ));
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

    fn page(&mut self, requester: Requester, before: ItemId, limit: usize) {
        let (cells, more) = match (self.transcript.before(&before, limit), self.transcript.evicted_notice()) {
            (Some(found), _) => found,
            // It may be one of those that were evicted while a window still shows it.
            (None, Some(notice)) => (vec![Arc::clone(notice)], false),
            (None, None) => {
                return requester.fail(&ServiceError::Invalid { field: "before", reason: "no such item" });
            }
        };
        if more && cells.len() < limit && self.transcript.older().is_some() {
            return self.after_older(SessionCommand::Page { requester, before, limit }, limit);
        }
        requester.outbox.push_snapshot(Snapshot {
            session: self.id.clone(),
            cells,
            body: SnapshotBody::Page { more },
            request_id: requester.request_id,
        });
    }

    /// Handles it once an older page is there. A session without an agent is opened first.
    fn after_older(&mut self, command: SessionCommand, limit: usize) {
        match self.link {
            // It is handled again when the agent has ended.
            _ if self.lifetime.is_ending_agent() => self.hold(command),
            Link::Detached if self.hub.is_stopping() => command.refuse(&ServiceError::ShuttingDown, Some(&self.id)),
            Link::Detached => self.load_for(command),
            _ => {
                self.hold(command);
                self.read_older(limit);
            }
        }
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
