//! One live session. The task owns this state; everyone else holds a sender of [`Command`].
//!
//! Comes in: what the provider says and what windows ask. Goes out: numbered messages to every window that watches.
//! Kept out: sockets, files, other sessions. No arm waits on the world: calls to the provider run beside the loop and
//! report back as [`Done`].

mod asked;
mod branch;
mod command;
mod ending;
mod fall;
mod kept;
mod past;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use protocol::{
    AgentStatus, Continuity, ServerMessage, SessionFacts, SessionId, SessionState, Timestamp, TurnEvent, TurnId,
};
use providers::{History, Loaded, OpenSession, Provider, ProviderError, ProviderEvent, ProviderSession, StatusReport};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use upserts::{Emission, ItemUpdate};

use self::branch::BranchRead;
use self::command::Reply;
pub(crate) use self::command::{Command, has_room, leave_after};
use self::ending::Ending;
use self::kept::Switches;
use crate::attention::Watch;
use crate::error::ServiceError;
use crate::frame::{After, Frame};
use crate::hub::{HubCore, Place, Requester};
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

/// What a call beside the loop brought.
enum Done {
    Loaded(Result<Loaded, ProviderError>),
    Older(Result<History, ProviderError>),
    Sent(u64, Result<TurnId, ProviderError>, Reply<TurnId>),
    Answered(Result<(), ProviderError>, Reply<()>),
    Cancelled(Result<(), ProviderError>, Option<Requester>, Reply<()>),
    Killed(Result<(), ProviderError>),
    /// The agent of what was loaded and is not wanted has been ended.
    Discarded,
    IdChanged(SessionId, Result<(), catalog::CatalogError>),
    /// It is in the catalog, or could not be saved, and that was told.
    SwitchesKept,
    PromptedKept,
    BranchRead(Option<String>),
}

/// What connects a session with its agent.
enum Link {
    /// Its history is not here, because it was not loaded yet or could not be. The next request loads it.
    Unloaded,
    /// `unwanted`: it was ended meanwhile, so that what comes of loading it is ended too.
    Loading {
        unwanted: bool,
    },
    /// What was loaded is not wanted; its agent is being ended.
    Discarding,
    Attached(mpsc::Receiver<ProviderEvent>),
    /// The provider has closed the session; what was said is here.
    Detached,
}

impl Link {
    /// Whether it is not known yet what can be answered.
    fn is_under_way(&self) -> bool {
        matches!(self, Self::Loading { .. } | Self::Discarding)
    }

    async fn next_event(&mut self) -> Option<ProviderEvent> {
        match self {
            Self::Attached(events) => events.recv().await,
            _ => std::future::pending().await,
        }
    }

    /// The provider will say no more than what is in the channel.
    fn is_closed(&self) -> bool {
        matches!(self, Self::Attached(events) if events.is_closed())
    }

    fn try_next_event(&mut self) -> Option<ProviderEvent> {
        match self {
            Self::Attached(events) => events.try_recv().ok(),
            _ => None,
        }
    }
}

pub(crate) struct Session {
    id: SessionId,
    hub: Arc<HubCore>,
    provider: Arc<dyn Provider>,
    commands: mpsc::Receiver<Command>,
    /// What came before it ran; taken before what is in `commands`.
    early: Vec<Command>,
    link: Link,
    transcript: Transcript,
    facts: SessionFacts,
    watch: Watch,
    state: SessionState,
    members: Vec<(u64, Arc<Outbox>)>,
    calls: JoinSet<Done>,
    /// The agent began the session anew under another id, which is being saved.
    renaming: bool,
    /// What cannot be answered before the history is there, or before what runs has ended. As many as [`has_room`] allows.
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
    branch_read: BranchRead,
    /// It was archived, or its project removed: nothing is answered any more, and it is over when what runs has ended.
    closing: bool,
    /// What runs is being ended because someone asked for it.
    ending: Option<Ending>,
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
    /// A session that was just created. The window that did so has joined it.
    pub(crate) fn created(
        hub: Arc<HubCore>,
        id: SessionId,
        provider: Arc<dyn Provider>,
        session: ProviderSession,
        commands: mpsc::Receiver<Command>,
        creator: Option<&Requester>,
    ) -> Self {
        let mut this = Self::new(hub, id, provider, commands);
        this.link = Link::Attached(session.events);
        if let Some(creator) = creator {
            this.join(creator);
        }
        this.watch.continuity(Continuity::Live);
        this.watch.process(AgentStatus::Connected, None);
        this
    }

    /// A session that exists and is to be loaded for requests that wait for it.
    pub(crate) fn opened(
        hub: Arc<HubCore>,
        id: SessionId,
        provider: Arc<dyn Provider>,
        place: Place,
        commands: mpsc::Receiver<Command>,
        early: Vec<Command>,
    ) -> Self {
        let mut this = Self::new(hub, id, provider, commands);
        this.load(place);
        this.early = early;
        this
    }

