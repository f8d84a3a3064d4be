//! A tool call in words: what was done, to what, and how it went.

use protocol::{PermissionDecision, ToolContent, ToolDetail, ToolKind, Upsert, UpsertBody, UpsertStatus};
use serde_json::{Map, Value};

/// A tool call, as both readable formats show it.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// As in "Ran" or "Edited".
    pub(crate) verb: &'a str,
    /// The command, the path or the query.
    pub(crate) target: Option<&'a str>,
    /// As in "failed, exit status 2".
    pub(crate) notes: Vec<String>,
    pub(crate) has_failed: bool,
    pub(crate) content: &'a [ToolContent],
    pub(crate) output: Option<&'a str>,
    /// Shown where nothing else says what was done.
    pub(crate) arguments: Option<&'a Map<String, Value>>,
}

impl<'a> Call<'a> {
    /// None for other items.
    pub(crate) fn of(item: &'a Upsert) -> Option<Self> {
        let UpsertBody::ToolCall { tool_name, tool_arguments, tool_output, tool_output_is_error, tool, .. } =
            &item.body
        else {
            return None;
        };
        let tool = tool.as_deref();
        let has_failed = item.status == UpsertStatus::Error || *tool_output_is_error == Some(true);
        let target = target(tool, tool_arguments);
        let content = tool.map_or(&[][..], |tool| &tool.content);
        let is_explained = target.is_some() || !content.is_empty() || tool_arguments.is_empty();
        let is_file_shown = !has_failed
            && tool.is_some_and(|tool| tool.kind == ToolKind::Read)
            && content.iter().any(|content| matches!(content, ToolContent::File { .. }));
        let output = tool_output.as_deref().filter(|output| !is_file_shown && !output.trim().is_empty());
        Some(Self {
            verb: verb(tool, tool_name),
            target,
            notes: notes(item, tool, has_failed),
            has_failed,
            content,
            output,
            arguments: (!is_explained).then_some(tool_arguments.as_ref()),
        })
    }
}

fn verb<'a>(tool: Option<&'a ToolDetail>, name: &'a str) -> &'a str {
    let title = tool.and_then(|tool| tool.title.as_deref()).filter(|title| !title.trim().is_empty());
    match tool.map_or(ToolKind::Other, |tool| tool.kind) {
        ToolKind::Read => "Read",
        ToolKind::Edit => "Edited",
        ToolKind::Delete => "Deleted",
        ToolKind::Move => "Moved",
        ToolKind::Search => "Searched",
        ToolKind::Execute => "Ran",
        ToolKind::Think => "Thought",
        ToolKind::Fetch => "Fetched",
        ToolKind::SwitchMode => "Switched mode",
        ToolKind::Agent => "Agent",
        ToolKind::Other => title.unwrap_or(name),
    }
}

fn target<'a>(tool: Option<&'a ToolDetail>, arguments: &'a Map<String, Value>) -> Option<&'a str> {
    let argument = |name: &str| arguments.get(name).and_then(Value::as_str);
    let kind = tool.map_or(ToolKind::Other, |tool| tool.kind);
    let location = tool.and_then(|tool| tool.locations.first()).map(|location| location.path.as_str());
    let path = || location.or_else(|| argument("file_path")).or_else(|| argument("path"));
    let found = match kind {
        ToolKind::Execute => tool.and_then(|tool| tool.command.as_deref()).or_else(|| argument("command")),
        ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move => path(),
        ToolKind::Search | ToolKind::Fetch => {
            argument("pattern").or_else(|| argument("query")).or_else(|| argument("url"))
        }
        ToolKind::Other => None,
        _ => tool.and_then(|tool| tool.title.as_deref()),
    };
    let title = || tool.and_then(|tool| tool.title.as_deref()).filter(|_| kind != ToolKind::Other);
    found.or_else(title).filter(|target| !target.trim().is_empty())
}

fn notes(item: &Upsert, tool: Option<&ToolDetail>, has_failed: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let is_interrupted = tool.is_some_and(|tool| tool.interrupted);
    if is_interrupted {
        notes.push("interrupted".to_owned());
    } else if has_failed {
        notes.push("failed".to_owned());
    } else if !item.status.is_final() {
        notes.push("still running".to_owned());
    }
    let Some(tool) = tool else { return notes };
    if let Some(code) = tool.exit_code.filter(|code| *code != 0) {
        notes.push(format!("exit status {code}"));
    }
    if let (Some(start), Some(end)) = (tool.started_at, tool.ended_at) {
        let took_ms = end.unix_ms().saturating_sub(start.unix_ms());
        if took_ms >= 1000 {
            notes.push(took(took_ms / 1000));
        }
    }
    if let Some(permission) = &tool.permission {
        let decision = match permission.decision {
            PermissionDecision::AllowedAutomatically => "allowed automatically",
            PermissionDecision::AllowedOnce => "allowed once",
            PermissionDecision::AllowedAlways => "always allowed",
            PermissionDecision::Rejected => "rejected",
            PermissionDecision::Cancelled => "not decided",
        };
        notes.push(decision.to_owned());
    }
    notes
}

fn took(seconds: i64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}
