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
    /// Where Codex keeps its login; of other agents it is not known.
    pub codex_home: Option<PathBuf>,
}

/// The agents of `agents.json`, and what is wrong with the entries that are none.
#[derive(Debug, Default)]
pub struct ConfiguredAgents {
    pub agents: Vec<AcpAgent>,
    /// One for each entry that cannot be used; each names its entry.
    pub mistakes: Vec<AgentDefinitionError>,
}

/// Why an agent's definition cannot be used, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum AgentDefinitionError {
    #[error("it is not in the expected form, {{\"agent_servers\": {{\"Name\": {{\"command\": \"…\"}}}}}}: {0}")]
    Form(serde_json::Error),
    #[error(
        "agent {key:?}: {reason}; it needs \"command\", a text, and may have \"args\", a list of texts, and \"env\", texts by name"
    )]
    Entry { key: String, reason: serde_json::Error },
    #[error("agent {key:?}: its name {reason}; give it another one")]
    Key { key: String, reason: IdError },
    #[error("agent {key:?}: the command is empty; name the program that starts it")]
    NoCommand { key: String },
    #[error("agents {first:?} and {key:?} would both be known as {cli_type}; give the second another name")]
    SameType { first: String, key: String, cli_type: CliType },
    #[error("agent {key:?}: the built-in agent {name} has that name; {advice}")]
    BuiltIn { key: String, name: &'static str, advice: String },
    #[error("the command line {line:?} cannot be read: {reason}")]
    CommandLine { line: String, reason: ParseError },
    #[error("the agent type is not valid")]
    Type(#[from] IdError),
}

/// Type and name of each agent that is there without being configured, and whether an entry of that very type may take
/// its place.
const BUILT_IN: [(&str, &str, bool); 3] =
    [("claude-code", "Claude Code", true), ("codex", "Codex", true), ("demo", "Demo agent", false)];

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
            codex_home: std::env::var_os("CODEX_HOME")
                .filter(|home| !home.is_empty())
                .map(PathBuf::from)
                .or_else(|| Some(std::env::home_dir()?.join(".codex"))),
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
            codex_home: None,
        })
    }
}

/// Reads `agents.json`, in the shape Zed's users know: `{"agent_servers": {"Gemini": {"command", "args", "env"}}}`.
/// Other settings in the file are not ours and are passed over. A wrong entry costs that entry alone.
pub fn parse_agents(text: &str) -> Result<ConfiguredAgents, AgentDefinitionError> {
    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        agent_servers: serde_json::Map<String, serde_json::Value>,
    }
    let file: File = serde_json::from_str(text).map_err(AgentDefinitionError::Form)?;
    let mut configured = ConfiguredAgents::default();
    for (key, entry) in file.agent_servers {
        match read_entry(key, entry, &configured.agents) {
            Ok(agent) => configured.agents.push(agent),
            Err(mistake) => configured.mistakes.push(mistake),
        }
    }
    Ok(configured)
}

