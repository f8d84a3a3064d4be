//! One open session: the task that owns its turn, its translation and its channel to the hub.
//!
//! Comes in: the hub's commands, and what the agent says, in its order. Goes out: provider events, and lines to the
//! agent. It outlives the process behind it. No arm of its loop waits for the world: every answer of the agent comes
//! back through the same queue as everything else it says. Here are the loop and the session's end; what it does is in `turn`,
//! `attach` (how it and the process find each other), `extras` (options and terminals) and `time` (what is due by itself).

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use agent_client_protocol_schema::v1 as acp;
use protocol::{
    AgentSessionId, AgentStatus, Continuity, ErrorCode, ErrorDetail, Prompt, SessionFacts, SessionId, Timestamp, TurnId,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::connection::Connection;
use super::extras::{Restoring, Setting, Unshown};
use super::history::HistoryBuilder;
use super::peer::{CallError, Reply};
use super::router::{Expect, SessionCommand, SessionEnds, SessionInput, SessionLink};
use super::step::Output;
use super::supervisor::Context;
use super::time::FAR;
use super::translate::Translator;
use super::turn::Turn;
use super::wire::{PromptResult, SessionSetup, Update};
use crate::catch_panic::{Panic, catch_panic, catch_panic_now};
use crate::emitter::Emitter;
use crate::error::ProviderError;
use crate::provider::{History, ProviderEvent, StatusReport};
use crate::unreadable::Unreadable;

/// Lines of the agent taken in at once; the hub's commands and the way out get their turn in between.
const INPUTS_AT_ONCE: usize = 64;
/// The most that is taken in of what an agent says between two turns; a late word or a notice is what is expected.
const UNASKED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Notices kept while a session is loaded, to be shown after its past. One or two are what is seen.
const LOADING_NOTICES_MAX: usize = 64;
/// For a running turn to end when its session is let go of, and for the agent to close its side.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

pub(crate) struct Session {
    pub(super) context: Arc<Context>,
    pub(super) session_id: SessionId,
    pub(super) id: AgentSessionId,
    pub(super) directory: PathBuf,
    pub(super) link: SessionLink,
    inputs: mpsc::Receiver<SessionInput>,
    commands: mpsc::Receiver<SessionCommand>,
    agent_status: watch::Receiver<StatusReport>,
    told_status: StatusReport,
    pub(super) connection: Option<Arc<Connection>>,
    pub(super) translator: Translator,
    pub(super) emitter: Emitter,
    pub(super) attachment: Attachment,
    pub(super) turn: Option<Turn>,
    /// The prompt whose turn was ended here and not by the agent, which may still speak for it.
    pub(super) unended: Option<TurnId>,
    /// A message that waits for the agent to take the session up.
    pub(super) waiting: Option<(Prompt, oneshot::Sender<Result<TurnId, ProviderError>>)>,
    /// Who waits for the same.
    pub(super) attaching: Option<oneshot::Sender<Result<(), ProviderError>>>,
    /// Who wants it let go of and taken up again, or else the agent restarted.
    pub(super) renewing: Option<oneshot::Sender<Result<(), ProviderError>>>,
    pub(super) loading: Option<Loading>,
    /// The agent was given a message, so the session ought to be on its disk.
    pub(super) prompted: bool,
    /// The agent has said something in it or told its past, so it is.
    pub(super) is_known: bool,
    /// The agent told something of the past since it was asked for it.
    pub(super) replayed: bool,
    /// What was said outside of any turn since the last one began.
    pub(super) unasked_bytes: usize,
    pub(super) unreadable: Unreadable,
    /// When it was last heard or asked something.
    pub(super) used: Instant,
    pub(super) setting: HashMap<u64, Setting>,
    pub(super) settings_asked: u64,
    /// The options that the user has switched, each as it was last: an agent forgets them with the session it lets go of.
    pub(super) chosen: BTreeMap<String, String>,
    /// The same, as it was told last.
    pub(super) told_chosen: BTreeMap<String, String>,
    pub(super) restoring: Option<Restoring>,
    pub(super) terminal_output: HashMap<String, Unshown>,
    pub(super) leaving: Option<Leaving>,
}

/// How the agent's process stands to this session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attachment {
    Attached,
    /// It knows nothing of it; it is asked to take it up when that is needed.
    Detached,
    /// It was asked, and has until then to answer. With `discard` it tells the whole past again.
    Attaching {
        due: Instant,
        discard: bool,
    },
    Closing {
        due: Instant,
    },
    /// It works on for a prompt that the user has stopped, and gets no message before it has answered that or, where it
    /// was asked to, closed the session.
    Hanging {
        is_closing: bool,
    },
}

