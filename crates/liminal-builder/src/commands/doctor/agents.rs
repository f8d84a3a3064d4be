//! The agents: found, which version, do they answer, are they logged in?

use std::path::Path;
use std::sync::Arc;

use catalog::Inspection;
use protocol::AgentInfo;
use providers::{Login, Provider, ProviderError};

use super::{Finding, Report};
use crate::agents;
use crate::commands::Failure;
use crate::settings::Agents;

const AGENTS: &str = "Agents";

pub(super) async fn look(
    settings: &Agents,
    visit: &Inspection,
    start: bool,
    report: &mut Report,
) -> Result<(), Failure> {
    // An empty directory to work in, which is also where the demo agent would keep its sessions.
    let scratch = match tempfile::tempdir() {
        Ok(scratch) => scratch,
        Err(error) => {
            let advice = "Agents are tried in a temporary directory; TMPDIR says where.";
            return report.add(Finding::problem(AGENTS, format!("no temporary directory: {error}"), advice));
        }
    };
    // What is wrong with agents.json has been reported by now.
    let registry = match agents::registry(settings, scratch.path(), visit.agents_file(), &mut Vec::new()) {
        Ok(registry) => registry,
        Err(error) => return report.add(Finding::problem(AGENTS, format!("{error:#}"), "Fix that setting.")),
    };
    // One after the other: several starting at once would make each other slow, and slow ones fail.
    for provider in registry.iter() {
        let command_line = agents::command_line(settings, visit.agents_file(), provider.cli_type());
        report.add(examine(provider, scratch.path(), start, command_line.as_deref()).await)?;
    }
    Ok(())
}

async fn examine(provider: &Arc<dyn Provider>, directory: &Path, start: bool, command_line: Option<&str>) -> Finding {
    let info = provider.describe().await;
    if !info.installed || !start {
        return found(&info);
    }
    let probe = provider.probe(directory).await;
    provider.shutdown().await;
    let name = info.name.as_str();
    let program = info.program.as_deref().unwrap_or_default();
    match probe {
        Ok(probe) => {
            let version = probe.version.or(info.version).map(|version| format!(" {version}")).unwrap_or_default();
            let answers = format!("{program}{version} answers");
            match probe.login {
                Login::Ready(Some(account)) => Finding::ok(name, format!("{answers}, logged in ({account})")),
                Login::Ready(None) => Finding::ok(name, format!("{answers} and gives a session")),
                Login::Unknown => Finding::ok(name, format!("{answers}; it does not say whether it is logged in")),
                Login::Needed(advice) => Finding::problem(name, format!("{answers}, but is not logged in"), advice),
            }
        }
        Err(error) => failed(name, command_line.unwrap_or(program), &error),
    }
}

fn found(info: &AgentInfo) -> Finding {
    let program = info.program.as_deref().unwrap_or_default();
    if info.installed {
        let version = info.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        let found = format!("found {program}{version}");
        return match (info.logged_in, &info.login_hint) {
            (Some(false), Some(hint)) => {
                Finding::note(&info.name, format!("{found}, but no login"), format!("Log in with `{hint}`."))
            }
            (Some(false), None) => Finding::note(&info.name, format!("{found}, but no login"), "Log in to it."),
            _ => Finding::ok(&info.name, found),
        };
    }
    let missing = format!("not installed: there is no program {program}");
    match &info.install_hint {
        Some(hint) => Finding::note(&info.name, missing, hint),
        // Only an agent of agents.json comes without a hint: the user wants it.
        None => Finding::problem(&info.name, missing, "Install it, or fix its command in agents.json."),
    }
}

fn failed(name: &str, command_line: &str, error: &ProviderError) -> Finding {
    let message = error.to_message();
    let detail = message.detail.map(|detail| format!("\n{detail}")).unwrap_or_default();
    let advice = agents::advice(error, command_line);
    Finding::problem(name, format!("{}{detail}", message.message), advice)
}
