//! One open session: the task that owns its turn, its translation and its channel to the hub.
//!
//! Comes in: the hub's commands, and what the agent writes, in its order. Goes out: provider events, and lines to the
//! agent. It outlives the process behind it. No arm of its loop waits: every answer of the agent comes through the same
//! queue as everything else it writes. Here are the loop and what each input leads to; more is in `turn`, `cancel`,
//! `attach` (how the session and the process find each other), `session_options`, `terminal_output`, `deadlines` and
//! `session_end`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use agent_client_protocol_schema::v1 as acp;
use protocol::{AgentSessionId, Continuity, Prompt, SessionFacts, SessionId, Timestamp, TurnId};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::attach_state::{AttachPurpose, AttachState, AttachStep, AttachWaiter, Attaching};
use super::connection::Connection;
use super::deadlines::NO_DEADLINE;
use super::event_builder::Translated;
use super::router::{AcpCommand, AgentInput, RequestKind, SessionMailbox};
use super::rpc_client::{CallError, RpcReply};
use super::session_end::Ending;
use super::session_options::OptionRequests;
use super::session_status::SessionStatus;
use super::supervisor::AcpContext;
use super::terminal_output::UnclaimedOutput;
use super::translate::Translator;
use super::wire::{SessionSetup, Update};
use crate::catch_panic::catch_panic;
use crate::conversation::{Conversation, ConversationLimits, OptionValues, SilenceReports};
use crate::emitter::Emitter;
use crate::error::ProviderError;
use crate::provider::ProviderEvent;
use crate::unreadable::UnreadableLines;

/// Lines of the agent handled at once; the hub's commands and the events get their turn in between.
const INPUTS_AT_ONCE: usize = 64;
/// The most that is shown of what an agent writes between two turns; a late line or a notice is what is expected.
const UNSOLICITED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Notices kept while a session is loaded, to be shown after its history. One or two are what is seen.
const NOTICES_MAX: usize = 64;

pub(crate) struct AcpSession {
    pub(super) context: Arc<AcpContext>,
    /// The agent's present id for it. Ours never changes; the translator and the emitter have it.
    pub(super) agent_id: AgentSessionId,
    pub(super) directory: PathBuf,
    pub(super) mailbox: SessionMailbox,
    pub(super) status: SessionStatus,
    pub(super) translator: Translator,
    pub(super) emitter: Emitter,
    pub(super) state: AttachState,
    /// A running turn implies that `state` is attached, a held message that it is attaching or closing.
    pub(super) conversation: Conversation<HeldMessage>,
    pub(super) memory: AgentMemory,
    /// What came outside of any turn since the last one began.
    pub(super) unsolicited_bytes: usize,
    pub(super) unreadable: UnreadableLines,
    pub(super) option_requests: OptionRequests,
    pub(super) unclaimed_output: UnclaimedOutput,
    pub(super) ending: Option<Ending>,
}

/// A message that waits for the agent to have the session.
pub(super) struct HeldMessage {
    pub(super) prompt: Prompt,
    pub(super) reply: oneshot::Sender<Result<TurnId, ProviderError>>,
}

/// What the agent has of the session.
#[derive(Clone, Copy, Debug)]
pub(super) struct AgentMemory {
    pub(super) recorded: Recorded,
    /// It lacks something of what is shown, and does not find it again.
    pub(super) has_lost: bool,
}

impl AgentMemory {
    /// Never more than the agent has.
    pub(super) fn limit(self, continuity: Continuity) -> Continuity {
        if self.has_lost { Continuity::Copy } else { continuity }
    }
}

/// What the agent can have of the session on its own disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    /// It was given no message.
    Nothing,
    /// It was given a message, and may have been lost before it wrote that down.
    Message,
    /// It has written something in the session, or replayed it.
    Confirmed,
}

/// What a session starts with.
pub(crate) struct SessionStart {
    pub(crate) session_id: SessionId,
    pub(crate) agent_id: AgentSessionId,
    pub(crate) directory: PathBuf,
    /// What the user set before this session was opened.
    pub(crate) options: OptionValues,
}