pub(super) struct Loading {
    pub(super) history: HistoryBuilder,
    /// Notices that came meanwhile. They are about now, not about the past.
    pub(super) notices: Vec<Update>,
    pub(super) reply: oneshot::Sender<Result<History, ProviderError>>,
}

pub(super) struct Leaving {
    pub(super) due: Instant,
    politely: bool,
    reply: Option<oneshot::Sender<()>>,
}

impl Session {
    pub(crate) fn new(
        context: Arc<Context>,
        session_id: SessionId,
        id: AgentSessionId,
        directory: PathBuf,
        ends: SessionEnds,
        connection: Arc<Connection>,
        events: mpsc::Sender<ProviderEvent>,
    ) -> Self {
        let agent_status = context.status.subscribe();
        Self {
            translator: Translator::new(session_id.clone(), connection.about().quirks),
            emitter: Emitter::new(session_id.clone(), events),
            session_id,
            agent_status,
            told_status: StatusReport::default(),
            id,
            directory,
            link: ends.link,
            inputs: ends.inputs,
            commands: ends.commands,
            connection: Some(connection),
            attachment: Attachment::Detached,
            turn: None,
            unended: None,
            waiting: None,
            attaching: None,
            renewing: None,
            loading: None,
            prompted: false,
            is_known: false,
            replayed: false,
            unasked_bytes: 0,
            unreadable: Unreadable::default(),
            used: Instant::now(),
            setting: HashMap::new(),
            settings_asked: 0,
            chosen: BTreeMap::new(),
            told_chosen: BTreeMap::new(),
            restoring: None,
            terminal_output: HashMap::new(),
            leaving: None,
            context,
        }
    }

    /// However it ends, also by a fault of ours, it can be opened again.
    pub(crate) async fn run(mut self) {
        if let Err(panic) = catch_panic(self.live()).await {
            self.fall(&panic);
        }
        if let Err(panic) = catch_panic(self.leave()).await {
            tracing::error!(session = %self.id, %panic, "a session could not be ended in order");
            self.context.router.remove(&self.id);
            self.link.set_attached(false);
        }
        drop(self.emitter);
        if let Some(reply) = self.leaving.and_then(|leaving| leaving.reply) {
            let _ = reply.send(());
        }
    }

    async fn live(&mut self) {
        let mut batch = Vec::with_capacity(INPUTS_AT_ONCE);
        self.tell_status();
        while !self.is_left() {
            let due = self.deadline();
            tokio::select! {
                biased; // A cancel must not wait behind a flood of output.
                Some(command) = self.commands.recv() => self.obey(command),
                _closed = self.emitter.flush() => break,
                () = tokio::time::sleep_until(due), if due <= Instant::now() + FAR => self.tick(),
                _ = self.inputs.recv_many(&mut batch, INPUTS_AT_ONCE), if !self.emitter.is_congested() => {
                    batch.drain(..).for_each(|input| self.receive(input));
                }
                Ok(()) = self.agent_status.changed() => self.tell_status(),
            }
        }
    }

