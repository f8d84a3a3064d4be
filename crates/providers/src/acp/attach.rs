//! How a session and the agent's process find each other: when it is opened, after a restart, and after a close.
//!
//! A session in which the agent got a message is resumed, or loaded if the agent cannot resume. One without a message,
//! or one that the agent has lost, is created again; the agent gives it another id. Then the user's options are set
//! again, and only then the agent gets a message.

use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use protocol::{AgentSessionId, Continuity, SessionFacts};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::attach_state::{
    AttachPurpose, AttachState, AttachStep, AttachWaiter, Attaching, Closing, DoneSender, OpenAnswer, OpenRequest,
};
use super::history::HistoryBuilder;
use super::router::{AttachRequest, RequestKind};
use super::rpc_client::{CallError, RpcReply};
use super::session::{AcpSession, AgentMemory, Recorded, now};
use super::supervisor::SupervisorCommand;
use super::wire::{AUTH_REQUIRED, RESOURCE_NOT_FOUND, RpcError, SessionSetup};
use crate::error::ProviderError;
use crate::provider::{HistoryWanted, ProviderEvent};

/// For the agent to close a session that the user wants reattached. An agent that does not answer hangs as a whole.
const REATTACH_CLOSE_WITHIN: Duration = Duration::from_secs(3);

impl AcpSession {
    /// Opens a session that exists. One without a message of the agent's own (`prompted`) is created again.
    pub(crate) fn open(
        &mut self,
        wanted: HistoryWanted,
        prompted: bool,
        reply: oneshot::Sender<Result<OpenAnswer, ProviderError>>,
    ) {
        let recorded = if prompted { Recorded::Message } else { Recorded::Nothing };
        self.memory = AgentMemory { recorded, has_lost: false };
        let history = HistoryBuilder::default();
        let open = OpenRequest { wanted, history, has_history: false, notices: Vec::new(), reply };
        let purpose = AttachPurpose::Open(Box::new(open));
        let can_load = self.state.connection().is_some_and(|connection| connection.capabilities().can_load);
        // Only a load replays the history, so it comes before a resume where that is needed.
        if wanted == HistoryWanted::Newest && can_load {
            self.request_attach(AttachRequest::Load, purpose);
        } else {
            self.attach(purpose);
        }
    }

    /// Asks the agent for the session, in the best way it has.
    pub(super) fn attach(&mut self, purpose: AttachPurpose) {
        let (can_resume, can_load) = self
            .state
            .connection()
            .map(|connection| (connection.capabilities().can_resume, connection.capabilities().can_load))
            .unwrap_or_default();
        if self.memory.recorded == Recorded::Nothing {
            self.request_attach(AttachRequest::Create, purpose);
        } else if can_resume {
            self.request_attach(AttachRequest::Resume, purpose);
        } else if can_load {
            self.request_attach(AttachRequest::Load, purpose);
        } else if matches!(&purpose, AttachPurpose::Open(open) if open.wanted == HistoryWanted::Newest) {
            // Whoever wants the history has nothing else to show.
            let detail = format!("{} cannot resume a session", self.context.agent.name);
            self.attach_ended(purpose, &ProviderError::LoadFailed { detail });
        } else {
            self.request_attach(AttachRequest::Create, purpose);
        }
    }

    fn request_attach(&mut self, request: AttachRequest, purpose: AttachPurpose) {
        let Some(connection) = self.state.connection().cloned() else {
            let unavailable = self.unavailable();
            return self.attach_ended(purpose, &unavailable);
        };
        let (id, directory) = (self.agent_id.to_string(), self.directory.clone());
        let (link, kind) = (self.mailbox.link.clone(), RequestKind::Attach(request));
        let (step, asked) = match request {
            AttachRequest::Create => {
                // Updates of the session may come before the answer that names it.
                self.context.router.expect();
                let asked = connection.rpc.ask("session/new", &acp::NewSessionRequest::new(directory), link, kind);
                (AttachStep::Creating, asked.inspect_err(|_| self.context.router.give_up()))
            }
            AttachRequest::Load => {
                if matches!(purpose, AttachPurpose::Open(_)) {
                    self.translator.begin_replay();
                }
                let request = acp::LoadSessionRequest::new(id.clone(), directory);
                (AttachStep::Loading { replayed: false }, connection.rpc.ask_for_history(&id, &request, link))
            }
            AttachRequest::Resume => {
                let request = acp::ResumeSessionRequest::new(id, directory);
                (AttachStep::Resuming, connection.rpc.ask("session/resume", &request, link, kind))
            }
        };
        let due = Instant::now() + self.context.settings.session_timeout;
        self.state = AttachState::Attaching(Attaching { connection, due, step, purpose });
        if let Err(error) = asked {
            self.attach_failed(&error);
        }
    }

