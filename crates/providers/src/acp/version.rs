//! Which version of an agent's program is installed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use agent_process::AgentCommand;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::agent::AcpAgent;

/// `--version` is quick or of no use: some programs know no such flag and start to serve.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
const ANSWER_BYTES_MAX: u64 = 4096;

/// What is known so far. A program is asked once.
#[derive(Debug, Default)]
pub(crate) struct Version {
    /// From the agent itself: built in, or told in a handshake.
    told: Mutex<Option<String>>,
    asked: Mutex<HashMap<PathBuf, Option<String>>>,
}

impl Version {
    pub(crate) fn new(agent: &AcpAgent) -> Self {
        Self { told: Mutex::new(agent.version.clone()), ..Self::default() }
    }

    pub(crate) fn learn(&self, version: Option<&str>) {
        if let Some(version) = version {
            *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(version.to_owned());
        }
    }

    pub(crate) async fn of(&self, program: &Path, command: &AgentCommand) -> Option<String> {
        if let Some(told) = self.told.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Some(told);
        }
        if let Some(asked) = self.asked.lock().unwrap_or_else(PoisonError::into_inner).get(program) {
            return asked.clone();
        }
        let answer = tokio::time::timeout(ANSWER_WITHIN, ask(program, command)).await.ok().flatten();
        let version = answer.as_deref().and_then(find_version);
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(program.to_owned(), version.clone());
        version
    }
}

async fn ask(program: &Path, command: &AgentCommand) -> Option<String> {
    let mut asked = Command::new(program);
    asked.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    asked.current_dir(&command.current_dir);
    for (name, value) in &command.env {
        match value {
            Some(value) => asked.env(name, value),
            None => asked.env_remove(name),
        };
    }
    let mut child = asked.spawn().ok()?;
    let mut answer = String::new();
    child.stdout.take()?.take(ANSWER_BYTES_MAX).read_to_string(&mut answer).await.ok()?;
    child.wait().await.ok()?.success().then_some(answer)
}

/// The first word that looks like a version: digits and dots, whatever follows them.
fn find_version(text: &str) -> Option<String> {
    text.split_whitespace()
        .map(|word| word.trim_start_matches('v').trim_matches(|letter: char| !letter.is_ascii_alphanumeric()))
        .find(|word| {
            let mut parts = word.split('.');
            let numbers =
                |part: Option<&str>| part.is_some_and(|part| part.starts_with(|letter: char| letter.is_ascii_digit()));
            numbers(parts.next()) && numbers(parts.next())
        })
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_among_words() {
        assert_eq!(find_version("2.6.0\n").as_deref(), Some("2.6.0"));
        assert_eq!(find_version("codex-cli 0.166.0").as_deref(), Some("0.166.0"));
        assert_eq!(find_version("agent v1.2.3-beta.1 (abc)").as_deref(), Some("1.2.3-beta.1"));
        assert_eq!(find_version("usage: agent [options]"), None);
    }

    #[tokio::test]
    async fn a_program_that_does_not_know_the_flag_has_no_version() {
        let version = Version::default();
        assert_eq!(version.of(Path::new("/bin/false"), &AgentCommand::new("false")).await, None);
    }
}
