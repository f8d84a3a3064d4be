//! What the hub does with a project's directory besides starting agents in it: it is opened in an editor, its sessions begin with its
//! defaults, and directories that may become projects are suggested.

use std::path::PathBuf;

use protocol::{CliType, OpenTarget, Project, RecentDirectory, RecentSource, ServerSettings};
use providers::catch_panic::catch_panic;
use providers::{AgentSession, ProviderError};

use super::HubCore;
use crate::error::ServiceError;

impl HubCore {
    /// Opens a directory that is known here, never one that a window names.
    pub(crate) async fn open_in(&self, target: OpenTarget, directory: PathBuf) -> Result<(), ServiceError> {
        crate::opener::open(target, self.catalog.settings(), &directory, self.facts.has_display).await
    }

    pub(crate) async fn settings(&self) -> ServerSettings {
        let settings = self.catalog.settings();
        let described = tokio::task::spawn_blocking(move || crate::opener::describe(&settings)).await;
        described.unwrap_or_default()
    }

    /// Directories that the user worked in and that are no projects: those removed in this run, then those in the agents'
    /// own records, newest first.
    pub(crate) async fn recent_directories(&self) -> Vec<RecentDirectory> {
        let mut candidates: Vec<_> =
            self.catalog.removed_projects().into_iter().map(|path| (path, RecentSource::Removed)).collect();
        for provider in self.registry().iter() {
            let known = catch_panic(provider.recent_directories()).await.unwrap_or_default();
            candidates.extend(known.into_iter().map(|path| (path, RecentSource::Agent)));
        }
        let projects = self.catalog.projects();
        let looked = tokio::task::spawn_blocking(move || catalog::recent_directories(candidates, &projects)).await;
        looked.unwrap_or_default()
    }
}

/// Sets the options of a session that was just created to its project's defaults. The provider reports them like every other
/// option that the user sets, so they are saved with the session.
pub(super) async fn set_defaults(
    cli_type: &CliType,
    session: &dyn AgentSession,
    project: &Project,
) -> Result<(), ServiceError> {
    let Some(defaults) = project.defaults.as_ref().filter(|defaults| defaults.cli_type == *cli_type) else {
        return Ok(());
    };
    for (option, value) in &defaults.options {
        let set = catch_panic(session.set_option(option, value)).await.map_err(|panic| ServiceError::panic(&panic))?;
        set.map_err(|error| {
            let detail = format!(
                "the default {option} {value:?} of {} could not be set: {error}. Change it in the project's menu, under \
                 Defaults.",
                project.name
            );
            ProviderError::CreateFailed { detail }
        })?;
    }
    Ok(())
}
