//! What a session has besides its turns: options to switch, and the output of terminals.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1 as acp;
use protocol::Continuity;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::options::{Options, Setter};
use super::peer::{CallError, Reply};
use super::router::Expect;
use super::session::{Attachment, Session, now};
use super::wire::SessionSetup;
use crate::error::ProviderError;
use crate::provider::ProviderEvent;

/// Output of all of a session's terminals that no tool call shows yet. A command may print megabytes before its agent comes
/// to say whose it is.
const UNSHOWN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What a terminal printed that no tool call shows yet.
#[derive(Debug, Default)]
pub(super) struct Unshown {
    text: String,
    /// Bytes there was no room for.
    left_out: usize,
}

/// A switch that the agent was asked to make.
pub(super) struct Setting {
    setter: Setter,
    option: String,
    value: String,
    /// None when nobody waits but the session itself, to be as it was.
    reply: Option<oneshot::Sender<Result<(), ProviderError>>>,
}

/// What is left to switch before a session that the agent has taken up is as the user had it.
pub(super) struct Restoring {
    continuity: Continuity,
    choices: BTreeMap<String, String>,
    /// The switch that the agent was asked to make.
    asked: u64,
}

impl Session {
    pub(super) fn set_option(
        &mut self,
        option: &str,
        value: String,
        reply: oneshot::Sender<Result<(), ProviderError>>,
    ) {
        let name = self.context.agent.name.clone();
        let Some(setter) = self.translator.options().setter(option, &value) else {
            let message = format!("{name} offers no {option} {value:?}");
            return drop(reply.send(Err(ProviderError::Protocol { name, message })));
        };
        if self.connection.is_none() {
            return drop(reply.send(Err(self.unavailable())));
        }
        if self.attachment != Attachment::Attached {
            // It rests, or comes back just now: it is switched before its next message.
            let facts = self.translator.choose(option, &value);
            self.tell(facts);
            if let Some(restoring) = &mut self.restoring {
                restoring.choices.insert(option.to_owned(), value.clone());
            }
            self.chosen.insert(option.to_owned(), value);
            self.tell_chosen();
            return drop(reply.send(Ok(())));
        }
        match self.ask_to_switch(option, &value, setter) {
            Ok(number) => {
                let setting = Setting { setter, option: option.to_owned(), value, reply: Some(reply) };
                self.setting.insert(number, setting);
            }
            Err(error) => drop(reply.send(Err(self.failed(&error)))),
        }
    }

    fn ask_to_switch(&mut self, option: &str, value: &str, setter: Setter) -> Result<u64, CallError> {
        let Some(connection) = &self.connection else { return Err(CallError::Gone("it is not running".into())) };
        self.settings_asked += 1;
        let expect = Expect::Option(self.settings_asked);
        let (id, link) = (self.id.to_string(), self.link.clone());
        match setter {
            Setter::Mode => {
                let request = acp::SetSessionModeRequest::new(id, value.to_owned());
                connection.peer.ask("session/set_mode", &request, link, expect)
            }
            Setter::Choice => {
                let choice = acp::SessionConfigValueId::new(value.to_owned());
                let request = acp::SetSessionConfigOptionRequest::new(id, option.to_owned(), choice);
                connection.peer.ask("session/set_config_option", &request, link, expect)
            }
            Setter::Boolean => {
                let request = acp::SetSessionConfigOptionRequest::new(id, option.to_owned(), value == "true");
                connection.peer.ask("session/set_config_option", &request, link, expect)
            }
        }?;
        Ok(self.settings_asked)
    }

    pub(super) fn option_answered(&mut self, number: u64, reply: Reply) {
        #[derive(serde::Deserialize)]
        struct Options {
            #[serde(rename = "configOptions")]
            config_options: Vec<acp::SessionConfigOption>,
        }
        let Some(Setting { setter, option, value, reply: waiting }) = self.setting.remove(&number) else { return };
        let is_awaited = self.restoring.as_ref().is_some_and(|restoring| restoring.asked == number);
        if waiting.is_none() && !is_awaited {
            return;
        }
        let result = reply.map(|text| match setter {
            Setter::Mode => self.translator.set_mode(&value),
            Setter::Choice | Setter::Boolean => match serde_json::from_str::<Options>(&text) {
                Ok(options) => self.translator.set_options(&options.config_options),
                Err(_) => self.translator.choose(&option, &value),
            },
        });
        match (result, waiting) {
            (Ok(facts), Some(waiting)) => {
                self.chosen.insert(option, value);
                self.follow_options();
                self.tell(facts);
                drop(waiting.send(Ok(())));
            }
            (Err(error), Some(waiting)) => drop(waiting.send(Err(self.failed(&error)))),
            (Ok(_), None) => self.restore_next(),
            (Err(error), None) => self.not_restored(&option, &value, &error.to_string()),
        }
    }

