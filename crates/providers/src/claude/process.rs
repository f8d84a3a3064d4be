//! Starting Claude Code for one session: its command line, its handshake, and what can go wrong.

use std::path::Path;
use std::time::Duration;

use agent_process::{AgentCommand, AgentProcess, LineError, LineReader, NoAnswer, SpawnError, StopLadder};
use protocol::AgentSessionId;
use serde_json::{Value, json};
use uuid::Uuid;

use super::describe::{self, VERSION_MIN, is_too_old};
use super::request;
use super::wire::{ClaudeLine, ControlResponse};
use super::{ClaudeConfig, INSTALL_HINT, NAME};
use crate::error::ProviderError;

const INITIALIZE: &str = "initialize";
/// Lines that the program may write before it answers the handshake. None was ever seen.
const EARLY_LINES_MAX: usize = 64;
/// A longer line is not kept that early: so many of the longest would be gigabytes.
const EARLY_LINE_BYTES_MAX: usize = 256 * 1024;

/// How long a program may take to exit: it saves its files and ends its tools. With the time to end its turn, less than
/// the server has to stop.
pub(super) const STOP: StopLadder =
    StopLadder { grace_eof: Duration::from_secs(3), grace_term: Duration::from_millis(1_500) };

/// A program that has answered.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) process: AgentProcess,
    /// The session that it was started for.
    pub(super) agent_id: AgentSessionId,
    pub(super) resumed: bool,
    /// Its answer to `initialize`.
    pub(super) answer: Value,
    /// What it wrote before it answered.
    pub(super) early: Vec<ClaudeLine>,
}

/// Starts the program and waits until it answers; on failure nothing is left running.
pub(super) async fn start(
    config: &ClaudeConfig,
    project_dir: &Path,
    id: &AgentSessionId,
    resume: bool,
) -> Result<Started, ProviderError> {
    let command = command(config, project_dir, id, resume)?;
    let mut process = AgentProcess::spawn(command).await.map_err(spawn_error)?;
    let greeting = request::control(INITIALIZE, &json!({"subtype": "initialize"}));
    let sent = process.stdin.send(greeting).await;
    let mut early = Vec::new();
    let handshake = async {
        sent.map_err(|error| error.to_string())?;
        read_answer(&mut process.stdout, &mut early).await
    };
    let failure = match process.handle.answer(config.start_timeout, handshake).await {
        Ok(Ok(answer)) => return Ok(Started { process, agent_id: id.clone(), resumed: resume, answer, early }),
        // The output ended, or gave the reason; the exit may show more.
        Ok(Err(reason)) => {
            let report = process.handle.stop(StopLadder::AT_ONCE).await;
            refused(config, &if reason.is_empty() { report.to_string() } else { reason }).await
        }
        Err(NoAnswer::Exited(report)) => refused(config, &format!("{}\n{report}", report.stderr_tail)).await,
        Err(silent @ NoAnswer::Silent { .. }) => {
            let mut detail = silent.to_string();
            if let NoAnswer::Silent { stderr_tail, .. } = &silent
                && !stderr_tail.trim().is_empty()
            {
                detail = format!("{detail}: {}", stderr_tail.trim());
            }
            ProviderError::Handshake { name: NAME.into(), detail }
        }
    };
    process.handle.kill().await;
    Err(failure)
}

fn command(
    config: &ClaudeConfig,
    project_dir: &Path,
    id: &AgentSessionId,
    resume: bool,
) -> Result<AgentCommand, ProviderError> {
    // Nothing but a UUID reaches the command line.
    let id = Uuid::try_parse(id.as_str()).map_err(|_| ProviderError::SessionNotFound(id.clone()))?;
    let mut command = base_command(config)?
        .args(["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"])
        .args(["--include-partial-messages", "--permission-prompt-tool", "stdio", "--replay-user-messages"])
        // In one argument, so that nothing can ever read the id as a flag.
        .arg(format!("{}={}", if resume { "--resume" } else { "--session-id" }, id.hyphenated()))
        .current_dir(project_dir)
        // The program marks its own children with these; a server started by one must not pass for one.
        .env_remove("CLAUDECODE")
        .env_remove("CLAUDE_CODE_ENTRYPOINT")
        .orphan_ladder(STOP);
    command.env.extend(config.env.iter().cloned());
    Ok(command)
}

/// The program with the arguments that the user configured, and nothing else.
pub(super) fn base_command(config: &ClaudeConfig) -> Result<AgentCommand, ProviderError> {
    let mut command = AgentCommand::parse(&config.command).map_err(|error| ProviderError::NotInstalled {
        name: NAME.into(),
        install_hint: Some(INSTALL_HINT.into()),
        detail: format!("CLAUDE_CMD cannot be read: {error}"),
    })?;
    if let Some(guardian) = &config.guardian {
        command = command.guardian(guardian);
    }
    Ok(command)
}

