//! The options of a session (mode, model, …) and its slash commands, as session facts.

use agent_client_protocol_schema::v1 as acp;
use protocol::SessionFacts;
use protocol::facts::{AgentCommandInfo, ConfigCategory, ConfigChoice, ConfigOption, PlanEntry, PlanStatus};

use super::wire::SessionSetup;

/// The id under which modes are offered by an agent that has no config options.
pub(crate) const MODE_OPTION: &str = "mode";

/// The options of a session as last reported.
#[derive(Debug, Default)]
pub(crate) struct SessionOptions {
    options: Vec<ConfigOption>,
    /// Options that are on or off, set by a boolean rather than by a name.
    booleans: Vec<String>,
    /// The mode comes from `modes` and is set by its own method.
    mode_is_separate: bool,
    model: Option<String>,
}

/// How one option is set on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionSetter {
    Mode,
    Choice,
    Boolean,
}

impl SessionOptions {
    /// What the answer to `session/new`, `load` or `resume` reports. Agents that offer both modes and config options
    /// report the mode twice; the option wins.
    pub(crate) fn set_up(&mut self, setup: &SessionSetup) -> SessionFacts {
        if let Some(options) = &setup.config_options {
            self.take(options);
        }
        self.model = setup.models.as_ref().map(|models| models.current_model_id.clone());
        let has_mode = self.options.iter().any(|option| option.category == ConfigCategory::Mode);
        if let Some(modes) = setup.modes.as_ref().filter(|_| !has_mode || self.mode_is_separate) {
            self.mode_is_separate = true;
            self.options.retain(|option| option.category != ConfigCategory::Mode);
            self.options.insert(0, mode_option(modes));
        }
        self.facts()
    }

    /// The whole list, replaced.
    pub(crate) fn replace(&mut self, options: &[acp::SessionConfigOption]) -> SessionFacts {
        let mode = self.options.iter().find(|_| self.mode_is_separate).cloned();
        self.take(options);
        if let Some(mode) = mode {
            self.options.insert(0, mode);
        }
        self.facts()
    }

    pub(crate) fn set_mode(&mut self, mode: &str) -> SessionFacts {
        if let Some(option) = self.options.iter_mut().find(|option| option.category == ConfigCategory::Mode) {
            option.value = mode.to_owned();
        }
        self.facts()
    }

    pub(crate) fn value(&self, option: &str) -> Option<&str> {
        self.options.iter().find(|offered| offered.id == option).map(|offered| offered.value.as_str())
    }

    /// What the user wants, as far as the agent offers such an option.
    pub(crate) fn choose(&mut self, option: &str, value: &str) -> SessionFacts {
        if let Some(offered) = self.options.iter_mut().find(|offered| offered.id == option) {
            value.clone_into(&mut offered.value);
        }
        self.facts()
    }

    /// None when the session offers no such option or no such value.
    pub(crate) fn setter(&self, option: &str, value: &str) -> Option<OptionSetter> {
        let offered = self.options.iter().find(|offered| offered.id == option)?;
        if !offered.choices.iter().any(|choice| choice.value == value) {
            return None;
        }
        Some(if self.mode_is_separate && option == MODE_OPTION && offered.category == ConfigCategory::Mode {
            OptionSetter::Mode
        } else if self.booleans.iter().any(|boolean| boolean == option) {
            OptionSetter::Boolean
        } else {
            OptionSetter::Choice
        })
    }

    /// The model as the wire names it.
    pub(crate) fn model_id(&self) -> String {
        let model_option = self.options.iter().find(|option| option.category == ConfigCategory::Model);
        model_option.map(|option| option.value.clone()).or_else(|| self.model.clone()).unwrap_or_default()
    }

    fn take(&mut self, options: &[acp::SessionConfigOption]) {
        let is_boolean = |option: &&acp::SessionConfigOption| matches!(option.kind, acp::SessionConfigKind::Boolean(_));
        self.booleans = options.iter().filter(is_boolean).map(|option| option.id.to_string()).collect();
        self.options = options.iter().filter_map(config_option).collect();
    }

