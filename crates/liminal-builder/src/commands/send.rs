//! `send`: a message, and its answer as it comes.
//!
//! The answer goes to standard output and nothing else does; thinking, tools and notices go to standard error. Ctrl-C
//! stops the turn, as in the page; a second one exits and leaves the turn running. A command that ends in any other
//! way, or whose reader closes the pipe, only stops watching: the turn continues.

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use protocol::http::{SendBody, SentBody};
use protocol::{ClientMessage, ServerMessage, TurnEvent};

use super::failure::{EXIT_CODES, Exit, Failure};
use super::follow::{Ended, Follower, turn_end};
use super::session_name::resolve;
use crate::client::{Kind, Server};
use crate::terminal::{Stream, Style};

/// The server's limit.
const MESSAGE_BYTES_MAX: u64 = 1024 * 1024;

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// The session: its id, or enough of it
    session: String,

    /// The message; several words need no quotes, and words that begin with a dash come after `--`. Without a message,
    /// or with `-`, it is read from standard input
    message: Vec<String>,

    /// Do not wait for the answer: print the turn's id and exit
    #[arg(long, short)]
    detach: bool,

    /// Show the answer only: no thoughts, tools and notices
    #[arg(long, short)]
    quiet: bool,

    /// Print the server's messages of the session, one JSON object per line, as documented for the WebSocket; with
    /// --detach, one object: {"turnId"}
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(args: &Args, server: &Server) -> Result<ExitCode, Failure> {
    let content = message(&args.message)?;
    let mut window = server.window(if args.json { Kind::Plain } else { Kind::View }).await?;
    let session_id = resolve(&mut window, &args.session).await?;
    if args.detach {
        let sent: SentBody = server.post(&format!("/api/session/{session_id}/send"), &SendBody { content }).await?;
        Stream::Out.line(&match args.json {
            true => serde_json::json!({"turnId": sent.turn_id}).to_string(),
            false => sent.turn_id.to_string(),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut interrupts = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
        .map_err(|error| Failure::new("INTERNAL_ERROR", error.to_string()))?;
    let history =
        window.call(&ClientMessage::SessionOpen { session_id, since: None, epoch: None, journal_id: None }).await?;
    let ServerMessage::SessionHistory { session_id, .. } = history.frame.message else {
        return Err(Failure::new("INTERNAL_ERROR", "The server answered something else."));
    };
    let request = window.ask(&ClientMessage::SessionSend { session_id: session_id.clone(), content }).await?;
    let mut follower = Follower::of_answer(session_id, args.json, args.quiet);
    let (mut turn, mut interrupted) = (None, false);
    loop {
        let received = tokio::select! {
            received = window.next() => received?,
            _ = interrupts.recv() => {
                if interrupted {
                    return Ok(Exit::Interrupted.into());
                }
                interrupted = true;
                let stopping = "Stopping. Press Ctrl-C again to exit at once; the agent then continues.";
                follower.print(Style::Dim, stopping)?;
                window.ask(&ClientMessage::SessionCancel { session_id: follower.session().clone() }).await?;
                continue;
            }
        };
        if received.frame.request_id.as_deref() == Some(&request) {
            match &received.frame.message {
                ServerMessage::Error(error) => return Err(error.clone().into()),
                ServerMessage::SessionTurn { payload: TurnEvent::TurnStarted { turn_id, .. }, .. } => {
                    turn = Some(turn_id.clone());
                }
                _ => {}
            }
        }
        // Output of another turn is not part of this answer.
        if turn.is_none() {
            continue;
        }
        follower.take(&received)?;
        let Some(ended) = turn.as_ref().and_then(|turn| turn_end(&received.frame.message, follower.session(), turn))
        else {
            continue;
        };
        follower.finish()?;
        // The user has seen it: no other window needs to mark it unread.
        window.call(&ClientMessage::SessionSeen { session_id: follower.session().clone() }).await?;
        return match ended {
            _ if interrupted => Ok(Exit::Interrupted.into()),
            Ended::Completed => Ok(ExitCode::SUCCESS),
            Ended::Cancelled => Ok(Exit::Cancelled.into()),
            Ended::Failed => Ok(Exit::Failed.into()),
        };
    }
}

fn message(args: &[String]) -> Result<String, Failure> {
    let given = args.join(" ");
    let text = match given.as_str() {
        "" | "-" => {
            let stdin = std::io::stdin();
            if args.is_empty() && stdin.is_terminal() {
                return Err(Failure::usage("Say what to send: give a message, or pipe one in."));
            }
            let mut text = String::new();
            let read = stdin.lock().take(MESSAGE_BYTES_MAX + 1).read_to_string(&mut text);
            read.map_err(|error| Failure::usage(format!("Standard input cannot be read: {error}")))?;
            text
        }
        _ => given,
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("The message is empty."));
    }
    if text.len() as u64 > MESSAGE_BYTES_MAX {
        return Err(Failure::usage(format!("The message is longer than {MESSAGE_BYTES_MAX} bytes.")));
    }
    Ok(text)
}