    /// A fault of ours: the turn ends with an error, the agent's side is let go of, and the session can be opened again.
    /// What broke may be what would tell so; then the end of the channel tells.
    fn fall(&mut self, panic: &Panic) {
        tracing::error!(session = %self.id, %panic, "a session broke");
        let words = ErrorCode::InternalError.message("");
        let told = catch_panic_now(|| {
            self.cancel();
            if self.turn.is_some() {
                self.turn_over();
                self.emitter.abort_turns(&ErrorDetail::new(ErrorCode::InternalError, words.clone()));
                self.translator.abandon_turn();
            }
            let (status, detail) = (AgentStatus::Disconnected, Some(words.clone()));
            self.say_status(StatusReport { status, detail, ..StatusReport::default() });
        });
        if let Err(panic) = told {
            tracing::error!(session = %self.id, %panic, "a broken session could not be settled");
            self.turn = None;
        }
        let failure = ProviderError::Internal(words);
        self.attach_over(Err(&failure));
        self.settings_over(&failure);
    }

    fn obey(&mut self, command: SessionCommand) {
        self.used = Instant::now();
        match command {
            SessionCommand::Send { prompt, reply } => self.send(prompt, reply),
            SessionCommand::Cancel { reply } => {
                self.cancel();
                drop(reply.send(()));
            }
            SessionCommand::SetOption { option, value, reply } => self.set_option(&option, value, reply),
            SessionCommand::Renew { reply } => self.renew(reply),
            SessionCommand::Close { politely, reply } => {
                self.cancel();
                let due = if self.turn.is_some() { Instant::now() + LEAVE_WITHIN } else { Instant::now() };
                self.leaving = Some(Leaving { due, politely, reply: Some(reply) });
            }
        }
    }

    fn receive(&mut self, input: SessionInput) {
        match input {
            SessionInput::Update { text, room: _room } => self.take_update(&text),
            SessionInput::Permission { id, request } => self.permission(&id, *request),
            SessionInput::Answer { expect, reply } => self.answer(expect, reply),
            SessionInput::Terminal { id, text, room: _room } => self.terminal(id, &text),
            SessionInput::Notice(text) => {
                let notice = acp::Notice::new(acp::NoticeSeverity::Warning, text);
                self.update(Update::Notice(notice));
            }
            SessionInput::Unreadable { line, is_named } => {
                if is_named || self.turn.is_some() {
                    self.report_unreadable(&line);
                }
            }
            SessionInput::Lost { detail, by_hand } => self.lost(&detail, by_hand),
            SessionInput::Attach { connection, done } => {
                self.connection = Some(connection);
                self.attaching = Some(done);
                self.attach();
            }
        }
    }

    /// A turn has a bound on what it may bring. What comes outside of any has one here.
    fn take_update(&mut self, text: &str) {
        let update = Update::read(text);
        // A notice is about now.
        self.replayed |= update.is_said() && !matches!(update, Update::Notice(_));
        if let Update::Unreadable { reason } = &update {
            tracing::info!(session = %self.id, reason, "an update could not be read");
            return self.report_unreadable(text);
        }
        self.is_known |= self.turn.is_some() && update.is_said();
        if self.turn.is_some() || !update.is_said() {
            return self.update(update);
        }
        let before = self.unasked_bytes;
        self.unasked_bytes = before.saturating_add(text.len());
        match &self.loading {
            Some(_) if self.unasked_bytes > self.context.settings.past_bytes_max => {
                let reason = format!("it is longer than {} bytes", self.context.settings.past_bytes_max);
                self.attach_failed(&CallError::Unreadable { method: "session/load", reason });
            }
            None if self.is_repeated() => {}
            None if self.unasked_bytes > UNASKED_BYTES_MAX => {
                if before <= UNASKED_BYTES_MAX {
                    let words = "What the agent says without being asked is too much; the rest is left out.";
                    self.update(Update::Notice(acp::Notice::new(acp::NoticeSeverity::Warning, words)));
                }
            }
            _ => self.update(update),
        }
    }

