//! How a session and the agent's process find each other: after a restart, after a close, and when it is opened.

use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use protocol::{AgentSessionId, Continuity, SessionFacts};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::history::HistoryBuilder;
use super::peer::{CallError, Reply};
use super::router::Expect;
use super::session::{Attachment, Loading, Session, now};
use super::supervisor::Command;
use super::wire::{AUTH_REQUIRED, PromptResult, SessionSetup};
use crate::error::ProviderError;
use crate::provider::{History, ProviderEvent};

/// For the agent to let go of a session that hangs. One that does not answer hangs as a whole.
const RENEW_WITHIN: Duration = Duration::from_secs(3);

impl Session {
    /// Opens a session that exists, with its history.
    pub(crate) fn load(&mut self, reply: oneshot::Sender<Result<History, ProviderError>>) {
        self.prompted = true;
        self.loading = Some(Loading { history: HistoryBuilder::default(), notices: Vec::new(), reply });
        let can_load = self.connection.as_ref().is_some_and(|connection| connection.about().can_load);
        if can_load {
            self.translator.begin_replay();
            self.ask_to_attach(Expect::Load);
        } else {
            self.attach();
        }
    }

    /// Asks the agent to take the session up again: by `resume`, else by `load`, whose replay says nothing new. One
    /// that never got a message is not on the agent's disk and is created anew.
    pub(super) fn attach(&mut self) {
        let Some(connection) = &self.connection else { return };
        let about = connection.about();
        if !self.prompted {
            self.ask_for_another();
        } else if about.can_resume {
            self.ask_to_attach(Expect::Resume);
        } else if about.can_load {
            self.ask_to_attach(Expect::Load);
        } else {
            let detail = format!("{} cannot take up a session again", self.context.agent.name);
            self.attach_over(Err(&ProviderError::LoadFailed { detail }));
            self.emitter.emit(ProviderEvent::Continuity(Continuity::Copy));
        }
    }

    fn ask_for_another(&mut self) {
        self.context.router.expect();
        self.ask_to_attach(Expect::New);
    }

    fn ask_to_attach(&mut self, expect: Expect) {
        let Some(connection) = &self.connection else { return };
        let (id, directory, link) = (self.id.to_string(), self.directory.clone(), self.link.clone());
        let due = Instant::now() + self.context.settings.session_timeout;
        self.replayed = false;
        self.attachment = Attachment::Attaching { due, discard: expect == Expect::Load && self.loading.is_none() };
        let asked = match expect {
            Expect::New => {
                connection.peer.ask("session/new", &acp::NewSessionRequest::new(directory), link, expect.clone())
            }
            Expect::Load => {
                let request = acp::LoadSessionRequest::new(id.clone(), directory);
                connection.peer.ask_for_past(&id, &request, link)
            }
            _ => {
                let request = acp::ResumeSessionRequest::new(id, directory);
                connection.peer.ask("session/resume", &request, link, expect.clone())
            }
        };
        if let Err(error) = asked {
            if expect == Expect::New {
                self.context.router.give_up();
            }
            self.attach_failed(&error);
        }
    }

    pub(super) fn attach_answered(&mut self, expect: &Expect, reply: Reply) {
        let setup = reply.and_then(|text| {
            serde_json::from_str::<SessionSetup>(&text)
                .or_else(|_| serde_json::from_str::<Option<()>>(&text).map(|_| SessionSetup::default()))
                .map_err(|error| CallError::Unreadable { method: "session/load", reason: error.to_string() })
        });
        let is_awaited = matches!(self.attachment, Attachment::Attaching { .. });
        match setup {
            Ok(setup) if *expect == Expect::New && is_awaited => self.created_anew(&setup),
            // Too late: the session goes on under the id it got meanwhile.
            Ok(_) if *expect == Expect::New => self.context.router.give_up(),
            Ok(setup) if is_awaited => {
                // An agent that was given messages and tells none of them has lost what it knew.
                let is_lost = *expect == Expect::Load && !self.replayed;
                self.attached(&setup, if is_lost { Continuity::Copy } else { Continuity::Resumed });
            }
            Ok(_) => {}
            Err(error) => {
                if *expect == Expect::New {
                    self.context.router.give_up();
                }
                let can_load = self.connection.as_ref().is_some_and(|connection| connection.about().can_load);
                let try_load = *expect == Expect::Resume && can_load && self.loading.is_none();
                // Lost with its first message before it knew of it: nothing was ever said, so nothing is forgotten.
                let was_never = *expect != Expect::New && !self.is_known && self.loading.is_none();
                match error {
                    CallError::Refused(_) if try_load && is_awaited => self.ask_to_attach(Expect::Load),
                    CallError::Refused(error) if was_never && is_awaited && error.code != AUTH_REQUIRED => {
                        self.ask_for_another();
                    }
                    error if is_awaited => self.attach_failed(&error),
                    _ => {}
                }
            }
        }
    }

