//! The agents that are offered now, and how windows change them while the server runs.
//!
//! Comes in: definitions, names and wishes to try an agent. Goes out: a new registry, and the new list to every window.
//! Kept out: files, and how a provider is made; the program brings both as [`AgentSetup`]. A provider that is no longer
//! offered lives as long as a session uses it.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use async_trait::async_trait;
use catalog::AgentsChange;
use protocol::{AgentConfig, AgentDefinition, CliType, ClientMessage, ProbeOutcome, ServerMessage};
use providers::{Provider, Registry};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{Hub, HubCore, Requester, lock};
use crate::error::ServiceError;

/// Agents that may be tried at once. Each is a process that starts; several at once would make each other slow.
const PROBES_MAX: usize = 2;

/// How the user's own agents are read and changed.
#[async_trait]
pub trait AgentSetup: Send + Sync + fmt::Debug {
    /// The agents as they are defined now. An agent whose definition has not changed keeps its provider.
    async fn read(&self) -> Result<AgentSet, ServiceError>;

    /// Changes one definition, unless something else was changed since `revision`.
    async fn change(&self, revision: &str, change: AgentsChange) -> Result<AgentSet, ServiceError>;

    /// Starts a process of its own for a moment; an agent in use does not notice.
    async fn probe(&self, target: ProbeTarget) -> Result<ProbeOutcome, ServiceError>;
}

/// All agents as they are defined.
#[derive(Debug)]
pub struct AgentSet {
    pub config: AgentConfig,
    pub registry: Registry,
    /// What is wrong with definitions, for every window that connects.
    pub notices: Vec<String>,
}

/// Which agent is tried.
#[derive(Clone, Debug)]
pub enum ProbeTarget {
    Known(CliType),
    Definition(AgentDefinition),
}

/// The agents that are offered, and those that are not but still run.
#[derive(Debug)]
pub(super) struct AgentRoster {
    offered: Mutex<Offered>,
    /// Missing where agents cannot be changed.
    setup: OnceLock<Arc<dyn AgentSetup>>,
    /// One change at a time, so that the last one saved is the one in effect.
    changes: Semaphore,
    probes: Semaphore,
}

#[derive(Debug, Default)]
struct Offered {
    registry: Arc<Registry>,
    /// One task per provider reports its state; cancelling the token ends it.
    reports: Vec<(Arc<dyn Provider>, CancellationToken)>,
    /// No longer offered. Whoever uses one keeps it alive.
    retired: Vec<Weak<dyn Provider>>,
    notices: Vec<String>,
}

impl Default for AgentRoster {
    fn default() -> Self {
        Self {
            offered: Mutex::default(),
            setup: OnceLock::new(),
            changes: Semaphore::new(1),
            probes: Semaphore::new(PROBES_MAX),
        }
    }
}

impl AgentRoster {
    pub(super) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&lock(&self.offered).registry)
    }

    pub(super) fn notices(&self) -> Vec<String> {
        lock(&self.offered).notices.clone()
    }

    /// Every provider that may have something running.
    pub(super) fn all(&self) -> Vec<Arc<dyn Provider>> {
        let offered = lock(&self.offered);
        let retired = offered.retired.iter().filter_map(Weak::upgrade);
        offered.registry.iter().cloned().chain(retired).collect()
    }

    fn setup(&self) -> Result<&Arc<dyn AgentSetup>, ServiceError> {
        let missing = ServiceError::Invalid { field: "type", reason: "agents cannot be changed in this server" };
        self.setup.get().ok_or(missing)
    }
}

impl Hub {
    /// From here on windows may change agents. `notices` are about the definitions that the registry was made of.
    pub fn let_agents_change(&self, setup: Arc<dyn AgentSetup>, notices: Vec<String>) {
        lock(&self.core.agents.offered).notices = notices;
        if self.core.agents.setup.set(setup).is_err() {
            tracing::error!("how agents are changed was set twice");
        }
    }

    /// The name people know an agent by.
    pub fn agent_name(&self, cli_type: &CliType) -> String {
        let registry = self.core.registry();
        registry.get(cli_type).map_or_else(|_| cli_type.to_string(), |provider| provider.name().to_owned())
    }
}

