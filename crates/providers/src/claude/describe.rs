//! Whether Claude Code is there, and which version.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use agent_process::AgentCommand;
use protocol::{AgentInfo, AgentStatus, CliType};

use super::process::base_command;
use super::{ClaudeConfig, INSTALL_HINT, NAME};
use crate::provider::ProviderError;

/// The oldest version this was tested with. An older one is used too, for as long as it knows our options.
pub(super) const VERSION_MIN: &str = "2.1.197";

/// A program that does not know its version by then goes without.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// The version that was asked for last.
#[derive(Debug, Default)]
pub(super) struct Versions(Mutex<Option<Known>>);

/// Holds as long as the file is the same.
#[derive(Debug)]
struct Known {
    path: PathBuf,
    changed: Option<SystemTime>,
    version: Option<String>,
}

impl Versions {
    pub(super) async fn describe(&self, config: &ClaudeConfig, cli_type: CliType, status: AgentStatus) -> AgentInfo {
        let command = version_command(config);
        let found = command.as_ref().ok().and_then(|command| command.resolve().ok());
        let program = match (&found, &command) {
            (Some(path), _) => path.display().to_string(),
            (None, Ok(command)) => command.program.to_string_lossy().into_owned(),
            (None, Err(_)) => config.command.clone(),
        };
        let version = match (&found, &command) {
            (Some(path), Ok(command)) => self.version(path, command).await,
            _ => None,
        };
        AgentInfo {
            cli_type,
            name: NAME.into(),
            installed: found.is_some(),
            version,
            program: Some(program),
            install_hint: Some(INSTALL_HINT.into()),
            status,
        }
    }

    async fn version(&self, path: &Path, command: &AgentCommand) -> Option<String> {
        let changed = path.metadata().and_then(|file| file.modified()).ok();
        if let Some(known) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner)
            && known.path == path
            && known.changed == changed
        {
            return known.version.clone();
        }
        let version = ask_version(path, command).await?;
        let known = Known { path: path.to_owned(), changed, version: version.clone() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        version
    }
}

fn version_command(config: &ClaudeConfig) -> Result<AgentCommand, ProviderError> {
    let mut command = base_command(config)?;
    command.env.extend(config.env.iter().cloned());
    Ok(command)
}

/// The version of the program as it is now.
pub(super) async fn version(config: &ClaudeConfig) -> Option<String> {
    let command = version_command(config).ok()?;
    ask_version(&command.resolve().ok()?, &command).await?
}

/// None if it did not answer in time; none within if it does not say.
async fn ask_version(path: &Path, command: &AgentCommand) -> Option<Option<String>> {
    let mut ask = tokio::process::Command::new(path);
    ask.args(&command.args).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    for (name, value) in &command.env {
        match value {
            Some(value) => ask.env(name, value),
            None => ask.env_remove(name),
        };
    }
    let answer = tokio::time::timeout(VERSION_TIMEOUT, ask.output()).await.ok()?.ok()?;
    let words = String::from_utf8_lossy(&answer.stdout);
    Some(words.split_whitespace().next().filter(|_| answer.status.success()).map(str::to_owned))
}

/// Whether a version is older than [`VERSION_MIN`], as far as it can be told.
pub(super) fn is_too_old(version: &str) -> bool {
    let numbers = |version: &str| -> Option<Vec<u64>> {
        let core = version.split(['-', '+']).next()?;
        core.split('.').map(|number| number.parse().ok()).collect()
    };
    numbers(version).zip(numbers(VERSION_MIN)).is_some_and(|(found, needed)| found < needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(is_too_old("1.0.44") && is_too_old("2.1.19") && is_too_old("2.0"));
        assert!(!is_too_old(VERSION_MIN) && !is_too_old("2.1.325") && !is_too_old("10.0.0-beta.1"));
        assert!(!is_too_old("nightly"), "who says nothing is not accused");
    }
}