    /// The session has another id from now on.
    fn created_anew(&mut self, setup: &SessionSetup) {
        let id = setup.session_id.as_deref().map(AgentSessionId::parse);
        let Some(Ok(id)) = id else {
            self.context.router.give_up();
            let reason = "no valid session id".to_owned();
            return self.attach_failed(&CallError::Unreadable { method: "session/new", reason });
        };
        // An id of another session would bring that one's words here, and let this one end it.
        if id != self.id && !self.context.router.adopt(id.clone(), self.link.clone()) {
            let reason = "the id of another session".to_owned();
            return self.attach_failed(&CallError::Unreadable { method: "session/new", reason });
        }
        if id == self.id {
            self.context.router.give_up();
        } else {
            self.context.router.remove(&self.id);
            self.id = id.clone();
            self.emitter.emit(ProviderEvent::AgentIdChanged(id));
        }
        self.attached(setup, Continuity::Live);
    }

    fn attached(&mut self, setup: &SessionSetup, continuity: Continuity) {
        self.is_known |= continuity == Continuity::Resumed;
        self.translator.set_up(setup);
        self.restore_options(setup, continuity);
    }

    /// The agent has the session as it was left, and may be given a message.
    pub(super) fn taken_up(&mut self, continuity: Continuity) {
        self.attachment = Attachment::Attached;
        self.unended = None;
        self.link.set_attached(true);
        let facts = self.translator.options().facts();
        if self.loading.is_some() {
            self.past_is_told(facts, continuity);
        } else {
            self.tell(facts);
            self.emitter.emit(ProviderEvent::Continuity(continuity));
            self.tell_status();
        }
        self.attach_over(Ok(()));
    }

    /// Who wanted to see the session has its history.
    pub(super) fn past_is_told(&mut self, facts: SessionFacts, continuity: Continuity) {
        let Some(mut loading) = self.loading.take() else { return };
        loading.history.add(self.translator.end_replay(now()));
        loading.history.add_facts(facts);
        drop(loading.reply.send(Ok(loading.history.finish(continuity))));
        loading.notices.into_iter().for_each(|notice| self.update(notice));
    }

    pub(super) fn attach_failed(&mut self, error: &CallError) {
        tracing::warn!(session = %self.id, %error, "the session could not be taken up");
        let name = self.context.agent.name.clone();
        let failure = match error {
            CallError::Refused(error) if error.code == AUTH_REQUIRED => {
                ProviderError::LoginRequired { name, detail: error.words() }
            }
            CallError::Gone(detail) => ProviderError::Crashed { name, detail: detail.clone() },
            error => ProviderError::LoadFailed { detail: error.to_string() },
        };
        self.attachment = Attachment::Detached;
        if matches!(error, CallError::TimedOut(_) | CallError::Stalled | CallError::Gone(_)) {
            self.restart_instead();
        }
        if self.loading.is_none() && !matches!(error, CallError::Gone(_)) {
            self.emitter.emit(ProviderEvent::Continuity(Continuity::Copy));
            self.tell_status();
        }
        self.attach_over(Err(&failure));
    }

