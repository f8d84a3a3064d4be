//! `browsers`: which browsers were let in, and taking that back.

use std::process::ExitCode;
use std::time::SystemTime;

use protocol::Timestamp;
use protocol::http::{BrowserInfo, BrowserListBody, RevokeBody, RevokedBody};
use serde_json::json;

use super::failure::{EXIT_CODES, Failure};
use super::list::age;
use crate::client::Server;
use crate::terminal::{Stream, one_line};

const LABEL_WIDTH: usize = 30;

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXIT_CODES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    /// Print one JSON object: {"isRequired", "browsers": [{"id", "label", "addedAt", "lastUsedAt", "isCurrent"}]}
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum Action {
    /// Lock a browser out at once: its windows close, and it needs a new link to come back
    Revoke(RevokeArgs),
}

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
struct RevokeArgs {
    /// The browser: its id, or enough of it
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    id: Option<String>,

    /// Every browser
    #[arg(long)]
    all: bool,

    /// Print one JSON object: {"revoked": [ids]}
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn json(&self) -> bool {
        match &self.action {
            None => self.json,
            Some(Action::Revoke(args)) => args.json,
        }
    }
}

pub(crate) async fn run(args: &Args, server: &Server) -> Result<ExitCode, Failure> {
    let list: BrowserListBody = server.get("/api/browsers").await?;
    match &args.action {
        None if args.json => Stream::Out.line(&to_json(&list)?)?,
        None => Stream::Out.write(&to_text(&list, Timestamp::from(SystemTime::now())))?,
        Some(Action::Revoke(args)) => revoke(args, server, &list).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn revoke(args: &RevokeArgs, server: &Server, list: &BrowserListBody) -> Result<(), Failure> {
    let id = match &args.id {
        Some(name) => Some(resolve(&list.browsers, name)?.id.clone()),
        None => None,
    };
    let body = RevokeBody { all: id.is_none(), id };
    let answer: RevokedBody = server.post("/api/browsers/revoke", &body).await?;
    Stream::Out.line(&match (args.json, answer.revoked.len()) {
        (true, _) => json!({"revoked": answer.revoked}).to_string(),
        (false, 0) => "No browser was let in".into(),
        (false, 1) => "Revoked 1 browser".into(),
        (false, many) => format!("Revoked {many} browsers"),
    })
}

/// The one browser whose id begins so.
fn resolve<'a>(browsers: &'a [BrowserInfo], name: &str) -> Result<&'a BrowserInfo, Failure> {
    let mut found = browsers.iter().filter(|browser| !name.is_empty() && browser.id.starts_with(name));
    let advice = "`liminal-builder browsers` lists them.";
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(Failure::new("BROWSER_NOT_FOUND", "No browser has this id.").with_detail(advice)),
        (Some(_), Some(_)) => {
            Err(Failure::new("BROWSER_NOT_FOUND", "Several browsers have an id that begins so.").with_detail(advice))
        }
    }
}

fn to_json(list: &BrowserListBody) -> Result<String, Failure> {
    serde_json::to_string(list).map_err(|error| Failure::new("INTERNAL_ERROR", error.to_string()))
}

fn to_text(list: &BrowserListBody, now: Timestamp) -> String {
    if !list.is_required {
        return "This server runs with --no-auth: every browser is let in.\n".into();
    }
    if list.browsers.is_empty() {
        return "No browser was let in. `liminal-builder open` does so.\n".into();
    }
    let line = |browser: &BrowserInfo| {
        let label = one_line(&browser.label, LABEL_WIDTH);
        let (used, added) = (age(browser.last_used_at, now), age(browser.added_at, now));
        format!("{}  {label:width$}  used {used:>4}  added {added:>4}\n", browser.id, width = LABEL_WIDTH + 1)
    };
    list.browsers.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn browser(id: &str) -> BrowserInfo {
        let (added_at, last_used_at) = (Timestamp::from_unix_ms(0), Timestamp::from_unix_ms(3_600_000));
        BrowserInfo {
            id: id.into(),
            label: "Firefox on\u{1b}[2J Linux".into(),
            added_at,
            last_used_at,
            is_current: false,
        }
    }

    #[test]
    fn a_browser_goes_by_enough_of_its_id() {
        let browsers = [browser("aa11"), browser("aa22"), browser("bb33")];
        assert_eq!(resolve(&browsers, "b").unwrap().id, "bb33");
        assert_eq!(resolve(&browsers, "aa2").unwrap().id, "aa22");
        for wrong in ["", "a", "aa", "c", "aa111"] {
            assert!(resolve(&browsers, wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_list_says_when_each_was_used_and_steers_no_terminal() {
        let list = BrowserListBody { is_required: true, browsers: vec![browser("aa11")] };
        let text = to_text(&list, Timestamp::from_unix_ms(2 * 3_600_000));
        assert!(text.starts_with("aa11  Firefox on[2J Linux") && text.ends_with("used   1h  added   2h\n"), "{text:?}");
        assert!(
            to_text(&BrowserListBody { is_required: false, browsers: Vec::new() }, list.browsers[0].added_at)
                .contains("--no-auth")
        );
    }
}
