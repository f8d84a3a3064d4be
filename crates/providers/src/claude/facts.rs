//! What Claude Code reports beside the conversation: its commands, models and modes, the plan, how full its context is.

use protocol::SessionFacts;
use protocol::facts::{
    AgentCommandInfo, ConfigCategory, ConfigChoice, ConfigOption, ContextUse, PlanEntry, PlanStatus,
};
use serde_json::{Map, Value};

use crate::provider::Login;

pub(super) const MODE: &str = "mode";
pub(super) const MODEL: &str = "model";
pub(super) const PLAN: &str = "plan";
const MODEL_DEFAULT: &str = "default";

/// Permission modes that may be set on a running session, named as in the program's own menu. The one
/// that skips all checks is not among them: it has to be given when the program is started.
const MODES: [(&str, &str, &str); 5] = [
    ("default", "Default", "Asks before edits and commands"),
    ("acceptEdits", "Accept edits", "Edits files without asking"),
    (PLAN, "Plan", "Reads and plans, changes nothing"),
    ("auto", "Auto", "Decides by itself what is safe"),
    ("dontAsk", "Don't ask", "Refuses what is not allowed already"),
];

/// The answer to `initialize`.
pub(super) fn initialized(answer: &Value) -> SessionFacts {
    let mode = answer["current_permission_mode"].as_str().unwrap_or("default");
    let mut options = vec![mode_option(mode)];
    options.extend(model_option(answer));
    SessionFacts {
        commands: Some(commands(answer)),
        options: Some(options),
        model: default_model(answer),
        ..SessionFacts::default()
    }
}

/// Whose account it is, from the answer to `initialize`. Only a plain "none" means that there is none: an account of a
/// kind we do not know is the program's business.
pub(super) fn login(account: &Value) -> Login {
    let field = |name: &str| account[name].as_str().filter(|value| !value.is_empty() && *value != "none");
    let paid = field("subscriptionType").or(field("organization"));
    match (field("email"), field("apiKeySource").or(field("tokenSource"))) {
        (Some(email), _) => Login::Ready(Some(match paid {
            Some(paid) => format!("{email}, {paid}"),
            None => email.to_owned(),
        })),
        (None, Some(source)) => Login::Ready(Some(source.to_owned())),
        (None, None) if account["tokenSource"] == "none" => {
            Login::Needed("Run `claude` in a terminal and log in with /login.".to_owned())
        }
        (None, None) => Login::Unknown,
    }
}

/// What the default stands for, where the program reports it.
fn default_model(answer: &Value) -> Option<String> {
    let mut models = answer["models"].as_array()?.iter();
    let default = models.find(|model| model["value"] == MODEL_DEFAULT)?;
    default["resolvedModel"].as_str().map(str::to_owned)
}

fn commands(answer: &Value) -> Vec<AgentCommandInfo> {
    let commands = answer["commands"].as_array().into_iter().flatten();
    commands
        .filter_map(|command| {
            Some(AgentCommandInfo {
                name: command["name"].as_str()?.into(),
                description: command["description"].as_str().unwrap_or_default().into(),
                hint: command["argumentHint"].as_str().filter(|hint| !hint.is_empty()).map(str::to_owned),
            })
        })
        .collect()
}

pub(super) fn mode_option(mode: &str) -> ConfigOption {
    let mut choices: Vec<_> = MODES
        .iter()
        .map(|(value, name, description)| ConfigChoice {
            value: (*value).into(),
            name: (*name).into(),
            description: Some((*description).into()),
        })
        .collect();
    if !choices.iter().any(|choice| choice.value == mode) {
        choices.push(ConfigChoice { value: mode.into(), name: mode.into(), description: None });
    }
    ConfigOption { id: MODE.into(), name: "Mode".into(), category: ConfigCategory::Mode, value: mode.into(), choices }
}

fn model_option(answer: &Value) -> Option<ConfigOption> {
    let models = answer["models"].as_array()?;
    let choices: Vec<_> = models
        .iter()
        .filter_map(|model| {
            let value = model["value"].as_str()?;
            Some(ConfigChoice {
                value: value.into(),
                name: model["displayName"].as_str().unwrap_or(value).into(),
                description: model["description"].as_str().map(str::to_owned),
            })
        })
        .collect();
    let value = choices.first()?.value.clone();
    let value =
        choices.iter().find(|choice| choice.value == MODEL_DEFAULT).map_or(value, |choice| choice.value.clone());
    Some(ConfigOption { id: MODEL.into(), name: "Model".into(), category: ConfigCategory::Model, value, choices })
}

/// The to-do list, where the agent keeps one.
pub(super) fn plan(tool: &str, input: &Map<String, Value>) -> Option<Vec<PlanEntry>> {
    if tool != "TodoWrite" {
        return None;
    }
    let entries = input.get("todos")?.as_array()?.iter().filter_map(|todo| {
        Some(PlanEntry {
            content: todo["content"].as_str()?.into(),
            status: match todo["status"].as_str()? {
                "completed" => PlanStatus::Completed,
                "in_progress" => PlanStatus::InProgress,
                _ => PlanStatus::Pending,
            },
        })
    });
    Some(entries.collect())
}

/// How full the context is, after a turn. `models` is the program's record of each model it used.
pub(super) fn context(used: u64, model: Option<&str>, models: &Map<String, Value>) -> Option<ContextUse> {
    let record = model.and_then(|model| models.get(model)).or_else(|| models.values().next())?;
    let size = record["contextWindow"].as_u64()?;
    (used > 0 && size > 0).then_some(ContextUse { used, size })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_account_is_reported_as_the_program_reports_it() {
        let ready = |account: &str| Login::Ready(Some(account.into()));
        assert_eq!(login(&json!({"email": "a@b.c", "subscriptionType": "max"})), ready("a@b.c, max"));
        assert_eq!(
            login(&json!({"apiKeySource": "ANTHROPIC_API_KEY", "tokenSource": "none"})),
            ready("ANTHROPIC_API_KEY")
        );
        assert!(matches!(login(&json!({"tokenSource": "none", "apiProvider": "firstParty"})), Login::Needed(_)));
        assert_eq!(login(&json!({"apiProvider": "bedrock"})), Login::Unknown);
        assert_eq!(login(&Value::Null), Login::Unknown);
    }
}
