//! The options of a session (mode, model, …): set by the user, and set again whenever the agent has the session again.

use std::collections::HashMap;
use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use protocol::Continuity;
use tokio::time::Instant;

use super::attach_state::{AttachPurpose, AttachState, AttachStep, Attaching, DoneSender};
use super::options::{OptionSetter, SessionOptions};
use super::router::RequestKind;
use super::rpc_client::{CallError, RpcReply};
use super::session::{AcpSession, Recorded};
use super::wire::SessionSetup;
use crate::error::ProviderError;
use crate::provider::ProviderEvent;

/// What the agent was asked to set, by the number of the request.
#[derive(Default)]
pub(super) struct OptionRequests {
    pending: HashMap<u64, OptionRequest>,
    last_number: u64,
}

struct OptionRequest {
    setter: OptionSetter,
    option: String,
    value: String,
    requester: Requester,
}

enum Requester {
    User(DoneSender),
    /// The session itself, before the agent gets a message.
    Restore,
}

impl AcpSession {
    pub(super) fn set_option(&mut self, option: &str, value: String, reply: DoneSender) {
        let name = self.agent_name();
        let Some(setter) = self.translator.options().setter(option, &value) else {
            let message = format!("{name} offers no {option} {value:?}");
            return drop(reply.send(Err(ProviderError::Protocol { name, message })));
        };
        if self.state.connection().is_none() {
            return drop(reply.send(Err(self.unavailable())));
        }
        if !self.state.is_attached() {
            // The agent does not have the session, or not quite yet: the option is set before its next message.
            let facts = self.translator.choose(option, &value);
            self.emit_facts(facts);
            self.conversation.requeue_option(option, &value);
            self.update_options(|options| drop(options.insert(option.to_owned(), value)));
            return drop(reply.send(Ok(())));
        }
        match self.request_option(option, &value, setter) {
            Ok(number) => {
                let requester = Requester::User(reply);
                let request = OptionRequest { setter, option: option.to_owned(), value, requester };
                self.option_requests.pending.insert(number, request);
            }
            Err(error) => drop(reply.send(Err(self.call_failed(&error)))),
        }
    }

    fn request_option(&mut self, option: &str, value: &str, setter: OptionSetter) -> Result<u64, CallError> {
        let Some(connection) = self.state.connection() else { return Err(CallError::Gone("it is not running".into())) };
        self.option_requests.last_number += 1;
        let number = self.option_requests.last_number;
        let (id, link, kind) = (self.agent_id.to_string(), self.mailbox.link.clone(), RequestKind::Option(number));
        match setter {
            OptionSetter::Mode => {
                let request = acp::SetSessionModeRequest::new(id, value.to_owned());
                connection.rpc.ask("session/set_mode", &request, link, kind)
            }
            OptionSetter::Choice => {
                let choice = acp::SessionConfigValueId::new(value.to_owned());
                let request = acp::SetSessionConfigOptionRequest::new(id, option.to_owned(), choice);
                connection.rpc.ask("session/set_config_option", &request, link, kind)
            }
            OptionSetter::Boolean => {
                let request = acp::SetSessionConfigOptionRequest::new(id, option.to_owned(), value == "true");
                connection.rpc.ask("session/set_config_option", &request, link, kind)
            }
        }?;
        Ok(number)
    }

    pub(super) fn on_option_answer(&mut self, number: u64, reply: RpcReply) {
        #[derive(serde::Deserialize)]
        struct ConfigOptions {
            #[serde(rename = "configOptions")]
            config_options: Vec<acp::SessionConfigOption>,
        }
        let Some(request) = self.option_requests.pending.remove(&number) else { return };
        let OptionRequest { setter, option, value, requester } = request;
        if matches!(requester, Requester::Restore) && self.restore_request() != Some(number) {
            return;
        }
        let result = reply.map(|text| match setter {
            OptionSetter::Mode => self.translator.set_mode(&value),
            OptionSetter::Choice | OptionSetter::Boolean => match serde_json::from_str::<ConfigOptions>(&text) {
                Ok(options) => self.translator.set_options(&options.config_options),
                Err(_) => self.translator.choose(&option, &value),
            },
        });
        match (result, requester) {
            (Ok(facts), Requester::User(reply)) => {
                self.update_options(|options| drop(options.insert(option, value)));
                self.follow_options();
                self.emit_facts(facts);
                drop(reply.send(Ok(())));
            }
            (Err(error), Requester::User(reply)) => drop(reply.send(Err(self.call_failed(&error)))),
            (Ok(_), Requester::Restore) => {
                self.conversation.option_restored(&option);
                self.restore_next();
            }
            (Err(error), Requester::Restore) => self.not_restored(&option, &value, &error.to_string()),
        }
    }

