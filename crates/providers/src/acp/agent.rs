//! Which ACP agents there are, and how each is started.

use std::path::PathBuf;

use agent_process::{AgentCommand, ParseError};
use protocol::{CliType, IdError};
use serde::Deserialize;

/// How to start one ACP agent, and what to call it.
#[derive(Clone, Debug)]
pub struct AcpAgent {
    pub cli_type: CliType,
    /// The name people know it by.
    pub name: String,
    pub command: AgentCommand,
    /// The command that installs it.
    pub install_hint: Option<String>,
    /// Known without asking the program.
    pub version: Option<String>,
}

/// Why an agent's definition cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AgentDefinitionError {
    #[error("not in the expected form: {0}")]
    Form(#[source] serde_json::Error),
    #[error("agent {key:?}: its name {reason}")]
    Key {
        key: String,
        #[source]
        reason: IdError,
    },
    #[error("agent {key:?}: the command is empty")]
    NoCommand { key: String },
    #[error("agents {first:?} and {second:?} would both be known as {cli_type}")]
    SameType { first: String, second: String, cli_type: CliType },
    #[error("the command line {line:?} cannot be read: {reason}")]
    CommandLine {
        line: String,
        #[source]
        reason: ParseError,
    },
    #[error("the agent type is not valid")]
    Type(#[from] IdError),
}

impl AcpAgent {
    /// Codex, started by a command line.
    pub fn codex(command_line: &str) -> Result<Self, AgentDefinitionError> {
        let command = AgentCommand::parse(command_line)
            .map_err(|reason| AgentDefinitionError::CommandLine { line: command_line.into(), reason })?;
        Ok(Self {
            cli_type: CliType::parse("codex")?,
            name: "Codex".into(),
            command: at_home(command),
            install_hint: Some("npm install -g @agentclientprotocol/codex-acp".into()),
            version: None,
        })
    }

    /// The built-in demo agent: this program, started once more.
    pub fn demo(program: PathBuf, version: &str) -> Result<Self, AgentDefinitionError> {
        Ok(Self {
            cli_type: CliType::parse("demo")?,
            name: "Demo agent".into(),
            command: at_home(AgentCommand::new(program).arg("demo-agent")),
            install_hint: None,
            version: Some(version.into()),
        })
    }
}

/// Reads `agents.json`, in the shape Zed's users know: `{"agent_servers": {"Gemini": {"command", "args", "env"}}}`.
/// Other settings in the file are not ours and are passed over.
pub fn parse_agents(text: &str) -> Result<Vec<AcpAgent>, AgentDefinitionError> {
    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        agent_servers: serde_json::Map<String, serde_json::Value>,
    }
    #[derive(Deserialize)]
    struct Server {
        command: String,
        #[serde(default)]
        args: Vec<String>,
        #[serde(default)]
        env: std::collections::BTreeMap<String, String>,
        #[serde(default)]
        install_hint: Option<String>,
    }
    let file: File = serde_json::from_str(text).map_err(AgentDefinitionError::Form)?;
    let mut agents: Vec<AcpAgent> = Vec::new();
    for (key, server) in file.agent_servers {
        let server: Server = serde_json::from_value(server)
            .map_err(|error| AgentDefinitionError::Form(serde::de::Error::custom(format!("agent {key:?}: {error}"))))?;
        if server.command.trim().is_empty() {
            return Err(AgentDefinitionError::NoCommand { key });
        }
        let cli_type =
            CliType::from_key(&key).map_err(|reason| AgentDefinitionError::Key { key: key.clone(), reason })?;
        if let Some(same) = agents.iter().find(|agent| agent.cli_type == cli_type) {
            return Err(AgentDefinitionError::SameType { first: same.name.clone(), second: key, cli_type });
        }
        let command = server
            .env
            .into_iter()
            .fold(AgentCommand::new(server.command).args(server.args), |command, (name, value)| {
                command.env(name, value)
            });
        agents.push(AcpAgent {
            cli_type,
            name: key.trim().to_owned(),
            command: at_home(command),
            install_hint: server.install_hint,
            version: None,
        });
    }
    Ok(agents)
}

/// One process serves sessions in many directories, so it starts in none of them.
fn at_home(command: AgentCommand) -> AgentCommand {
    match std::env::home_dir().filter(|home| home.is_dir()) {
        Some(home) => command.current_dir(home),
        None => command,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_agents_are_read_in_the_order_they_are_written() {
        let agents = parse_agents(
            r#"{"theme": "dark", "agent_servers": {
                "Gemini CLI": {"command": "gemini", "args": ["--acp"], "env": {"A": "1"}, "type": "custom"},
                "local": {"command": "/opt/agent"}}}"#,
        )
        .unwrap();
        let names: Vec<_> = agents.iter().map(|agent| (agent.cli_type.as_str(), agent.name.as_str())).collect();
        assert_eq!(names, [("Gemini-CLI", "Gemini CLI"), ("local", "local")]);
        assert_eq!(agents[0].command.args, ["--acp"]);
        assert_eq!(agents[0].command.env, [("A".into(), Some("1".into()))]);
        assert!(parse_agents("{}").unwrap().is_empty());
    }

    #[test]
    fn a_mistake_in_the_file_is_named() {
        let check = |text: &str, expected: &str| {
            let error = parse_agents(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("{", "not in the expected form");
        check(r#"{"agent_servers": {"Gemini": {"args": []}}}"#, r#"agent "Gemini": missing field `command`"#);
        check(r#"{"agent_servers": {"Gemini": {"command": " "}}}"#, r#"agent "Gemini": the command is empty"#);
        check(r#"{"agent_servers": {" ": {"command": "x"}}}"#, "must not be empty");
        check(
            r#"{"agent_servers": {"a b": {"command": "x"}, "a-b": {"command": "x"}}}"#,
            r#"agents "a b" and "a-b" would both be known as a-b"#,
        );
    }

    #[test]
    fn codex_is_started_by_the_line_the_user_gave() {
        let codex = AcpAgent::codex("npx codex-acp --flag 'a b'").unwrap();
        assert_eq!((codex.command.program.to_str(), codex.command.args.len()), (Some("npx"), 3));
        assert!(AcpAgent::codex("'").unwrap_err().to_string().contains("a quote is not closed"));
    }
}
