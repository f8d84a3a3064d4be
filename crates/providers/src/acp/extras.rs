//! What a session has besides its turns: options to switch, and the output of terminals.

use agent_client_protocol_schema::v1 as acp;
use tokio::sync::oneshot;

use super::options::Setter;
use super::peer::Reply;
use super::router::Expect;
use super::session::{Attachment, Session, now};
use crate::provider::ProviderError;

/// Output of a terminal that no tool call shows yet.
const TERMINAL_BYTES_KEPT_MAX: usize = 1024 * 1024;

/// A switch that the agent was asked to make.
pub(super) struct Setting {
    pub(super) setter: Setter,
    pub(super) value: String,
    pub(super) reply: oneshot::Sender<Result<(), ProviderError>>,
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
        let connection = self.connection.as_ref().filter(|_| self.attachment == Attachment::Attached);
        let Some(connection) = connection else { return drop(reply.send(Err(self.unavailable()))) };
        self.settings_asked += 1;
        let expect = Expect::Option(self.settings_asked);
        let id = self.id.to_string();
        let link = self.link.clone();
        let asked = match setter {
            Setter::Mode => {
                let request = acp::SetSessionModeRequest::new(id, value.clone());
                connection.peer.ask("session/set_mode", &request, link, expect)
            }
            Setter::Choice => {
                let choice = acp::SessionConfigValueId::new(value.clone());
                let request = acp::SetSessionConfigOptionRequest::new(id, option.to_owned(), choice);
                connection.peer.ask("session/set_config_option", &request, link, expect)
            }
            Setter::Boolean => {
                let request = acp::SetSessionConfigOptionRequest::new(id, option.to_owned(), value == "true");
                connection.peer.ask("session/set_config_option", &request, link, expect)
            }
        };
        match asked {
            Ok(()) => drop(self.setting.insert(self.settings_asked, Setting { setter, value, reply })),
            Err(error) => drop(reply.send(Err(self.failed(&error)))),
        }
    }

    pub(super) fn option_answered(&mut self, number: u64, reply: Reply) {
        #[derive(serde::Deserialize)]
        struct Options {
            #[serde(rename = "configOptions")]
            config_options: Vec<acp::SessionConfigOption>,
        }
        let Some(setting) = self.setting.remove(&number) else { return };
        let result = reply.map_err(|error| self.failed(&error)).map(|text| {
            let facts = match setting.setter {
                Setter::Mode => Some(self.translator.set_mode(&setting.value)),
                Setter::Choice | Setter::Boolean => serde_json::from_str::<Options>(&text)
                    .map(|options| self.translator.set_options(&options.config_options))
                    .ok(),
            };
            self.tell(facts.unwrap_or_default());
        });
        drop(setting.reply.send(result));
    }

    pub(super) fn terminal(&mut self, id: String, text: &str) {
        if self.translator.shows_terminal(&id) {
            let output = self.translator.terminal_output(&id, text, now());
            return self.publish(output);
        }
        let kept = self.terminal_output.entry(id).or_default();
        if kept.len() + text.len() <= TERMINAL_BYTES_KEPT_MAX {
            kept.push_str(text);
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
            if let Some(text) = self.terminal_output.remove(&id) {
                let output = self.translator.terminal_output(&id, &text, now());
                self.publish(output);
            }
        }
    }
}
