//! Whether Claude Code is there, and which version.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use protocol::{AgentInfo, AgentStatus, CliType};

use super::process::base_command;
use super::{ClaudeConfig, INSTALL_HINT, NAME};

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
        let command = base_command(config).map(|mut command| {
            command.env.extend(config.env.iter().cloned());
            command
        });
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

    async fn version(&self, path: &Path, command: &agent_process::AgentCommand) -> Option<String> {
        let changed = path.metadata().and_then(|file| file.modified()).ok();
        if let Some(known) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner)
            && known.path == path
            && known.changed == changed
        {
            return known.version.clone();
        }
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
        let version = words.split_whitespace().next().filter(|_| answer.status.success()).map(str::to_owned);
        let known = Known { path: path.to_owned(), changed, version: version.clone() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        version
    }
}
