//! What can be done from the command line, one file per command.
//!
//! Comes in: a parsed command line. Goes out: an answer on standard output (text for people, JSON with `--json`),
//! messages on standard error, and an exit code. Every command but `doctor` calls the running server and decides
//! nothing itself; `journal` works without a server, too.

mod attach;
mod browsers;
mod cancel;
mod doctor;
mod export;
mod failure;
mod follow;
mod journal;
mod list;
mod new;
mod open;
mod output;
mod send;
mod session_name;
mod transcript;
mod usage;

use std::process::ExitCode;

use catalog::Inspection;
use clap::Subcommand;

use crate::client::Server;
use crate::settings::Settings;

pub(crate) use failure::{Exit, Failure};

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// List projects and their sessions: who is working, who needs you, who is done
    List(list::Args),
    /// Start a session in a directory and print its id
    New(new::Args),
    /// Send a message to a session and stream the answer
    Send(send::Args),
    /// Show a conversation and follow it
    Attach(attach::Args),
    /// Stop what a session's agent is doing
    Cancel(cancel::Args),
    /// Open the page in the browser, and print the link
    Open(open::Args),
    /// List the browsers that were let in, or take that back
    Browsers(browsers::Args),
    /// Show tokens and cost per day, project or session, as the agents reported them
    Usage(usage::Args),
    /// Write a conversation as a file: Markdown, JSON or HTML
    Export(export::Args),
    /// Look at what is recorded on the disk, check it, or delete what is old
    Journal(journal::Args),
    /// Check agents, data directory, journal, disk, port, secret and page, and say what to do
    Doctor(doctor::Args),
    /// Be the built-in demo agent: speaks the Agent Client Protocol over standard input and output, with no model
    DemoAgent,
}

impl CliCommand {
    fn wants_json(&self) -> bool {
        match self {
            Self::List(args) => args.json,
            Self::New(args) => args.json,
            Self::Send(args) => args.json,
            Self::Attach(args) => args.json,
            Self::Cancel(args) => args.json,
            Self::Open(args) => args.json,
            Self::Browsers(args) => args.json(),
            Self::Usage(args) => args.json,
            Self::Export(args) => args.json,
            Self::Journal(args) => args.json(),
            Self::Doctor(args) => args.json,
            Self::DemoAgent => false,
        }
    }
}

pub(crate) fn run(command: &CliCommand, settings: &Settings) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(run_command(command, settings)),
        Err(error) => Err(Failure::new("INTERNAL_ERROR", format!("Could not start: {error}"))),
    };
    done.unwrap_or_else(|failure| failure.report(command.wants_json()))
}

async fn run_command(command: &CliCommand, settings: &Settings) -> Result<ExitCode, Failure> {
    let unusable = |error: String| Failure::new("STORAGE_FAILED", error);
    let data_dir = settings.files.data_dir().map_err(|error| Failure::usage(format!("{error:#}")))?;
    let visit = Inspection::new(&data_dir).map_err(|error| unusable(error.to_string()))?;
    let server = || Server::find(&visit);
    match command {
        CliCommand::List(args) => list::run(args, &server()?).await,
        CliCommand::New(args) => new::run(args, &server()?).await,
        CliCommand::Send(args) => send::run(args, &server()?).await,
        CliCommand::Attach(args) => attach::run(args, &server()?).await,
        CliCommand::Cancel(args) => cancel::run(args, &server()?).await,
        CliCommand::Open(args) => open::run(args, &server()?).await,
        CliCommand::Browsers(args) => browsers::run(args, &server()?).await,
        CliCommand::Usage(args) => usage::run(args, &server()?).await,
        CliCommand::Export(args) => export::run(args, &server()?).await,
        CliCommand::Journal(args) => journal::run(args, &visit).await,
        CliCommand::Doctor(args) => doctor::run(args, settings, &visit).await,
        CliCommand::DemoAgent => Ok(demo_agent::run()),
    }
}