fn read_entry(key: String, entry: serde_json::Value, known: &[AcpAgent]) -> Result<AcpAgent, AgentDefinitionError> {
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
    let server: Server = match serde_json::from_value(entry) {
        Ok(server) => server,
        Err(reason) => return Err(AgentDefinitionError::Entry { key, reason }),
    };
    if server.command.trim().is_empty() {
        return Err(AgentDefinitionError::NoCommand { key });
    }
    let cli_type = match CliType::from_key(&key) {
        Ok(cli_type) => cli_type,
        Err(reason) => return Err(AgentDefinitionError::Key { key, reason }),
    };
    let is_called = |name: &str| cli_type.as_str().eq_ignore_ascii_case(&name.replace(' ', "-"));
    let built_in = BUILT_IN.iter().find(|(own, name, _)| is_called(own) || is_called(name));
    match built_in {
        Some((own, _, true)) if cli_type.as_str() == *own => {}
        Some((own, name, is_replaceable)) => {
            let advice = match is_replaceable {
                true => format!("call yours {own:?} to use it instead of that one, or anything else to have both"),
                false => "give yours another one".to_owned(),
            };
            return Err(AgentDefinitionError::BuiltIn { key, name, advice });
        }
        None => {}
    }
    if let Some(same) = known.iter().find(|agent| agent.cli_type.as_str().eq_ignore_ascii_case(cli_type.as_str())) {
        return Err(AgentDefinitionError::SameType { first: same.name.clone(), key, cli_type });
    }
    let command = AgentCommand::new(server.command).args(server.args);
    let command = server.env.into_iter().fold(command, |command, (name, value)| command.env(name, value));
    Ok(AcpAgent {
        cli_type,
        name: key.trim().to_owned(),
        command: at_home(command),
        install_hint: server.install_hint,
        version: None,
        codex_home: None,
    })
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
        let read = parse_agents(
            r#"{"theme": "dark", "agent_servers": {
                "Gemini CLI": {"command": "gemini", "args": ["--acp"], "env": {"A": "1"}, "type": "custom"},
                "local": {"command": "/opt/agent"}, "codex": {"command": "my-codex"}}}"#,
        )
        .unwrap();
        let names: Vec<_> = read.agents.iter().map(|agent| (agent.cli_type.as_str(), agent.name.as_str())).collect();
        assert_eq!(names, [("Gemini-CLI", "Gemini CLI"), ("local", "local"), ("codex", "codex")]);
        assert_eq!(read.agents[0].command.args, ["--acp"]);
        assert_eq!(read.agents[0].command.env, [("A".into(), Some("1".into()))]);
        assert!(read.mistakes.is_empty() && parse_agents("{}").unwrap().agents.is_empty());
    }

    #[test]
    fn a_mistake_is_named_with_what_to_do_and_costs_its_own_entry_alone() {
        let check = |entries: &str, expected: &[&str]| {
            let text = format!(
                r#"{{"agent_servers": {{"good": {{"command": "g"}}, {entries}, "fine": {{"command": "f"}}}}}}"#
            );
            let read = parse_agents(&text).unwrap();
            let names: Vec<_> = read.agents.iter().map(|agent| agent.name.as_str()).collect();
            assert_eq!(names, ["good", "fine"], "{entries}");
            let [mistake] = &read.mistakes[..] else { panic!("{:?}", read.mistakes) };
            let message = mistake.to_string();
            assert!(expected.iter().all(|expected| message.contains(expected)), "{message}");
            assert!(std::error::Error::source(mistake).is_none(), "reported once: {message}");
        };
        check(r#""Gemini": {"args": []}"#, &[r#"agent "Gemini": missing field `command`"#, r#"it needs "command""#]);
        check(r#""Gemini": {"command": "g", "args": "--acp"}"#, &[r#"agent "Gemini": "#, "a list of texts"]);
        check(r#""Gemini": "gemini""#, &[r#"agent "Gemini": "#, "it needs"]);
        check(r#""Gemini": {"command": " "}"#, &[r#"agent "Gemini": the command is empty"#]);
        check(r#"" ": {"command": "x"}"#, &["must not be empty", "another one"]);
    }

    #[test]
    fn a_file_that_is_no_json_is_named() {
        let message = parse_agents("{").unwrap_err().to_string();
        assert!(
            message.starts_with("it is not in the expected form, {\"agent_servers\"") && message.contains("line 1"),
            "{message}"
        );
    }

    #[test]
    fn a_name_is_given_once() {
        let mistake = |entries: &str| {
            let read = parse_agents(&format!(r#"{{"agent_servers": {{{entries}}}}}"#)).unwrap();
            read.mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        let both = mistake(r#""a b": {"command": "x"}, "A-b": {"command": "x"}"#);
        assert!(both.starts_with(r#"agents "a b" and "A-b" would both be known as A-b"#), "{both}");
        for key in ["demo", "Demo agent"] {
            let message = mistake(&format!(r#"{key:?}: {{"command": "x"}}"#));
            assert!(
                message.contains("the built-in agent Demo agent has that name; give yours another one"),
                "{message}"
            );
        }
        let message = mistake(r#""Claude Code": {"command": "x"}"#);
        assert!(message.contains(r#"call yours "claude-code" to use it instead"#), "{message}");
        assert_eq!(mistake(r#""claude-code": {"command": "x"}, "codex": {"command": "y"}"#), "");
    }

    #[test]
    fn codex_is_started_by_the_line_the_user_gave() {
        let codex = AcpAgent::codex("npx codex-acp --flag 'a b'").unwrap();
        assert_eq!((codex.command.program.to_str(), codex.command.args.len()), (Some("npx"), 3));
        assert!(AcpAgent::codex("'").unwrap_err().to_string().contains("a quote is not closed"));
    }
}
