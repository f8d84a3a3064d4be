//! An agent that does as its prompts say: `scripted-agent <wire> [words]`. Also the guardian of the agents of tests.

mod acp;
mod claude;

use std::process::ExitCode;

fn main() -> ExitCode {
    agent_process::guardian_entry();
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("acp") => acp::run(&words.collect::<Vec<_>>()),
        Some("claude") => claude::run(words.collect()),
        // The demo agent, as our own program starts it.
        Some("demo-agent") => demo_agent::run(),
        wire => {
            eprintln!("scripted-agent speaks no {}", wire.unwrap_or("wire unless told which"));
            ExitCode::FAILURE
        }
    }
}
