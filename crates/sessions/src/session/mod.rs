//! One live session. The task owns this state; everyone else holds a sender of [`SessionCommand`].
//!
//! Comes in: events of the agent and requests of windows. Goes out: numbered messages to every window that watches.
//! Kept out: sockets, files, other sessions. No arm waits on the world: calls to the agent run beside the loop and
//! report back as [`CallResult`].

mod branch;
mod closing;
mod command;
mod events;
mod fold;
mod history;
mod last_turn;
mod panic;
mod persist;
mod phases;
mod reads;
mod recorder;
mod recording;
mod requests;
mod turns;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use journal::{JournalError, Page, SessionHead, SessionKey};
use protocol::{AgentStatus, Continuity, SessionFacts, SessionId, SessionState, Timestamp, TurnId};
use providers::catch_panic::catch_panic;
use providers::{HistoryCursor, OpenedSession, Provider, ProviderError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, Id as CallId, JoinSet};
use tokio::time::Instant;

pub use self::command::SentMessage;
use self::command::{CallReply, DoneReply};
pub(crate) use self::command::{CancelReply, OpenCursor, SendReply, SessionCommand, has_room, leave_after};
use self::fold::Fold;
pub(crate) use self::history::HistoryPage;
use self::history::{LoadedHistory, RecordedHistory};
use self::persist::Persist;
use self::phases::{AttachedAgent, Lifetime, Link, TurnPhase};
use self::reads::Reads;
use self::recorder::Recorder;
use self::recording::Delivery;
use crate::attention::Watch;
use crate::error::ServiceError;
use crate::hub::{HubCore, Requester};
use crate::outbox::Outbox;
use crate::transcript::Transcript;

/// Commands that may wait for one session. Windows wait when it is full.
pub(crate) const COMMANDS_MAX: usize = 64;
/// Events of the agent handled before commands are looked at again, so that a flood keeps its order cheaply and a
/// cancel never queues behind it for long.
const EVENTS_PER_ROUND: usize = 64;
/// Panics after which a session's task ends, and with it what it held. The next request loads the session again.
const PANICS_MAX: usize = 3;
/// A session without events and requests for so long releases what can be loaded again.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// What a call beside the loop brought.
enum CallResult {
    HistoryRead(Result<RecordedHistory, JournalError>),
    PageRead(Result<Page, JournalError>),
    TakenOver(Result<SessionHead, JournalError>),
    /// The agent remembers nothing of these turns.
    Forgotten(BTreeSet<TurnId>),
    Loaded(Result<Box<LoadedHistory>, ProviderError>),
    /// What was in front of this cursor.
    Older(Result<HistoryPage, ProviderError>, HistoryCursor),
    /// A caller waits for the turn's id; a window is in the turn's phase.
    Sent(Result<TurnId, ProviderError>, Option<CallReply<SentMessage>>),
    Cancelled(Result<(), ProviderError>),
    /// The agent was asked to end a turn that brought too much.
    FloodCancelled(Result<(), ProviderError>),
    Done(Result<(), ProviderError>, DoneReply),
    Killed(Result<(), ProviderError>),
    /// The agent of what was loaded and is not wanted has been closed.
    Discarded,
    /// One of [`Persist`]'s writes is on the disk, or has failed and was logged.
    Saved,
    BranchRead(Option<String>),
}

/// Requests on their way to the session.
struct Inbox {
    commands: mpsc::Receiver<SessionCommand>,
    /// Those that came before the actor ran; handled before what is in `commands`.
    early: Vec<SessionCommand>,
    /// Those that cannot be answered before the history is there, or before what runs has ended. As many as [`has_room`]
    /// allows.
    waiting: Vec<SessionCommand>,
    /// Who waits for the turn's end because the server stops.
    drain: Option<oneshot::Sender<()>>,
}

/// What windows see of the session in their lists.
struct ShownState {
    watch: Watch,
    state: SessionState,
}

pub(crate) struct SessionActor {
    id: SessionId,
    hub: Arc<HubCore>,
    provider: Arc<dyn Provider>,
    inbox: Inbox,
    link: Link,
    turn: TurnPhase,
    lifetime: Lifetime,
    transcript: Transcript,
    facts: SessionFacts,
    shown: ShownState,
    members: Vec<(u64, Arc<Outbox>)>,
    calls: JoinSet<CallResult>,
    persist: Persist,
    recorder: Recorder<Delivery>,
    reads: Reads,
}

