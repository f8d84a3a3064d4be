//! Whether Claude Code is there, which version, and whether it is logged in.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use agent_process::{AgentCommand, AgentProcess, StopLadder};
use protocol::{AgentInfo, AgentStatus, CliType};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::process::base_command;
use super::{ClaudeConfig, INSTALL_HINT, LOGIN_HINT, NAME};
use crate::error::ProviderError;

/// The oldest version this was tested with. An older one is used too, for as long as it knows our options.
pub(super) const VERSION_MIN: &str = "2.1.197";

/// A program that does not know its version by then goes without.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);
/// What it reports of itself is a few lines; more is no answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The oldest version whose `auth status` was seen. An unknown argument would be a prompt.
const LOGIN_STATUS_SINCE: &str = "2.1.325";
/// How long a login counts as valid. To ask takes the program a quarter of a second of work. Of a missing one it is
/// asked each time: the user is about to change that.
const LOGIN_VALID: Duration = Duration::from_secs(600);
/// The list of agents does not wait longer for something that is only good to know. The next list waits on.
const LOGIN_WAIT_MAX: Duration = Duration::from_secs(2);
/// How long an answer that came too late for its list is kept for the next one.
const LATE_ANSWER_VALID: Duration = Duration::from_secs(60);

/// What was asked for last.
#[derive(Debug, Default)]
pub(super) struct Versions {
    known: Mutex<Option<KnownVersion>>,
    logged_in_at: Mutex<Option<Instant>>,
    asking: Mutex<Option<LoginRequest>>,
}

/// A program that was asked whether it is logged in. It has as long as for a start, whoever waits for it, and ends with
/// this.
#[derive(Debug)]
struct LoginRequest {
    answer: watch::Receiver<Option<LoginAnswer>>,
    _task: JoinSet<()>,
}

#[derive(Clone, Copy, Debug)]
struct LoginAnswer {
    /// None if it does not report it.
    known: Option<bool>,
    at: Instant,
}

impl LoginRequest {
    fn begin(command: AgentCommand, timeout: Duration) -> Self {
        let (sender, answer) = watch::channel(None);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let output = ask(command, &["auth", "status"], timeout).await;
            let known = output.and_then(|output| logged_in(&output.stdout));
            sender.send_replace(Some(LoginAnswer { known, at: Instant::now() }));
        });
        Self { answer, _task: task }
    }

    fn is_of_use(&self) -> bool {
        self.answer.borrow().is_none_or(|login| login.at.elapsed() < LATE_ANSWER_VALID)
    }
}

/// What a program that was asked has printed, and whether it succeeded.
struct ProgramOutput {
    stdout: Vec<u8>,
    success: bool,
}

/// Holds as long as the file is the same.
#[derive(Debug)]
struct KnownVersion {
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
            (Some(_), Ok(command), Some(version)) if knows_login_status(version) => {
                self.login(command, config.start_timeout).await
            }
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
            login_hint: Some(LOGIN_HINT.into()),
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
        let version = ask_version(command).await?;
        let known = KnownVersion { path: path.to_owned(), changed, version: version.clone() };
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        version
    }

    async fn login(&self, command: &AgentCommand, timeout: Duration) -> Option<bool> {
        let seen = *self.logged_in_at.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.is_some_and(|seen| seen.elapsed() < LOGIN_VALID) {
            return Some(true);
        }
        let mut answer = {
            let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
            let under_way = asking.take().filter(LoginRequest::is_of_use);
            let asking = asking.insert(under_way.unwrap_or_else(|| LoginRequest::begin(command.clone(), timeout)));
            asking.answer.clone()
        };
        let login = tokio::time::timeout(LOGIN_WAIT_MAX, answer.wait_for(Option::is_some)).await.ok()?;
        let login = login.ok().and_then(|login| *login);
        self.asking
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take_if(|asking| asking.answer.same_channel(&answer));
        let login = login?;
        *self.logged_in_at.lock().unwrap_or_else(PoisonError::into_inner) =
            (login.known == Some(true)).then_some(login.at);
        login.known
    }

    /// Ends a program that has not answered.
    pub(super) fn stop_asking(&self) {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner).take();
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
    ask_version(&command).await?
}

/// None if it did not answer in time; none within if it does not report one.
async fn ask_version(command: &AgentCommand) -> Option<Option<String>> {
    let output = ask(command.clone(), &["--version"], VERSION_TIMEOUT).await?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.split_whitespace().next().filter(|_| output.success).map(str::to_owned))
}

/// Under a guardian like the sessions: whatever hangs ends with its time, with us, and if we are killed.
async fn ask(command: AgentCommand, args: &[&str], timeout: Duration) -> Option<ProgramOutput> {
    let command = command.args(args).orphan_ladder(StopLadder::AT_ONCE);
    let asked = async {
        let (mut stdout, stdin, process) = AgentProcess::spawn(command).await.ok()?.split();
        stdin.close();
        let mut printed = Vec::new();
        while let Some(chunk) = stdout.next_chunk().await.ok()? {
            printed.extend(chunk);
            if printed.len() > ANSWER_BYTES_MAX {
                return None;
            }
        }
        Some(ProgramOutput { stdout: printed, success: process.exited().await.is_success() })
    };
    tokio::time::timeout(timeout, asked).await.ok()?
}

/// Whether a version is older than [`VERSION_MIN`], as far as that is known.
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
    fn the_login_is_what_the_program_reports() {
        assert_eq!(logged_in(br#"{"loggedIn": false, "authMethod": "none"}"#), Some(false));
        assert_eq!(logged_in(br#"{"loggedIn": true}"#), Some(true));
        assert_eq!(logged_in(b"usage: claude [options]"), None);
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(is_too_old("1.0.44") && is_too_old("2.1.19") && is_too_old("2.0"));
        assert!(!is_too_old(VERSION_MIN) && !is_too_old("2.1.325") && !is_too_old("10.0.0-beta.1"));
        assert!(!is_too_old("nightly"), "one without a number does not count as old");
    }
}
