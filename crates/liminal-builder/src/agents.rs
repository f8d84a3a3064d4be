//! Which agents are offered, in the order pickers show them.

mod probe;
mod setup;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_process::{AgentCommand, StopLadder};
use anyhow::Context;
use catalog::CatalogError;
use protocol::CliType;
use providers::acp::{AcpAgent, AcpProvider, AcpSettings, ConfiguredAgents, parse_agents};
use providers::claude::{ClaudeConfig, ClaudeProvider};
use providers::{Provider, Registry};

use crate::settings::Agents;

pub(crate) use probe::advice;
pub(crate) use setup::FileAgents;

/// A wrong command line is an error at the start, for the user to fix. A wrong entry of `agents.json` disables that
/// agent only, an unreadable file all of them, and either is reported in `notices`. Nothing is started here. `file` is
/// the text of `agents.json`, if there is one.
pub(crate) fn registry(
    settings: &Agents,
    data_dir: &Path,
    file: Result<Option<String>, CatalogError>,
    notices: &mut Vec<String>,
) -> anyhow::Result<Registry> {
    let built_in = BuiltIn::new(settings, data_dir)?;
    let agents = usable(configured(file), notices);
    let acp = acp_settings(settings);
    Ok(built_in.registry_with(agents.into_iter().map(|agent| provider(agent, &acp))))
}

/// The agents that are there without being configured.
#[derive(Debug)]
struct BuiltIn {
    claude: Arc<dyn Provider>,
    codex: Arc<dyn Provider>,
    demo: Arc<dyn Provider>,
}

impl BuiltIn {
    fn new(settings: &Agents, data_dir: &Path) -> anyhow::Result<Self> {
        let acp = acp_settings(settings);
        let codex = AcpAgent::codex(&settings.codex_acp_cmd).context("--codex-acp-cmd (CODEX_ACP_CMD)")?;
        Ok(Self {
            claude: Arc::new(ClaudeProvider::new(claude_config(settings))?),
            codex: provider(codex, &acp),
            demo: provider(demo(data_dir)?, &acp),
        })
    }

    /// In the order of the picker: the demo agent is last.
    fn registry_with(&self, configured: impl Iterator<Item = Arc<dyn Provider>>) -> Registry {
        let first = [Arc::clone(&self.claude), Arc::clone(&self.codex)];
        Registry::new(first.into_iter().chain(configured).chain([Arc::clone(&self.demo)]))
    }
}

fn acp_settings(settings: &Agents) -> AcpSettings {
    AcpSettings {
        start_timeout: Duration::from_millis(settings.acp_start_timeout_ms),
        silence_after: Duration::from_millis(settings.acp_prompt_timeout_ms),
        // Together with the time to cancel its turns, less than the stop time of the server.
        stop: StopLadder { grace_eof: Duration::from_secs(3), grace_term: Duration::from_millis(1_500) },
        idle: idle(settings),
        ..AcpSettings::default()
    }
}

fn provider(agent: AcpAgent, acp: &AcpSettings) -> Arc<dyn Provider> {
    Arc::new(AcpProvider::new(agent, acp.clone()))
}

/// The agents that can be used; what is wrong with the others joins `notices`.
fn usable(configured: anyhow::Result<ConfiguredAgents>, notices: &mut Vec<String>) -> Vec<AcpAgent> {
    match configured {
        Ok(configured) => {
            for mistake in configured.mistakes {
                tracing::warn!("agents.json: {mistake}");
                notices.push(format!("An agent of agents.json is not offered: {mistake}."));
            }
            configured.agents
        }
        Err(error) => {
            tracing::warn!("agents.json: {error:#}");
            notices.push(format!("The agents of agents.json are not offered: {error:#}."));
            Vec::new()
        }
    }
}

/// Last in the list, and always there: this program itself, with its sessions beside ours.
fn demo(data_dir: &Path) -> anyhow::Result<AcpAgent> {
    let program = std::env::current_exe().context("where is this program?")?;
    let mut agent = AcpAgent::demo(program, env!("CARGO_PKG_VERSION"))?;
    agent.command = agent.command.env("LIMINAL_DATA_DIR", data_dir);
    Ok(agent)
}

fn claude_config(settings: &Agents) -> ClaudeConfig {
    ClaudeConfig {
        command: settings.claude_cmd.clone(),
        start_timeout: Duration::from_millis(settings.acp_start_timeout_ms),
        prompt_timeout: Duration::from_millis(settings.acp_prompt_timeout_ms),
        idle: idle(settings),
        ..ClaudeConfig::default()
    }
}

fn idle(settings: &Agents) -> Option<Duration> {
    const SECONDS_PER_MINUTE: u64 = 60;
    let seconds = settings.idle_minutes.saturating_mul(SECONDS_PER_MINUTE);
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

fn configured(file: Result<Option<String>, CatalogError>) -> anyhow::Result<ConfiguredAgents> {
    let Some(text) = file? else { return Ok(ConfiguredAgents::default()) };
    Ok(parse_agents(&text)?)
}

/// The command that starts an agent manually.
pub(crate) fn command_line(
    settings: &Agents,
    file: Result<Option<String>, CatalogError>,
    cli_type: &CliType,
) -> Option<String> {
    let configured = configured(file).unwrap_or_default().agents;
    let command = match configured.into_iter().find(|agent| agent.cli_type == *cli_type) {
        Some(agent) => agent.command,
        None if cli_type.as_str() == "claude-code" => return Some(settings.claude_cmd.clone()),
        None if cli_type.as_str() == "codex" => return Some(settings.codex_acp_cmd.clone()),
        None => return None,
    };
    Some(line_of(&command))
}

/// As a person types it in a terminal.
fn line_of(command: &AgentCommand) -> String {
    let args = std::iter::once(&command.program).chain(&command.args);
    let quoted = args.map(|arg| {
        let arg = arg.to_string_lossy();
        match arg.contains(|letter: char| !letter.is_ascii_alphanumeric() && !"-_./:=@+,%".contains(letter)) {
            true => format!("'{}'", arg.replace('\'', r"'\''")),
            false => arg.into_owned(),
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}