    /// Something the agent wrote is missing here: that is said, a few times in a turn.
    fn report_unreadable(&mut self, line: &str) {
        if self.is_repeated() {
            return;
        }
        if let Some(message) = self.unreadable.report(&self.context.agent.name, line) {
            let output = self.translator.report(message, now());
            self.publish(output);
        }
    }

    /// What comes now is told again, or is the last of a session that was closed: neither is news.
    pub(super) fn is_repeated(&self) -> bool {
        match self.attachment {
            Attachment::Attached | Attachment::Attaching { discard: false, .. } => false,
            Attachment::Attaching { discard: true, .. }
            | Attachment::Closing { .. }
            | Attachment::Hanging { .. }
            | Attachment::Detached => true,
        }
    }

    pub(super) fn update(&mut self, update: Update) {
        self.heard();
        if let Some(loading) = self.loading.as_mut().filter(|_| matches!(update, Update::Notice(_))) {
            if loading.notices.len() < LOADING_NOTICES_MAX {
                loading.notices.push(update);
            }
            return;
        }
        if self.is_repeated() && update.is_said() {
            return;
        }
        let switches = matches!(update, Update::Mode(_) | Update::Options(_));
        let output = self.translator.update(update, now());
        if switches {
            self.follow_options();
        }
        self.publish(output);
        self.show_terminals();
    }

    pub(super) fn publish(&mut self, output: Output) {
        if let Some(loading) = &mut self.loading {
            return loading.history.add(output);
        }
        for turn in output.begun {
            self.emitter.begin_turn(turn);
        }
        for event in output.events {
            self.emitter.stream(event);
        }
        self.tell(output.facts);
    }

    pub(super) fn tell(&mut self, facts: SessionFacts) {
        if !facts.is_empty() {
            self.emitter.emit(ProviderEvent::Facts(facts));
        }
    }

    fn answer(&mut self, expect: Expect, reply: Reply) {
        match expect {
            Expect::Prompt(turn) => self.prompt_answered(&turn, reply),
            Expect::New | Expect::Resume | Expect::Load => self.attach_answered(&expect, reply),
            Expect::Close => self.close_answered(&reply),
            Expect::Option(number) => self.option_answered(number, reply),
        }
    }

    fn lost(&mut self, detail: &str, by_hand: bool) {
        self.connection = None;
        self.attachment = Attachment::Detached;
        self.link.set_attached(false);
        let name = self.context.agent.name.clone();
        self.unended = None;
        if self.turn.as_ref().is_some_and(|turn| turn.cancelled.is_some()) {
            // The user had stopped it. That the agent is gone is told by its state.
            self.settle_turn(Ok(PromptResult::cancelled()));
        } else if self.turn.is_some() {
            self.turn_over();
            let message =
                if by_hand { format!("{name} was restarted") } else { ErrorCode::ProcessCrash.message(&name) };
            self.emitter.abort_turns(&ErrorDetail::new(ErrorCode::ProcessCrash, message));
            self.translator.abandon_turn();
        }
        let crashed = ProviderError::Crashed { name, detail: detail.to_owned() };
        self.restart_instead();
        self.attach_over(Err(&crashed));
        self.settings_over(&crashed);
        // Told once, as the end of a connection: a restart that failed leaves the agent as it was, about to be restarted.
        if !by_hand && self.told_status.status == AgentStatus::Connected {
            let detail = Some(detail.to_owned()).filter(|detail| !detail.is_empty());
            self.say_status(StatusReport { status: AgentStatus::Disconnected, detail, ..StatusReport::default() });
        }
    }

