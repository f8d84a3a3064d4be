//! Agents that the user defines: what `agents.json` holds, as Settings shows and changes it.
//!
//! Comes in: definitions from a window, checked here field by field. Goes out: the list of all agents, and what starting
//! one for a moment has shown. Values of environment variables may be secrets and stay out of `Debug`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::CliType;

/// Longer than any name that fits a picker.
pub const AGENT_NAME_BYTES_MAX: usize = 100;
/// Longest program, argument, or variable: keys and paths are shorter.
pub const AGENT_TEXT_BYTES_MAX: usize = 8 * 1024;
/// Most arguments, and most variables.
pub const AGENT_TEXTS_MAX: usize = 100;

/// An agent as the user defines it. The program is started with these arguments, never through a shell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct AgentDefinition {
    pub name: String,
    /// A program in `PATH`, or the path of one.
    pub command: String,
    #[serde(default)]
    pub args: Vec<String>,
    /// In the order of the file.
    #[serde(default)]
    pub env: Vec<EnvVariable>,
}

/// One variable of an agent's environment.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct EnvVariable {
    pub name: String,
    pub value: String,
}

impl fmt::Debug for EnvVariable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EnvVariable").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All agents, and the state of the file that defines the user's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct AgentConfig {
    /// The path of `agents.json`.
    pub file: String,
    /// Stands for the content of the file as it was read. A change repeats it, so that no other change is overwritten.
    pub revision: String,
    /// Why the file cannot be used and is not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub problem: Option<String>,
    /// In the order of the picker.
    pub agents: Vec<AgentEntry>,
}

/// Where an agent comes from, and how it is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum AgentEntry {
    BuiltIn {
        cli_type: CliType,
        name: String,
        /// The command line that starts it.
        command: String,
        /// The environment variable that changes its command line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        variable: Option<String>,
        /// A configured agent of this type is used instead.
        is_replaced: bool,
    },
    Configured {
        cli_type: CliType,
        definition: AgentDefinition,
    },
    /// An entry of the file that cannot be used as it stands there.
    Unusable {
        name: String,
        reason: String,
    },
}

/// What starting an agent for a moment has shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ProbeOutcome {
    /// It can be used, as far as it says.
    Works {
        program: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        version: Option<String>,
        login: ProbeLogin,
    },
    NeedsLogin {
        program: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        version: Option<String>,
        /// What the user has to do.
        advice: String,
    },
    Failed {
        message: String,
        /// What the agent or the system wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        detail: Option<String>,
        advice: String,
    },
}

/// What an agent that works reports about its login.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ProbeLogin {
    /// It gave a session.
    GivesSession {},
    /// It named its account.
    Account { account: String },
    /// It does not say.
    Unknown {},
}

impl AgentDefinition {
    /// For an agent that is to be saved: the field at fault and the reason.
    pub(crate) fn check(&self) -> Result<(), (String, String)> {
        if self.name.trim().is_empty() {
            return fault("name", "must not be blank");
        }
        self.check_start()
    }

    /// For an agent that is only to be started: one without a name can be.
    pub(crate) fn check_start(&self) -> Result<(), (String, String)> {
        if self.name.len() > AGENT_NAME_BYTES_MAX {
            return fault("name", &format!("is longer than {AGENT_NAME_BYTES_MAX} bytes"));
        }
        if self.name.contains(char::is_control) {
            return fault("name", "must not hold control characters");
        }
        if self.command.trim().is_empty() {
            return fault("command", "must not be blank");
        }
        check_text("command", &self.command)?;
        if self.command.contains(char::is_control) {
            return fault("command", "must not hold control characters");
        }
        if self.args.len() > AGENT_TEXTS_MAX {
            return fault("args", &format!("has more than {AGENT_TEXTS_MAX} arguments"));
        }
        for (index, argument) in self.args.iter().enumerate() {
            check_text(&format!("args[{index}]"), argument)?;
        }
        if self.env.len() > AGENT_TEXTS_MAX {
            return fault("env", &format!("has more than {AGENT_TEXTS_MAX} variables"));
        }
        for (index, EnvVariable { name, value }) in self.env.iter().enumerate() {
            let field = |part: &str| format!("env[{index}].{part}");
            check_text(&field("name"), name)?;
            check_text(&field("value"), value)?;
            if name.is_empty() || name.contains(|c: char| c == '=' || c.is_whitespace() || c.is_control()) {
                return fault(&field("name"), "must be a name without spaces and without =");
            }
            if self.env[..index].iter().any(|other| other.name == *name) {
                return fault(&field("name"), "stands there twice");
            }
        }
        Ok(())
    }
}

