//! The user's own agents while the server runs: read from `agents.json`, changed there, and made into providers.
//!
//! Comes in: one change, with the revision of the file it was made for. Goes out: the definitions for Settings and the
//! registry for the hub. An agent whose definition has not changed keeps its provider, and with it its process. A file
//! that cannot be used changes nothing: what was offered stays offered.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use async_trait::async_trait;
use catalog::{AgentsChange, AgentsChangeError, AgentsText, Catalog, CatalogError};
use protocol::{AgentConfig, AgentDefinition, AgentEntry, CliType, ProbeOutcome};
use providers::acp::{AcpAgent, AgentDefinitionError, ConfiguredAgents, parse_agents};
use providers::{Provider, ProviderError, Registry};
use sessions::{AgentSet, AgentSetup, ProbeTarget, ServiceError};

use super::{BuiltIn, acp_settings, command_line, line_of, probe, provider, registry, usable};
use crate::settings::Agents;

/// What an agent is called while it has no name.
const NAMELESS: &str = "This agent";

/// The agents of this server's start.
#[derive(Debug)]
pub(crate) struct FileAgents {
    pub(crate) setup: FileSetup,
    /// What is wrong with definitions.
    pub(crate) notices: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct FileSetup {
    settings: Agents,
    catalog: Catalog,
    built_in: BuiltIn,
    /// The configured agents that are offered, each with what it was made of.
    offered: Mutex<Vec<(AcpAgent, Arc<dyn Provider>)>>,
}

impl FileAgents {
    /// Starts no agent. A wrong command line of a built-in agent is an error.
    pub(crate) fn open(settings: &Agents, catalog: Catalog) -> anyhow::Result<Self> {
        let built_in = BuiltIn::new(settings, catalog.dir())?;
        let mut notices = Vec::new();
        let agents = usable(super::configured(catalog.agents_file()), &mut notices);
        let setup = FileSetup { settings: settings.clone(), catalog, built_in, offered: Mutex::default() };
        setup.offer(agents);
        Ok(Self { setup, notices })
    }

    pub(crate) fn registry(&self) -> Registry {
        self.setup.registry()
    }
}

impl FileSetup {
    fn registry(&self) -> Registry {
        let offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        self.built_in.registry_with(offered.iter().map(|(_, provider)| Arc::clone(provider)))
    }

    fn offer(&self, agents: Vec<AcpAgent>) {
        let acp = acp_settings(&self.settings);
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *offered);
        *offered = agents
            .into_iter()
            .map(|agent| match before.iter().find(|(known, _)| is_same(known, &agent)) {
                Some((_, provider)) => (agent, Arc::clone(provider)),
                None => (agent.clone(), provider(agent, &acp)),
            })
            .collect();
    }

    async fn file(&self) -> Result<AgentsText, CatalogError> {
        let catalog = self.catalog.clone();
        let read = tokio::task::spawn_blocking(move || catalog.agents_file()).await;
        read.map_err(|_| CatalogError::Stopped)?.map(AgentsText::new)
    }

    async fn replace(&self, before: AgentsText, after: AgentsText) -> Result<(), CatalogError> {
        let catalog = self.catalog.clone();
        let replace = move || catalog.replace_agents_file(&before, &after);
        tokio::task::spawn_blocking(replace).await.map_err(|_| CatalogError::Stopped)?
    }

    /// What the file says, taken into effect.
    fn set_of(&self, file: Result<AgentsText, CatalogError>) -> AgentSet {
        let revision = file.as_ref().map(AgentsText::revision).unwrap_or_default();
        let mut notices = Vec::new();
        let (problem, entries) = match self.read_entries(file, &mut notices) {
            Ok(entries) => (None, entries),
            Err(error) => {
                notices.push(format!("agents.json cannot be used: {error:#}."));
                (Some(format!("{error:#}")), Vec::new())
            }
        };
        let file = self.catalog.agents_file_path().display().to_string();
        let config = AgentConfig { file, revision, problem, agents: self.with_built_in(entries) };
        AgentSet { config, registry: self.registry(), notices }
    }

