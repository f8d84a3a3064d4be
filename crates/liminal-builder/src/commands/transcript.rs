//! A conversation as lines of text.
//!
//! Comes in: upserts, whole or (on a `view` socket) with only what was added. Goes out: what is new of each, appended;
//! nothing that was written is ever taken back.

use std::collections::HashMap;

use protocol::facts::{PlanEntry, PlanStatus};
use protocol::{ItemId, Origin, TurnEvent, TurnId, TurnRecord, TurnRecordStatus, TurnStatus, Upsert, UpsertBody};

use super::failure::Failure;
use super::output::Output;
use crate::terminal::{Stream, Style, one_line};

const TITLE_WIDTH: usize = 100;
/// Lines that wait for the answer's line to end. More than a few only come when that line ends late; then it is cut.
const HELD_LINES_MAX: usize = 32;
/// Lines of a failed tool's output, from its end.
const FAILURE_LINES_MAX: usize = 10;

#[derive(Debug)]
pub(crate) struct Transcript {
    /// Where all but the answer goes; none: nowhere.
    beside: Option<Stream>,
    with_user: bool,
    /// Items that still grow, or were named.
    open: HashMap<ItemId, Shown>,
    /// The item whose text stands on the last line of the output, if that line is not ended.
    unended: Option<ItemId>,
    /// Lines beside the answer that wait until its line has ended, so that no word of it is cut in two.
    held: Vec<(Style, String)>,
    /// Something was written already.
    begun: bool,
    /// Of the item that was settled last.
    error: Option<String>,
    /// The agent's plan as it was last shown.
    plan: Vec<PlanEntry>,
}

#[derive(Debug, Default)]
struct Shown {
    text: String,
    /// Its length in UTF-16 units.
    units: usize,
    /// Bytes of `text` that were written.
    written: usize,
    settled: bool,
    /// What a tool printed.
    output: Output,
}

impl Transcript {
    pub(crate) fn answer() -> Self {
        Self::new(Some(Stream::Error), false)
    }

    pub(crate) fn answer_only() -> Self {
        Self::new(None, false)
    }

    pub(crate) fn conversation() -> Self {
        Self::new(Some(Stream::Out), true)
    }

    fn new(beside: Option<Stream>, with_user: bool) -> Self {
        let (open, held, plan) = (HashMap::new(), Vec::new(), Vec::new());
        Self { beside, with_user, open, unended: None, held, begun: false, error: None, plan }
    }

    pub(crate) fn show(&mut self, upsert: &Upsert) -> Result<(), Failure> {
        self.print_error()?;
        let settled = upsert.status.is_final();
        let known = self.open.entry(upsert.item_id.clone()).or_default();
        if known.settled {
            return Ok(());
        }
        known.settled = settled;
        match &upsert.body {
            UpsertBody::Message { content, origin: Origin::Agent } => {
                known.take(upsert.view.content_from, content);
                self.write_more(&upsert.item_id, settled)?;
            }
            UpsertBody::Message { content, origin: Origin::User } if self.with_user => {
                if settled {
                    let quoted: Vec<String> = content.lines().map(|line| format!("> {line}")).collect();
                    self.space()?;
                    self.print(Style::Bold, &quoted.join("\n"))?;
                }
            }
            UpsertBody::Message { origin: Origin::User, .. } => {}
            UpsertBody::Message { content, .. } => {
                if settled {
                    self.print_after_line(Style::Dim, content)?;
                }
            }
            UpsertBody::Thinking { .. } => {
                if known.written == 0 {
                    known.written = 1;
                    self.print_after_line(Style::Dim, "Thinking…")?;
                }
            }
            UpsertBody::ToolCall { .. } => {
                if let Some(patch) = &upsert.view.blocks {
                    known.output.apply(patch);
                }
                self.show_tool(upsert, settled)?;
            }
        }
        if let Some(shown) = self.open.get_mut(&upsert.item_id).filter(|_| settled) {
            // What is settled does not grow; that it was shown is all that is kept of it.
            *shown = Shown { settled, ..Shown::default() };
        }
        if settled {
            self.error.clone_from(&upsert.error_message);
        }
        Ok(())
    }

