//! Session facts: what agents report beside the conversation. Each field, when present, replaces what was known.

use serde::{Deserialize, Serialize};

/// A patch of a session's facts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", default)]
pub struct SessionFacts {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub plan: Option<Vec<PlanEntry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub context: Option<ContextUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub commands: Option<Vec<AgentCommandInfo>>,
    /// Switches the agent offers: its mode, its model and others, each with its present value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub options: Option<Vec<ConfigOption>>,
    /// The agent's own title of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub agent_title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub model: Option<String>,
    /// Set while nothing has come from the agent for long although a turn runs; `0` when it speaks again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "number"))]
    pub silent_ms: Option<u64>,
    /// One line on what the agent is doing now (a retry, a compaction); empty when it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub activity: Option<String>,
    /// The git branch of the session's directory, or the short hash of a detached `HEAD`; empty when there is none any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub branch: Option<String>,
}

impl SessionFacts {
    /// Takes over every field that `newer` has.
    pub fn merge(&mut self, newer: Self) {
        fn take<T>(into: &mut Option<T>, newer: Option<T>) {
            if newer.is_some() {
                *into = newer;
            }
        }
        let Self { plan, context, commands, options, agent_title, model, silent_ms, activity, branch } = newer;
        take(&mut self.plan, plan);
        take(&mut self.context, context);
        take(&mut self.commands, commands);
        take(&mut self.options, options);
        take(&mut self.agent_title, agent_title);
        take(&mut self.model, model);
        take(&mut self.silent_ms, silent_ms);
        take(&mut self.activity, activity);
        take(&mut self.branch, branch);
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PlanEntry {
    pub content: String,
    pub status: PlanStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    Pending,
    InProgress,
    Completed,
}

/// How full the agent's context window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ContextUse {
    #[cfg_attr(test, ts(type = "number"))]
    pub used: u64,
    #[cfg_attr(test, ts(type = "number"))]
    pub size: u64,
}

/// A slash command the agent understands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AgentCommandInfo {
    pub name: String,
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub hint: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ConfigOption {
    pub id: String,
    pub name: String,
    pub category: ConfigCategory,
    pub value: String,
    pub choices: Vec<ConfigChoice>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ConfigCategory {
    Mode,
    Model,
    ThoughtLevel,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ConfigChoice {
    pub value: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub description: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_fact_replaces_and_a_missing_one_leaves_alone() {
        let mut facts = SessionFacts { model: Some("a".into()), plan: Some(vec![]), ..Default::default() };
        facts.merge(SessionFacts { model: Some("b".into()), ..Default::default() });
        assert_eq!(facts, SessionFacts { model: Some("b".into()), plan: Some(vec![]), ..Default::default() });
    }
}