/// The answer to `initialize`, or what the program wrote instead; empty if it only exited.
async fn read_answer(stdout: &mut LineReader, early: &mut Vec<ClaudeLine>) -> Result<Value, String> {
    loop {
        let line = match stdout.next_line().await {
            Ok(Some(line)) => line,
            Ok(None) => return Err(String::new()),
            Err(LineError::TooLong(_)) => continue,
            Err(error @ LineError::Io(_)) => return Err(error.to_string()),
        };
        match ClaudeLine::parse(line.as_bytes()) {
            Ok(ClaudeLine::ControlResponse { response: ControlResponse::Success { request_id, response } })
                if request_id == INITIALIZE =>
            {
                return Ok(response);
            }
            Ok(ClaudeLine::ControlResponse { response: ControlResponse::Error { error, .. } }) => return Err(error),
            Ok(ClaudeLine::Result(result)) if result.is_error => {
                let errors: Vec<_> = result.errors.iter().filter_map(Value::as_str).collect();
                return Err(errors.join("\n"));
            }
            Ok(parsed) if early.len() < EARLY_LINES_MAX && line.as_bytes().len() <= EARLY_LINE_BYTES_MAX => {
                early.push(parsed);
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "a line before the handshake is not JSON"),
        }
    }
}

fn spawn_error(error: SpawnError) -> ProviderError {
    match error {
        SpawnError::NotFound { .. } | SpawnError::NotExecutable { .. } => ProviderError::NotInstalled {
            name: NAME.into(),
            install_hint: Some(INSTALL_HINT.into()),
            detail: error.to_string(),
        },
        SpawnError::NoDirectory { .. } => {
            ProviderError::CreateFailed { detail: format!("the project directory is gone: {error}") }
        }
        SpawnError::TooMany => ProviderError::CreateFailed { detail: error.to_string() },
        SpawnError::Failed { .. } | SpawnError::Guardian { .. } => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            ProviderError::Handshake { name: NAME.into(), detail: format!("{error}{cause}") }
        }
    }
}

/// The program exited, or refused. What it wrote, and what can be done about it where we know that.
async fn refused(config: &ClaudeConfig, output: &str) -> ProviderError {
    let unknown = ["unknown option", "error: option", "Unsupported control request"];
    let found = match unknown.iter().any(|start| output.contains(start)) {
        true => describe::version(config).await,
        false => None,
    };
    refusal(output.trim(), found.as_deref())
}

/// `found` is the version of a program that did not understand us.
fn refusal(output: &str, found: Option<&str>) -> ProviderError {
    let advice = if output.contains("No conversation found") {
        "Claude Code no longer has this conversation. It deletes old ones, after 30 days unless its setting \
         cleanupPeriodDays says otherwise. Start a new session."
            .into()
    } else if output.contains("already in use") {
        "Another Claude Code process has this session. End it and try again.".into()
    } else if output.contains("root/sudo") || output.contains("root privileges") {
        "Claude Code refuses to skip its permission checks as root. Start the server as another user, or take that \
         option out of CLAUDE_CMD."
            .into()
    } else if output.contains("unknown option") || output.contains("error: option") || output.contains("Unsupported") {
        not_understood(found)
    } else if output.contains("/login") || output.contains("API key") {
        return ProviderError::LoginRequired {
            name: NAME.into(),
            detail: format!("{output}\nRun `claude` in a terminal and log in with /login."),
        };
    } else {
        return ProviderError::Handshake { name: NAME.into(), detail: output.into() };
    };
    ProviderError::Handshake { name: NAME.into(), detail: format!("{advice}\n{output}") }
}

/// Either the program is too old for our options, or the user gave it one it does not have.
fn not_understood(found: Option<&str>) -> String {
    let update = format!("Update it with `claude update` or `{INSTALL_HINT}@latest`, then try again.");
    match found {
        Some(found) if is_too_old(found) => {
            format!("Claude Code {found} is too old: version {VERSION_MIN} or newer is needed. {update}")
        }
        Some(found) => {
            format!(
                "Claude Code {found} does not know one of its options. Look at CLAUDE_CMD; if it has none, the program \
                 has changed: versions from {VERSION_MIN} on are known to work."
            )
        }
        None => format!(
            "This Claude Code does not know one of its options and does not report its version; {VERSION_MIN} or \
             newer is needed. {update}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail(output: &str) -> String {
        match refusal(output, None) {
            ProviderError::Handshake { detail, .. } | ProviderError::LoginRequired { detail, .. } => detail,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_the_program_writes_when_it_exits_comes_with_what_to_do() {
        assert!(detail("No conversation found with session ID: x").contains("Start a new session"));
        assert!(detail("Error: Session ID x is already in use.").contains("Another Claude Code process"));
        assert!(detail("error: unknown option '--replay-user-messages'").contains("claude update"));
        assert!(not_understood(Some("2.1.325")).contains("CLAUDE_CMD"));
        assert!(detail("--dangerously-skip-permissions cannot be used with root/sudo privileges").contains("as root"));
        assert_eq!(detail("exit code 7: something else"), "exit code 7: something else");
    }

    #[test]
    fn an_id_is_part_of_the_argument_of_its_flag() {
        let id = AgentSessionId::parse("1f111111-1111-4111-8111-111111111111").unwrap();
        let args = |resume| command(&ClaudeConfig::default(), Path::new("/"), &id, resume).unwrap().args;
        for (resume, flag) in [(true, "--resume"), (false, "--session-id")] {
            assert!(args(resume).contains(&format!("{flag}={id}").into()), "{:?}", args(resume));
            assert!(args(resume).iter().all(|arg| arg != id.as_str() && arg != flag));
        }
    }

    #[test]
    fn only_a_uuid_reaches_the_command_line() {
        let id = AgentSessionId::parse("not-a-uuid").unwrap();
        let refused = command(&ClaudeConfig::default(), Path::new("/"), &id, true);
        assert!(matches!(refused, Err(ProviderError::SessionNotFound(_))));
    }
}
