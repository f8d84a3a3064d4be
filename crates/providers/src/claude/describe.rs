//! Whether Claude Code is there, which version, and whether it is logged in.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use agent_process::AgentCommand;
use protocol::{AgentInfo, AgentStatus, CliType};

use super::process::base_command;
use super::{ClaudeConfig, INSTALL_HINT, NAME};
use crate::provider::ProviderError;

/// The oldest version this was tested with. An older one is used too, for as long as it knows our options.
pub(super) const VERSION_MIN: &str = "2.1.197";

/// A program that has not answered by then goes without.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The oldest version whose `auth status` was seen. An unknown word would be a prompt.
const LOGIN_STATUS_SINCE: &str = "2.1.325";
/// How long an answer about the login holds. To ask takes the program a quarter of a second of work.
const LOGIN_HOLDS: Duration = Duration::from_secs(30);

/// What was asked for last.
#[derive(Debug, Default)]
pub(super) struct Versions {
    known: Mutex<Option<Known>>,
    login: Mutex<Option<(Instant, Option<bool>)>>,
}

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
        let logged_in = match (&found, &command, &version) {
            (Some(path), Ok(command), Some(version)) if knows_login_status(version) => self.login(path, command).await,
            _ => None,
        };
        AgentInfo {
            cli_type,
            name: NAME.into(),
            installed: found.is_some(),
            version,
            program: Some(program),
            install_hint: Some(INSTALL_HINT.into()),
            logged_in,
            status,
        }
    }

    async fn version(&self, path: &Path, command: &AgentCommand) -> Option<String> {
        let changed = path.metadata().and_then(|file| file.modified()).ok();
        if let Some(known) = &*self.known.lock().unwrap_or_else(PoisonError::into_inner)
            && known.path == path
            && known.changed == changed
        {
            return known.version.clone();
        }
        let version = ask_version(path, command).await?;
        let known = Known { path: path.to_owned(), changed, version: version.clone() };
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        version
    }

    async fn login(&self, path: &Path, command: &AgentCommand) -> Option<bool> {
        if let Some((asked, answer)) = *self.login.lock().unwrap_or_else(PoisonError::into_inner)
            && asked.elapsed() < LOGIN_HOLDS
        {
            return answer;
        }
        let answer = ask(path, command, &["auth", "status"]).await;
        let logged_in = answer.and_then(|answer| logged_in(&answer.stdout));
        *self.login.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), logged_in));
        logged_in
    }
}

fn logged_in(answer: &[u8]) -> Option<bool> {
    serde_json::from_slice::<serde_json::Value>(answer).ok()?.get("loggedIn")?.as_bool()
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
    let answer = ask(path, command, &["--version"]).await?;
    let words = String::from_utf8_lossy(&answer.stdout);
    Some(words.split_whitespace().next().filter(|_| answer.status.success()).map(str::to_owned))
}

async fn ask(path: &Path, command: &AgentCommand, words: &[&str]) -> Option<Output> {
    let mut ask = tokio::process::Command::new(path);
    ask.args(&command.args).args(words).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    for (name, value) in &command.env {
        match value {
            Some(value) => ask.env(name, value),
            None => ask.env_remove(name),
        };
    }
    tokio::time::timeout(ANSWER_TIMEOUT, ask.output()).await.ok()?.ok()
}

/// Whether a version is older than [`VERSION_MIN`], as far as it can be told.
pub(super) fn is_too_old(version: &str) -> bool {
    is_older(version, VERSION_MIN)
}

fn knows_login_status(version: &str) -> bool {
    version.starts_with(|letter: char| letter.is_ascii_digit()) && !is_older(version, LOGIN_STATUS_SINCE)
}

fn is_older(version: &str, than: &str) -> bool {
    let numbers = |version: &str| -> Option<Vec<u64>> {
        let core = version.split(['-', '+']).next()?;
        core.split('.').map(|number| number.parse().ok()).collect()
    };
    numbers(version).zip(numbers(than)).is_some_and(|(found, needed)| found < needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_is_what_the_program_says() {
        assert_eq!(logged_in(br#"{"loggedIn": false, "authMethod": "none"}"#), Some(false));
        assert_eq!(logged_in(br#"{"loggedIn": true}"#), Some(true));
        assert_eq!(logged_in(b"usage: claude [options]"), None);
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(is_too_old("1.0.44") && is_too_old("2.1.19") && is_too_old("2.0"));
        assert!(!is_too_old(VERSION_MIN) && !is_too_old("2.1.325") && !is_too_old("10.0.0-beta.1"));
        assert!(!is_too_old("nightly"), "who says nothing is not accused");
    }
}