    /// The earlier messages, and how each turn of them ended. `more`: this is not its beginning.
    pub(crate) fn history(&mut self, entries: &[Upsert], turns: &[TurnRecord], more: bool) -> Result<(), Failure> {
        if more {
            self.print(Style::Dim, "Earlier messages are not shown here; the page has them.")?;
        }
        let mut turns: HashMap<&TurnId, &TurnRecord> = turns.iter().map(|turn| (&turn.turn_id, turn)).collect();
        for (place, entry) in entries.iter().enumerate() {
            self.show(entry)?;
            if entries.get(place + 1).is_some_and(|next| next.turn_id == entry.turn_id) {
                continue;
            }
            let Some(turn) = turns.remove(&entry.turn_id) else { continue };
            match turn.status {
                TurnRecordStatus::Running => {}
                TurnRecordStatus::Completed => self.print_error()?,
                TurnRecordStatus::Cancelled => self.stopped()?,
                TurnRecordStatus::Error => {
                    self.failed(turn.error_message.as_deref().unwrap_or("no reason was given"))?
                }
            }
        }
        Ok(())
    }

    pub(crate) fn turn(&mut self, event: &TurnEvent) -> Result<(), Failure> {
        match event {
            TurnEvent::TurnStarted { .. } | TurnEvent::TurnComplete { status: TurnStatus::Completed, .. } => {
                self.print_error()
            }
            TurnEvent::TurnComplete { status: TurnStatus::Cancelled, .. } => self.stopped(),
            TurnEvent::TurnError { error_message, .. } => self.failed(error_message),
        }
    }

    fn stopped(&mut self) -> Result<(), Failure> {
        self.print(Style::Dim, "Stopped")
    }

    fn failed(&mut self, message: &str) -> Result<(), Failure> {
        self.error.take_if(|error| error == message);
        self.print_error()?;
        self.finish()?;
        // Also printed when nothing else is: it is why the command fails.
        let stream = self.beside.unwrap_or(Stream::Error);
        stream.line(&stream.paint(Style::Bad, &format!("Turn failed: {}", stream.quote(message))))
    }

    /// A new plan is shown completely; of a known one only what is done.
    pub(crate) fn plan(&mut self, plan: &[PlanEntry]) -> Result<(), Failure> {
        let before = std::mem::replace(&mut self.plan, plan.to_vec());
        let is_known = before.len() == plan.len() && before.iter().zip(plan).all(|(was, is)| was.content == is.content);
        if !is_known && !plan.is_empty() {
            self.print_after_line(Style::Dim, "Plan")?;
        }
        for (place, entry) in plan.iter().enumerate() {
            let was_done = is_known && before[place].status == PlanStatus::Completed;
            let is_done = entry.status == PlanStatus::Completed;
            if is_known && (was_done || !is_done) {
                continue;
            }
            let mark = if is_done { '✓' } else { '·' };
            self.print_after_line(Style::Dim, &format!("  {mark} {}", one_line(&entry.content, TITLE_WIDTH)))?;
        }
        Ok(())
    }

    /// A line of its own beside the answer.
    pub(crate) fn print(&mut self, style: Style, text: &str) -> Result<(), Failure> {
        let Some(stream) = self.beside else { return Ok(()) };
        // A line of the answer that is still open is ended only where both are on one screen.
        self.begun |= stream == Stream::Out;
        if is_beside_answer(stream) {
            self.finish()?;
        }
        stream.line(&stream.paint(style, &stream.quote(text)))
    }

    /// The same for what can wait: an answer that is in the middle of a line ends that line first.
    fn print_after_line(&mut self, style: Style, text: &str) -> Result<(), Failure> {
        let shares_line = self.beside.is_some_and(is_beside_answer) && self.unended.is_some();
        if shares_line && self.held.len() < HELD_LINES_MAX {
            self.held.push((style, text.to_owned()));
            return Ok(());
        }
        self.print(style, text)
    }

    /// Nothing stands unended on the last line: who waited for that is shown.
    fn show_held(&mut self) -> Result<(), Failure> {
        for (style, text) in std::mem::take(&mut self.held) {
            self.print(style, &text)?;
        }
        Ok(())
    }

    /// The error of an item is shown once it is clear that the turn does not end with the same message.
    fn print_error(&mut self) -> Result<(), Failure> {
        self.error.take().map_or(Ok(()), |error| self.print(Style::Bad, &error))
    }

