//! The built-in demo agent: an ACP agent over stdio with no model behind it.
//!
//! Comes in: protocol lines on stdin. Goes out: protocol lines on stdout. Words in a prompt select what it shows;
//! `/help` lists them. Its sessions are files, so they survive a restart. Kept out: the network, a model, and the
//! user's files: it shows changes and commands, but makes none.

mod acp_connection;
mod prompt_scripts;
mod sessions;
mod texts;

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use agent_process::framing::LineFramer;

use self::acp_connection::AcpConnection;
use self::sessions::Sessions;

/// The delay between two words in milliseconds, for measurements and tests.
const PACE_VARIABLE: &str = "LIMINAL_DEMO_PACE_MS";
const PACE_DEFAULT: Duration = Duration::from_millis(18);
/// Prompts are small; a line beyond this is not one.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Handles stdin until it ends.
pub fn run() -> ExitCode {
    let pace = std::env::var(PACE_VARIABLE).ok().and_then(|text| text.parse().ok()).map(Duration::from_millis);
    let connection = Arc::new(AcpConnection::new(Sessions::open(), pace.unwrap_or(PACE_DEFAULT)));
    let mut framer = LineFramer::new(LINE_BYTES_MAX);
    let mut stdin = std::io::stdin().lock();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match stdin.read(&mut buffer) {
            Ok(0) => return ExitCode::SUCCESS,
            Ok(read) => framer.push(&buffer[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => {
                eprintln!("stdin: {error}");
                return ExitCode::FAILURE;
            }
        }
        while let Some(line) = framer.next_line() {
            match line {
                Ok(line) if line.is_blank() => {}
                Ok(line) => connection.on_line(&line.to_str_lossy()),
                Err(error) => eprintln!("{error}"),
            }
        }
    }
}
