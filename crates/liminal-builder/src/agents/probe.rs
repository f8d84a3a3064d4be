//! One agent, started for a moment: does it answer, which version is it, is it logged in, and what to do if not.

use std::path::Path;
use std::sync::Arc;

use protocol::{AgentInfo, ErrorCode, ProbeLogin, ProbeOutcome};
use providers::{Login, Provider, ProviderError};

/// `directory` is an empty one to work in; `command_line` is what a person types to start the agent.
pub(super) async fn probe(provider: Arc<dyn Provider>, directory: &Path, command_line: &str) -> ProbeOutcome {
    let info = provider.describe().await;
    if !info.installed {
        return missing(info);
    }
    let tried = provider.probe(directory).await;
    provider.shutdown().await;
    let program = info.program.unwrap_or_else(|| command_line.to_owned());
    match tried {
        Ok(tried) => {
            let version = tried.version.or(info.version);
            let login = match tried.login {
                Login::Ready(Some(account)) => ProbeLogin::Account { account },
                Login::Ready(None) => ProbeLogin::GivesSession {},
                Login::Unknown => ProbeLogin::Unknown {},
                Login::Needed(advice) => return ProbeOutcome::NeedsLogin { program, version, advice },
            };
            ProbeOutcome::Works { program, version, login }
        }
        Err(error) => {
            let message = error.to_message();
            ProbeOutcome::Failed {
                message: message.message,
                detail: message.detail,
                advice: advice(&error, command_line),
            }
        }
    }
}

fn missing(info: AgentInfo) -> ProbeOutcome {
    let program = info.program.unwrap_or_default();
    let advice = match info.install_hint {
        Some(hint) => format!("Install it with `{hint}`."),
        None => "Install it, or give the full path of the program as the command.".to_owned(),
    };
    ProbeOutcome::Failed {
        message: ErrorCode::AgentNotInstalled.message(&info.name),
        detail: Some(format!("There is no program {program}.")),
        advice,
    }
}

/// What to do about an agent that did not start. `command_line` is what a person types to start it.
pub(crate) fn advice(error: &ProviderError, command_line: &str) -> String {
    match error {
        ProviderError::LoginRequired { detail, .. } => detail.clone(),
        ProviderError::NotInstalled { install_hint: Some(hint), .. } => hint.clone(),
        _ => format!(
            "Run `{command_line}` in a terminal to see whether it works by itself. If it is only slow to start, give it \
             more time with ACP_START_TIMEOUT_MS."
        ),
    }
}
