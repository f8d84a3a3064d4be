//! The options of a session (mode, model): what is shown of them, how they are set, and how a new process gets them.

use protocol::facts::ConfigOption;
use protocol::{ErrorCode, ErrorDetail, SessionFacts};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ClaudeSession;
use super::handle::ReplySender;
use super::process_phase::PendingRequest;
use crate::claude::{NAME, facts};
use crate::error::ProviderError;
use crate::provider::ProviderEvent;

/// The options as they are shown.
#[derive(Debug, Default)]
pub(super) struct ShownOptions {
    options: Vec<ConfigOption>,
    /// The user set the mode in which the agent plans; the agent did not decide so itself.
    pub(super) user_wants_plan: bool,
}

impl ShownOptions {
    pub(super) fn new(user_wants_plan: bool) -> Self {
        Self { options: Vec::new(), user_wants_plan }
    }

    /// Takes in options that changed; gives all of them.
    pub(super) fn merge(&mut self, changed: Vec<ConfigOption>) -> Vec<ConfigOption> {
        for option in changed {
            match self.options.iter_mut().find(|known| known.id == option.id) {
                Some(known) => *known = option,
                None => self.options.push(option),
            }
        }
        self.options.clone()
    }

    /// False if there is no such option to show.
    fn set(&mut self, option: &str, value: &str) -> bool {
        let Some(known) = self.options.iter_mut().find(|known| known.id == option) else { return false };
        known.value = value.into();
        true
    }
}

impl ClaudeSession {
    pub(super) fn set_option(&mut self, option: String, value: String, reply: ReplySender<()>) {
        if !matches!(option.as_str(), facts::MODE | facts::MODEL) {
            let message = format!("Claude Code has no option {option:?}");
            let _ = reply.send(Err(ProviderError::Protocol { name: NAME.into(), message }));
            return;
        }
        let Some(process) = self.process.running_mut() else {
            self.option_is(&option, &value);
            let _ = reply.send(Ok(()));
            return;
        };
        // The new value wins: what is still on its way to the program about this option does not matter any more.
        process.requests.forget_restoring(|restored| restored == option);
        self.conversation.option_superseded(&option);
        self.request(&option_request(&option, &value), PendingRequest::SetOption { option, value, reply });
    }

    /// A process is set to the user's options before it gets a message.
    pub(super) fn restore_options(&mut self) {
        if let Some(process) = self.process.running_mut() {
            process.requests.forget_restoring(|_| true);
        }
        self.conversation.restore_options(|_, _| true);
        while let Some((option, value)) = self.conversation.next_option() {
            self.request(&option_request(&option, &value), PendingRequest::RestoreOption { option, value });
        }
    }

    /// The program has answered a request of the user's.
    pub(super) fn option_answered(
        &mut self,
        option: &str,
        value: &str,
        answer: Result<Value, String>,
        reply: ReplySender<()>,
    ) {
        let result = match answer {
            Ok(_) => {
                self.option_is(option, value);
                Ok(())
            }
            Err(message) => {
                // It may have superseded the restoring of an earlier value, which the program then lacks.
                self.conversation.options_not_restored();
                if self.conversation.held().is_some() {
                    self.restore_options();
                }
                Err(ProviderError::Protocol { name: NAME.into(), message })
            }
        };
        let _ = reply.send(result);
        self.deliver_held();
    }

    /// The program has answered about an option that is restored.
    pub(super) fn restore_answered(&mut self, option: &str, value: &str, answer: Result<Value, String>) {
        match answer {
            Ok(_) => {
                self.option_is(option, value);
                self.conversation.option_restored(option);
            }
            Err(reason) => self.option_not_restored(option, value, &reason),
        }
        self.deliver_held();
    }

    /// Who wants a plan must not get changes: no message goes to a process in another mode than the user set.
    fn option_not_restored(&mut self, option: &str, value: &str, reason: &str) {
        tracing::warn!(session = %self.agent_id, option, value, reason, "an option could not be set again");
        self.conversation.options_not_restored();
        if self.conversation.held().is_some() {
            let message =
                format!("the {option} {value:?} could not be set again: {reason}. Choose another one and send again.");
            self.end_turn_with_error(&ErrorDetail::new(ErrorCode::SessionLoadFailed, message));
            self.conversation.on_use(Instant::now());
        }
        self.show_option(option, value);
    }

    /// An option has a new value: it is reported, and kept for the next process.
    fn option_is(&mut self, option: &str, value: &str) {
        let changed = self.conversation.update_options(|options| {
            options.insert(option.into(), value.into());
        });
        if let Some(options) = changed {
            self.emitter.emit(ProviderEvent::Options(options));
        }
        if option == facts::MODE {
            self.shown_options.user_wants_plan = value == facts::PLAN;
        }
        self.show_option(option, value);
    }

    fn show_option(&mut self, option: &str, value: &str) {
        if self.shown_options.set(option, value) {
            self.emit_facts(SessionFacts { options: Some(Vec::new()), ..SessionFacts::default() });
        }
    }
}

fn option_request(option: &str, value: &str) -> Value {
    match option {
        facts::MODE => json!({"subtype": "set_permission_mode", "mode": value}),
        _ => json!({"subtype": "set_model", "model": value}),
    }
}