impl std::fmt::Debug for SessionActor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionActor").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SessionActor {
    /// A session that was just created. The window that did so has joined it.
    pub(crate) fn created(
        hub: Arc<HubCore>,
        id: SessionId,
        provider: Arc<dyn Provider>,
        opened: OpenedSession,
        commands: mpsc::Receiver<SessionCommand>,
        (head, is_taken): (SessionHead, bool),
        creator: Option<&Requester>,
    ) -> Self {
        let mut this = Self::new(hub, id, provider, commands);
        this.transcript = Transcript::after(&head);
        this.transcript.set_ready();
        this.recorder.set_head(head, is_taken);
        // The agent has nothing of it that we do not have.
        this.recorder.complete();
        this.attach(opened);
        if let Some(creator) = creator {
            this.join(creator);
        }
        this.shown.watch.continuity(Continuity::Live);
        this.shown.watch.process(AgentStatus::Connected, None);
        this
    }

    /// A session that exists and is to be loaded for requests that wait for it.
    pub(crate) fn opened(
        hub: Arc<HubCore>,
        provider: Arc<dyn Provider>,
        id: SessionId,
        commands: mpsc::Receiver<SessionCommand>,
        early: Vec<SessionCommand>,
    ) -> Self {
        let mut this = Self::new(hub, id, provider, commands);
        this.read_history();
        this.inbox.early = early;
        this
    }

    fn new(
        hub: Arc<HubCore>,
        id: SessionId,
        provider: Arc<dyn Provider>,
        commands: mpsc::Receiver<SessionCommand>,
    ) -> Self {
        let record = hub.catalog().session(&id);
        let agent_id = record.as_ref().map_or_else(|| id.agent_session_id(), |record| record.current_agent_id());
        let mut watch = Watch::default();
        watch.restore(record.and_then(|record| record.unseen).as_ref());
        Self {
            shown: ShownState { watch, state: hub.state_of(&id) },
            transcript: Transcript::default(),
            recorder: Recorder::new(Arc::clone(hub.journal()), unknown_head(), false),
            inbox: Inbox { commands, early: Vec::new(), waiting: Vec::new(), drain: None },
            persist: Persist::new(agent_id),
            id,
            hub,
            provider,
            link: Link::Unloaded,
            turn: TurnPhase::Idle,
            lifetime: Lifetime::Open,
            facts: SessionFacts::default(),
            members: Vec::new(),
            calls: JoinSet::new(),
            reads: Reads::default(),
        }
    }

    fn attach(&mut self, opened: OpenedSession) {
        self.hub.set_agent(&self.id, Some(&opened.session));
        let fold = Fold::new(self.id.clone(), self.hub.turn_bytes_max());
        self.link = Link::Attached(AttachedAgent { session: opened.session, events: opened.events, fold });
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    /// However it ends, nobody is left waiting.
    pub(crate) async fn run(mut self) {
        let mut panics = 0;
        while let Err(panic) = catch_panic(self.handle_all()).await {
            self.recover(&panic).await;
            panics += 1;
            // The transcript, and who watches, survive one panic; the agent is opened again by the next request.
            let is_empty = !self.transcript.is_ready() && self.members.is_empty();
            if is_empty || self.lifetime.is_closing() || panics == PANICS_MAX {
                break;
            }
        }
        self.finish_writes().await;
        self.finish_recording().await;
        self.keep_head();
        // In this order: requests from now on wait for the next actor, and those on their way here are not lost.
        self.hub.begin_closing(&self.id);
        self.inbox.commands.close();
        let mut left = std::mem::take(&mut self.inbox.early);
        left.append(&mut self.inbox.waiting);
        left.extend(std::mem::take(&mut self.reads).into_commands());
        while let Some(command) = self.inbox.commands.recv().await {
            left.push(command);
        }
        self.answer_all();
        self.hub.ended(&self.id, left).await;
    }

    /// Nothing will be done for it: all that waits is refused.
    pub(crate) fn refuse_all(mut self, failure: &ServiceError) {
        self.inbox.commands.close();
        let early = std::mem::take(&mut self.inbox.early);
        for command in early.into_iter().chain(std::iter::from_fn(|| self.inbox.commands.try_recv().ok())) {
            command.refuse(failure, Some(&self.id));
        }
    }

    async fn handle_all(&mut self) {
        self.publish_state();
        while !self.inbox.early.is_empty() {
            let command = self.inbox.early.remove(0);
            self.handle(command);
        }
        let mut idle_at = Instant::now() + IDLE_TIMEOUT;
        while !self.is_over() {
            let mut is_used = true;
            let fold_deadline = self.link.fold_deadline();
            let write_deadline = self.recorder.deadline();
            let takes_events = self.recorder.takes_events();
            tokio::select! {
                biased; // A cancel must not queue behind a flood of output.
                command = self.inbox.commands.recv() => match command {
                    Some(command) => {
                        self.forget_leave(&command);
                        self.handle(command);
                    }
                    None => {
                        // The server stops: what the agent sent last is in the channel.
                        self.receive_all();
                        self.detach(None);
                        break;
                    }
                },
                Some(result) = self.calls.join_next_with_id() => match result {
                    Ok((call, result)) => {
                        // Nobody asked for it: a session that only reads its branch is as idle as before.
                        is_used = !matches!(result, CallResult::BranchRead(_) | CallResult::TakenOver(_));
                        self.finish_call(call, result);
                    }
                    // What the call was to bring will never come: the session cannot go on as if nothing had happened.
                    Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                    Err(error) => tracing::error!(session = %self.id, %error, "a call to the agent was aborted"),
                },
                result = self.recorder.answered() => {
                    is_used = false;
                    self.batch_ended(&result);
                }
                () = sleep_until(write_deadline) => {
                    is_used = false;
                    self.write_due();
                }
                event = self.link.next_event(), if takes_events => match event {
                    Some(event) => {
                        self.receive(event);
                        self.receive_more();
                    }
                    None => self.lose_agent(),
                },
                () = sleep_until(fold_deadline) => self.publish_due(),
                () = tokio::time::sleep_until(idle_at) => self.evict_idle(),
            }
            if !self.turn.is_working()
                && self.is_saved()
                && self.recorder.is_settled()
                && let Some(settled) = self.inbox.drain.take()
            {
                settled.send(()).ok();
            }
            if is_used {
                idle_at = Instant::now() + IDLE_TIMEOUT;
            }
        }
    }

    /// The next actor of the session goes on from here, or from what is recorded if something could not be.
    fn keep_head(&self) {
        if !self.recorder.is_clean() {
            self.hub.forget_head(&self.id);
        } else if self.transcript.is_ready() && self.recorder.is_taken() {
            let head = SessionHead {
                seq: self.transcript.seq(),
                position: self.transcript.last_position(),
                items: self.recorder.head().items.max(self.transcript.seq()),
                facts: self.facts.clone(),
                ..self.recorder.head().clone()
            };
            self.hub.keep_head(&self.id, head);
        }
    }

    fn is_over(&self) -> bool {
        match self.lifetime {
            Lifetime::Over => true,
            // What a load brings has to be closed first.
            Lifetime::Closed => !self.link.is_under_way(),
            Lifetime::Open | Lifetime::Killing(_) | Lifetime::Closing(_) => false,
        }
    }

    /// Runs a call to the agent beside the loop. It is polled once here, so that calls reach the agent in the order in which
    /// they were requested: tasks that are spawned together may start in any order.
    fn spawn_in_order(&mut self, call: impl Future<Output = CallResult> + Send + 'static) -> AbortHandle {
        let mut call = Box::pin(call);
        match catch_unwind(AssertUnwindSafe(|| (&mut call).now_or_never())) {
            Ok(Some(result)) => self.calls.spawn(async move { result }),
            Ok(None) => self.calls.spawn(call),
            // As if the task had panicked: who waits for the call is known by then.
            Err(panic) => self.calls.spawn(async move { resume_unwind(panic) }),
        }
    }

    fn finish_call(&mut self, call: CallId, result: CallResult) {
        match result {
            CallResult::HistoryRead(read) => self.history_read(read),
            CallResult::PageRead(read) => self.page_read(call, read),
            CallResult::TakenOver(taken) => self.recorder.taken_over(taken),
            CallResult::Forgotten(turns) => self.forgotten(turns),
            CallResult::Loaded(loaded) => self.load_ended(loaded),
            CallResult::Older(older, asked) => self.older_ended(older, &asked),
            CallResult::Sent(sent, caller) => self.sent(call, sent, caller),
            CallResult::Cancelled(cancelled) => self.cancelled(call, cancelled),
            CallResult::FloodCancelled(cancelled) => {
                if let Err(error) = cancelled {
                    tracing::warn!(session = %self.id, %error, "a turn that brought too much could not be cancelled");
                }
            }
            CallResult::Done(result, reply) => drop(reply.send(result.map_err(Into::into))),
            CallResult::Killed(killed) => self.killed(killed),
            CallResult::Discarded => self.discarded(),
            CallResult::Saved => self.saved(),
            CallResult::BranchRead(branch) => self.branch_was_read(branch),
        }
    }
}

/// Until the journal was read.
fn unknown_head() -> SessionHead {
    SessionHead {
        key: SessionKey(0),
        epoch: 0,
        seq: 0,
        position: 0,
        items: 0,
        epoch_ends: Vec::new(),
        facts: SessionFacts::default(),
        is_complete: false,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

pub(crate) fn now() -> Timestamp {
    SystemTime::now().into()
}
