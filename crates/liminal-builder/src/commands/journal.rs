//! `journal`: what is recorded on the disk, whether it is sound, and deleting what is old.
//!
//! A server that runs is asked. Without one, `stats` and `check` read the file and change nothing, and `prune` holds the
//! lock of the data directory, so that no server starts meanwhile.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::SystemTime;

use ::journal::{Depth, Journal, JournalError, OpenedJournal, SqliteJournal, Stats};
use catalog::{Catalog, Inspection, Opened};
use protocol::Timestamp;
use protocol::http::{JournalCheckBody, JournalSession, JournalStatsBody, PruneBody, PrunedBody};
use serde::Serialize;
use serde_json::json;

use super::failure::{EXIT_CODES, Exit, Failure};
use super::list::age;
use crate::client::Server;
use crate::terminal::{Stream, Style, harmless, one_line};

/// Longest title that is shown whole.
const TITLE_WIDTH: usize = 44;
const MIB: u64 = 1 << 20;

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum Action {
    /// How large it is, and how much of it each session has
    Stats(StatsArgs),
    /// Read all of it and list what is damaged; nothing is changed
    Check(CheckArgs),
    /// Delete turns that ended long ago; the agents' own histories stay
    Prune(PruneArgs),
}

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
struct StatsArgs {
    /// Print one JSON object: {"path", "fileBytes", "items", "sessions": [{"sessionId", "title", "items", "saidBytes", …}], …}
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
struct CheckArgs {
    /// Print one JSON object: {"damage": [texts], "contradictions": [texts], "items"}
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
struct PruneArgs {
    /// Delete turns that ended so long ago: a number and h, d or w, as in 90d
    #[arg(long, value_name = "AGE")]
    older_than: Age,

    /// Do not ask first
    #[arg(long)]
    yes: bool,

    /// Print one JSON object: {"turns", "items", "freedBytes"}
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn json(&self) -> bool {
        match &self.action {
            Action::Stats(args) => args.json,
            Action::Check(args) => args.json,
            Action::Prune(args) => args.json,
        }
    }
}

/// How long ago something was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Age {
    ms: u64,
}

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const HOUR_MS: u64 = 60 * 60 * 1000;
        let wrong = || "write a number and h, d or w, as in 90d".to_owned();
        let unit_at = text.len().checked_sub(1).filter(|at| text.is_char_boundary(*at)).ok_or_else(wrong)?;
        let (number, unit) = text.split_at(unit_at);
        let unit_ms = match unit {
            "h" => HOUR_MS,
            "d" => 24 * HOUR_MS,
            "w" => 7 * 24 * HOUR_MS,
            _ => return Err(wrong()),
        };
        let number: u32 = number.parse().map_err(|_| wrong())?;
        match number {
            0 => Err("it must be at least 1".into()),
            _ => Ok(Self { ms: u64::from(number) * unit_ms }),
        }
    }
}

pub(crate) async fn run(args: &Args, visit: &Inspection) -> Result<ExitCode, Failure> {
    let server = match visit.server() {
        Ok(Some(_)) => Some(Server::find(visit)?),
        Ok(None) => None,
        Err(error) => return Err(Failure::new("STORAGE_FAILED", error.to_string())),
    };
    match &args.action {
        Action::Stats(args) => {
            let stats = stats(visit, server.as_ref()).await?;
            match (stats, args.json) {
                (Some(stats), true) => Stream::Out.line(&to_json(&stats)?)?,
                (Some(stats), false) => Stream::Out.write(&to_text(&stats, Timestamp::from(SystemTime::now())))?,
                (None, true) => Stream::Out.line("{}")?,
                (None, false) => Stream::Out.line("There is no journal yet.")?,
            }
            Ok(ExitCode::SUCCESS)
        }
        Action::Check(args) => {
            let report = check(visit, server.as_ref()).await?;
            print_check(report.as_ref(), args.json)
        }
        Action::Prune(args) => prune(args, visit, server.as_ref()).await,
    }
}

async fn stats(visit: &Inspection, server: Option<&Server>) -> Result<Option<JournalStatsBody>, Failure> {
    if let Some(server) = server {
        return server.get("/api/journal").await.map(Some);
    }
    let found = ::journal::inspect(visit.dir()).map_err(|error| unusable(&error))?;
    Ok(found.stats.map(|stats| with_titles(stats, visit)))
}

