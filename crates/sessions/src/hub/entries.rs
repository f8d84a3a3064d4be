//! Which actor takes a session's requests, and where they wait while one actor ends and the next one begins.
//!
//! Comes in: requests for a session. Goes out: the same requests, in order, to one actor. An actor that is ending answers
//! nothing more: what reaches it is handed on with what waited here. Kept out: what a request means.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use futures_util::future::join_all;
use protocol::{ProjectId, SessionId};
use providers::{AgentSession, Provider};
use tokio::sync::{mpsc, oneshot};

use super::{HubCore, lock};
use crate::error::ServiceError;
use crate::session::{COMMANDS_MAX, SessionActor, SessionCommand, has_room, leave_after};

/// Where requests for one session go, and the agent's session behind it.
#[derive(Debug)]
pub(super) struct SessionEntry {
    actor: mpsc::Sender<SessionCommand>,
    /// None, or gone, when the session is not open.
    agent: Option<Weak<dyn AgentSession>>,
    phase: EntryPhase,
}

#[derive(Debug)]
enum EntryPhase {
    /// The actor takes requests.
    Live,
    /// The actor is ending. Requests wait, in the order they came, for the next one; as many as [`has_room`] allows.
    Closing { waiters: Vec<SessionCommand> },
}

pub(super) type Entries = HashMap<SessionId, SessionEntry>;

/// What became of a request.
enum Handed {
    /// This actor is to get it.
    To(mpsc::Sender<SessionCommand>, SessionCommand),
    /// It waits for the next actor.
    Waits,
    /// Nothing runs for the session.
    Nobody(SessionCommand),
}

impl SessionEntry {
    fn live(actor: mpsc::Sender<SessionCommand>) -> Self {
        Self { actor, agent: None, phase: EntryPhase::Live }
    }

    pub(super) fn actor(&self) -> &mpsc::Sender<SessionCommand> {
        &self.actor
    }
}

impl HubCore {
    /// Whether a process stands behind the session.
    pub(super) fn is_alive(&self, id: &SessionId) -> bool {
        let agent = lock(&self.sessions).get(id).and_then(|entry| entry.agent.clone());
        agent.and_then(|agent| agent.upgrade()).is_some_and(|agent| agent.is_alive())
    }

    /// The session's actor has opened it with its agent, or lost that.
    pub(crate) fn set_agent(&self, id: &SessionId, agent: Option<&Arc<dyn AgentSession>>) {
        if let Some(entry) = lock(&self.sessions).get_mut(id) {
            entry.agent = agent.map(Arc::downgrade);
        }
    }

    /// Sends a command to a session, opening it first if nothing runs for it. Commands of one caller keep their order.
    pub(crate) async fn command(self: &Arc<Self>, id: &SessionId, command: SessionCommand) -> Result<(), ServiceError> {
        let mut command = command;
        // Again only if an actor ended while this waited for room in its queue. Then the command waits for the next one.
        loop {
            match self.hand_or_start(id, command)? {
                Start::Handed(Handed::To(actor, handed)) => match actor.send(handed).await {
                    Ok(()) => return Ok(()),
                    Err(mpsc::error::SendError(back)) => command = back,
                },
                Start::Handed(_) => return Ok(()),
                Start::New(session) => return self.start_actor(*session).await,
            }
        }
    }

    /// Like [`Self::command`], with the answer.
    pub(crate) async fn ask<T>(
        self: &Arc<Self>,
        id: &SessionId,
        command: impl FnOnce(oneshot::Sender<Result<T, ServiceError>>) -> SessionCommand,
    ) -> Result<T, ServiceError> {
        let (reply, answer) = oneshot::channel();
        self.command(id, command(reply)).await?;
        answer.await.map_err(|_| ServiceError::SessionEnded)?
    }

    /// A command for whatever runs for the session. False if nothing does: then there is nothing to do.
    pub(crate) async fn command_live(&self, id: &SessionId, command: SessionCommand) -> Result<bool, ServiceError> {
        let mut command = command;
        loop {
            let handed = self.hand(&mut lock(&self.sessions), id, command)?;
            match handed {
                Handed::To(actor, handed) => match actor.send(handed).await {
                    Ok(()) => return Ok(true),
                    Err(mpsc::error::SendError(back)) => command = back,
                },
                Handed::Waits => return Ok(true),
                Handed::Nobody(_) => return Ok(false),
            }
        }
    }