impl AcpSession {
    pub(crate) fn new(
        context: Arc<AcpContext>,
        start: SessionStart,
        mailbox: SessionMailbox,
        connection: Arc<Connection>,
        events: mpsc::Sender<ProviderEvent>,
    ) -> Self {
        let limits = ConversationLimits {
            silence_after: context.settings.silence_after,
            silence_reports: SilenceReports::Repeated,
            cancel_grace: context.settings.cancel_grace,
            idle_after: context.settings.idle,
        };
        Self {
            translator: Translator::new(start.session_id.clone(), connection.capabilities().quirks),
            emitter: Emitter::new(start.session_id, events),
            status: SessionStatus::new(context.status.subscribe()),
            agent_id: start.agent_id,
            directory: start.directory,
            mailbox,
            state: AttachState::Detached { connection },
            conversation: Conversation::new(limits, start.options, Instant::now()),
            memory: AgentMemory { recorded: Recorded::Nothing, has_lost: false },
            unsolicited_bytes: 0,
            unreadable: UnreadableLines::default(),
            option_requests: OptionRequests::default(),
            unclaimed_output: UnclaimedOutput::default(),
            ending: None,
            context,
        }
    }

    /// The agent has just created the session, perhaps in place of one it had under another id.
    pub(crate) fn created(&mut self, setup: &SessionSetup, replaced: Option<&AgentSessionId>) {
        if replaced.is_some_and(|replaced| *replaced != self.agent_id) {
            self.emitter.emit(ProviderEvent::AgentIdChanged(self.agent_id.clone()));
        }
        let facts = self.translator.set_up(setup);
        self.state = match self.take_state() {
            AttachState::Detached { connection } => AttachState::Attached { connection },
            state => state,
        };
        self.conversation.restore_options(|_, _| false);
        self.mailbox.link.set_attached(true);
        self.emit_facts(facts);
        self.emitter.emit(ProviderEvent::Continuity(Continuity::Live));
    }

    /// However it ends, also by a panic of ours, it can be opened again.
    pub(crate) async fn run(mut self) {
        if let Err(panic) = catch_panic(self.run_until_ended()).await {
            self.abandon_after_panic(&panic);
        }
        if let Err(panic) = catch_panic(self.end()).await {
            tracing::error!(session = %self.agent_id, %panic, "a session could not be ended in order");
            self.context.router.remove(&self.agent_id);
            self.mailbox.link.set_attached(false);
        }
        // Who waits for the end finds the channel closed.
        drop(self.emitter);
        if let Some(reply) = self.ending.and_then(Ending::into_reply) {
            let _ = reply.send(());
        }
    }

    async fn run_until_ended(&mut self) {
        let mut batch = Vec::with_capacity(INPUTS_AT_ONCE);
        self.report_status();
        while !self.has_ended() {
            let due = self.deadline();
            tokio::select! {
                biased; // A cancel must not wait behind a flood of output.
                Some(command) = self.mailbox.commands.recv() => self.handle(command),
                // Also resolves when the channel has room again: then the agent is read again, which nothing else may
                // cause.
                relieved = self.emitter.relieve() => if relieved.is_err() { break },
                () = tokio::time::sleep_until(due), if due <= Instant::now() + NO_DEADLINE => self.on_time(),
                _ = self.mailbox.inputs.recv_many(&mut batch, INPUTS_AT_ONCE), if !self.emitter.is_congested() => {
                    batch.drain(..).for_each(|input| self.receive(input));
                }
                Ok(()) = self.status.agent_changed() => self.report_status(),
            }
        }
    }

    fn handle(&mut self, command: AcpCommand) {
        self.conversation.on_use(Instant::now());
        match command {
            AcpCommand::Send { prompt, reply } => self.send(prompt, reply),
            AcpCommand::Cancel { reply } => {
                self.cancel();
                let _ = reply.send(());
            }
            AcpCommand::SetOption { option, value, reply } => self.set_option(&option, value, reply),
            AcpCommand::Reattach { reply } => self.reattach(reply),
            AcpCommand::Close { at_agent, reply } => self.begin_end(at_agent, reply),
        }
    }

    fn receive(&mut self, input: AgentInput) {
        match input {
            AgentInput::Update { text, room: _room } => self.on_update(&text),
            AgentInput::Permission { id, request } => self.on_permission_request(&id, *request),
            AgentInput::Answer { kind, reply } => self.on_answer(kind, reply),
            AgentInput::Terminal { id, text, room: _room } => self.on_terminal_output(id, &text),
            AgentInput::Notice(text) => {
                let notice = acp::Notice::new(acp::NoticeSeverity::Warning, text);
                self.translate(Update::Notice(notice));
            }
            AgentInput::Unreadable { line, is_named } => {
                if is_named || self.conversation.turn().is_some() {
                    self.report_unreadable(&line);
                }
            }
            AgentInput::Lost { detail, was_requested } => self.on_lost(&detail, was_requested),
            AgentInput::Attach { connection, done } => {
                self.state = AttachState::Detached { connection };
                self.attach(AttachPurpose::Reattach { waiters: vec![AttachWaiter::Supervisor(done)] });
            }
        }
    }