    fn read_entries(
        &self,
        file: Result<AgentsText, CatalogError>,
        notices: &mut Vec<String>,
    ) -> anyhow::Result<Vec<AgentEntry>> {
        let file = file?;
        let entries = file.entries().map_err(form)?;
        let configured = parse(&file)?;
        let entries = entries.into_iter().map(|(name, definition)| entry(name, definition, &configured)).collect();
        self.offer(usable(Ok(configured), notices));
        Ok(entries)
    }

    /// In the order of the picker: the demo agent is last.
    fn with_built_in(&self, configured: Vec<AgentEntry>) -> Vec<AgentEntry> {
        let registry = self.registry();
        let BuiltIn { claude, codex, demo } = &self.built_in;
        let entry = |provider: &Arc<dyn Provider>, command: String, variable: Option<&str>| AgentEntry::BuiltIn {
            cli_type: provider.cli_type().clone(),
            name: provider.name().to_owned(),
            command,
            variable: variable.map(ToOwned::to_owned),
            is_replaced: !registry.iter().any(|offered| Arc::ptr_eq(offered, provider)),
        };
        let Agents { claude_cmd, codex_acp_cmd, .. } = &self.settings;
        let first = [
            entry(claude, claude_cmd.clone(), Some("CLAUDE_CMD")),
            entry(codex, codex_acp_cmd.clone(), Some("CODEX_ACP_CMD")),
        ];
        let last = entry(demo, "liminal-builder demo-agent".into(), None);
        first.into_iter().chain(configured).chain([last]).collect()
    }

    fn unusable(&self, reason: String) -> CatalogError {
        CatalogError::AgentsFileUnusable { path: self.catalog.agents_file_path(), reason }
    }
}

#[async_trait]
impl AgentSetup for FileSetup {
    async fn read(&self) -> Result<AgentSet, ServiceError> {
        Ok(self.set_of(self.file().await))
    }

    async fn change(&self, revision: &str, change: AgentsChange) -> Result<AgentSet, ServiceError> {
        let before = self.file().await?;
        let changed = || CatalogError::AgentsFileChanged { path: self.catalog.agents_file_path() };
        if before.revision() != revision {
            return Err(changed().into());
        }
        let known = parse(&before).map_err(|error| self.unusable(format!("{error:#}")))?;
        let after = before.with(&change).map_err(|error| match error {
            AgentsChangeError::NameTaken(name) => invalid_name(format!("There is an agent {name} already.")),
            AgentsChangeError::NotFound(_) => changed().into(),
            AgentsChangeError::Form(reason) => self.unusable(reason).into(),
        })?;
        check(&change, &known, &parse(&after).map_err(|error| self.unusable(format!("{error:#}")))?)?;
        self.replace(before, after.clone()).await?;
        Ok(self.set_of(Ok(after)))
    }

    async fn probe(&self, target: ProbeTarget) -> Result<ProbeOutcome, ServiceError> {
        // An empty directory to work in, which is also where the demo agent keeps its sessions.
        let scratch = tempfile::tempdir().map_err(|error| internal(format!("no temporary directory: {error}")))?;
        let (provider, line) = match target {
            ProbeTarget::Known(cli_type) => {
                let file = self.file().await.map(|file| file.as_deref().map(ToOwned::to_owned));
                let line = command_line(&self.settings, file.clone(), &cli_type).unwrap_or_default();
                let registry = registry(&self.settings, scratch.path(), file, &mut Vec::new());
                let registry = registry.map_err(|error| internal(format!("{error:#}")))?;
                (Arc::clone(registry.get(&cli_type)?), line)
            }
            ProbeTarget::Definition(definition) => {
                let agent = unsaved(definition).map_err(|error| internal(format!("{error:#}")))?;
                let line = line_of(&agent.command);
                (provider(agent, &acp_settings(&self.settings)), line)
            }
        };
        Ok(probe::probe(provider, scratch.path(), &line).await)
    }
}

fn parse(file: &AgentsText) -> anyhow::Result<ConfiguredAgents> {
    match file.as_deref().filter(|text| !text.trim().is_empty()) {
        Some(text) => Ok(parse_agents(text)?),
        None => Ok(ConfiguredAgents::default()),
    }
}

