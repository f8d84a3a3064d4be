//! One live session. The task owns this state; everyone else holds a sender of [`Command`].
//!
//! Comes in: what the provider says and what windows ask. Goes out: numbered messages to every window that watches.
//! Kept out: sockets, files, other sessions. No arm waits on the world: calls to the provider run beside the loop and
//! report back as [`Done`].

mod asked;
mod past;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use protocol::{
    AgentStatus, Attention, Continuity, ErrorCode, ItemId, ServerMessage, SessionFacts, SessionId, SessionState,
    Timestamp, TurnEvent, TurnId,
};
use providers::{History, Loaded, OpenSession, Provider, ProviderError, ProviderEvent, ProviderSession, StatusReport};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use upserts::Emission;

use crate::attention::Watch;
use crate::error::ServiceError;
use crate::frame::Frame;
use crate::hub::{HubCore, Requester};
use crate::outbox::Outbox;
use crate::transcript::Transcript;

/// Commands that may wait for one session. Windows wait when it is full.
pub(crate) const COMMANDS_MAX: usize = 64;
/// Newest items a `view` window gets at once.
const HISTORY_ITEMS_VIEW: usize = 200;
/// Newest items asked of a provider at first.
const HISTORY_ITEMS_LOADED: usize = 400;
/// Events of the agent handled before commands are looked at again, so that a flood keeps its order cheaply and a
/// cancel never queues behind it for long.
const EVENTS_PER_TURN_OF_LOOP: usize = 64;

type Reply<T> = oneshot::Sender<Result<T, ServiceError>>;

#[derive(Debug)]
pub(crate) enum Command {
    Open {
        requester: Requester,
        since: Option<u64>,
    },
    Leave {
        window: u64,
    },
    Send {
        content: String,
        requester: Option<Requester>,
        reply: Reply<TurnId>,
    },
    Cancel {
        requester: Option<Requester>,
        reply: Reply<()>,
    },
    Page {
        requester: Requester,
        before: ItemId,
        limit: usize,
    },
    Output {
        requester: Requester,
        item: ItemId,
    },
    SetOption {
        option: String,
        value: String,
        reply: Reply<()>,
    },
    Reconnect {
        reply: Reply<()>,
    },
    Seen,
    /// Waits until the session is loaded.
    Ready {
        reply: Reply<()>,
    },
    /// Ends what runs. With `end` the session leaves too, because it was archived.
    Kill {
        end: bool,
        reply: Reply<()>,
    },
}

/// What a call beside the loop brought.
enum Done {
    Loaded(Result<Loaded, ProviderError>),
    Older(Result<History, ProviderError>),
    Sent(u64, Result<TurnId, ProviderError>, Reply<TurnId>),
    Answered(Result<(), ProviderError>, Reply<()>),
    Killed(Result<(), ProviderError>, Reply<()>),
    IdChanged(SessionId, Result<(), catalog::CatalogError>),
}