    /// Like [`Self::command_live`], with the answer: `None` if nothing runs.
    pub(crate) async fn ask_live(
        &self,
        id: &SessionId,
        command: impl FnOnce(oneshot::Sender<Result<(), ServiceError>>) -> SessionCommand,
    ) -> Result<Option<()>, ServiceError> {
        self.record(id)?;
        let (reply, answer) = oneshot::channel();
        if !self.command_live(id, command(reply)).await? {
            return Ok(None);
        }
        // An actor that ended has ended what ran.
        answer.await.unwrap_or(Ok(())).map(Some)
    }

    /// Looks up and starts under one lock: of two who ask at once only one starts an actor, and none is started for a
    /// project that was just removed.
    fn hand_or_start(self: &Arc<Self>, id: &SessionId, command: SessionCommand) -> Result<Start, ServiceError> {
        let mut sessions = lock(&self.sessions);
        self.stored_session(id)?;
        let command = match self.hand(&mut sessions, id, command)? {
            Handed::Nobody(command) => command,
            handed => return Ok(Start::Handed(handed)),
        };
        self.unless_stopping()?;
        let provider = Arc::clone(self.registry().get(&self.record(id)?.cli_type)?);
        let (actor, commands) = mpsc::channel(COMMANDS_MAX);
        sessions.insert(id.clone(), SessionEntry::live(actor));
        drop(sessions);
        let session = SessionActor::opened(Arc::clone(self), provider, id.clone(), commands, vec![command]);
        Ok(Start::New(Box::new(session)))
    }

    fn hand(&self, sessions: &mut Entries, id: &SessionId, command: SessionCommand) -> Result<Handed, ServiceError> {
        match sessions.get_mut(id) {
            Some(SessionEntry { phase: EntryPhase::Closing { waiters }, .. }) => {
                // Without a request that needs the next actor there will be none that this could concern.
                if !command.needs_actor() && !waiters.iter().any(SessionCommand::needs_actor) {
                    return Ok(Handed::Nobody(command));
                }
                if let SessionCommand::Leave { window } = command {
                    leave_after(waiters, window);
                    return Ok(Handed::Waits);
                }
                if !has_room(waiters, &command) {
                    return Err(ServiceError::TooManyWait);
                }
                waiters.push(command);
                Ok(Handed::Waits)
            }
            Some(entry) if !entry.actor.is_closed() => Ok(Handed::To(entry.actor.clone(), command)),
            _ => Ok(Handed::Nobody(command)),
        }
    }

    /// Ends a session's actor and what runs in its agent. When this returns the actor answers nothing more; requests that
    /// come from then on wait for the next one.
    pub(crate) async fn close_session(&self, id: &SessionId) {
        for command in self.messages_that_wait(id) {
            command.refuse(&ServiceError::Closed, Some(id));
        }
        let Some(actor) = self.begin_closing(id) else { return };
        let (accepted, is_accepted) = oneshot::channel();
        // One that has ended by itself has nothing left to be closed.
        if actor.send(SessionCommand::Close { accepted }).await.is_ok() {
            drop(actor);
            is_accepted.await.ok();
        }
    }

