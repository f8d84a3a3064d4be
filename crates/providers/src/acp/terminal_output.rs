//! The output of terminals that run for the agent, until a tool call names the terminal it shows.

use std::collections::HashMap;

use super::session::{AcpSession, now};

/// Output of all of a session's terminals that no tool call shows yet. A command may print megabytes before its agent
/// names the call it belongs to.
const UNCLAIMED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What terminals printed that no tool call shows yet, by terminal.
#[derive(Debug, Default)]
pub(super) struct UnclaimedOutput(HashMap<String, TerminalText>);

#[derive(Debug, Default)]
struct TerminalText {
    text: String,
    /// Bytes there was no room for.
    left_out: usize,
}

impl UnclaimedOutput {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn add(&mut self, terminal: String, text: &str) {
        let held: usize = self.0.values().map(|unclaimed| unclaimed.text.len()).sum();
        let unclaimed = self.0.entry(terminal).or_default();
        // What follows a gap would look as if it followed what stands before it.
        if unclaimed.left_out == 0 && held + text.len() <= UNCLAIMED_BYTES_MAX {
            unclaimed.text.push_str(text);
        } else {
            unclaimed.left_out += text.len();
        }
    }

    /// Takes the text of those terminals that a call shows now.
    fn take_shown(&mut self, is_shown: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let shown = self.0.extract_if(|terminal, _| is_shown(terminal));
        shown
            .map(|(terminal, TerminalText { mut text, left_out })| {
                if left_out > 0 {
                    text.push_str(&format!("\n[{left_out} bytes left out]\n"));
                }
                (terminal, text)
            })
            .collect()
    }
}

impl AcpSession {
    pub(super) fn on_terminal_output(&mut self, terminal: String, text: &str) {
        if self.translator.shows_terminal(&terminal) {
            let translated = self.translator.terminal_output(&terminal, text, now());
            self.publish(translated);
        } else {
            self.unclaimed_output.add(terminal, text);
        }
    }

    /// Shows what terminals printed before a tool call named them.
    pub(super) fn claim_terminal_output(&mut self) {
        for (terminal, text) in self.unclaimed_output.take_shown(|terminal| self.translator.shows_terminal(terminal)) {
            let translated = self.translator.terminal_output(&terminal, &text, now());
            self.publish(translated);
        }
    }
}