fn check_text(field: &str, text: &str) -> Result<(), (String, String)> {
    if text.len() > AGENT_TEXT_BYTES_MAX {
        return fault(field, &format!("is longer than {AGENT_TEXT_BYTES_MAX} bytes"));
    }
    if text.contains('\0') {
        return fault(field, "must not hold a NUL");
    }
    Ok(())
}

fn fault(field: &str, reason: &str) -> Result<(), (String, String)> {
    Err((format!("definition.{field}"), reason.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(change: impl FnOnce(&mut AgentDefinition)) -> AgentDefinition {
        let mut definition =
            AgentDefinition { name: "Gemini".into(), command: "gemini".into(), ..AgentDefinition::default() };
        change(&mut definition);
        definition
    }

    fn variable(name: &str, value: &str) -> EnvVariable {
        EnvVariable { name: name.into(), value: value.into() }
    }

    #[test]
    fn what_cannot_be_an_agent_is_refused_with_the_field_at_fault() {
        let refused = |change: fn(&mut AgentDefinition)| definition(change).check().unwrap_err().0;
        assert_eq!(refused(|agent| agent.name = "  ".into()), "definition.name");
        assert_eq!(refused(|agent| agent.name = "a\nb".into()), "definition.name");
        assert_eq!(refused(|agent| agent.name = "n".repeat(AGENT_NAME_BYTES_MAX + 1)), "definition.name");
        assert_eq!(refused(|agent| agent.command = " ".into()), "definition.command");
        assert_eq!(refused(|agent| agent.command = "a\0b".into()), "definition.command");
        assert_eq!(refused(|agent| agent.args = vec![String::new(); AGENT_TEXTS_MAX + 1]), "definition.args");
        assert_eq!(refused(|agent| agent.args = vec!["a".into(), "\0".into()]), "definition.args[1]");
        assert_eq!(refused(|agent| agent.env = vec![variable("", "x")]), "definition.env[0].name");
        assert_eq!(refused(|agent| agent.env = vec![variable("A=B", "x")]), "definition.env[0].name");
        assert_eq!(refused(|agent| agent.env = vec![variable("A", "\0")]), "definition.env[0].value");
        assert_eq!(refused(|agent| agent.env = vec![variable("A", "1"), variable("A", "2")]), "definition.env[1].name");
        let long = definition(|agent| agent.env = vec![variable("A", &"x".repeat(AGENT_TEXT_BYTES_MAX + 1))]);
        assert_eq!(long.check().unwrap_err().0, "definition.env[0].value");
    }

    #[test]
    fn an_agent_without_a_name_can_be_tried_but_not_saved() {
        let nameless = definition(|agent| agent.name.clear());
        assert_eq!(nameless.check_start(), Ok(()));
        assert_eq!(nameless.check().unwrap_err().0, "definition.name");
        assert_eq!(definition(|agent| agent.args = vec!["a b\n$HOME".into()]).check(), Ok(()));
    }

    #[test]
    fn values_of_variables_are_not_shown_for_debugging() {
        let shown = format!("{:?}", definition(|agent| agent.env = vec![variable("KEY", "hunter2")]));
        assert!(shown.contains("KEY") && !shown.contains("hunter2"), "{shown}");
    }
}