    pub(super) fn on_attach_answer(&mut self, request: AttachRequest, reply: RpcReply) {
        let setup = reply.and_then(|text| {
            serde_json::from_str::<SessionSetup>(&text)
                .or_else(|_| serde_json::from_str::<Option<()>>(&text).map(|_| SessionSetup::default()))
                .map_err(|error| CallError::Unreadable { method: "session/load", reason: error.to_string() })
        });
        let awaited = match &self.state {
            AttachState::Attaching(attaching) if attaching.step.answers(request) => Some(&attaching.step),
            _ => None,
        };
        if awaited.is_none() || setup.is_err() {
            // The answer is too late, or an error: a session with an unknown id is no longer expected.
            if request == AttachRequest::Create {
                self.context.router.give_up();
            }
        }
        let Some(step) = awaited else { return };
        // An agent that was given messages and replays none of them has lost what it knew.
        let is_forgotten = matches!(step, AttachStep::Loading { replayed: false });
        let is_replayed = matches!(step, AttachStep::Loading { replayed: true });
        if let Some(open) = self.state.open_request().filter(|_| setup.is_ok()) {
            open.has_history = is_replayed;
        }
        match setup {
            Ok(setup) if request == AttachRequest::Create => self.created_again(&setup),
            Ok(setup) => {
                self.restore_options(&setup, if is_forgotten { Continuity::Copy } else { Continuity::Resumed })
            }
            Err(error) => self.attach_refused(request, &error),
        }
    }

    /// There may be another way to the session.
    fn attach_refused(&mut self, request: AttachRequest, error: &CallError) {
        let can_load = self.state.connection().is_some_and(|connection| connection.capabilities().can_load);
        let next = match error {
            CallError::Refused(_) if request == AttachRequest::Resume && can_load => Some(AttachRequest::Load),
            CallError::Refused(error) if request != AttachRequest::Create && self.may_create_again(error) => {
                Some(AttachRequest::Create)
            }
            _ => None,
        };
        let Some(next) = next else { return self.attach_failed(error) };
        if let AttachState::Attaching(Attaching { connection, mut purpose, .. }) = self.take_state() {
            self.state = AttachState::Detached { connection };
            if let AttachPurpose::Open(open) = &mut purpose {
                // What a refused load has replayed is not known to be all.
                drop(self.translator.end_replay(now()));
                open.history = HistoryBuilder::default();
            }
            self.request_attach(next, purpose);
        }
    }

    /// The agent refuses the session: whether another one of its own takes the place of it.
    fn may_create_again(&self, error: &RpcError) -> bool {
        let is_unknown = error.code == RESOURCE_NOT_FOUND;
        match self.state.history_wanted() {
            // Whoever wants the history of a session has nothing else to show, and wants no other session.
            Some(HistoryWanted::Newest) => false,
            Some(HistoryWanted::Compare) => is_unknown,
            // One that was lost before it stored the first message loses nothing.
            None => is_unknown || self.memory.recorded != Recorded::Confirmed && error.code != AUTH_REQUIRED,
        }
    }

    /// The session has another id of the agent's from now on. Ours stays.
    fn created_again(&mut self, setup: &SessionSetup) {
        let id = setup.session_id.as_deref().map(AgentSessionId::parse);
        let Some(Ok(id)) = id else {
            self.context.router.give_up();
            let reason = "no valid session id".to_owned();
            return self.attach_failed(&CallError::Unreadable { method: "session/new", reason });
        };
        // Whoever opens a session that is created again has turns of it to show.
        let loses_context = self.state.is_opening() || self.memory.recorded == Recorded::Confirmed;
        if id == self.agent_id {
            self.context.router.give_up();
        } else if self.context.router.adopt(id.clone(), self.mailbox.link.clone()) {
            self.context.router.remove(&self.agent_id);
            self.agent_id = id.clone();
            self.memory.recorded = Recorded::Nothing;
            self.emitter.emit(ProviderEvent::AgentIdChanged(id));
        } else {
            // The id of another session would bring that one's updates here, and let this one close it.
            let reason = "the id of another session".to_owned();
            return self.attach_failed(&CallError::Unreadable { method: "session/new", reason });
        }
        self.restore_options(setup, if loses_context { Continuity::Copy } else { Continuity::Live });
    }