fn with_titles(stats: Stats, visit: &Inspection) -> JournalStatsBody {
    let mut titles = visit.titles();
    let sessions = stats.sessions.into_iter().map(|session| JournalSession {
        title: titles.remove(&session.session),
        session_id: session.session,
        items: session.items,
        turns: session.turns,
        said_bytes: session.said_bytes,
        first_at: session.first_at,
        last_at: session.last_at,
    });
    JournalStatsBody {
        path: stats.path.map(|path| path.display().to_string()),
        file_bytes: stats.file_bytes,
        free_bytes: stats.free_bytes,
        disk_free_bytes: stats.disk_free_bytes,
        format: stats.format,
        items: stats.items,
        turns: stats.turns,
        sessions: sessions.collect(),
    }
}

async fn check(visit: &Inspection, server: Option<&Server>) -> Result<Option<JournalCheckBody>, Failure> {
    if let Some(server) = server {
        return server.post("/api/journal/check", &json!({})).await.map(Some);
    }
    let report = ::journal::check_file(visit.dir(), Depth::Whole).map_err(|error| unusable(&error))?;
    Ok(report.map(|report| JournalCheckBody {
        damage: report.damage,
        contradictions: report.contradictions,
        items: report.items,
    }))
}

fn print_check(report: Option<&JournalCheckBody>, as_json: bool) -> Result<ExitCode, Failure> {
    let Some(report) = report else {
        Stream::Out.line(if as_json { "{}" } else { "There is no journal yet." })?;
        return Ok(ExitCode::SUCCESS);
    };
    if as_json {
        Stream::Out.line(&to_json(report)?)?;
    } else {
        for defect in report.damage.iter().chain(&report.contradictions) {
            Stream::Out.line(&format!("{} {}", Stream::Out.paint(Style::Bad, "!!"), one_line(defect, usize::MAX)))?;
        }
        let count = report.damage.len() + report.contradictions.len();
        Stream::Out.line(&match count {
            0 => format!("The journal is sound: {} items.", report.items),
            1 => "The journal is damaged: one finding.".to_owned(),
            many => format!("The journal is damaged: {many} findings."),
        })?;
        if count > 0 {
            let advice = "Export the conversations that matter (`liminal-builder export`), stop the server and keep a copy of \
                 journal.db. A file that cannot be used any more is set aside at a start, and never overwritten.";
            Stream::Out.line(advice)?;
        }
    }
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { Exit::Damaged.into() })
}

