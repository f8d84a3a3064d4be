//! Logging in to an agent, where that needs nobody at the keyboard; else the text that explains what to do.

use std::ffi::OsStr;

use agent_client_protocol_schema::v1 as acp;
use agent_process::AgentCommand;
use serde_json::Value;

use super::agent::AcpAgent;
use super::connection::Connection;
use super::settings::AcpSettings;
use crate::error::ProviderError;
use crate::provider::Login;

/// Logs in with a key from the environment. An error explains what the user has to do.
pub(crate) async fn log_in(
    connection: &Connection,
    agent: &AcpAgent,
    settings: &AcpSettings,
    reason: &str,
) -> Result<(), ProviderError> {
    let methods = &connection.capabilities().auth_methods;
    let required = |detail| ProviderError::LoginRequired { name: agent.name.clone(), detail };
    let Some(id) =
        methods.iter().find(|method| is_usable(method, &agent.command)).and_then(|method| method["id"].as_str())
    else {
        return Err(required(what_to_do(&agent.name, methods, reason)));
    };
    let request = acp::AuthenticateRequest::new(id.to_owned());
    match connection.rpc.call::<Value>("authenticate", &request, settings.session_timeout).await {
        Ok(_) => Ok(()),
        Err(error) => Err(required(format!("{}\n{error}", what_to_do(&agent.name, methods, reason)))),
    }
}

/// What logging in would take, without doing it.
pub(crate) fn outlook(connection: &Connection, agent: &AcpAgent, reason: &str) -> Login {
    let methods = &connection.capabilities().auth_methods;
    match methods.iter().find(|method| is_usable(method, &agent.command)) {
        Some(method) => {
            let name = method["name"].as_str().or(method["id"].as_str()).unwrap_or("a key");
            Login::Ready(Some(format!("{name}, from the environment")))
        }
        None => Login::Needed(what_to_do(&agent.name, methods, reason)),
    }
}

/// Whether an agent that does not run has a login, as far as its files show it. None where they do not: a login may be
/// in the system's keyring, or none be needed, if the agent is set up so.
pub(crate) fn evident(agent: &AcpAgent) -> Option<bool> {
    let home = agent.codex_home.as_deref()?;
    let has_key = ["CODEX_API_KEY", "OPENAI_API_KEY"].iter().any(|name| is_set(&agent.command, name));
    if has_key || home.join("auth.json").is_file() {
        return Some(true);
    }
    (!home.join("config.toml").exists()).then_some(false)
}

fn is_set(command: &AgentCommand, name: &str) -> bool {
    match command.env.iter().rev().find(|(set, _)| set == name) {
        Some((_, value)) => value.as_ref().is_some_and(|value| !value.is_empty()),
        None => std::env::var_os(name).is_some_and(|value| value != OsStr::new("")),
    }
}

/// A key that is there already. Everything else opens a browser or asks something.
fn is_usable(method: &Value, command: &AgentCommand) -> bool {
    let is_set = |name: &str| is_set(command, name);
    if method["type"] == "env_var" {
        let mut names =
            method["vars"].as_array().into_iter().flatten().filter_map(|variable| variable["name"].as_str());
        return names.clone().next().is_some() && names.all(is_set);
    }
    let wants_key = method["id"] == "api-key" || method["_meta"]["api-key"].is_object();
    wants_key && (is_set("CODEX_API_KEY") || is_set("OPENAI_API_KEY"))
}

fn what_to_do(name: &str, methods: &[Value], reason: &str) -> String {
    let mut text = format!("{name} wants a login ({}).", reason.trim_end_matches('.'));
    for method in methods {
        let title = method["name"].as_str().or(method["id"].as_str()).unwrap_or("login");
        match method["description"].as_str().filter(|description| !description.is_empty()) {
            Some(description) => text += &format!("\n{title}: {description}"),
            None => text += &format!("\n{title}"),
        }
    }
    text + "\nLog in with the agent's own program, or set its key, then try again."
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_method_is_used_only_with_a_key_that_is_there() {
        let command = AgentCommand::new("x")
            .env("MY_KEY", "k")
            .env("EMPTY", "")
            .env_remove("OPENAI_API_KEY")
            .env_remove("CODEX_API_KEY");
        let with = |name: &str| json!({"type": "env_var", "id": "k", "vars": [{"name": name}]});
        assert!(is_usable(&with("MY_KEY"), &command));
        assert!(!is_usable(&with("EMPTY"), &command));
        assert!(!is_usable(&json!({"type": "env_var", "id": "k", "vars": []}), &command));
        assert!(!is_usable(&json!({"id": "chatgpt", "name": "Log in with ChatGPT"}), &command));
        let api_key = json!({"id": "api-key", "_meta": {"api-key": {"provider": "openai"}}});
        assert!(!is_usable(&api_key, &command));
        assert!(is_usable(&api_key, &command.env("OPENAI_API_KEY", "k")));
    }

    #[test]
    fn a_login_of_codex_is_known_by_its_files() {
        let home = tempfile::tempdir().unwrap();
        let mut agent = AcpAgent::codex("codex-acp").unwrap();
        agent.codex_home = Some(home.path().to_owned());
        agent.command = agent.command.env_remove("OPENAI_API_KEY").env_remove("CODEX_API_KEY");
        assert_eq!(evident(&agent), Some(false));
        let with_key = AcpAgent { command: agent.command.clone().env("OPENAI_API_KEY", "k"), ..agent.clone() };
        assert_eq!(evident(&with_key), Some(true));
        std::fs::write(home.path().join("config.toml"), "").unwrap();
        assert_eq!(evident(&agent), None, "it may be set up to need none");
        std::fs::write(home.path().join("auth.json"), "{}").unwrap();
        assert_eq!(evident(&agent), Some(true));
        assert_eq!(evident(&AcpAgent { codex_home: None, ..agent }), None);
    }

    #[test]
    fn the_user_reads_what_the_agent_offers() {
        let text = what_to_do(
            "Codex",
            &[json!({"id": "a", "name": "API Key", "description": "Set OPENAI_API_KEY"})],
            "Authentication required",
        );
        assert!(
            text.starts_with("Codex wants a login (Authentication required).\nAPI Key: Set OPENAI_API_KEY\n"),
            "{text}"
        );
    }
}
