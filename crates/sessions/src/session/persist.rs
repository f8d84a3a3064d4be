//! What the catalog saves of a live session: its title, the agent's id for it, the options that the user has set, that the
//! agent was given a message, how the last turn ended, and whether somebody has seen that.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use catalog::TurnEnd;
use protocol::{AgentSessionId, ServerMessage, SessionId, TurnEvent, TurnStatus};
use providers::StoredSession;

use super::command::{CallReply, SentMessage};
use super::{CallResult, SessionActor, now};
use crate::hub::HubCore;

/// Writes wait for each other, so that the last one stays and a prompted session is always found under the agent's id.
#[derive(Debug)]
pub(super) struct Persist {
    /// The agent's present id for the session; on the disk a moment later.
    agent_id: AgentSessionId,
    /// The agent was given a message under `agent_id` since the session was opened here.
    prompted: bool,
    /// As the agent reported them here. None: they are as the catalog has them.
    options: Option<BTreeMap<String, String>>,
    /// The first one is being written.
    queue: VecDeque<Write>,
    /// Callers that are answered when the queue is empty.
    replies: Vec<(CallReply<SentMessage>, SentMessage)>,
}

#[derive(Clone, Debug)]
pub(super) enum Write {
    Title(String),
    AgentId(AgentSessionId),
    Options(BTreeMap<String, String>),
    Prompted(AgentSessionId),
}

impl Persist {
    pub(super) fn new(agent_id: AgentSessionId) -> Self {
        Self { agent_id, prompted: false, options: None, queue: VecDeque::new(), replies: Vec::new() }
    }

    pub(super) fn agent_id(&self) -> &AgentSessionId {
        &self.agent_id
    }

    /// What the catalog has of the session, with what is not on the disk yet.
    pub(super) fn complete(&self, stored: &mut StoredSession) {
        let is_same = stored.agent_id == self.agent_id;
        stored.prompted = self.prompted || is_same && stored.prompted;
        stored.agent_id = self.agent_id.clone();
        if let Some(options) = &self.options {
            stored.options.clone_from(options);
        }
    }

    /// Answers a caller once everything is on the disk that its message has changed.
    pub(super) fn reply_when_saved(&mut self, reply: CallReply<SentMessage>, sent: SentMessage) {
        self.replies.push((reply, sent));
        self.answer_if_saved();
    }

    fn answer_if_saved(&mut self) {
        if self.queue.is_empty() {
            for (reply, sent) in self.replies.drain(..) {
                drop(reply.send(Ok(sent)));
            }
        }
    }
}

impl Write {
    async fn run(self, hub: &HubCore, id: &SessionId) {
        let catalog = hub.catalog();
        let saved = match self {
            Self::Title(title) => {
                let saved = catalog.set_title(id, &title).await;
                if saved.is_ok() {
                    hub.broadcast(ServerMessage::SessionTitleUpdated { session_id: id.clone(), title });
                }
                saved
            }
            Self::AgentId(agent_id) => catalog.set_agent_session_id(id, &agent_id).await,
            Self::Options(options) => catalog.set_options(id, options).await,
            // The id first, again if it failed before: without it the agent would create the session a second time.
            Self::Prompted(agent_id) => match catalog.set_agent_session_id(id, &agent_id).await {
                Ok(()) => catalog.mark_prompted(id).await,
                failed => failed,
            },
        };
        if let Err(error) = saved {
            tracing::error!(session = %id, %error, "the session's record could not be saved");
        }
    }
}

impl SessionActor {
    pub(super) fn save(&mut self, write: Write) {
        let is_idle = self.persist.queue.is_empty();
        // Newer options replace queued ones; those that are being written stay.
        if matches!(write, Write::Options(_))
            && let Some(queued) =
                self.persist.queue.iter_mut().skip(1).find(|queued| matches!(queued, Write::Options(_)))
        {
            *queued = write;
            return;
        }
        self.persist.queue.push_back(write);
        if is_idle {
            self.write_first();
        }
    }

    pub(super) fn write_first(&mut self) {
        let Some(write) = self.persist.queue.front().cloned() else { return self.persist.answer_if_saved() };
        let (hub, id) = (Arc::clone(&self.hub), self.id.clone());
        self.calls.spawn(async move {
            write.run(&hub, &id).await;
            CallResult::Saved
        });
    }

    /// The first write has ended, or its call was dropped.
    pub(super) fn saved(&mut self) {
        self.persist.queue.pop_front();
        self.write_first();
    }

    /// All that was to be saved is on the disk, or could not be written.
    pub(super) fn is_saved(&self) -> bool {
        self.persist.queue.is_empty()
    }

    /// For the end of the actor: writes what still waits. The first write may be under way in a call; that is dropped, so
    /// that it cannot come after a newer one, and repeated.
    pub(super) async fn finish_writes(&mut self) {
        self.calls.shutdown().await;
        for write in std::mem::take(&mut self.persist.queue) {
            write.run(&self.hub, &self.id).await;
        }
        self.persist.answer_if_saved();
    }

    pub(super) fn options_changed(&mut self, options: BTreeMap<String, String>) {
        self.persist.options = Some(options.clone());
        self.save(Write::Options(options));
    }

    /// The agent continues under another id of its own. Ours stays.
    pub(super) fn agent_id_changed(&mut self, agent_id: AgentSessionId) {
        if self.persist.agent_id == agent_id {
            return;
        }
        (self.persist.agent_id, self.persist.prompted) = (agent_id.clone(), false);
        self.save(Write::AgentId(agent_id));
    }

    /// The agent was given a message under its present id, so it has a record of the session.
    pub(super) fn was_prompted(&mut self) {
        let agent_id = self.persist.agent_id.clone();
        let is_saved = self
            .hub
            .catalog()
            .session(&self.id)
            .is_some_and(|record| record.prompted && record.current_agent_id() == agent_id);
        if std::mem::replace(&mut self.persist.prompted, true) || is_saved {
            return;
        }
        self.save(Write::Prompted(agent_id));
    }

    /// A turn ended. That, and that nobody has seen it yet, are on the disk within half a second.
    pub(super) fn save_turn_end(&mut self, event: &TurnEvent) {
        let usage = match event {
            TurnEvent::TurnComplete { usage, .. } => usage.as_ref(),
            TurnEvent::TurnStarted { .. } | TurnEvent::TurnError { .. } => None,
        };
        let end = match event {
            TurnEvent::TurnStarted { .. } => return,
            TurnEvent::TurnComplete { status: TurnStatus::Completed, .. } => TurnEnd::Completed,
            TurnEvent::TurnComplete { status: TurnStatus::Cancelled, .. } => {
                if self.hub.is_stopping() {
                    self.shown.watch.stopped_with_server();
                }
                TurnEnd::Cancelled
            }
            TurnEvent::TurnError { error_code, error_message, .. } => TurnEnd::error(error_code, error_message),
        };
        let now = now();
        let unseen = self.shown.watch.to_save(&self.shown.state, now);
        self.hub.catalog().turn_ended_with(&self.id, now, end, unseen, usage);
    }

    /// The catalog knows what somebody still has to look at. Costs a comparison when nothing changed.
    pub(super) fn save_unseen(&self) {
        self.hub.catalog().set_unseen(&self.id, self.shown.watch.to_save(&self.shown.state, now()));
    }
}
