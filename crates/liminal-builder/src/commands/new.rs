//! `new`: a session in a directory.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use protocol::http::{CreateSessionBody, SessionBody};
use protocol::{AgentInfo, CliType, ClientMessage, ErrorCode, ServerMessage};

use super::failure::{EXIT_CODES, Failure};
use crate::client::{Kind, Server, Window};
use crate::terminal::{Stream, Style};

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Agent to talk to: claude-code, codex, demo, or one of agents.json [default: the
    /// project's, else the first that is installed]
    agent: Option<String>,

    /// Directory to work in; it becomes a project if it is none yet [default: the current one]
    #[arg(long, short = 'C', value_name = "DIRECTORY")]
    project: Option<PathBuf>,

    /// Print one JSON object: {"sessionId", "cliType"}
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(args: &Args, server: &Server) -> Result<ExitCode, Failure> {
    let directory = match &args.project {
        Some(directory) => std::path::absolute(directory),
        None => std::env::current_dir(),
    };
    let directory = directory.map_err(|error| {
        let code = ErrorCode::ProjectPathInvalid;
        Failure::new(code.as_str(), code.message("")).with_detail(error.to_string())
    })?;
    let cli_type = choose(args.agent.as_deref(), &directory, server).await?;
    let body =
        CreateSessionBody { cli_type, project_id: None, project_dir: Some(directory.to_string_lossy().into_owned()) };
    let made: SessionBody = server.post("/api/session/create", &body).await?;
    let text = match args.json {
        true => serde_json::to_string(&made).map_err(|error| Failure::new("INTERNAL_ERROR", error.to_string()))?,
        false => made.session_id.to_string(),
    };
    Stream::Out.line(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The agent that was named, by its type or by its name; else the default of the project, else the first that is installed.
async fn choose(wanted: Option<&str>, directory: &Path, server: &Server) -> Result<CliType, Failure> {
    let mut window = server.window(Kind::Plain).await?;
    let ServerMessage::AgentList { agents } = window.call(&ClientMessage::AgentList {}).await?.frame.message else {
        return Err(Failure::new("INTERNAL_ERROR", "The server answered something else."));
    };
    let known = || agents.iter().map(|agent| agent.cli_type.as_str()).collect::<Vec<_>>().join(", ");
    let Some(wanted) = wanted else {
        let default = project_default(directory, &mut window).await?;
        let of_project = default.and_then(|cli_type| agents.iter().find(|agent| agent.cli_type == cli_type));
        let first = of_project.or_else(|| agents.iter().find(|agent| agent.installed));
        let first = first.ok_or_else(|| Failure::new("AGENT_NOT_INSTALLED", "No agent is installed."))?;
        Stream::Error.line(&Stream::Error.paint(Style::Dim, &format!("Starting {}", first.name)))?;
        return Ok(first.cli_type.clone());
    };
    let is_it = |agent: &&AgentInfo| {
        agent.cli_type.as_str().eq_ignore_ascii_case(wanted) || agent.name.eq_ignore_ascii_case(wanted)
    };
    agents.iter().find(is_it).map(|agent| agent.cli_type.clone()).ok_or_else(|| {
        let code = ErrorCode::UnsupportedCliType;
        Failure::new(code.as_str(), code.message(wanted)).with_detail(format!("There is {}.", known()))
    })
}

/// The agent that new sessions of this directory's project begin with, if it is a project and has one.
async fn project_default(directory: &Path, window: &mut Window) -> Result<Option<CliType>, Failure> {
    let ServerMessage::ProjectList { projects } = window.call(&ClientMessage::ProjectList {}).await?.frame.message
    else {
        return Err(Failure::new("INTERNAL_ERROR", "The server answered something else."));
    };
    // The server keeps paths with every link followed.
    let directory = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    let project = projects.into_iter().find(|project| Path::new(&project.path) == directory);
    Ok(project.and_then(|project| project.defaults).map(|defaults| defaults.cli_type))
}