    /// The number of the request that the session waits for before it is attached.
    fn restore_request(&self) -> Option<u64> {
        match &self.state {
            AttachState::Attaching(Attaching { step: AttachStep::RestoringOptions { request, .. }, .. }) => *request,
            _ => None,
        }
    }

    /// The agent has the session. Sets the user's options again before the agent gets a message: in the mode that a
    /// session begins with it may do more than the user has allowed.
    pub(super) fn restore_options(&mut self, setup: &SessionSetup, continuity: Continuity) {
        match continuity {
            Continuity::Resumed => self.memory.recorded = Recorded::Confirmed,
            Continuity::Copy => self.memory.has_lost = true,
            Continuity::Live | Continuity::Dormant => {}
        }
        let continuity = self.memory.limit(continuity);
        self.translator.set_up(setup);
        let mut reported = SessionOptions::default();
        reported.set_up(setup);
        if let AttachState::Attaching(attaching) = &mut self.state {
            attaching.step = AttachStep::RestoringOptions { continuity, request: None };
        }
        self.conversation.restore_options(|option, value| reported.value(option) != Some(value));
        self.restore_next();
    }

    fn restore_next(&mut self) {
        while let Some((option, value)) = self.conversation.next_option() {
            let options = self.translator.options();
            if options.value(&option).is_none() {
                // The agent offers nothing of the kind any more.
                self.conversation.option_restored(&option);
                self.update_options(|options| drop(options.remove(&option)));
                continue;
            }
            let Some(setter) = options.setter(&option, &value) else {
                return self.not_restored(&option, &value, "it is not offered any more");
            };
            match self.request_option(&option, &value, setter) {
                Ok(number) => {
                    let session_timeout = self.context.settings.session_timeout;
                    if let AttachState::Attaching(attaching) = &mut self.state
                        && let AttachStep::RestoringOptions { request, .. } = &mut attaching.step
                    {
                        *request = Some(number);
                        attaching.due = Instant::now() + session_timeout;
                    }
                    let request = OptionRequest { setter, option, value, requester: Requester::Restore };
                    self.option_requests.pending.insert(number, request);
                }
                Err(error) => self.attach_failed(&error),
            }
            return;
        }
        if let AttachState::Attaching(Attaching { step: AttachStep::RestoringOptions { continuity, .. }, .. }) =
            self.state
        {
            self.attached(continuity);
        }
    }

    /// The agent does not have the session as the user had it, so it gets no message. What the user wants is shown, and
    /// may be changed.
    fn not_restored(&mut self, option: &str, value: &str, reason: &str) {
        let (connection, purpose) = match self.take_state() {
            AttachState::Attaching(Attaching { connection, purpose, .. }) => (connection, purpose),
            state => return self.state = state,
        };
        tracing::warn!(session = %self.agent_id, option, value, reason, "an option could not be restored");
        for (option, value) in self.conversation.options().clone() {
            self.translator.choose(&option, &value);
        }
        // The agent has it, for as long as what came with it is passed on.
        self.state = AttachState::Attached { connection: Arc::clone(&connection) };
        self.conversation.agent_is_absent();
        let facts = self.translator.options().facts();
        let detail = format!("the {option} {value:?} could not be set again: {reason}");
        let failure = ProviderError::LoadFailed { detail };
        match purpose {
            AttachPurpose::Open(open) => {
                // The history is shown all the same; whoever sends a message gets the reason.
                self.opened(open, facts, self.memory.limit(Continuity::Dormant));
                self.report_status();
            }
            purpose @ AttachPurpose::Reattach { .. } => {
                self.emit_facts(facts);
                self.report_status();
                self.attach_ended(purpose, &failure);
            }
        }
        self.state = AttachState::Detached { connection };
        if self.can_reattach() {
            self.close_at_agent(self.context.settings.session_timeout, None);
        }
    }

    /// What the agent sets itself, or because of another option, is how the user has it from now on.
    pub(super) fn follow_options(&mut self) {
        if !self.state.is_attached() {
            return;
        }
        let offered = self.translator.options();
        let changed = self.conversation.update_options(|options| {
            options.retain(|option, set| {
                let Some(value) = offered.value(option) else { return false };
                if offered.setter(option, value).is_some() {
                    value.clone_into(set);
                }
                true
            });
        });
        if let Some(options) = changed {
            self.emitter.emit(ProviderEvent::Options(options));
        }
    }

    fn update_options(&mut self, change: impl FnOnce(&mut crate::conversation::OptionValues)) {
        if let Some(options) = self.conversation.update_options(change) {
            self.emitter.emit(ProviderEvent::Options(options));
        }
    }

    /// Nobody will answer what was asked of the agent.
    pub(super) fn fail_option_requests(&mut self, error: &ProviderError) {
        for (_, request) in self.option_requests.pending.drain() {
            if let Requester::User(reply) = request.requester {
                drop(reply.send(Err(error.clone())));
            }
        }
    }
}
