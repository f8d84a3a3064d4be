//! Liminal Builder: the program. Flags, wiring, signals, the order of shutdown, exit codes.
//!
//! Without a command it is the server (`run`). With one it is a client of the server that holds the data directory
//! (`commands`, which speak to it through `client`), or the built-in demo agent.

mod agents;
mod browser;
mod client;
mod commands;
mod listen;
mod logging;
mod run;
mod settings;
mod signals;
mod start_message;
mod stop_message;
mod terminal;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::CommandFactory;

use commands::CliCommand;
use settings::Settings;

/// More threads than this only cost memory: one window's work is short, and agents are processes of their own.
const WORKERS_MAX: usize = 8;
/// For calls that hang in the kernel, such as a look at a directory on a network that is down.
const LEFTOVERS_TIME_MAX: Duration = Duration::from_millis(200);
const WRONG_USAGE: u8 = 2;

/// The whole program, from its arguments to its exit code.
pub fn main() -> ExitCode {
    agent_process::guardian_entry();
    agent_process::detached_entry();
    agent_process::return_large_memory();
    let settings = Settings::read();
    match &settings.command {
        None => run_server(&settings),
        Some(CliCommand::DemoAgent) => demo_agent::run(),
        Some(command) => commands::run(command, &settings),
    }
}

/// Every flag and command, for what is generated from them.
pub fn command_line() -> clap::Command {
    Settings::command()
}

fn run_server(settings: &Settings) -> ExitCode {
    let address = match settings.listening.address().and_then(|address| {
        logging::start(&settings.files)?;
        Ok(address)
    }) {
        Ok(address) => address,
        Err(error) => {
            complain(&error);
            return ExitCode::from(WRONG_USAGE);
        }
    };
    let open_files = agent_process::raise_open_files();
    let workers = std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, WORKERS_MAX));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build();
    let ended = runtime.context("could not start").and_then(|runtime| {
        let ended = runtime.block_on(run::run(settings, address, open_files));
        runtime.shutdown_timeout(LEFTOVERS_TIME_MAX);
        ended
    });
    ended.unwrap_or_else(|error| {
        complain(&error);
        ExitCode::FAILURE
    })
}

/// To the person who started it: what went wrong, and why.
fn complain(error: &anyhow::Error) {
    eprintln!("liminal-builder: {error:#}");
}