fn form(error: AgentsChangeError) -> anyhow::Error {
    anyhow::anyhow!(
        "it is not in the expected form, {{\"agent_servers\": {{\"Name\": {{\"command\": \"…\"}}}}}}: {error}"
    )
}

fn entry(name: String, definition: Option<AgentDefinition>, configured: &ConfiguredAgents) -> AgentEntry {
    let mistake = configured.mistakes.iter().find(|mistake| key_of(mistake) == Some(&name)).map(ToString::to_string);
    match (mistake, definition, CliType::from_key(&name)) {
        (None, Some(definition), Ok(cli_type)) => AgentEntry::Configured { cli_type, definition },
        (mistake, ..) => {
            let reason = mistake.unwrap_or_else(|| format!("agent {name:?} is not in the expected form"));
            AgentEntry::Unusable { name, reason }
        }
    }
}

/// The entry that a mistake is about.
fn key_of(mistake: &AgentDefinitionError) -> Option<&String> {
    match mistake {
        AgentDefinitionError::Entry { key, .. }
        | AgentDefinitionError::Key { key, .. }
        | AgentDefinitionError::NoCommand { key }
        | AgentDefinitionError::SameType { key, .. }
        | AgentDefinitionError::BuiltIn { key, .. } => Some(key),
        AgentDefinitionError::Form(_) | AgentDefinitionError::CommandLine { .. } | AgentDefinitionError::Type(_) => {
            None
        }
    }
}

/// A change must not make a mistake that was not there before, in its own entry or in another.
fn check(change: &AgentsChange, before: &ConfiguredAgents, after: &ConfiguredAgents) -> Result<(), ServiceError> {
    let AgentsChange::Save { replaces, definition } = change else { return Ok(()) };
    let name = definition.name.trim();
    // A file may name a built-in agent to replace it. Whoever types its name here wants an agent beside it.
    let is_new_name = replaces.as_deref() != Some(name);
    let built_in = [("claude-code", "Claude Code"), ("codex", "Codex")];
    if let Some((_, built_in)) = built_in.iter().find(|(cli_type, _)| is_new_name && *cli_type == name) {
        return Err(invalid_name(format!("The built-in agent {built_in} has that name. Choose another one.")));
    }
    let is_known = |key: &String| key != name && before.mistakes.iter().any(|known| key_of(known) == Some(key));
    let mistake = after.mistakes.iter().find(|mistake| !key_of(mistake).is_some_and(is_known));
    Err(match mistake {
        None => return Ok(()),
        Some(AgentDefinitionError::BuiltIn { name, .. }) => {
            invalid_name(format!("The built-in agent {name} has that name. Choose another one."))
        }
        Some(AgentDefinitionError::SameType { first, key, .. }) => {
            let other = if key == name { first } else { key };
            invalid_name(format!("The name is too much like that of {other}. Choose another one."))
        }
        Some(AgentDefinitionError::Key { reason, .. }) => invalid_name(format!("The name {reason}.")),
        Some(mistake) => ServiceError::AgentInvalid {
            field: "definition.command",
            sentence: format!("It cannot be used: {mistake}."),
        },
    })
}

fn invalid_name(sentence: String) -> ServiceError {
    ServiceError::AgentInvalid { field: "definition.name", sentence }
}

fn internal(detail: String) -> ServiceError {
    ProviderError::Internal(detail).into()
}

/// An agent that need not have a name, or may have one that is taken.
fn unsaved(mut definition: AgentDefinition) -> anyhow::Result<AcpAgent> {
    let name = std::mem::replace(&mut definition.name, NAMELESS.to_owned());
    let text = AgentsText::default().with(&AgentsChange::Save { replaces: None, definition })?;
    let mut configured = parse(&text)?;
    let mut agent = configured.agents.pop().context("the definition cannot be used")?;
    if !name.trim().is_empty() {
        name.trim().clone_into(&mut agent.name);
    }
    Ok(agent)
}

fn is_same(one: &AcpAgent, other: &AcpAgent) -> bool {
    let parts = |agent: &AcpAgent| {
        let command = agent.command.clone();
        (
            agent.cli_type.clone(),
            agent.name.clone(),
            command.program,
            command.args,
            command.env,
            agent.install_hint.clone(),
        )
    };
    parts(one) == parts(other)
}
