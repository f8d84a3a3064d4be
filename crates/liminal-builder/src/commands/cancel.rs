//! `cancel`: stops a turn, and comes back when it has ended, so that the next message can be sent at once.

use std::process::ExitCode;
use std::time::Duration;

use protocol::{ClientMessage, ErrorCode};
use serde_json::json;

use super::failure::{EXIT_CODES, Exit, Failure};
use super::follow::{Ended, any_turn_end};
use super::session_name::resolve;
use crate::client::{Kind, Server};
use crate::terminal::Stream;

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// The session: its id, or enough of it
    session: String,

    /// How long to wait for the turn to end; after that, exit status 6. The server itself ends a turn that does not stop
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    timeout: u64,

    /// Print one JSON object: {"sessionId", "cancelled": whether a turn was running and was stopped}
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(args: &Args, server: &Server) -> Result<ExitCode, Failure> {
    let mut window = server.window(Kind::Plain).await?;
    let session = resolve(&mut window, &args.session).await?;
    // The answer is the end of the turn, or the report that none was running.
    let cancel = ClientMessage::SessionCancel { session_id: session.clone() };
    let answer = tokio::time::timeout(Duration::from_secs(args.timeout), window.call(&cancel)).await;
    let message = answer.unwrap_or_else(|_| Err(still_working(args.timeout)))?.frame.message;
    let ended = any_turn_end(&message, &session);
    let was_stopped = matches!(ended, Some(Ended::Cancelled | Ended::Failed));
    Stream::Out.line(&match (args.json, ended) {
        (true, _) => json!({"sessionId": session, "cancelled": was_stopped}).to_string(),
        (false, None) => "Nothing was running".into(),
        (false, Some(Ended::Completed)) => "It had just finished".into(),
        (false, Some(Ended::Cancelled | Ended::Failed)) => "Stopped".into(),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn still_working(seconds: u64) -> Failure {
    let code = ErrorCode::TurnInProgress;
    Failure::new(code.as_str(), code.message(""))
        .with_detail(format!(
            "It was asked to stop and has not done so within {seconds} s. `liminal-builder attach --wait` shows when it \
             does."
        ))
        .with_exit(Exit::Busy)
}
