//! `cancel`: stops a turn.

use std::process::ExitCode;

use protocol::Attention;
use protocol::http::SessionStatusBody;
use serde_json::{Value, json};

use super::failure::{EXIT_CODES, Failure};
use super::session_name::resolve;
use crate::client::{Kind, Server};
use crate::terminal::Stream;

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// The session: its id, or enough of it
    session: String,

    /// Print one JSON object: {"sessionId", "cancelled": whether a turn was running}
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(args: &Args, server: &Server) -> Result<ExitCode, Failure> {
    let session = resolve(&mut server.window(Kind::Plain).await?, &args.session).await?;
    let status: SessionStatusBody = server.get(&format!("/api/session/{session}/status")).await?;
    let was_running = matches!(status.state.attention, Attention::Working | Attention::NeedsPermission);
    let _: Value = server.post(&format!("/api/session/{session}/cancel"), &json!({})).await?;
    Stream::Out.line(&match (args.json, was_running) {
        (true, _) => json!({"sessionId": session, "cancelled": was_running}).to_string(),
        (false, true) => "Stopped".into(),
        (false, false) => "Nothing was running".into(),
    })?;
    Ok(ExitCode::SUCCESS)
}
