//! An agent that does as its prompts say: `scripted-agent <wire> [args]`. Also the guardian of the agents of tests.

mod acp;
mod claude;

use std::process::ExitCode;

fn main() -> ExitCode {
    agent_process::guardian_entry();
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("acp") => acp::run(&args.collect::<Vec<_>>()),
        Some("claude") => claude::run(args.collect()),
        // The demo agent, as our own program starts it.
        Some("demo-agent") => demo_agent::run(),
        wire => {
            eprintln!("scripted-agent speaks no {}", wire.unwrap_or("wire unless one is given"));
            ExitCode::FAILURE
        }
    }
}

/// Bytes that a prompt cannot hold, as it writes them: two digits each.
fn from_hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks_exact(2).filter_map(|pair| std::str::from_utf8(pair).ok());
    pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
}
