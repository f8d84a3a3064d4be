//! What is said in a session about lines of its agent that cannot be read. An agent that writes nothing else must not fill
//! the conversation: each wording once, and no more than a few in one turn.

/// Reports in one turn, and after it until the next one begins.
const REPORTS_MAX: usize = 3;
/// How much of a line a report quotes.
const QUOTED_CHARACTERS_MAX: usize = 80;

#[derive(Debug, Default)]
pub(crate) struct Unreadable {
    reported: Vec<String>,
}

impl Unreadable {
    /// A turn begins: what goes wrong in it is news again.
    pub(crate) fn turn_begins(&mut self) {
        self.reported.clear();
    }

    /// What to say about this line; none if enough was said.
    pub(crate) fn report(&mut self, agent: &str, line: &str) -> Option<String> {
        let mut words = words(agent, line);
        if self.reported.len() >= REPORTS_MAX || self.reported.contains(&words) {
            return None;
        }
        self.reported.push(words.clone());
        if self.reported.len() == REPORTS_MAX {
            words.push_str(" Further lines of this kind are not reported in this turn.");
        }
        Some(words)
    }
}

/// What happened to one line, in plain words.
pub(crate) fn words(agent: &str, line: &str) -> String {
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
        let mut unreadable = Unreadable::default();
        assert_eq!(
            unreadable.report("Claude Code", " {\"type\":\"`x\0 ").as_deref(),
            Some("Claude Code wrote a line that could not be read, and it is left out: `{\"type\":\"'x `.")
        );
        assert_eq!(unreadable.report("Claude Code", "{\"type\":\"`x\0"), None, "the same again");
        let told = (0..10_000).filter_map(|number| unreadable.report("Claude Code", &format!("noise {number}")));
        let told: Vec<_> = told.collect();
        assert_eq!(told.len(), REPORTS_MAX - 1);
        assert!(told[1].ends_with("not reported in this turn."), "{told:?}");
        unreadable.turn_begins();
        assert!(unreadable.report("Claude Code", "noise 1").is_some());
    }

    #[test]
    fn only_the_beginning_of_a_long_line_is_quoted() {
        let words = words("Codex", &"é".repeat(1_000_000));
        assert!(words.len() < 300 && words.ends_with("é…`."), "{words}");
    }
}