    /// The agent has the session with the user's options, and may be given a message.
    pub(super) fn attached(&mut self, continuity: Continuity) {
        let (connection, purpose) = match self.take_state() {
            AttachState::Attaching(Attaching { connection, purpose, .. }) => (connection, purpose),
            state => return self.state = state,
        };
        self.state = AttachState::Attached { connection };
        self.mailbox.link.set_attached(true);
        let facts = self.translator.options().facts();
        match purpose {
            AttachPurpose::Open(open) => self.opened(open, facts, continuity),
            AttachPurpose::Reattach { waiters } => {
                self.emit_facts(facts);
                self.emitter.emit(ProviderEvent::Continuity(continuity));
                self.report_status();
                waiters.into_iter().for_each(|waiter| drop(waiter.into_sender().send(Ok(()))));
            }
        }
        if let Some(held) = self.conversation.take_deliverable(Instant::now()) {
            let sent = self.prompt(&held.prompt);
            drop(held.reply.send(sent));
        }
    }

    /// Whoever opened the session gets its history.
    pub(super) fn opened(&mut self, open: Box<OpenRequest>, facts: SessionFacts, continuity: Continuity) {
        let OpenRequest { mut history, has_history, notices, reply, .. } = *open;
        history.add(self.translator.end_replay(now()));
        history.add_facts(facts);
        drop(reply.send(Ok(OpenAnswer { history: history.finish(continuity), has_history })));
        notices.into_iter().for_each(|notice| self.translate(notice));
    }

    pub(super) fn attach_failed(&mut self, error: &CallError) {
        let (connection, mut purpose) = match self.take_state() {
            AttachState::Attaching(Attaching { connection, purpose, .. }) => (connection, purpose),
            state => return self.state = state,
        };
        tracing::warn!(session = %self.agent_id, %error, "the session could not be attached");
        self.state = AttachState::Detached { connection };
        self.conversation.agent_is_absent();
        let name = self.agent_name();
        let failure = match error {
            CallError::Refused(error) if error.code == AUTH_REQUIRED => {
                ProviderError::LoginRequired { name, detail: error.text() }
            }
            CallError::Gone(detail) => ProviderError::Crashed { name, detail: detail.clone() },
            error => ProviderError::LoadFailed { detail: error.to_string() },
        };
        if matches!(error, CallError::TimedOut(_) | CallError::Stalled | CallError::Gone(_)) {
            self.restart_process(purpose.take_restarts());
        }
        // A process that is gone is reported as gone, not as lost context.
        if matches!(purpose, AttachPurpose::Reattach { .. }) && !matches!(error, CallError::Gone(_)) {
            self.emitter.emit(ProviderEvent::Continuity(Continuity::Copy));
            self.report_status();
        }
        self.attach_ended(purpose, &failure);
    }

    /// The session is not attached: answers all who waited for that, also for a message.
    pub(super) fn attach_ended(&mut self, purpose: AttachPurpose, error: &ProviderError) {
        match purpose {
            AttachPurpose::Open(open) => {
                self.end_unopened();
                drop(open.reply.send(Err(error.clone())));
            }
            AttachPurpose::Reattach { waiters } => {
                waiters.into_iter().for_each(|waiter| drop(waiter.into_sender().send(Err(error.clone()))));
            }
        }
        self.refuse_held(error);
    }

    pub(super) fn refuse_held(&mut self, error: &ProviderError) {
        if let Some(held) = self.conversation.take_held(Instant::now()) {
            drop(held.reply.send(Err(error.clone())));
        }
    }

    /// The agent can close the session and attach it again.
    pub(super) fn can_reattach(&self) -> bool {
        let capabilities = self.state.connection().map(|connection| connection.capabilities());
        capabilities.is_some_and(|able| able.can_close && (able.can_resume || able.can_load))
    }