    /// Answers all who waited for the session to be taken up.
    pub(super) fn attach_over(&mut self, result: Result<(), &ProviderError>) {
        self.restoring = None;
        if let Err(error) = result
            && let Some(loading) = self.loading.take()
        {
            self.let_go();
            drop(loading.reply.send(Err(error.clone())));
        }
        for waiting in [self.attaching.take(), self.renewing.take()].into_iter().flatten() {
            drop(waiting.send(result.map_err(Clone::clone)));
        }
        if let Some((prompt, reply)) = self.waiting.take() {
            let sent = match result {
                Ok(()) => self.prompt(&prompt),
                Err(error) => Err(error.clone()),
            };
            drop(reply.send(sent));
        }
    }

    /// The agent can let go of the session and take it up again.
    pub(super) fn can_come_back(&self) -> bool {
        let about = self.connection.as_ref().map(|connection| connection.about());
        about.is_some_and(|about| about.can_close && (about.can_resume || about.can_load))
    }

    /// Has the agent let go of the session, and of whatever still runs for it. False when it cannot be asked: then it
    /// counts as if it had.
    pub(super) fn close(&mut self) -> bool {
        self.close_within(self.context.settings.session_timeout)
    }

    pub(super) fn close_within(&mut self, within: Duration) -> bool {
        self.release_terminals();
        let Some(connection) = &self.connection else { return false };
        let request = acp::CloseSessionRequest::new(self.id.to_string());
        let due = Instant::now() + within;
        match connection.peer.ask("session/close", &request, self.link.clone(), Expect::Close) {
            Ok(()) => {
                self.attachment = Attachment::Closing { due };
                true
            }
            Err(error) => {
                tracing::warn!(session = %self.id, %error, "the session could not be closed");
                self.attachment = Attachment::Detached;
                self.link.set_attached(false);
                false
            }
        }
    }

    /// An agent that does not even let go of the session would not take it up either: a message is not kept waiting for that.
    pub(super) fn refuse_waiting(&mut self) {
        if let Some((_, reply)) = self.waiting.take() {
            drop(reply.send(Err(self.hanging())));
        }
    }

    /// The agent let go. Who waits has it taken up at once.
    pub(super) fn closed(&mut self) {
        if !matches!(self.attachment, Attachment::Closing { .. } | Attachment::Hanging { is_closing: true }) {
            return;
        }
        self.attachment = Attachment::Detached;
        self.link.set_attached(false);
        self.tell_status();
        if self.waiting.is_some() || self.attaching.is_some() || self.renewing.is_some() {
            self.attach();
        }
    }

    /// Lets go and takes up again, for a session that hangs. If the agent does not do that, it is restarted.
    pub(super) fn renew(&mut self, reply: oneshot::Sender<Result<(), ProviderError>>) {
        if self.connection.is_none() {
            return drop(reply.send(Err(self.unavailable())));
        }
        self.give_up_turn();
        self.renewing = Some(reply);
        match self.attachment {
            Attachment::Attached | Attachment::Hanging { .. } if self.can_come_back() => {
                if !self.close_within(RENEW_WITHIN) {
                    self.restart_instead();
                }
            }
            Attachment::Hanging { .. } => self.restart_instead(),
            Attachment::Attached | Attachment::Detached => self.attach(),
            Attachment::Closing { due } => {
                self.attachment = Attachment::Closing { due: due.min(Instant::now() + RENEW_WITHIN) };
            }
            Attachment::Attaching { .. } => {}
        }
    }

    /// The agent cannot be had to renew the session: who waits for that gets another process.
    pub(super) fn restart_instead(&mut self) {
        if let Some(reply) = self.renewing.take() {
            // Where there is no room for it, the dropped question is the answer.
            let _ = self.context.supervisor.try_send(Command::Reconnect { only: None, reply });
        }
    }

    /// Ends the turn here, whatever becomes of it there.
    fn give_up_turn(&mut self) {
        if self.has_turn() {
            self.cancel();
            self.end_turn(Ok(PromptResult::cancelled()));
        }
    }
}
