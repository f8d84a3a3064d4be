//! Which version of an agent's program is installed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use agent_process::{AgentCommand, AgentProcess, StopLadder};

use super::agent::AcpAgent;

/// `--version` is quick or of no use: some programs know no such flag and start to serve.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
const ANSWER_BYTES_MAX: usize = 4096;

/// What is known so far. A program is asked once.
#[derive(Debug, Default)]
pub(crate) struct VersionProbe {
    /// From the agent itself: built in, or named in a handshake.
    named: Mutex<Option<String>>,
    asked: Mutex<HashMap<PathBuf, Option<String>>>,
}

impl VersionProbe {
    pub(crate) fn new(agent: &AcpAgent) -> Self {
        Self { named: Mutex::new(agent.version.clone()), ..Self::default() }
    }

    pub(crate) fn learn(&self, version: Option<&str>) {
        if let Some(version) = version {
            *self.named.lock().unwrap_or_else(PoisonError::into_inner) = Some(version.to_owned());
        }
    }

    pub(crate) async fn of(&self, program: &Path, command: &AgentCommand) -> Option<String> {
        if let Some(named) = self.named.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Some(named);
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

/// Under a guardian like the agent itself: a program that starts others and hangs leaves none of them behind.
async fn ask(program: &Path, command: &AgentCommand) -> Option<String> {
    // Of a runner, such as `npx agent`, it would be the runner's version.
    if command.args.iter().any(|arg| !arg.as_encoded_bytes().starts_with(b"-")) {
        return None;
    }
    let mut asked = AgentCommand { program: program.into(), args: Vec::new(), ..command.clone() };
    asked = asked.arg("--version").orphan_ladder(StopLadder::AT_ONCE).line_bytes_max(ANSWER_BYTES_MAX);
    let (mut stdout, stdin, process) = AgentProcess::spawn(asked).await.ok()?.split();
    stdin.close();
    let mut answer = String::new();
    while let Some(line) = stdout.next_line().await.ok()? {
        answer.push_str(&line.to_str_lossy());
        answer.push('\n');
        if answer.len() > ANSWER_BYTES_MAX {
            return None;
        }
    }
    process.exited().await.is_success().then_some(answer)
}

/// The first part that looks like a version: digits and dots, whatever follows them.
fn find_version(text: &str) -> Option<String> {
    text.split_whitespace()
        .map(|part| part.trim_start_matches('v').trim_matches(|letter: char| !letter.is_ascii_alphanumeric()))
        .find(|part| {
            let mut parts = part.split('.');
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
}