    /// The hub bounds what a turn may bring. What comes outside of any is bounded here.
    fn on_update(&mut self, text: &str) {
        let update = Update::read(text);
        if let AttachState::Attaching(Attaching { step: AttachStep::Loading { replayed }, .. }) = &mut self.state {
            // A notice is about the present, and no part of a replay.
            *replayed |= update.is_content() && !matches!(update, Update::Notice(_));
        }
        if let Update::Unreadable { reason } = &update {
            tracing::info!(session = %self.agent_id, reason, "an update could not be read");
            return self.report_unreadable(text);
        }
        if self.conversation.turn().is_some() && update.is_content() {
            self.memory.recorded = Recorded::Confirmed;
        }
        if self.conversation.turn().is_some() || !update.is_content() {
            return self.translate(update);
        }
        let before = self.unsolicited_bytes;
        self.unsolicited_bytes = before.saturating_add(text.len());
        let history_bytes_max = self.context.settings.history_bytes_max;
        if self.state.is_opening() {
            if self.unsolicited_bytes > history_bytes_max {
                let reason = format!("it is longer than {history_bytes_max} bytes");
                return self.attach_failed(&CallError::Unreadable { method: "session/load", reason });
            }
            return self.translate(update);
        }
        if self.state.drops_content() {
            return;
        }
        if self.unsolicited_bytes <= UNSOLICITED_BYTES_MAX {
            self.translate(update);
        } else if before <= UNSOLICITED_BYTES_MAX {
            let text = "The agent wrote too much between two turns; the rest is left out.";
            self.translate(Update::Notice(acp::Notice::new(acp::NoticeSeverity::Warning, text)));
        }
    }

    /// Something the agent wrote is missing here: that is reported, a few times in a turn.
    fn report_unreadable(&mut self, line: &str) {
        if self.state.drops_content() {
            return;
        }
        if let Some(message) = self.unreadable.report(&self.context.agent.name, line) {
            let translated = self.translator.report(message, now());
            self.publish(translated);
        }
    }

    pub(super) fn translate(&mut self, update: Update) {
        self.on_output();
        if matches!(update, Update::Notice(_))
            && let Some(open) = self.state.open_request()
        {
            if open.notices.len() < NOTICES_MAX {
                open.notices.push(update);
            }
            return;
        }
        if self.state.drops_content() && update.is_content() {
            return;
        }
        let sets_options = matches!(update, Update::Mode(_) | Update::Options(_));
        let translated = self.translator.update(update, now());
        if sets_options {
            self.follow_options();
        }
        self.publish(translated);
        self.claim_terminal_output();
    }

    pub(super) fn publish(&mut self, translated: Translated) {
        if let Some(open) = self.state.open_request() {
            return open.history.add(translated);
        }
        translated.turns.into_iter().for_each(|turn| self.emitter.begin_turn(turn));
        translated.events.into_iter().for_each(|event| self.emitter.stream(event));
        self.emit_facts(translated.facts);
    }

    pub(super) fn emit_facts(&mut self, facts: SessionFacts) {
        if !facts.is_empty() {
            self.emitter.emit(ProviderEvent::Facts(facts));
        }
    }

    fn on_answer(&mut self, kind: RequestKind, reply: RpcReply) {
        match kind {
            RequestKind::Prompt(turn) => self.on_prompt_answer(&turn, reply),
            RequestKind::Attach(request) => self.on_attach_answer(request, reply),
            RequestKind::Close => self.on_close_answer(&reply),
            RequestKind::Option(number) => self.on_option_answer(number, reply),
        }
    }

    /// Takes the state out, to build the next one from it.
    pub(super) fn take_state(&mut self) -> AttachState {
        std::mem::replace(&mut self.state, AttachState::Disconnected)
    }

    pub(super) fn agent_name(&self) -> String {
        self.context.agent.name.clone()
    }

    /// A call that failed, as the hub knows it.
    pub(super) fn call_failed(&self, error: &CallError) -> ProviderError {
        let name = self.agent_name();
        match error {
            CallError::Refused(error) => ProviderError::Protocol { name, message: error.text() },
            CallError::Gone(detail) => ProviderError::Crashed { name, detail: detail.clone() },
            CallError::Stalled | CallError::TimedOut(_) => {
                ProviderError::Protocol { name: name.clone(), message: format!("{name}: {error}") }
            }
            CallError::Unreadable { .. } => ProviderError::Protocol { name, message: error.to_string() },
        }
    }
}

pub(super) fn now() -> Timestamp {
    SystemTime::now().into()
}
