//! `open`: the page in the browser.

use std::process::ExitCode;

use protocol::http::TicketBody;
use serde_json::json;

use super::failure::{EXIT_CODES, Failure};
use crate::browser;
use crate::client::Server;
use crate::terminal::{Stream, Style};

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Only print the link, which lets in whoever has it
    #[arg(long)]
    print: bool,

    /// Print one JSON object: {"link", "opened": whether a browser was started}
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(args: &Args, server: &Server) -> Result<ExitCode, Failure> {
    let opens = !args.print && browser::has_display();
    // Asked for in any case: a server that does not take our secret has no link to print.
    let ticket: TicketBody = server.post("/api/ticket", &json!({})).await?;
    let mut opened = false;
    if opens {
        match browser::open(&browser::address(&server.address, &ticket.path, ticket.file.as_deref())) {
            Ok(()) => opened = true,
            Err(error) => Stream::Error.line(&Stream::Error.paint(Style::Warn, &error.to_string()))?,
        }
    }
    let link = match (&server.token, ticket.path.as_str()) {
        (Some(token), path) if path != "/" => format!("{}/?token={token}", server.address),
        _ => format!("{}/", server.address),
    };
    // Where a browser has the page, nobody needs the secret, and what is not a terminal may be a log.
    let is_needed = args.print || !opened || Stream::Out.is_terminal();
    Stream::Out.line(&match (args.json, is_needed) {
        (true, _) => json!({"link": link, "opened": opened}).to_string(),
        (false, true) => link,
        (false, false) => format!("{}/", server.address),
    })?;
    Ok(ExitCode::SUCCESS)
}
