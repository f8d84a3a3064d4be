//! `doctor`: checks whether everything works, and reports what to do if not.
//!
//! Comes in: the settings the server would start with. Goes out: one finding per line, and exit code 1 if one of them is
//! a problem. A server that runs is asked what any page would ask, and its files are looked at, never changed; agents
//! are started beside its own, for a moment, in an empty directory.

mod agents;
mod files;
mod journal;
mod server;
mod system;

use std::process::ExitCode;

use catalog::Inspection;
use serde::Serialize;
use serde_json::json;

use super::failure::Failure;
use crate::settings::Settings;
use crate::terminal::{Stream, Style, harmless};

/// Wide enough for the longest area.
const AREA_WIDTH: usize = 16;

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Exit status: 0 everything works, 1 something does not, 2 wrong usage.")]
pub(crate) struct Args {
    /// Print one JSON object: {"ok", "version", "findings": [{"area", "status": "ok" | "note" | "problem", "message", "advice"?}]}
    #[arg(long)]
    pub(crate) json: bool,

    /// Do not start the agents; only look for their programs
    #[arg(long)]
    no_start: bool,

    /// Read the whole journal, however large it is
    #[arg(long)]
    deep: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Ok,
    /// Worth knowing; nothing is wrong.
    Note,
    Problem,
}

/// What was looked at, how it is, and what to do.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    area: String,
    status: Status,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Finding {
    pub(crate) fn ok(area: &str, message: impl Into<String>) -> Self {
        Self { area: area.into(), status: Status::Ok, message: message.into(), advice: None }
    }

    pub(crate) fn note(area: &str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { status: Status::Note, advice: Some(advice.into()), ..Self::ok(area, message) }
    }

    pub(crate) fn problem(area: &str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { status: Status::Problem, advice: Some(advice.into()), ..Self::ok(area, message) }
    }
}

pub(crate) async fn run(args: &Args, settings: &Settings, visit: &Inspection) -> Result<ExitCode, Failure> {
    let mut report = Report { as_json: args.json, findings: Vec::new() };
    report.add_all(files::look(visit))?;
    report.add_all(journal::look(visit.dir(), settings.files.journal, args.deep))?;
    report.add(system::open_files(agent_process::reachable_open_files()))?;
    report.add_all(server::look(visit, &settings.listening).await)?;
    agents::look(&settings.agents, visit, !args.no_start, &mut report).await?;
    report.end()
}

/// Prints each finding at once; as JSON, all at the end.
pub(crate) struct Report {
    as_json: bool,
    findings: Vec<Finding>,
}

impl Report {
    fn add_all(&mut self, findings: impl IntoIterator<Item = Finding>) -> Result<(), Failure> {
        findings.into_iter().try_for_each(|finding| self.add(finding))
    }

    pub(crate) fn add(&mut self, finding: Finding) -> Result<(), Failure> {
        if !self.as_json {
            let (mark, style) = match finding.status {
                Status::Ok => ("ok", Style::Good),
                Status::Note => ("--", Style::Dim),
                Status::Problem => ("!!", Style::Bad),
            };
            let mark = Stream::Out.paint(style, mark);
            let area = format!("{:AREA_WIDTH$}", harmless(&finding.area));
            let area = Stream::Out.paint(Style::Bold, &area);
            let indent = format!("\n{}", " ".repeat(AREA_WIDTH + 5));
            Stream::Out.line(&format!("{mark} {area}  {}", indented(&finding.message, &indent)))?;
            if let Some(advice) = &finding.advice {
                Stream::Out.line(&format!("{}→ {}", &indent[1..], indented(advice, &format!("{indent}  "))))?;
            }
        }
        self.findings.push(finding);
        Ok(())
    }

    fn end(self) -> Result<ExitCode, Failure> {
        let problems = self.findings.iter().filter(|finding| finding.status == Status::Problem).count();
        match (self.as_json, problems) {
            (true, _) => {
                let version = env!("CARGO_PKG_VERSION");
                let report = json!({"ok": problems == 0, "version": version, "findings": self.findings});
                Stream::Out.line(&report.to_string())?;
            }
            (false, 0) => Stream::Out.line("Everything that is there works.")?,
            (false, 1) => Stream::Out.line("One problem.")?,
            (false, many) => Stream::Out.line(&format!("{many} problems."))?,
        }
        Ok(if problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The output of agents is quoted here; it must not control the terminal.
fn indented(text: &str, indent: &str) -> String {
    harmless(text.trim()).replace('\n', indent)
}
