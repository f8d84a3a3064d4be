//! `list`: what the sidebar shows.

use std::process::ExitCode;
use std::time::SystemTime;

use protocol::{Attention, Project, SessionId, SessionSummary, Timestamp};
use serde_json::{Value, json};

use super::failure::{EXIT_CODES, Failure};
use super::session_name::{everything, short_names};
use crate::client::{Kind, Server};
use crate::terminal::{Stream, Style, one_line};

/// Longest title and longest state that are shown whole.
const TITLE_WIDTH: usize = 50;
const STATE_WIDTH: usize = 16;

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Print one JSON object: {"projects": [{"id", "path", "name", "addedAt", "sessions": [{"id", "title", "attention", …}]}]}
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(args: &Args, server: &Server) -> Result<ExitCode, Failure> {
    let mut window = server.window(Kind::Plain).await?;
    let all = everything(&mut window).await?;
    match args.json {
        true => Stream::Out.line(&to_json(&all)?.to_string())?,
        false => Stream::Out.write(&to_text(&all))?,
    }
    Ok(ExitCode::SUCCESS)
}

type All = [(Project, Vec<SessionSummary>)];

fn to_json(all: &All) -> Result<Value, Failure> {
    let projects: Result<Vec<Value>, serde_json::Error> = all
        .iter()
        .map(|(project, sessions)| {
            let mut value = serde_json::to_value(project)?;
            value["sessions"] = serde_json::to_value(sessions)?;
            Ok(value)
        })
        .collect();
    let projects = projects.map_err(|error| Failure::new("INTERNAL_ERROR", error.to_string()))?;
    Ok(json!({ "projects": projects }))
}

fn to_text(all: &All) -> String {
    if all.is_empty() {
        return "No projects yet. Start a session in a directory with `liminal-builder new`.\n".into();
    }
    let names = short_names(all.iter().flat_map(|(_, sessions)| sessions).map(|session| &session.id));
    let name = |id: &SessionId| names.get(id).copied().unwrap_or_default().to_owned();
    let now = Timestamp::from(SystemTime::now());
    let mut text = String::new();
    for (project, sessions) in all {
        let title = one_line(&project.name, TITLE_WIDTH);
        let path = one_line(&project.path, usize::MAX);
        text += &format!("{}  {}\n", Stream::Out.paint(Style::Bold, &title), Stream::Out.paint(Style::Dim, &path));
        if sessions.is_empty() {
            text += &format!("  {}\n", Stream::Out.paint(Style::Dim, "No sessions yet"));
        }
        for session in sessions {
            let (state, style) = label(session.state.attention);
            let state = format!("{state:STATE_WIDTH$}");
            let state = style.map_or(state.as_str().into(), |style| Stream::Out.paint(style, &state));
            let title = one_line(&session.title, TITLE_WIDTH);
            let age = age(session.last_active_at, now);
            text += &format!("  {state}  {title:width$}  {age:>4}  {}\n", name(&session.id), width = TITLE_WIDTH + 1);
        }
    }
    text
}

fn label(attention: Attention) -> (&'static str, Option<Style>) {
    match attention {
        Attention::NeedsPermission => ("needs permission", Some(Style::Warn)),
        Attention::Error => ("error", Some(Style::Bad)),
        Attention::Finished => ("finished", Some(Style::Good)),
        Attention::Working => ("working", Some(Style::Bold)),
        Attention::Starting => ("starting", None),
        Attention::Reconnecting => ("reconnecting", Some(Style::Warn)),
        Attention::Disconnected => ("disconnected", Some(Style::Dim)),
        Attention::Idle => ("", None),
    }
}

/// As the sidebar shows it: now, 4m, 2h, 2d, 1w.
pub(super) fn age(then: Timestamp, now: Timestamp) -> String {
    let minutes = (now.unix_ms() - then.unix_ms()).max(0) / 60_000;
    match minutes {
        0 => "now".into(),
        1..60 => format!("{minutes}m"),
        60..1440 => format!("{}h", minutes / 60),
        1440..10_080 => format!("{}d", minutes / 1440),
        _ => format!("{}w", minutes / 10_080),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_shown_as_in_the_sidebar() {
        let ago = |minutes: i64| age(Timestamp::from_unix_ms(0), Timestamp::from_unix_ms(minutes * 60_000));
        assert_eq!([ago(0), ago(4), ago(125), ago(3000), ago(10_081)], ["now", "4m", "2h", "2d", "1w"]);
        assert_eq!(ago(-5), "now", "another machine's clock may be ahead");
    }
}
