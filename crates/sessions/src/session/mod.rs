//! One live session. The task owns this state; everyone else holds a sender of [`Command`].
//!
//! Comes in: what the provider says and what windows ask. Goes out: numbered messages to every window that watches.
//! Kept out: sockets, files, other sessions. No arm waits on the world: calls to the provider run beside the loop and
//! report back as [`Done`].

mod asked;
mod fall;
mod kept;
mod past;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use protocol::{
    AgentStatus, Continuity, ErrorCode, ErrorDetail, ItemId, ServerMessage, SessionFacts, SessionId, SessionState,
    Timestamp, TurnEvent, TurnId,
};
use providers::{History, Loaded, OpenSession, Provider, ProviderError, ProviderEvent, ProviderSession, StatusReport};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use upserts::{Emission, ItemUpdate};

use self::kept::Switches;
use crate::attention::Watch;
use crate::error::ServiceError;
use crate::frame::{After, Frame};
use crate::hub::{HubCore, Place, Requester};
use crate::item::ItemCell;
use crate::outbox::Outbox;
use crate::transcript::Transcript;
use providers::fault::contained;

/// Commands that may wait for one session. Windows wait when it is full.
pub(crate) const COMMANDS_MAX: usize = 64;
/// Newest items a `view` window gets at once.
const HISTORY_ITEMS_VIEW: usize = 200;
/// Newest items a window of the plain contract gets, which is sent all there is. A year of daily work has fewer; beyond it
/// the answer says that there are more.
const HISTORY_ITEMS_PLAIN: usize = 50_000;
/// Items fetched of a provider at once when a window wants more than is here.
const HISTORY_ITEMS_FETCHED: usize = 2_000;
/// Newest items asked of a provider at first.
const HISTORY_ITEMS_LOADED: usize = 400;
/// Events of the agent handled before commands are looked at again, so that a flood keeps its order cheaply and a
/// cancel never queues behind it for long.
const EVENTS_PER_TURN_OF_LOOP: usize = 64;

/// Faults after which a session's task ends and what it held with it. Who opens the session gets it from its agent.
const FALLS_MAX: usize = 3;
/// A session that nothing was heard or asked of for so long puts away what it can have again.
const REST_AFTER: Duration = Duration::from_secs(60);

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
    /// Gives an item out, for whoever makes something of it: that may take long and is not done here.
    Item {
        item: ItemId,
        reply: Reply<Arc<ItemCell>>,
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
    /// The server ends: what runs is cancelled. Answered when nothing runs any more.
    Drain {
        settled: oneshot::Sender<()>,
    },
}