    fn load(&mut self, Place { directory, prompted, chosen }: Place) {
        self.link = Link::Loading { unwanted: false };
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
        let mut watch = Watch::default();
        watch.restore(hub.catalog().session(&id).and_then(|record| record.unseen).as_ref());
        Self {
            id,
            hub,
            provider,
            commands,
            link: Link::Unloaded,
            early: Vec::new(),
            transcript,
            facts: SessionFacts::default(),
            watch,
            state,
            members: Vec::new(),
            calls: JoinSet::new(),
            renaming: false,
            waiting: Vec::new(),
            fetching_older: false,
            sending: None,
            sends: 0,
            begun_anew: false,
            prompted: false,
            switches: Switches::default(),
            branch_read: BranchRead::default(),
            closing: false,
            ending: None,
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
    pub(crate) async fn run(mut self) {
        let mut falls = 0;
        while let Err(fault) = contained(self.live()).await {
            self.fall(&fault).await;
            falls += 1;
            // What was said, and who watches, is not forgotten for one fault; the agent is asked again when something is
            // asked of us.
            let is_empty = self.transcript.is_new() && self.members.is_empty();
            if is_empty || self.closing || falls == FALLS_MAX {
                break;
            }
        }
        // In this order: what comes from now on waits for the next actor, and what is on its way here is not lost.
        self.hub.begin_closing(&self.id);
        self.commands.close();
        let mut left = std::mem::take(&mut self.early);
        left.append(&mut self.waiting);
        while let Some(command) = self.commands.recv().await {
            left.push(command);
        }
        self.answer_the_rest();
        self.hub.keep_number(&self.id, self.transcript.seq());
        self.hub.ended(&self.id, left).await;
    }

    /// Nothing will be done for it: all that waits is refused.
    pub(crate) fn refuse_all(mut self, failure: &ServiceError) {
        self.commands.close();
        let early = std::mem::take(&mut self.early);
        for command in early.into_iter().chain(std::iter::from_fn(|| self.commands.try_recv().ok())) {
            command.refuse(failure, Some(&self.id));
        }
    }

    async fn live(&mut self) {
        self.publish_state();
        while !self.early.is_empty() {
            let command = self.early.remove(0);
            self.obey(command);
        }
        let mut rest_at = Instant::now() + REST_AFTER;
        while !self.ended {
            let mut is_used = true;
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
                    Ok(done) => {
                        // Nobody asked for it: a session that only reads its branch is as idle as before.
                        is_used = !matches!(done, Done::BranchRead(_));
                        self.finish(done);
                    }
                    // What the call was to bring will never come: the session cannot go on as if nothing were.
                    Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                    Err(error) => tracing::error!(session = %self.id, %error, "a call to the provider was given up"),
                },
                event = self.link.next_event() => match event {
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
            if is_used {
                rest_at = Instant::now() + REST_AFTER;
            }
        }
    }

    /// A message is on its way to the agent, or its turn runs.
    fn is_working(&self) -> bool {
        self.sending.is_some() || self.watch.is_turn_running()
    }

    /// Takes what is there already, up to a bound, without going round the loop for each.
    fn hear_more(&mut self) {
        for _ in 0..EVENTS_PER_TURN_OF_LOOP {
            match self.link.try_next_event() {
                Some(event) => self.hear(event),
                None => return,
            }
        }
    }

    /// Takes all that is there already: the provider says nothing more.
    fn hear_rest(&mut self) {
        while let Some(event) = self.link.try_next_event() {
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
            self.keep_end(&event);
            // Nobody looks: whoever opens the session next has it read then.
            if !self.members.is_empty() {
                self.read_branch();
            }
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
        match report.hangs {
            true => self.watch.hangs(report.detail.as_deref()),
            false => self.watch.process(report.status, report.detail.as_deref()),
        }
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

    fn finish(&mut self, done: Done) {
        match done {
            Done::Loaded(loaded) => self.load_ended(loaded),
            Done::Older(older) => self.older_came(older),
            Done::Sent(number, sent, reply) => {
                // That its turn began is in the channel by now. Heard first, so that no other message takes its answer.
                self.hear_more();
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
                if sent.is_ok() && !matches!(self.link, Link::Attached(_)) {
                    self.no_turn_comes();
                }
                // The agent of a session that closes refuses it in words of its own, which say less.
                drop(reply.send(sent.map_err(|error| if self.closing { ServiceError::Closed } else { error.into() })));
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
            Done::Killed(killed) => self.killed(killed),
            Done::Discarded => self.discarded(),
            Done::IdChanged(new, Ok(())) => {
                self.renaming = false;
                self.hub.rename_session(&self.id, &new);
                self.id = new;
                self.publish_state();
                self.keep_switches();
                if self.prompted {
                    self.keep_prompted();
                }
                if self.closing {
                    self.end_agent();
                }
                self.resume_waiting();
            }
            Done::IdChanged(new, Err(error)) => self.rename_failed(&new, &error),
            Done::SwitchesKept => self.switches_kept(),
            Done::PromptedKept => {}
            Done::BranchRead(branch) => self.branch_was_read(branch),
        }
    }

    /// A cancel with nothing running is ignored, and said to be done.
    fn answer_cancellers(&mut self) {
        for requester in std::mem::take(&mut self.cancellers) {
            requester.answer(ServerMessage::Ack {});
        }
    }

    /// The window receives what is said in the session from now on. Twice is once.
    fn join(&mut self, requester: &Requester) {
        if !self.members.iter().any(|(window, _)| *window == requester.window) {
            self.members.push((requester.window, Arc::clone(&requester.outbox)));
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
        self.keep_unseen();
    }

    fn tell_members(&self, message: ServerMessage) {
        let frame = Frame::of(message, None);
        for (_, outbox) in &self.members {
            outbox.push(After::Session(self.id.clone()), frame.clone());
        }
    }
}

pub(crate) fn now() -> Timestamp {
    SystemTime::now().into()
}