async fn prune(args: &PruneArgs, visit: &Inspection, server: Option<&Server>) -> Result<ExitCode, Failure> {
    let now = Timestamp::from(SystemTime::now());
    let age_ms = i64::try_from(args.older_than.ms).unwrap_or(i64::MAX);
    let before = Timestamp::from_unix_ms(now.unix_ms().saturating_sub(age_ms));
    if !args.yes && !is_confirmed(before)? {
        return Err(Failure::new("NOT_CONFIRMED", "Nothing was deleted."));
    }
    let pruned = match server {
        Some(server) => {
            let body = PruneBody { older_than_ms: None, before: Some(before) };
            server.post("/api/journal/prune", &body).await?
        }
        None => prune_file(visit, before).await?,
    };
    Stream::Out.line(&match args.json {
        true => to_json(&pruned)?,
        false if pruned.turns == 0 => "No turn is that old; nothing was deleted.".to_owned(),
        false => {
            let (turns, items) = (count(pruned.turns, "turn"), count(pruned.items, "item"));
            format!("Deleted {turns} with {items}; {} given back to the disk.", size(pruned.freed_bytes))
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Asks on the terminal. Where nobody can be asked, `--yes` is needed.
fn is_confirmed(before: Timestamp) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() || !Stream::Error.is_terminal() {
        return Err(Failure::usage("Nobody can be asked here: confirm with --yes."));
    }
    let day = before.to_string();
    let day = day.get(..10).unwrap_or(&day);
    let question = format!(
        "Delete all turns that ended before {day} from the journal? This cannot be undone; the agents' own histories \
         stay. [y/N] "
    );
    Stream::Error.write(&question)?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|error| Failure::new("NOT_CONFIRMED", error.to_string()))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

async fn prune_file(visit: &Inspection, before: Timestamp) -> Result<PrunedBody, Failure> {
    // What cannot be read is not opened for writing: that would set it aside.
    let found = ::journal::inspect(visit.dir()).map_err(|error| unusable(&error))?;
    if found.stats.is_none() {
        return Ok(PrunedBody { turns: 0, items: 0, freed_bytes: 0 });
    }
    let Opened { catalog, notices } = Catalog::open(visit.dir()).map_err(|error| {
        Failure::new("STORAGE_FAILED", error.to_string()).with_detail(error.advice().unwrap_or_default())
    })?;
    let OpenedJournal { journal, notices: more } =
        SqliteJournal::open(visit.dir()).map_err(|error| unusable(&error))?;
    for notice in notices.iter().chain(&more) {
        Stream::Error.line(&harmless(notice))?;
    }
    let pruned = journal.prune(before).await;
    journal.close().await;
    drop(catalog);
    let pruned = pruned.map_err(|error| unusable(&error))?;
    Ok(PrunedBody { turns: pruned.turns, items: pruned.items, freed_bytes: pruned.freed_bytes })
}

fn unusable(error: &JournalError) -> Failure {
    let failure = Failure::new("STORAGE_FAILED", format!("{error}."));
    match error.kind() {
        ::journal::FailureKind::Damaged => {
            let advice = "At the next start of the server it is set aside, never overwritten.";
            failure.with_exit(Exit::Damaged).with_detail(advice)
        }
        _ => failure.with_detail("`liminal-builder doctor` checks the journal and its disk."),
    }
}

fn to_json(body: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(body).map_err(|error| Failure::new("INTERNAL_ERROR", error.to_string()))
}

fn to_text(stats: &JournalStatsBody, now: Timestamp) -> String {
    let path = stats.path.as_deref().unwrap_or("in memory only: it is gone when the server stops");
    let mut text = format!("{}\n", one_line(path, usize::MAX));
    let free = stats.disk_free_bytes.map(|free| format!(", {} free on the disk", size(free))).unwrap_or_default();
    text += &format!("{}{free}, format {}\n", size(stats.file_bytes), stats.format);
    let sessions = count(stats.sessions.len() as u64, "session");
    text += &format!("{sessions}, {}, {}\n", count(stats.turns, "turn"), count(stats.items, "item"));
    if stats.sessions.is_empty() {
        return text;
    }
    let width = TITLE_WIDTH + 1;
    let head = format!("{:width$}  {:>7}  {:>8}  {:>10}  {:>5}", "Session", "Turns", "Items", "Size", "Last");
    text += &format!("\n{}\n", Stream::Out.paint(Style::Dim, &head));
    for session in &stats.sessions {
        let name = session.title.as_deref().unwrap_or(session.session_id.as_str());
        let name = one_line(name, TITLE_WIDTH);
        let last = session.last_at.map(|at| age(at, now)).unwrap_or_default();
        let size = size(session.said_bytes);
        text += &format!("{name:width$}  {:>7}  {:>8}  {size:>10}  {last:>5}\n", session.turns, session.items);
    }
    text
}

/// As in `1 turn` and `2 turns`.
pub(super) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// As in `12.3 MiB` and `4.5 GiB`: with one decimal, rounded up, so that what is there is never 0.
pub(super) fn size(bytes: u64) -> String {
    let (unit, name) = if bytes < 1024 * MIB { (MIB, "MiB") } else { (1024 * MIB, "GiB") };
    let tenths = bytes.saturating_mul(10).div_ceil(unit);
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use protocol::SessionId;

    use super::*;

    #[test]
    fn an_age_is_a_number_and_a_unit() {
        const DAY_MS: u64 = 24 * 60 * 60 * 1000;
        let ms = |text: &str| text.parse::<Age>().map(|age| age.ms);
        assert_eq!([ms("90d"), ms("2w"), ms("12h")], [Ok(90 * DAY_MS), Ok(14 * DAY_MS), Ok(DAY_MS / 2)]);
        for wrong in ["", "d", "90", "0d", "-1d", "1.5d", "90 d", "9é", "99999999999d"] {
            assert!(wrong.parse::<Age>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn stats_name_each_session_and_steer_no_terminal() {
        let session = |id: &str, title: Option<&str>| JournalSession {
            session_id: SessionId::parse(id).unwrap(),
            title: title.map(Into::into),
            items: 20,
            turns: 2,
            said_bytes: 5 * MIB / 2,
            first_at: None,
            last_at: Some(Timestamp::from_unix_ms(0)),
        };
        let stats = JournalStatsBody {
            path: Some("/data/journal.db".into()),
            file_bytes: 12 * MIB,
            free_bytes: 0,
            disk_free_bytes: Some(2048 * MIB),
            format: 1,
            items: 40,
            turns: 4,
            sessions: vec![session("demo:a", Some("Fix\u{1b}[2J it")), session("demo:gone", None)],
        };
        let text = to_text(&stats, Timestamp::from_unix_ms(2 * 3_600_000));
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[1], "12.0 MiB, 2.0 GiB free on the disk, format 1");
        assert_eq!(lines[5..], ["Fix[2J it 2 20 2.5 MiB 2h", "demo:gone 2 20 2.5 MiB 2h"]);
        assert_eq!((size(0), size(1)), ("0.0 MiB".into(), "0.1 MiB".into()));
    }
}
