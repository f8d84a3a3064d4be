//! Texts that Claude Code writes in the user's name or wraps its own output in, and what they stand for.

use protocol::{ErrorCode, ErrorDetail};

use super::wire::ContentBlock;

/// Put in by the program when it resumes a turn that was killed.
pub(super) const NO_RESPONSE: &str = "No response requested.";

/// What a text in the user's name is.
#[derive(Debug, PartialEq)]
pub(super) enum UserText {
    User(String),
    /// A command of the program itself printed this.
    LocalOutput(String),
    /// A sub-agent in the background came to its end.
    TaskReport(TaskReport),
    Interrupted,
    /// For the model only.
    Hidden,
}

#[derive(Debug, PartialEq)]
pub(super) struct TaskReport {
    pub(super) call: Option<String>,
    pub(super) result: String,
    pub(super) failed: bool,
}

const INTERRUPTED: &str = "[Request interrupted by user";
const REPORT: &str = "<task-notification>";
/// Beginnings of texts that are in the user's name and are not messages: the program's own output, and hints.
const LOCAL_OUTPUT: [&str; 2] = ["<local-command-stdout>", "<local-command-stderr>"];
const HINTS: [&str; 4] = ["<local-command-caveat>", "<system-reminder>", "<bash-stdout>", "<bash-stderr>"];

/// Whether a text in the user's name, of which this is the beginning, begins a turn.
pub(super) fn begins_turn(start: &str) -> bool {
    let begins = |starts: &[&str]| starts.iter().any(|known| start.starts_with(known));
    !start.starts_with(INTERRUPTED) && !begins(&LOCAL_OUTPUT) && !begins(&HINTS)
}

/// Whether a sub-agent reports with it.
pub(super) fn is_report(start: &str) -> bool {
    start.starts_with(REPORT)
}

pub(super) fn user_text(content: &[ContentBlock]) -> UserText {
    let mut parts = Vec::new();
    for block in content {
        match block {
            ContentBlock::Text { text } => parts.push(text.as_str()),
            ContentBlock::Image { .. } => parts.push("[image]"),
            _ => {}
        }
    }
    let text = parts.join("\n");
    let start = text.trim_start();
    if start.starts_with(INTERRUPTED) {
        UserText::Interrupted
    } else if is_report(start) {
        UserText::TaskReport(TaskReport {
            call: tag(start, "tool-use-id").map(str::to_owned),
            result: tag(start, "result").or_else(|| tag(start, "summary")).unwrap_or_default().to_owned(),
            failed: tag(start, "status").is_some_and(|status| status != "completed"),
        })
    } else if LOCAL_OUTPUT.iter().any(|known| start.starts_with(known)) {
        UserText::LocalOutput(text)
    } else if !begins_turn(start) {
        UserText::Hidden
    } else if start.starts_with("<command-name>") || start.starts_with("<command-message>") {
        let name = tag(start, "command-name").unwrap_or_default();
        let arguments = tag(start, "command-args").unwrap_or_default();
        UserText::User(format!("{name} {arguments}").trim().to_owned())
    } else if start.starts_with("<bash-input>") {
        UserText::User(format!("!{}", tag(start, "bash-input").unwrap_or_default()))
    } else {
        UserText::User(text)
    }
}

/// What a local command printed, without its wrapping. A compaction is reported elsewhere.
pub(super) fn local_output(text: &str) -> &str {
    let inner = tag(text, "local-command-stdout").or_else(|| tag(text, "local-command-stderr"));
    let inner = inner.unwrap_or(text).trim();
    if inner == "Compacted" || inner == "(no content)" { "" } else { inner }
}

fn tag<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(&format!("<{name}>"))?;
    Some(after.split_once(&format!("</{name}>")).map_or(after, |(inside, _)| inside).trim())
}

/// What to do about an error that is about the login. Such an error is recognised by it, too.
const LOGIN_ADVICE: &str = "Run `claude` in a terminal and log in with /login, then send the message again.";

/// The turn failed because a login is missing.
pub(super) fn is_about_login(error: &str) -> bool {
    error.ends_with(LOGIN_ADVICE)
}

/// An error of the model as the agent describes it, with what to do about it where it is about the login.
pub(super) fn model_error(message: &str, status: Option<u16>) -> ErrorDetail {
    let needs_login = matches!(status, Some(401 | 403)) || message.contains("/login");
    let message = if needs_login { format!("{message}\n{LOGIN_ADVICE}") } else { message.to_owned() };
    ErrorDetail::new(ErrorCode::AgentProtocolError, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> UserText {
        user_text(&[ContentBlock::Text { text: text.into() }])
    }

    #[test]
    fn only_what_the_user_wrote_is_the_users() {
        assert_eq!(of("hello <b>"), UserText::User("hello <b>".into()));
        assert_eq!(of("[Request interrupted by user for tool use]"), UserText::Interrupted);
        assert_eq!(of("<system-reminder>x</system-reminder>"), UserText::Hidden);
        let command = "<command-name>/context</command-name>\n <command-message>context</command-message>\n <command-args>a b</command-args>";
        assert_eq!(of(command), UserText::User("/context a b".into()));
    }

    #[test]
    fn a_report_names_its_call_and_its_result() {
        let text =
            "<task-notification>\n<tool-use-id>toolu_1</tool-use-id>\n<status>failed</status>\n<result>no</result>";
        let report = TaskReport { call: Some("toolu_1".into()), result: "no".into(), failed: true };
        assert_eq!(of(text), UserText::TaskReport(report));
    }

    #[test]
    fn output_loses_its_wrapping() {
        assert_eq!(local_output("<local-command-stdout>a\nb</local-command-stdout>"), "a\nb");
        assert_eq!(local_output("<local-command-stdout>Compacted </local-command-stdout>"), "");
        assert_eq!(local_output("plain"), "plain");
    }
}