    /// Has the agent close the session, with whatever still runs for it. False when it cannot be asked: then the
    /// session counts as closed.
    pub(super) fn close_at_agent(&mut self, within: Duration, unanswered: Option<protocol::TurnId>) -> bool {
        self.release_terminals();
        let Some(connection) = self.state.connection().cloned() else { return false };
        self.conversation.agent_is_absent();
        let request = acp::CloseSessionRequest::new(self.agent_id.to_string());
        match connection.rpc.ask("session/close", &request, self.mailbox.link.clone(), RequestKind::Close) {
            Ok(()) => {
                let due = Instant::now() + within;
                self.state = AttachState::Closing(Closing { connection, due, unanswered, restarts: Vec::new() });
                true
            }
            Err(error) => {
                tracing::warn!(session = %self.agent_id, %error, "the session could not be closed");
                self.state = AttachState::Detached { connection };
                self.mailbox.link.set_attached(false);
                false
            }
        }
    }

    /// The agent has closed the session. Whoever waits has it attached again at once.
    pub(super) fn closed(&mut self) {
        let (connection, restarts) = match self.take_state() {
            AttachState::Closing(closing) => (closing.connection, closing.restarts),
            AttachState::Hanging { connection, is_closing: true, .. } => (connection, Vec::new()),
            state => return self.state = state,
        };
        self.state = AttachState::Detached { connection };
        self.mailbox.link.set_attached(false);
        self.conversation.agent_is_absent();
        self.report_status();
        if self.conversation.held().is_some() || !restarts.is_empty() {
            let waiters = restarts.into_iter().map(AttachWaiter::Restart).collect();
            self.attach(AttachPurpose::Reattach { waiters });
        }
    }

    /// Closes the session at the agent and attaches it again, for a session that hangs. If the agent does not do that,
    /// its process is restarted.
    pub(super) fn reattach(&mut self, reply: DoneSender) {
        if self.state.connection().is_none() {
            return drop(reply.send(Err(self.unavailable())));
        }
        self.give_up_turn();
        let can_reattach = self.can_reattach();
        match &mut self.state {
            AttachState::Attached { .. } if can_reattach => self.close_for_restart(None, reply),
            AttachState::Hanging { unanswered, .. } if can_reattach => {
                let unanswered = Some(unanswered.clone());
                self.close_for_restart(unanswered, reply);
            }
            AttachState::Hanging { .. } => self.restart_process(vec![reply]),
            AttachState::Closing(closing) => {
                closing.due = closing.due.min(Instant::now() + REATTACH_CLOSE_WITHIN);
                closing.restarts.push(reply);
            }
            AttachState::Attaching(Attaching { purpose: AttachPurpose::Reattach { waiters }, .. }) => {
                waiters.push(AttachWaiter::Restart(reply));
            }
            AttachState::Attached { .. } | AttachState::Detached { .. } => {
                self.attach(AttachPurpose::Reattach { waiters: vec![AttachWaiter::Restart(reply)] });
            }
            // A session that is being opened has no handle to be restarted by.
            AttachState::Attaching(_) | AttachState::Disconnected => drop(reply),
        }
    }

    fn close_for_restart(&mut self, unanswered: Option<protocol::TurnId>, reply: DoneSender) {
        self.close_at_agent(REATTACH_CLOSE_WITHIN, unanswered);
        match &mut self.state {
            AttachState::Closing(closing) => closing.restarts.push(reply),
            _ => self.restart_process(vec![reply]),
        }
    }

    /// Those who wait for a restart, whatever the session is doing.
    pub(super) fn take_restarts(&mut self) -> Vec<DoneSender> {
        match &mut self.state {
            AttachState::Attaching(attaching) => attaching.purpose.take_restarts(),
            AttachState::Closing(closing) => std::mem::take(&mut closing.restarts),
            _ => Vec::new(),
        }
    }

    /// The agent does not reattach the session: whoever waits for that gets another process.
    pub(super) fn restart_process(&mut self, restarts: Vec<DoneSender>) {
        for reply in restarts {
            // Where there is no room for it, the dropped sender is the answer.
            let _ = self.context.supervisor.try_send(SupervisorCommand::Reconnect { only: None, reply });
        }
    }
}