    /// What the next actor of a session that is closing would have its agent do. It is closed once more, so nothing of it.
    fn messages_that_wait(&self, id: &SessionId) -> Vec<SessionCommand> {
        let mut sessions = lock(&self.sessions);
        match sessions.get_mut(id) {
            Some(SessionEntry { phase: EntryPhase::Closing { waiters }, .. }) => {
                waiters.extract_if(.., |command| command.changes_agent()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The project was removed: what runs in its sessions is ended, so that no agent works on where nobody sees it.
    pub(crate) async fn close_sessions_of(&self, project: &ProjectId) {
        let is_of_it = |id: &SessionId| self.record(id).is_ok_and(|record| record.project_id == *project);
        // Archived ones too: they can be open.
        let ids: Vec<_> = lock(&self.sessions).keys().filter(|id| is_of_it(id)).cloned().collect();
        join_all(ids.iter().map(|id| self.close_session(id))).await;
    }

    /// A created session has an actor. False if its project was removed meanwhile: under the lock, so that whoever removes it
    /// finds either no session or this one.
    pub(super) fn enter_created(
        &self,
        id: &SessionId,
        project: &ProjectId,
        actor: mpsc::Sender<SessionCommand>,
    ) -> bool {
        let mut sessions = lock(&self.sessions);
        let is_there = self.project(project).is_ok();
        if is_there {
            sessions.insert(id.clone(), SessionEntry::live(actor));
        }
        is_there
    }

    /// From here on requests wait for the next actor. Gives the one that ends, unless it is ending already.
    pub(crate) fn begin_closing(&self, id: &SessionId) -> Option<mpsc::Sender<SessionCommand>> {
        let mut sessions = lock(&self.sessions);
        let entry = sessions.get_mut(id)?;
        let EntryPhase::Live = entry.phase else { return None };
        entry.phase = EntryPhase::Closing { waiters: Vec::new() };
        Some(entry.actor.clone())
    }

    /// An actor is over. What it left and what waited goes to the next one, in this order; without a request that needs one
    /// there is none.
    pub(crate) async fn ended(self: &Arc<Self>, id: &SessionId, left: Vec<SessionCommand>) {
        let mut waiting = left;
        let next = {
            let mut sessions = lock(&self.sessions);
            if let Some(SessionEntry { phase: EntryPhase::Closing { waiters }, .. }) = sessions.remove(id) {
                waiting.extend(waiters);
            }
            if waiting.iter().any(SessionCommand::needs_actor) {
                self.successor(&mut sessions, id).map(Some)
            } else {
                Ok(None)
            }
        };
        match next {
            Ok(Some(Successor { provider, commands })) => {
                let session = SessionActor::opened(Arc::clone(self), provider, id.clone(), commands, waiting);
                // If nothing is started any more, the session has refused what waited for it.
                self.start_actor(session).await.ok();
            }
            Ok(None) => waiting.into_iter().for_each(SessionCommand::nothing_runs),
            Err(error) => {
                for command in waiting {
                    command.refuse(&error, Some(id));
                }
            }
        }
    }

    fn successor(&self, sessions: &mut Entries, id: &SessionId) -> Result<Successor, ServiceError> {
        self.unless_stopping()?;
        let record = self.record(id)?;
        let provider = Arc::clone(self.registry().get(&record.cli_type)?);
        self.stored_session(id)?;
        let (actor, commands) = mpsc::channel(COMMANDS_MAX);
        sessions.insert(record.id, SessionEntry::live(actor));
        Ok(Successor { provider, commands })
    }

    /// An actor's task panicked where nothing catches that: its entry leads nowhere.
    pub(crate) async fn lost(self: &Arc<Self>, id: &SessionId) {
        let is_dead = {
            let sessions = lock(&self.sessions);
            sessions.get(id).is_some_and(|entry| entry.actor().is_closed())
        };
        if is_dead {
            self.forget_head(id);
            self.ended(id, Vec::new()).await;
        }
    }

    pub(super) async fn start_actor(&self, session: SessionActor) -> Result<(), ServiceError> {
        self.spawn_session.send(session).await.map_err(|mpsc::error::SendError(session)| {
            session.refuse_all(&ServiceError::ShuttingDown);
            ServiceError::ShuttingDown
        })
    }

    /// Nothing is requested of any session any more: their actors end once nobody else holds them, and what waits is refused.
    pub(super) fn clear_entries(&self) {
        let entries = std::mem::take(&mut *lock(&self.sessions));
        for (id, entry) in entries {
            if let EntryPhase::Closing { waiters } = entry.phase {
                for command in waiters {
                    command.refuse(&ServiceError::ShuttingDown, Some(&id));
                }
            }
        }
    }
}

/// What the next actor of a session is made of.
struct Successor {
    provider: Arc<dyn Provider>,
    commands: mpsc::Receiver<SessionCommand>,
}

/// What [`HubCore::hand_or_start`] found.
enum Start {
    Handed(Handed),
    New(Box<SessionActor>),
}