    /// Switches again what the user had switched, before the agent gets a message: in the mode that a session begins
    /// with it may do more than the user has allowed.
    pub(super) fn restore_options(&mut self, setup: &SessionSetup, continuity: Continuity) {
        let mut reported = Options::default();
        reported.set_up(setup);
        let mut choices = self.chosen.clone();
        choices.retain(|option, value| reported.value(option) != Some(value));
        self.restoring = Some(Restoring { continuity, choices, asked: 0 });
        self.restore_next();
    }

    fn restore_next(&mut self) {
        let Some(restoring) = &mut self.restoring else { return };
        let Some((option, value)) = restoring.choices.pop_first() else {
            let continuity = restoring.continuity;
            return self.taken_up(continuity);
        };
        let options = self.translator.options();
        if options.value(&option).is_none() {
            // There is nothing of the kind any more.
            self.chosen.remove(&option);
            self.tell_chosen();
            return self.restore_next();
        }
        let Some(setter) = options.setter(&option, &value) else {
            return self.not_restored(&option, &value, "it is not offered any more");
        };
        let due = Instant::now() + self.context.settings.session_timeout;
        self.attachment = Attachment::Attaching { due, discard: false };
        match self.ask_to_switch(&option, &value, setter) {
            Ok(number) => {
                if let Some(restoring) = &mut self.restoring {
                    restoring.asked = number;
                }
                self.setting.insert(number, Setting { setter, option, value, reply: None });
            }
            Err(error) => self.attach_failed(&error),
        }
    }

    /// The agent does not take the session up as the user had it, so it gets no message. What the user wants is shown,
    /// and may be changed.
    fn not_restored(&mut self, option: &str, value: &str, reason: &str) {
        tracing::warn!(session = %self.id, option, value, reason, "an option could not be switched again");
        for (option, value) in &self.chosen {
            self.translator.choose(option, value);
        }
        let facts = self.translator.options().facts();
        if self.loading.is_some() {
            // The past is shown all the same; who goes on with it is told.
            self.past_is_told(facts, Continuity::Dormant);
        } else {
            self.tell(facts);
        }
        let detail = format!("the {option} {value:?} could not be set again: {reason}");
        self.attachment = Attachment::Detached;
        self.tell_status();
        self.attach_over(Err(&ProviderError::LoadFailed { detail }));
        if self.can_come_back() {
            self.close();
        }
    }

    /// What the agent switches itself, or because of another switch, is how the user has it from now on.
    pub(super) fn follow_options(&mut self) {
        if self.attachment != Attachment::Attached {
            return;
        }
        let options = self.translator.options();
        self.chosen.retain(|option, chosen| {
            let Some(value) = options.value(option) else { return false };
            if options.setter(option, value).is_some() {
                value.clone_into(chosen);
            }
            true
        });
        self.tell_chosen();
    }

    /// What the user has switched in an earlier life of this session.
    pub(crate) fn remember(&mut self, chosen: &BTreeMap<String, String>) {
        self.chosen.clone_from(chosen);
        self.told_chosen.clone_from(chosen);
    }

    fn tell_chosen(&mut self) {
        if self.chosen != self.told_chosen {
            self.told_chosen.clone_from(&self.chosen);
            self.emitter.emit(ProviderEvent::Options(self.chosen.clone()));
        }
    }

    /// Nobody will answer what was asked of the agent.
    pub(super) fn settings_over(&mut self, error: &ProviderError) {
        for reply in self.setting.drain().filter_map(|(_, setting)| setting.reply) {
            drop(reply.send(Err(error.clone())));
        }
    }

    pub(super) fn terminal(&mut self, id: String, text: &str) {
        if self.translator.shows_terminal(&id) {
            let output = self.translator.terminal_output(&id, text, now());
            return self.publish(output);
        }
        let held: usize = self.terminal_output.values().map(|unshown| unshown.text.len()).sum();
        let unshown = self.terminal_output.entry(id).or_default();
        // What follows a gap would look as if it followed what stands before it.
        if unshown.left_out == 0 && held + text.len() <= UNSHOWN_BYTES_MAX {
            unshown.text.push_str(text);
        } else {
            unshown.left_out += text.len();
        }
    }

    /// What a terminal printed before a tool call said that it is its own.
    pub(super) fn show_terminals(&mut self) {
        if self.terminal_output.is_empty() {
            return;
        }
        let shown: Vec<String> =
            self.terminal_output.keys().filter(|id| self.translator.shows_terminal(id)).cloned().collect();
        for id in shown {
            if let Some(Unshown { mut text, left_out }) = self.terminal_output.remove(&id) {
                if left_out > 0 {
                    text.push_str(&format!("\n[{left_out} bytes left out]\n"));
                }
                let output = self.translator.terminal_output(&id, &text, now());
                self.publish(output);
            }
        }
    }
}
