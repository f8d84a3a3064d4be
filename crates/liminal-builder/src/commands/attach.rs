//! `attach`: shows a conversation, from its beginning or its newest part, and follows it. Ctrl-C exits; nothing is
//! stopped.

use std::process::ExitCode;

use protocol::{ClientMessage, ServerMessage, TurnRecordStatus};

use super::failure::{EXIT_CODES, Exit, Failure};
use super::follow::{Ended, Follower, any_turn_end};
use super::session_name::resolve;
use crate::client::{Kind, Server};

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// The session: its id, or enough of it
    session: String,

    /// Exit when no turn runs any more, with the exit status that `send` would have
    #[arg(long, short)]
    wait: bool,

    /// Print the server's messages of the session, one JSON object per line, as documented for the WebSocket
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(args: &Args, server: &Server) -> Result<ExitCode, Failure> {
    let mut window = server.window(if args.json { Kind::Plain } else { Kind::View }).await?;
    let session_id = resolve(&mut window, &args.session).await?;
    let mut interrupts = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
        .map_err(|error| Failure::new("INTERNAL_ERROR", error.to_string()))?;
    let history =
        window.call(&ClientMessage::SessionOpen { session_id, since: None, epoch: None, journal_id: None }).await?;
    // Under the id it has now: opening may have given it another.
    let ServerMessage::SessionHistory { session_id, turns, .. } = &history.frame.message else {
        return Err(Failure::new("INTERNAL_ERROR", "The server answered something else."));
    };
    let mut follower = Follower::of_conversation(session_id.clone(), args.json);
    follower.take(&history)?;
    let last = turns.last().map_or(TurnRecordStatus::Completed, |turn| turn.status);
    if args.wait && last != TurnRecordStatus::Running {
        follower.finish()?;
        return Ok(match last {
            TurnRecordStatus::Running | TurnRecordStatus::Completed => ExitCode::SUCCESS,
            TurnRecordStatus::Cancelled => Exit::Cancelled.into(),
            TurnRecordStatus::Error => Exit::Failed.into(),
        });
    }
    loop {
        let received = tokio::select! {
            received = window.next() => received?,
            _ = interrupts.recv() => {
                follower.finish()?;
                return Ok(Exit::Interrupted.into());
            }
        };
        follower.take(&received)?;
        let ended = any_turn_end(&received.frame.message, follower.session()).filter(|_| args.wait);
        let Some(ended) = ended else { continue };
        follower.finish()?;
        window.call(&ClientMessage::SessionSeen { session_id: follower.session().clone() }).await?;
        return Ok(match ended {
            Ended::Completed => ExitCode::SUCCESS,
            Ended::Cancelled => Exit::Cancelled.into(),
            Ended::Failed => Exit::Failed.into(),
        });
    }
}
