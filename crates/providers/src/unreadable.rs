//! What a session reports about lines of its agent that cannot be read. An agent that writes nothing else must not fill
//! the conversation: each message once, and no more than a few in one turn.

/// Reports in one turn, and after it until the next one begins.
const REPORTS_MAX: usize = 3;
/// How much of a line a report quotes.
const QUOTED_CHARACTERS_MAX: usize = 80;

#[derive(Debug, Default)]
pub(crate) struct UnreadableLines {
    reported: Vec<String>,
}

impl UnreadableLines {
    /// A turn begins: what goes wrong in it is reported again.
    pub(crate) fn begin_turn(&mut self) {
        self.reported.clear();
    }

    /// What to report about this line; none if enough was reported.
    pub(crate) fn report(&mut self, agent: &str, line: &str) -> Option<String> {
        let mut message = message(agent, line);
        if self.reported.len() >= REPORTS_MAX || self.reported.contains(&message) {
            return None;
        }
        self.reported.push(message.clone());
        if self.reported.len() == REPORTS_MAX {
            message.push_str(" Further lines of this kind are not reported in this turn.");
        }
        Some(message)
    }
}

/// What happened to one line.
pub(crate) fn message(agent: &str, line: &str) -> String {
    let mut characters = line.trim().chars();
    // Quoted as code, so that nothing in it is taken for markup.
    let quote: String = characters
        .by_ref()
        .take(QUOTED_CHARACTERS_MAX)
        .map(|character| match character {
            '`' => '\'',
            character if character.is_control() => ' ',
            character => character,
        })
        .collect();
    let more = if characters.next().is_some() { "…" } else { "" };
    format!("{agent} wrote a line that could not be read, and it is left out: `{quote}{more}`.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_garbage_is_reported_a_few_times_in_each_turn() {
        let mut unreadable = UnreadableLines::default();
        assert_eq!(
            unreadable.report("Claude Code", " {\"type\":\"`x\0 ").as_deref(),
            Some("Claude Code wrote a line that could not be read, and it is left out: `{\"type\":\"'x `.")
        );
        assert_eq!(unreadable.report("Claude Code", "{\"type\":\"`x\0"), None, "the same again");
        let reports = (0..10_000).filter_map(|number| unreadable.report("Claude Code", &format!("noise {number}")));
        let reports: Vec<_> = reports.collect();
        assert_eq!(reports.len(), REPORTS_MAX - 1);
        assert!(reports[1].ends_with("not reported in this turn."), "{reports:?}");
        unreadable.begin_turn();
        assert!(unreadable.report("Claude Code", "noise 1").is_some());
    }

    #[test]
    fn only_the_beginning_of_a_long_line_is_quoted() {
        let message = message("Codex", &"é".repeat(1_000_000));
        assert!(message.len() < 300 && message.ends_with("é…`."), "{message}");
    }
}
