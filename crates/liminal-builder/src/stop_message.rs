//! The message printed when the server is asked to stop: which agents are cancelled.

use protocol::SessionSummary;

/// More lines than this would scroll the others off the screen.
const NAMED_MAX: usize = 10;
const EXIT_HINT: &str = "Press Ctrl-C again to exit at once.";

/// `working` are the sessions with a turn running; `name` gives the name people know an agent by.
pub(crate) fn text(working: &[SessionSummary], name: impl Fn(&SessionSummary) -> String) -> String {
    let head = match working.len() {
        0 => return format!("Stopping. {EXIT_HINT}"),
        1 => "Stopping. One agent is still working and will be cancelled:".to_owned(),
        many => format!("Stopping. {many} agents are still working and will be cancelled:"),
    };
    let mut lines = vec![head];
    let line = |session: &SessionSummary| {
        format!("  {} ({})", crate::terminal::harmless(&session.title), crate::terminal::harmless(&name(session)))
    };
    lines.extend(working.iter().take(NAMED_MAX).map(line));
    if let Some(more) = working.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        lines.push(format!("  and {more} more"));
    }
    // Codex forgets the unfinished answer of a cancelled turn, so no more than this can be promised for every agent.
    lines.push(format!("Finished turns are kept; of an unfinished one, what its agent keeps. {EXIT_HINT}"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use protocol::{ProjectId, SessionId, SessionState, Timestamp};

    use super::*;

    fn session(title: &str) -> SessionSummary {
        let id = SessionId::parse("demo:1").unwrap();
        SessionSummary {
            cli_type: id.cli_type(),
            id,
            project_id: ProjectId::parse("p").unwrap(),
            title: title.into(),
            last_active_at: Timestamp::default(),
            created_at: Timestamp::default(),
            state: SessionState::default(),
        }
    }

    #[test]
    fn every_turn_that_will_be_cancelled_is_named_up_to_a_screenful() {
        let name = |_: &SessionSummary| "Demo agent".to_owned();
        assert_eq!(text(&[], name), "Stopping. Press Ctrl-C again to exit at once.");
        let one = text(&[session("Fix\x1b[2J it")], name);
        assert!(one.starts_with("Stopping. One agent is still working and will be cancelled:\n"), "{one}");
        assert!(one.contains("\n  Fix[2J it (Demo agent)\n"), "{one}");
        let many: Vec<_> = (0..12).map(|number| session(&format!("Task {number}"))).collect();
        let many = text(&many, name);
        assert!(many.contains("12 agents") && many.contains("Task 9") && !many.contains("Task 10"), "{many}");
        assert!(many.contains("\n  and 2 more\n"), "{many}");
    }
}