    pub(crate) fn facts(&self) -> SessionFacts {
        let model_option = self.options.iter().find(|option| option.category == ConfigCategory::Model);
        let model = model_option.map(|option| {
            let choice = option.choices.iter().find(|choice| choice.value == option.value);
            choice.map_or(&option.value, |choice| &choice.name).clone()
        });
        SessionFacts {
            options: Some(self.options.clone()),
            model: model.or_else(|| self.model.clone()),
            ..SessionFacts::default()
        }
    }
}

fn config_option(option: &acp::SessionConfigOption) -> Option<ConfigOption> {
    let (value, choices) = match &option.kind {
        acp::SessionConfigKind::Select(select) => (select.current_value.to_string(), choices(&select.options)),
        acp::SessionConfigKind::Boolean(switch) => (switch.current_value.to_string(), on_and_off()),
        _ => return None,
    };
    let category = match &option.category {
        Some(acp::SessionConfigOptionCategory::Mode) => ConfigCategory::Mode,
        Some(acp::SessionConfigOptionCategory::Model) => ConfigCategory::Model,
        Some(acp::SessionConfigOptionCategory::ThoughtLevel) => ConfigCategory::ThoughtLevel,
        _ => ConfigCategory::Other,
    };
    Some(ConfigOption { id: option.id.to_string(), name: option.name.clone(), category, value, choices })
}

fn mode_option(modes: &acp::SessionModeState) -> ConfigOption {
    let choice = |mode: &acp::SessionMode| ConfigChoice {
        value: mode.id.to_string(),
        name: mode.name.clone(),
        description: mode.description.clone(),
    };
    ConfigOption {
        id: MODE_OPTION.into(),
        name: "Mode".into(),
        category: ConfigCategory::Mode,
        value: modes.current_mode_id.to_string(),
        choices: modes.available_modes.iter().map(choice).collect(),
    }
}

fn choices(options: &acp::SessionConfigSelectOptions) -> Vec<ConfigChoice> {
    let choice = |option: &acp::SessionConfigSelectOption| ConfigChoice {
        value: option.value.to_string(),
        name: option.name.clone(),
        description: option.description.clone(),
    };
    match options {
        acp::SessionConfigSelectOptions::Ungrouped(options) => options.iter().map(choice).collect(),
        acp::SessionConfigSelectOptions::Grouped(groups) => {
            groups.iter().flat_map(|group| group.options.iter().map(choice)).collect()
        }
        _ => Vec::new(),
    }
}

fn on_and_off() -> Vec<ConfigChoice> {
    [("false", "Off"), ("true", "On")]
        .map(|(value, name)| ConfigChoice { value: value.into(), name: name.into(), description: None })
        .into()
}

pub(crate) fn commands(update: acp::AvailableCommandsUpdate) -> SessionFacts {
    let command = |command: acp::AvailableCommand| AgentCommandInfo {
        name: command.name,
        description: command.description,
        hint: match command.input {
            Some(acp::AvailableCommandInput::Unstructured(input)) => Some(input.hint),
            _ => None,
        },
    };
    let commands = update.available_commands.into_iter().map(command).collect();
    SessionFacts { commands: Some(commands), ..SessionFacts::default() }
}

pub(crate) fn plan(plan: acp::Plan) -> SessionFacts {
    let entry = |entry: acp::PlanEntry| PlanEntry {
        content: entry.content,
        status: match entry.status {
            acp::PlanEntryStatus::InProgress => PlanStatus::InProgress,
            acp::PlanEntryStatus::Completed => PlanStatus::Completed,
            _ => PlanStatus::Pending,
        },
    };
    SessionFacts { plan: Some(plan.entries.into_iter().map(entry).collect()), ..SessionFacts::default() }
}