    /// Messages are apart by an empty line, as paragraphs are.
    fn space(&mut self) -> Result<(), Failure> {
        self.finish()?;
        if self.begun { Stream::Out.write("\n") } else { Ok(()) }
    }

    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        if self.unended.take().is_some() {
            Stream::Out.write("\n")?;
        }
        self.show_held()
    }

    fn write_more(&mut self, item: &ItemId, settled: bool) -> Result<(), Failure> {
        let Some(shown) = self.open.get_mut(item) else { return Ok(()) };
        let more = shown.text.get(shown.written..).unwrap_or_default().to_owned();
        shown.written = shown.text.len();
        if !more.is_empty() {
            if self.unended.as_ref().is_some_and(|unended| unended != item) {
                self.finish()?;
            }
            if shown_first(&more, self.open.get(item)) {
                self.space()?;
            }
            self.begun = true;
            let line_end = more.find('\n').filter(|_| !self.held.is_empty()).map_or(0, |place| place + 1);
            let (line, rest) = more.split_at(line_end);
            if !line.is_empty() {
                Stream::Out.write(&Stream::Out.quote(line))?;
                self.unended = None;
                self.show_held()?;
            }
            if !rest.is_empty() {
                Stream::Out.write(&Stream::Out.quote(rest))?;
                self.unended = (!rest.ends_with('\n')).then(|| item.clone());
            }
        }
        if settled && self.unended.as_ref() == Some(item) {
            self.finish()?;
        }
        Ok(())
    }

    fn show_tool(&mut self, upsert: &Upsert, settled: bool) -> Result<(), Failure> {
        let UpsertBody::ToolCall { tool_name, tool, tool_output_is_error, .. } = &upsert.body else {
            return Ok(());
        };
        let title = tool.as_ref().and_then(|tool| tool.title.as_deref().or(tool.command.as_deref()));
        let named = self.open.get_mut(&upsert.item_id);
        // A call often begins without its title; its name is not worth a line while that may still come.
        if let Some(known) = named.filter(|known| known.written == 0 && (title.is_some() || settled)) {
            known.written = 1;
            self.print_after_line(Style::Dim, &format!("• {}", one_line(title.unwrap_or(tool_name), TITLE_WIDTH)))?;
        }
        for section in upsert.view.sections.iter().flatten().filter(|_| settled) {
            if let (Some(path), Some(added), Some(removed)) = (&section.path, section.added, section.removed) {
                self.print_after_line(Style::Dim, &format!("  {} +{added} −{removed}", one_line(path, TITLE_WIDTH)))?;
            }
        }
        if settled && *tool_output_is_error == Some(true) {
            let interrupted = tool.as_ref().is_some_and(|tool| tool.interrupted);
            let exit = tool.as_ref().and_then(|tool| tool.exit_code).map(|code| format!(": exit {code}"));
            let label = if interrupted { "Interrupted" } else { "Failed" };
            self.print_after_line(Style::Bad, &format!("  {label}{}", exit.unwrap_or_default()))?;
            let lines = self.open.get(&upsert.item_id).map(|shown| shown.output.tail(FAILURE_LINES_MAX));
            for line in lines.unwrap_or_default() {
                self.print_after_line(Style::Dim, &format!("    {line}"))?;
            }
        }
        Ok(())
    }
}

/// What goes to this stream stands among the lines of the answer.
fn is_beside_answer(stream: Stream) -> bool {
    stream == Stream::Out || Stream::Out.is_same_as(Stream::Error)
}

/// Is this the beginning of the item's text?
fn shown_first(more: &str, shown: Option<&Shown>) -> bool {
    shown.is_some_and(|shown| shown.text.len() == more.len())
}

impl Shown {
    /// `from` is where `content` continues the text, in UTF-16 units; none: it is the whole text.
    fn take(&mut self, from: Option<usize>, content: &str) {
        let added = content.encode_utf16().count();
        if from.unwrap_or(0) == self.units {
            self.text.push_str(content);
            self.units += added;
            return;
        }
        let keep = from.map_or(0, |units| byte_of(&self.text, units));
        self.units = self.units.min(from.unwrap_or(0)) + added;
        let whole = format!("{}{content}", &self.text[..keep]);
        // What is written stays written. A text that changes before that is continued where the two are as long.
        if !whole.as_bytes().starts_with(&self.text.as_bytes()[..self.written.min(self.text.len())]) {
            self.written = whole.floor_char_boundary(self.written);
        }
        self.text = whole;
    }
}

/// Where so many UTF-16 units end.
fn byte_of(text: &str, units: usize) -> usize {
    let mut seen = 0;
    for (byte, letter) in text.char_indices() {
        if seen >= units {
            return byte;
        }
        seen += letter.len_utf16();
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_grows_by_what_was_added() {
        let mut shown = Shown::default();
        shown.take(None, "añ😀");
        shown.written = shown.text.len();
        shown.take(Some(4), "b");
        assert_eq!((shown.text.as_str(), &shown.text[shown.written..]), ("añ😀b", "b"));
        shown.written = shown.text.len();
        shown.take(None, "añ😀bc");
        assert_eq!(&shown.text[shown.written..], "c", "a whole text again prints only what is new");
        shown.take(Some(2), "!");
        assert_eq!(shown.text, "añ!");
        assert!(shown.text.get(shown.written..).is_none_or(str::is_empty));
    }
}
