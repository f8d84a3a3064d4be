//! `usage`: tokens and cost per day, project or session, as the agents reported them.

use std::process::ExitCode;

use protocol::http::{UsageBody, UsageRow};

use super::failure::{EXIT_CODES, Failure};
use crate::client::Server;
use crate::terminal::{Stream, Style, one_line};

/// Longest name that is shown whole.
const NAME_WIDTH: usize = 50;

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// How many days back, today among them
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    days: u32,

    /// One line per day, per project or per session
    #[arg(long, value_enum, default_value_t = Grouping::Day)]
    by: Grouping,

    /// Print one JSON object: {"today", "rows": [{"day", "sessionId", "title", "projectName", "turns", "inputTokens", "costUsd", …}]}
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Grouping {
    Day,
    Project,
    Session,
}

pub(crate) async fn run(args: &Args, server: &Server) -> Result<ExitCode, Failure> {
    let usage: UsageBody = server.get(&format!("/api/usage?days={}", args.days)).await?;
    if args.json {
        let text = serde_json::to_string(&usage).map_err(|error| Failure::new("INTERNAL_ERROR", error.to_string()))?;
        Stream::Out.line(&text)?;
    } else {
        Stream::Out.write(&to_text(&usage, args.by, args.days))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One line of the table.
#[derive(Debug, Default)]
struct Sum {
    name: String,
    turns: u64,
    tokens: u64,
    cost_usd: Option<f64>,
}

impl Sum {
    fn add(&mut self, row: &UsageRow) {
        self.turns = self.turns.saturating_add(row.turns);
        self.tokens = self.tokens.saturating_add(row.tokens());
        if let Some(cost) = row.cost_usd {
            *self.cost_usd.get_or_insert_default() += cost;
        }
    }

    fn line(&self) -> String {
        let cost = self.cost_usd.map_or_else(|| "-".to_owned(), |cost| format!("${cost:.2}"));
        let name = one_line(&self.name, NAME_WIDTH);
        let width = NAME_WIDTH + 1;
        format!("{name:width$}  {:>6}  {:>8}  {cost:>9}", self.turns, compact(self.tokens))
    }
}

fn to_text(usage: &UsageBody, by: Grouping, days: u32) -> String {
    if usage.rows.is_empty() {
        let period = if days == 1 { "today".to_owned() } else { format!("in the last {days} days") };
        return format!("No agent reported any usage {period}.\n");
    }
    // Rows are newest day first, and within a day largest first; the first row of a group gives it its place.
    let mut sums: Vec<(&str, Sum)> = Vec::new();
    let mut total = Sum { name: "Total".into(), ..Sum::default() };
    for row in &usage.rows {
        let (key, name) = match by {
            Grouping::Day => (row.day.as_str(), row.day.as_str()),
            Grouping::Project => (row.project_id.as_str(), row.project_name.as_deref().unwrap_or("(removed project)")),
            Grouping::Session => (row.session_id.as_str(), row.title.as_str()),
        };
        let index = sums.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            sums.push((key, Sum { name: name.to_owned(), ..Sum::default() }));
            sums.len() - 1
        });
        sums[index].1.add(row);
        total.add(row);
    }
    if by != Grouping::Day {
        sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.tokens));
    }
    let heading = match by {
        Grouping::Day => "Day",
        Grouping::Project => "Project",
        Grouping::Session => "Session",
    };
    let width = NAME_WIDTH + 1;
    let head = format!("{heading:width$}  {:>6}  {:>8}  {:>9}", "Turns", "Tokens", "Cost");
    let mut text = format!("{}\n", Stream::Out.paint(Style::Dim, &head));
    for (_, sum) in &sums {
        text += &format!("{}\n", sum.line());
    }
    text + &format!("{}\n", Stream::Out.paint(Style::Bold, &total.line()))
}

/// As on the page: 640, 62k, 1.2M.
fn compact(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens / 100_000 % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::{CliType, ProjectId, SessionId};

    fn row(day: &str, session: &str, project: &str, input_tokens: u64, cost_usd: Option<f64>) -> UsageRow {
        UsageRow {
            day: day.into(),
            session_id: SessionId::parse(format!("demo:{session}")).unwrap(),
            title: format!("Title of {session}"),
            project_id: ProjectId::parse(project).unwrap(),
            project_name: (project != "gone").then(|| project.to_owned()),
            cli_type: CliType::parse("demo").unwrap(),
            turns: 1,
            input_tokens,
            output_tokens: 0,
            cache_read_input_tokens: 0,
            cache_creation_input_tokens: 0,
            cost_usd,
        }
    }

    fn lines(by: Grouping) -> Vec<String> {
        let rows = vec![
            row("2026-11-18", "a", "atlas", 1_500, Some(0.5)),
            row("2026-11-17", "a", "atlas", 500, Some(0.25)),
            row("2026-11-17", "b", "gone", 2_500_000, None),
        ];
        let text = to_text(&UsageBody { today: "2026-11-18".into(), rows }, by, 30);
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn usage_is_summed_by_day_project_and_session_with_a_total() {
        let days = ["2026-11-18 1 1k $0.50", "2026-11-17 2 2.5M $0.25"];
        assert_eq!(lines(Grouping::Day)[1..3], days);
        assert_eq!(lines(Grouping::Project)[1..3], ["(removed project) 1 2.5M -", "atlas 2 2k $0.75"]);
        assert_eq!(lines(Grouping::Session)[1..3], ["Title of b 1 2.5M -", "Title of a 2 2k $0.75"]);
        for by in [Grouping::Day, Grouping::Project, Grouping::Session] {
            assert_eq!(lines(by).last().unwrap(), "Total 3 2.5M $0.75");
        }
    }

    #[test]
    fn without_any_usage_it_says_so() {
        let none = UsageBody { today: "2026-11-18".into(), rows: Vec::new() };
        assert_eq!(to_text(&none, Grouping::Day, 1), "No agent reported any usage today.\n");
    }
}