pub(crate) struct Session {
    id: SessionId,
    hub: Arc<HubCore>,
    provider: Arc<dyn Provider>,
    commands: mpsc::Receiver<Command>,
    /// None while loading, and after the provider let the session go.
    events: Option<mpsc::Receiver<ProviderEvent>>,
    transcript: Transcript,
    facts: SessionFacts,
    watch: Watch,
    state: SessionState,
    members: Vec<(u64, Arc<Outbox>)>,
    calls: JoinSet<Done>,
    loading: bool,
    /// What cannot be answered before the history is there.
    waiting: Vec<Command>,
    fetching_older: bool,
    /// The message on its way to the agent, by its number; none once its turn has begun.
    sending: Option<u64>,
    sends: u64,
    /// A turn has begun, so the agent has a record of this session; the file may say so a moment later.
    prompted: bool,
    /// Archived: leaves as soon as what runs has ended.
    leaving: bool,
    /// Whose request the next `turn_started` answers, and the next `turn_complete`.
    sender: Option<Requester>,
    canceller: Option<Requester>,
    ended: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Session {
    /// A session that was just created.
    pub(crate) fn created(
        hub: Arc<HubCore>,
        id: SessionId,
        provider: Arc<dyn Provider>,
        session: ProviderSession,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        let mut this = Self::new(hub, id, provider, commands);
        this.events = Some(session.events);
        this.watch.continuity(Continuity::Live);
        this.watch.process(AgentStatus::Connected);
        this
    }

    /// A session that exists and is to be loaded.
    pub(crate) fn opened(
        hub: Arc<HubCore>,
        id: SessionId,
        provider: Arc<dyn Provider>,
        project_dir: PathBuf,
        prompted: bool,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        let mut this = Self::new(hub, id, provider, commands);
        this.load(project_dir, prompted, HISTORY_ITEMS_LOADED);
        this
    }

    fn load(&mut self, project_dir: PathBuf, prompted: bool, items_max: usize) {
        self.loading = true;
        self.watch.loading(true);
        let open = OpenSession { id: self.id.agent_session_id(), project_dir, prompted, items_max };
        let provider = Arc::clone(&self.provider);
        self.calls.spawn(async move { Done::Loaded(provider.load_session(open).await) });
    }

    fn new(hub: Arc<HubCore>, id: SessionId, provider: Arc<dyn Provider>, commands: mpsc::Receiver<Command>) -> Self {
        let state = hub.state_of(&id);
        Self {
            id,
            hub,
            provider,
            commands,
            events: None,
            transcript: Transcript::default(),
            facts: SessionFacts::default(),
            watch: Watch::default(),
            state,
            members: Vec::new(),
            calls: JoinSet::new(),
            loading: false,
            waiting: Vec::new(),
            fetching_older: false,
            sending: None,
            sends: 0,
            prompted: false,
            leaving: false,
            sender: None,
            canceller: None,
            ended: false,
        }
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    pub(crate) async fn run(mut self) -> SessionId {
        self.publish_state();
        while !self.ended {
            tokio::select! {
                biased; // A cancel must not queue behind a flood of output.
                command = self.commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => break,
                },
                Some(done) = self.calls.join_next() => match done {
                    Ok(done) => self.finish(done),
                    Err(error) => tracing::error!(session = %self.id, %error, "a call to the provider failed"),
                },
                event = next_event(&mut self.events) => match event {
                    Some(event) => {
                        self.hear(event);
                        self.hear_more();
                    }
                    None => self.lose_provider(),
                },
            }
        }
        self.id.clone()
    }

    /// Takes what is there already, up to a bound, without going round the loop for each.
    fn hear_more(&mut self) {
        for _ in 0..EVENTS_PER_TURN_OF_LOOP {
            match self.events.as_mut().map(mpsc::Receiver::try_recv) {
                Some(Ok(event)) => self.hear(event),
                _ => return,
            }
        }
    }

    fn hear(&mut self, event: ProviderEvent) {
        match event {
            ProviderEvent::Emission(Emission::Item(update)) => {
                let (seq, cell) = self.transcript.upsert(update);
                for (_, outbox) in &self.members {
                    outbox.push_item(&self.id, seq, &cell);
                }
            }
            ProviderEvent::Emission(Emission::Turn(event)) => self.hear_turn(event),
            ProviderEvent::Facts(facts) => {
                self.facts.merge(facts.clone());
                self.tell_members(ServerMessage::SessionFacts { session_id: self.id.clone(), facts });
            }
            ProviderEvent::Status(report) => self.hear_status(report),
            ProviderEvent::Continuity(continuity) => {
                self.watch.continuity(continuity);
                self.publish_state();
            }
            ProviderEvent::IdChanged(agent_id) => {
                let new = SessionId::new(&self.id.cli_type(), &agent_id);
                let (hub, old) = (Arc::clone(&self.hub), self.id.clone());
                self.calls.spawn(async move {
                    let saved = hub.catalog().change_id(&old, &new).await;
                    Done::IdChanged(new, saved)
                });
            }
        }
    }

    fn hear_turn(&mut self, event: TurnEvent) {
        self.members.retain(|(_, outbox)| !outbox.gone().is_cancelled());
        let seq = self.transcript.turn(&event);
        self.watch.turn(&event);
        let requester = if event.is_end() { self.canceller.take() } else { self.sender.take() };
        if event.is_end() {
            self.hub.catalog().touch(&self.id, now());
        } else {
            self.sending = None;
            self.prompted = true;
        }
        let message = ServerMessage::SessionTurn { session_id: self.id.clone(), seq, payload: event };
        let frame = Frame::of(message.clone(), None);
        for (window, outbox) in &self.members {
            match &requester {
                Some(requester) if requester.window == *window => {
                    outbox.push(Frame::of(message.clone(), requester.request_id.clone()));
                }
                _ => outbox.push(frame.clone()),
            }
        }
        if let Some(requester) = &requester
            && !self.members.iter().any(|(window, _)| *window == requester.window)
        {
            requester.outbox.push(Frame::of(message, requester.request_id.clone()));
        }
        self.publish_state();
    }

    fn hear_status(&mut self, report: StatusReport) {
        self.watch.process(report.status);
        self.hub.broadcast(ServerMessage::AgentStatus {
            cli_type: self.id.cli_type(),
            session_id: Some(self.id.clone()),
            status: report.status,
            attempt: report.attempt,
            attempts_max: report.attempts_max,
            retry_in_ms: report.retry_in_ms,
            detail: report.detail,
        });
        self.publish_state();
    }

    /// The provider closed the channel: the session was killed, or everything ends.
    fn lose_provider(&mut self) {
        self.events = None;
        self.watch.process(AgentStatus::Idle);
        self.watch.continuity(Continuity::Dormant);
        self.publish_state();
        self.ended = self.leaving;
    }

    /// The provider let this session go; it is opened again because something is asked of it. What was said stays.
    fn wake(&mut self, command: Command) {
        self.waiting.push(command);
        match self.hub.place_of(&self.id) {
            Ok((project_dir, prompted)) => {
                self.load(project_dir, prompted || self.prompted, HISTORY_ITEMS_LOADED);
                self.publish_state();
            }
            Err(error) => {
                let failure = ProviderError::LoadFailed { detail: error.to_string() };
                self.load_failed(failure);
            }
        }
    }

    fn finish(&mut self, done: Done) {
        match done {
            Done::Loaded(Ok(loaded)) => self.loaded(loaded),
            Done::Loaded(Err(error)) => self.load_failed(error),
            Done::Older(older) => self.older_came(older),
            Done::Sent(number, sent, reply) => {
                // Its turn may have begun, ended and been followed by another before this is heard.
                if self.sending == Some(number) {
                    self.sending = None;
                    if sent.is_err() {
                        self.sender = None;
                    }
                }
                drop(reply.send(sent.map_err(Into::into)));
            }
            Done::Answered(answer, reply) => drop(reply.send(answer.map_err(Into::into))),
            Done::Killed(killed, reply) => {
                // Its last words are in the channel. They are heard before anything else is asked of it.
                self.hear_more();
                if killed.is_ok() {
                    self.lose_provider();
                }
                self.ended |= self.leaving;
                drop(reply.send(killed.map_err(Into::into)));
            }
            Done::IdChanged(new, Ok(())) => {
                self.hub.rename_session(&self.id, &new);
                self.id = new;
            }
            Done::IdChanged(new, Err(error)) => {
                tracing::error!(session = %self.id, %new, %error, "the session's new id could not be saved");
            }
        }
    }

    fn publish_state(&mut self) {
        let state = self.watch.state(&self.state, now());
        self.hub.publish_state(&self.id, &state);
        self.state = state;
    }

    fn tell_members(&self, message: ServerMessage) {
        let frame = Frame::of(message, None);
        for (_, outbox) in &self.members {
            outbox.push(frame.clone());
        }
    }
}

impl Drop for Session {
    /// However the task ends, nobody is left waiting: a panic is told to the windows that watch.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut message =
                protocol::ErrorMessage::new(ErrorCode::InternalError, ErrorCode::InternalError.message(""));
            message.session_id = Some(self.id.clone());
            self.tell_members(ServerMessage::Error(message));
            let state = SessionState {
                attention: Attention::Error,
                reason: Some(ErrorCode::InternalError.message("")),
                ..self.state.clone()
            };
            self.hub.publish_state(&self.id, &state);
        }
    }
}

async fn next_event(events: &mut Option<mpsc::Receiver<ProviderEvent>>) -> Option<ProviderEvent> {
    match events {
        Some(events) => events.recv().await,
        None => std::future::pending().await,
    }
}

pub(crate) fn now() -> Timestamp {
    SystemTime::now().into()
}