/// What a call beside the loop brought.
enum Done {
    Loaded(Result<Loaded, ProviderError>),
    Older(Result<History, ProviderError>),
    Sent(u64, Result<TurnId, ProviderError>, Reply<TurnId>),
    Answered(Result<(), ProviderError>, Reply<()>),
    Cancelled(Result<(), ProviderError>, Option<Requester>, Reply<()>),
    Killed(Result<(), ProviderError>, Reply<()>),
    IdChanged(SessionId, Result<(), catalog::CatalogError>),
    /// It is in the catalog, or could not be saved, and that was told.
    SwitchesKept,
    PromptedKept,
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
    /// The agent began the session anew under another id, which is being saved.
    renaming: bool,
    /// What cannot be answered before the history is there.
    waiting: Vec<Command>,
    fetching_older: bool,
    /// The message on its way to the agent, by its number; none once its turn has begun.
    sending: Option<u64>,
    sends: u64,
    /// The agent gave it another id since it was opened here.
    begun_anew: bool,
    /// A turn has begun under its present id, so the agent has a record of this session; the file may say so a moment later.
    prompted: bool,
    switches: Switches,
    /// Archived: leaves as soon as what runs has ended.
    leaving: bool,
    /// What runs is being ended because someone asked for it.
    killing: bool,
    /// It was ended while it was being loaded: what comes of that is let go of.
    unwanted: bool,
    /// Who waits for the turn's end because the server ends.
    drain: Option<oneshot::Sender<()>>,
    /// Whose request the next `turn_started` answers, and whose the next end of a turn.
    sender: Option<Requester>,
    cancellers: Vec<Requester>,
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
        this.watch.process(AgentStatus::Connected, None);
        this
    }

    /// A session that exists and is to be loaded.
    pub(crate) fn opened(
        hub: Arc<HubCore>,
        id: SessionId,
        provider: Arc<dyn Provider>,
        place: Place,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        let mut this = Self::new(hub, id, provider, commands);
        this.load(place);
        this
    }

    fn load(&mut self, Place { directory, prompted, chosen }: Place) {
        self.loading = true;
        self.watch.loading(true);
        let open = OpenSession {
            id: self.id.agent_session_id(),
            project_dir: directory,
            prompted: prompted || self.prompted,
            chosen: self.switches.heard.clone().unwrap_or(chosen),
            items_max: HISTORY_ITEMS_LOADED,
        };
        let provider = Arc::clone(&self.provider);
        self.calls.spawn(async move { Done::Loaded(provider.load_session(open).await) });
    }

    fn new(hub: Arc<HubCore>, id: SessionId, provider: Arc<dyn Provider>, commands: mpsc::Receiver<Command>) -> Self {
        let state = hub.state_of(&id);
        let transcript = Transcript::after(hub.last_number(&id));
        Self {
            id,
            hub,
            provider,
            commands,
            events: None,
            transcript,
            facts: SessionFacts::default(),
            watch: Watch::default(),
            state,
            members: Vec::new(),
            calls: JoinSet::new(),
            loading: false,
            renaming: false,
            waiting: Vec::new(),
            fetching_older: false,
            sending: None,
            sends: 0,
            begun_anew: false,
            prompted: false,
            switches: Switches::default(),
            leaving: false,
            killing: false,
            unwanted: false,
            drain: None,
            sender: None,
            cancellers: Vec::new(),
            ended: false,
        }
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    /// However it ends, nobody is left waiting.
    pub(crate) async fn run(mut self) -> SessionId {
        let mut falls = 0;
        while let Err(fault) = contained(self.live()).await {
            self.fall(&fault).await;
            falls += 1;
            // What was said is not thrown away for one fault; the agent is asked again when something is asked of us.
            if self.transcript.is_new() || self.leaving || falls == FALLS_MAX {
                break;
            }
        }
        self.commands.close();
        let mut left = std::mem::take(&mut self.waiting);
        while let Ok(command) = self.commands.try_recv() {
            left.push(command);
        }
        self.hub.ended(&self.id, self.transcript.seq(), left);
        self.id.clone()
    }

    async fn live(&mut self) {
        self.publish_state();
        let mut rest_at = Instant::now() + REST_AFTER;
        while !self.ended {
            tokio::select! {
                biased; // A cancel must not queue behind a flood of output.
                command = self.commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => {
                        // Everything ends: its last words are in the channel.
                        self.hear_rest();
                        self.cut_turn(None);
                        if self.sending.take().is_some() {
                            // Its turn will never be.
                            self.hub.catalog().turn_ended(&self.id, now());
                        }
                        break;
                    }
                },
                Some(done) = self.calls.join_next() => match done {
                    Ok(done) => self.finish(done),
                    // What the call was to bring will never come: the session cannot go on as if nothing were.
                    Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                    Err(error) => tracing::error!(session = %self.id, %error, "a call to the provider was given up"),
                },
                event = next_event(&mut self.events) => match event {
                    Some(event) => {
                        self.hear(event);
                        self.hear_more();
                    }
                    None => self.lose_provider(),
                },
                () = tokio::time::sleep_until(rest_at) => self.rest(),
            }
            if !self.is_working()
                && let Some(settled) = self.drain.take()
            {
                settled.send(()).ok();
            }
            rest_at = Instant::now() + REST_AFTER;
        }
    }

    /// A message is on its way to the agent, or its turn runs.
    fn is_working(&self) -> bool {
        self.sending.is_some() || self.watch.is_turn_running()
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

    /// Takes all that is there already: the provider says nothing more.
    fn hear_rest(&mut self) {
        while let Some(Ok(event)) = self.events.as_mut().map(mpsc::Receiver::try_recv) {
            self.hear(event);
        }
    }

    fn hear(&mut self, event: ProviderEvent) {
        match event {
            ProviderEvent::Emission(Emission::Item(update)) => self.publish_item(update),
            ProviderEvent::Emission(Emission::Turn(event)) => self.hear_turn(event),
            ProviderEvent::Facts(facts) => {
                self.facts.merge(facts.clone());
                self.publish_facts(facts);
            }
            ProviderEvent::Status(report) => self.hear_status(report),
            ProviderEvent::Continuity(continuity) => {
                self.watch.continuity(continuity);
                self.publish_state();
            }
            ProviderEvent::Chosen(options) => self.switched(options),
            ProviderEvent::IdChanged(agent_id) => {
                (self.begun_anew, self.prompted) = (true, false);
                let new = SessionId::new(&self.id.cli_type(), &agent_id);
                let (hub, old) = (Arc::clone(&self.hub), self.id.clone());
                self.renaming = true;
                hub.begin_rename(&old, &new);
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
        let requesters = if event.is_end() {
            std::mem::take(&mut self.cancellers)
        } else {
            self.sender.take().into_iter().collect()
        };
        if event.is_end() {
            self.hub.catalog().turn_ended(&self.id, now());
        } else {
            self.sending = None;
            self.prompted = true;
            self.keep_prompted();
        }
        let message = ServerMessage::SessionTurn { session_id: self.id.clone(), seq, payload: event };
        // A window that asked gets it as its answer. It is told once, so that the second time it asked is only confirmed.
        let mut told = Vec::new();
        for requester in &requesters {
            let is_told = told.contains(&requester.window);
            requester.answer(if is_told { ServerMessage::Ack {} } else { message.clone() });
            told.push(requester.window);
        }
        let frame = Frame::of(message, None);
        for (window, outbox) in &self.members {
            if !told.contains(window) {
                outbox.push(After::Session(self.id.clone()), frame.clone());
            }
        }
        self.publish_state();
    }

    fn hear_status(&mut self, report: StatusReport) {
        self.watch.process(report.status, report.detail.as_deref());
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

    /// The provider closed the channel: the session was killed, everything ends, or the provider broke. A turn that it did
    /// not end is ended here: nothing shows as running for ever.
    fn lose_provider(&mut self) {
        self.events = None;
        let is_asked = self.killing || self.hub.is_stopping();
        let message = ErrorCode::ProcessCrash.message(self.provider.name());
        self.cut_turn((!is_asked).then(|| ErrorDetail::new(ErrorCode::ProcessCrash, message)));
        self.watch.process(AgentStatus::Idle, None);
        self.watch.continuity(Continuity::Dormant);
        self.publish_state();
        self.ended = self.leaving;
    }

    /// The provider let this session go; it is opened again because something is asked of it. What was said stays.
    fn wake(&mut self, command: Command) {
        self.waiting.push(command);
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
                        self.hub.catalog().turn_ended(&self.id, now());
                        // Its turn will never be, so it has no end that could answer them.
                        self.answer_cancellers();
                    }
                }
                drop(reply.send(sent.map_err(Into::into)));
            }
            Done::Cancelled(cancelled, requester, reply) => {
                if let (Err(_), Some(failed)) = (&cancelled, requester) {
                    let is_failed =
                        |one: &Requester| one.window == failed.window && one.request_id == failed.request_id;
                    self.cancellers.retain(|one| !is_failed(one));
                }
                drop(reply.send(cancelled.map_err(Into::into)));
            }
            Done::Answered(answer, reply) => drop(reply.send(answer.map_err(Into::into))),
            Done::Killed(killed, reply) => {
                // Its last words are in the channel. They are heard before anything else is asked of it.
                self.hear_rest();
                let killed = match killed {
                    // It was ended before.
                    Err(ProviderError::SessionNotFound(_)) => Ok(()),
                    other => other,
                };
                self.unwanted |= self.loading && killed.is_ok();
                if killed.is_ok() && !self.loading {
                    self.lose_provider();
                }
                self.killing = false;
                self.ended |= self.leaving && !self.loading;
                drop(reply.send(killed.map_err(Into::into)));
            }
            Done::IdChanged(new, Ok(())) => {
                self.renaming = false;
                self.hub.rename_session(&self.id, &new);
                self.id = new;
                self.publish_state();
                self.keep_switches();
                if self.prompted {
                    self.keep_prompted();
                }
                self.resume_waiting();
            }
            Done::IdChanged(new, Err(error)) => self.rename_failed(&new, &error),
            Done::SwitchesKept => self.switches_kept(),
            Done::PromptedKept => {}
        }
    }

    /// A cancel with nothing running is ignored, and said to be done.
    fn answer_cancellers(&mut self) {
        for requester in std::mem::take(&mut self.cancellers) {
            requester.answer(ServerMessage::Ack {});
        }
    }

    fn publish_item(&mut self, update: ItemUpdate) {
        let (seq, cell) = self.transcript.upsert(update);
        for (_, outbox) in &self.members {
            outbox.push_item(&self.id, seq, &cell);
        }
    }

    fn publish_facts(&self, more: SessionFacts) {
        let frame = |facts| Frame::of(ServerMessage::SessionFacts { session_id: self.id.clone(), facts }, None);
        let (more, all) = (frame(more), std::cell::OnceCell::new());
        for (_, outbox) in &self.members {
            outbox.push_facts(&self.id, more.clone(), || all.get_or_init(|| frame(self.facts.clone())).clone());
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
            outbox.push(After::Session(self.id.clone()), frame.clone());
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