    /// The state of the agent. A session that it has not taken up yet is not connected, whatever the others are.
    pub(super) fn tell_status(&mut self) {
        let mut report = self.agent_status.borrow_and_update().clone();
        if report.status == AgentStatus::Connected && matches!(self.attachment, Attachment::Hanging { .. }) {
            report = self.hanging_status();
        }
        let is_taken_up = self.loading.is_some() || !matches!(self.attachment, Attachment::Attaching { .. });
        let (told, now) = (self.told_status.status, report.status);
        if now == AgentStatus::Connected && told == AgentStatus::Reconnecting && !is_taken_up {
            report = StatusReport::from(AgentStatus::Reconnecting);
            report.detail = Some(format!("{} has not taken this session up again yet.", self.context.agent.name));
        }
        self.say_status(report);
    }

    fn say_status(&mut self, report: StatusReport) {
        if report != self.told_status {
            self.told_status = report.clone();
            self.emitter.emit(ProviderEvent::Status(report));
        }
    }

    fn is_left(&self) -> bool {
        self.leaving.as_ref().is_some_and(|leaving| self.turn.is_none() || leaving.due <= Instant::now())
    }

    pub(super) fn has_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// A session that could not be opened is not there, from this moment on.
    pub(super) fn let_go(&mut self) {
        self.context.router.remove(&self.id);
        self.leaving.get_or_insert(Leaving { due: Instant::now(), politely: false, reply: None });
    }

    /// Settles what was said, tells the agent, closes the channel.
    async fn leave(&mut self) {
        if self.turn.is_some() {
            self.cancel();
            self.turn_over();
            let output = self.translator.end_turn(Ok(PromptResult::cancelled()), now());
            self.publish(output);
        }
        let _closing = self.context.router.begin_close(&self.id);
        self.link.set_attached(false);
        self.release_terminals();
        // The reader of the agent's lines may be waiting for room here.
        self.inputs.close();
        while self.inputs.try_recv().is_ok() {}
        self.attach_over(Err(&ProviderError::SessionNotFound(self.id.clone())));
        let politely = self.leaving.as_ref().is_none_or(|leaving| leaving.politely);
        if let Some(connection) = self.connection.take().filter(|_| politely) {
            // Where nothing was ever said, nothing should stay in the agent's own list.
            connection.let_go(self.id.as_str(), !self.prompted, LEAVE_WITHIN).await;
        }
        // Nobody listens any more, or everything is said.
        let _ = tokio::time::timeout(LEAVE_WITHIN, self.emitter.drain()).await;
    }

    pub(super) fn unavailable(&self) -> ProviderError {
        let name = self.context.agent.name.clone();
        let report = self.agent_status.borrow();
        match report.status {
            AgentStatus::Disconnected => {
                ProviderError::Crashed { name, detail: report.detail.clone().unwrap_or_default() }
            }
            _ => ProviderError::Unavailable { name },
        }
    }

    /// A call that failed, in the words of the contract.
    pub(super) fn failed(&self, error: &CallError) -> ProviderError {
        let name = self.context.agent.name.clone();
        match error {
            CallError::Refused(error) => ProviderError::Protocol { name, message: error.words() },
            CallError::Gone(detail) => ProviderError::Crashed { name, detail: detail.clone() },
            CallError::Stalled | CallError::TimedOut(_) => {
                ProviderError::Protocol { name: name.clone(), message: format!("{name}: {error}") }
            }
            CallError::Unreadable { .. } => ProviderError::Protocol { name, message: error.to_string() },
        }
    }

    /// The agent has just created the session, perhaps in place of one it had under another id.
    pub(crate) fn created(&mut self, setup: &SessionSetup, replaced: Option<&AgentSessionId>) {
        if replaced.is_some_and(|replaced| *replaced != self.id) {
            self.emitter.emit(ProviderEvent::AgentIdChanged(self.id.clone()));
        }
        let facts = self.translator.set_up(setup);
        self.attachment = Attachment::Attached;
        self.link.set_attached(true);
        self.tell(facts);
        self.emitter.emit(ProviderEvent::Continuity(Continuity::Live));
    }
}

pub(super) fn now() -> Timestamp {
    SystemTime::now().into()
}