impl HubCore {
    pub(crate) async fn serve_agents(
        self: &Arc<Self>,
        message: ClientMessage,
        requester: &Requester,
    ) -> Result<(), ServiceError> {
        match message {
            ClientMessage::AgentConfig {} => self.change_agents(None, requester).await,
            ClientMessage::AgentSave { revision, replaces, definition } => {
                self.change_agents(Some((revision, AgentsChange::Save { replaces, definition })), requester).await
            }
            ClientMessage::AgentRemove { revision, name } => {
                self.change_agents(Some((revision, AgentsChange::Remove { name })), requester).await
            }
            ClientMessage::AgentProbe { cli_type } => self.probe(ProbeTarget::Known(cli_type), requester).await,
            ClientMessage::AgentProbeDefinition { definition } => {
                self.probe(ProbeTarget::Definition(definition), requester).await
            }
            _ => {
                debug_assert!(false, "not about agents");
                Ok(())
            }
        }
    }

    /// Makes a change, or takes over what was changed in the file. The window that asked gets the definitions; every
    /// window gets the new list.
    async fn change_agents(
        self: &Arc<Self>,
        change: Option<(String, AgentsChange)>,
        requester: &Requester,
    ) -> Result<(), ServiceError> {
        let setup = self.agents.setup()?;
        let _turn = self.agents.changes.acquire().await.map_err(|_| ServiceError::ShuttingDown)?;
        self.unless_stopping()?;
        let AgentSet { config, registry, notices } = match change {
            Some((revision, change)) => setup.change(&revision, change).await?,
            None => setup.read().await?,
        };
        lock(&self.agents.offered).notices = notices;
        let is_changed = self.install_agents(registry);
        requester.answer(ServerMessage::AgentConfig { config });
        if is_changed {
            self.broadcast(ServerMessage::AgentList { agents: self.agents().await });
        }
        Ok(())
    }

    async fn probe(&self, target: ProbeTarget, requester: &Requester) -> Result<(), ServiceError> {
        let setup = self.agents.setup()?;
        let probing = async {
            let _permit = self.agents.probes.acquire().await.map_err(|_| ServiceError::ShuttingDown)?;
            setup.probe(target).await
        };
        // A window that has gone and a server that ends wait for no agent: dropping the probe ends its process.
        let outcome = tokio::select! {
            () = self.stopping.cancelled() => return Err(ServiceError::ShuttingDown),
            () = requester.outbox.gone().cancelled() => return Ok(()),
            outcome = probing => outcome?,
        };
        requester.answer(ServerMessage::AgentProbed { outcome });
        Ok(())
    }

    /// Offers these agents from now on. What runs keeps running. False if they are the same as before.
    pub(super) fn install_agents(self: &Arc<Self>, registry: Registry) -> bool {
        let mut offered = lock(&self.agents.offered);
        let is_same = offered.registry.iter().count() == registry.iter().count()
            && offered.registry.iter().zip(registry.iter()).all(|(before, now)| Arc::ptr_eq(before, now));
        if is_same {
            return false;
        }
        let is_offered = |provider: &Arc<dyn Provider>| registry.iter().any(|now| Arc::ptr_eq(now, provider));
        for (provider, report) in
            offered.reports.extract_if(.., |(provider, _)| !is_offered(provider)).collect::<Vec<_>>()
        {
            report.cancel();
            offered.retired.push(Arc::downgrade(&provider));
        }
        for provider in registry.iter() {
            if !offered.reports.iter().any(|(known, _)| Arc::ptr_eq(known, provider)) {
                let stop = self.stop.child_token();
                let reporting = crate::supervisor::report_status(Arc::clone(self), Arc::clone(provider), stop.clone());
                self.tasks.spawn(reporting);
                offered.reports.push((Arc::clone(provider), stop));
            }
        }
        offered.retired.retain(|provider| provider.strong_count() > 0);
        offered.registry = Arc::new(registry);
        true
    }
}
