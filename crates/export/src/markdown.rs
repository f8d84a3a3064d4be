//! The session as Markdown, to read or to paste.
//!
//! The user's messages are quotes, so that nothing in them reaches into the rest. What an agent left open, such as a
//! code fence of an answer that was stopped, is closed.

use std::io::{self, Write};

use protocol::{Origin, ToolContent, TurnRecord, Upsert, UpsertBody};
use rendering::DiffView;

use crate::call::Call;
use crate::plain_text::{longest_backticks, moment, printed};
use crate::turns::{TurnOrder, outcome};
use crate::{Header, INCOMPLETE};

#[derive(Debug)]
pub(crate) struct MarkdownWriter {
    header: Header,
    order: TurnOrder,
    speaker: Speaker,
}

/// Whose heading was written last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    Nobody,
    User,
    Agent,
}

impl MarkdownWriter {
    pub(crate) fn new(header: Header) -> Self {
        Self { header, order: TurnOrder::default(), speaker: Speaker::Nobody }
    }

    pub(crate) fn begin(&mut self, out: &mut impl Write) -> io::Result<()> {
        let Header { session_id, title, agent, project_path, created_at, exported_at, is_complete } = &self.header;
        writeln!(out, "# {}\n", one_line(title))?;
        writeln!(out, "- Agent: {}", one_line(agent))?;
        if let Some(path) = project_path {
            writeln!(out, "- Project: {}", code(path))?;
        }
        writeln!(out, "- Session: {}", code(session_id.as_str()))?;
        for (name, at) in [("Created", created_at), ("Exported", exported_at)] {
            if !at.is_unset() {
                writeln!(out, "- {name}: {}", moment(*at))?;
            }
        }
        if !is_complete {
            writeln!(out, "\n*{INCOMPLETE}*")?;
        }
        Ok(())
    }

    pub(crate) fn page(&mut self, turns: &[TurnRecord], items: &[Upsert], out: &mut impl Write) -> io::Result<()> {
        for item in items {
            let step = self.order.step(turns, item);
            if let Some(ended) = step.ended {
                end_of_turn(&ended, out)?;
            }
            if step.begins {
                self.speaker = Speaker::Nobody;
                if turns.iter().any(|turn| turn.turn_id == item.turn_id && turn.forgotten) {
                    writeln!(out, "\n*The agent no longer remembers the following turn.*")?;
                }
            }
            self.item(item, out)?;
        }
        Ok(())
    }

    pub(crate) fn end(&mut self, out: &mut impl Write) -> io::Result<()> {
        match self.order.finish() {
            Some(turn) => end_of_turn(&turn, out),
            None => Ok(()),
        }
    }

    fn item(&mut self, item: &Upsert, out: &mut impl Write) -> io::Result<()> {
        match &item.body {
            UpsertBody::Message { content, origin: Origin::User } => {
                self.heading(Speaker::User, item, out)?;
                writeln!(out, "\n{}", quoted(content))?;
            }
            UpsertBody::Message { content, origin: Origin::System } => {
                writeln!(out, "\n{}", quoted(&format!("Notice: {}", content.trim())))?;
            }
            UpsertBody::Message { content, origin: Origin::Agent } => {
                self.heading(Speaker::Agent, item, out)?;
                writeln!(out, "\n{}", closed(content.trim()))?;
            }
            UpsertBody::Thinking { content, .. } if content.trim().is_empty() => {}
            UpsertBody::Thinking { content, .. } => {
                self.heading(Speaker::Agent, item, out)?;
                let text = closed(content.trim());
                writeln!(out, "\n<details><summary>Thinking</summary>\n\n{text}\n\n</details>")?;
            }
            UpsertBody::ToolCall { .. } => {
                self.heading(Speaker::Agent, item, out)?;
                if let Some(call) = Call::of(item) {
                    tool_call(&call, item.parent_item_id.is_some(), out)?;
                }
            }
        }
        match &item.error_message {
            Some(message) if !message.trim().is_empty() => {
                writeln!(out, "\n**Error:** {}", inline(message))
            }
            _ => Ok(()),
        }
    }

    fn heading(&mut self, speaker: Speaker, item: &Upsert, out: &mut impl Write) -> io::Result<()> {
        if self.speaker == speaker && speaker != Speaker::User {
            return Ok(());
        }
        self.speaker = speaker;
        let name = if speaker == Speaker::User { "You" } else { &one_line(&self.header.agent) };
        let at = moment(item.source_timestamp);
        let at = if at.is_empty() { at } else { format!(" · {at}") };
        writeln!(out, "\n## {name}{at}")
    }
}

fn end_of_turn(turn: &TurnRecord, out: &mut impl Write) -> io::Result<()> {
    match outcome(turn) {
        Some(outcome) => writeln!(out, "\n*{}*", inline(&outcome)),
        None => Ok(()),
    }
}

fn tool_call(call: &Call<'_>, is_nested: bool, out: &mut impl Write) -> io::Result<()> {
    let notes = match call.notes.is_empty() {
        true => String::new(),
        false => format!(" ({})", call.notes.join(", ")),
    };
    let nested = if is_nested { "↳ " } else { "" };
    write!(out, "\n{nested}**{}**", inline(call.verb))?;
    match call.target {
        Some(target) if !target.trim().contains('\n') => writeln!(out, " {}{notes}", code(target.trim()))?,
        Some(target) => writeln!(out, "{notes}\n\n{}", fenced("sh", &printed(target.trim())))?,
        None => writeln!(out, "{notes}")?,
    }
    if let Some(arguments) = call.arguments {
        let arguments = serde_json::to_string_pretty(arguments)?;
        writeln!(out, "\n{}", fenced("json", &arguments))?;
    }
    for content in call.content {
        match content {
            ToolContent::Diff { path, old_text, new_text, .. } => {
                let diff = unified(path, old_text.as_deref(), new_text);
                writeln!(out, "\n{}", fenced("diff", &diff))?;
            }
            ToolContent::File { path, text, .. } => {
                writeln!(out, "\n{}", fenced(extension(path), &printed(text)))?;
            }
            ToolContent::Image { mime_type, data } => {
                let bytes = data.len() / 4 * 3;
                writeln!(out, "\n*An image ({}, {bytes} bytes)*", inline(mime_type))?;
            }
            ToolContent::Text { text } => writeln!(out, "\n{}", closed(text.trim()))?,
        }
    }
    match call.output {
        Some(output) => writeln!(out, "\n{}", fenced("text", &printed(output))),
        None => Ok(()),
    }
}

/// In a fence longer than any run of backticks in it.
fn fenced(language: &str, text: &str) -> String {
    let fence = "`".repeat((longest_backticks(text) + 1).max(3));
    format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// On one line, between as many backticks as it needs.
fn code(text: &str) -> String {
    let text = one_line(text);
    let ticks = "`".repeat(longest_backticks(&text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{space}{text}{space}{ticks}")
}

fn one_line(text: &str) -> String {
    printed(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text of others inside a line: nothing in it is markup.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for letter in one_line(text).chars() {
        if matches!(letter, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>') {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

fn quoted(text: &str) -> String {
    let lines: Vec<String> = text.trim_end().lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
    lines.join("\n")
}

/// With an end to what the text left open: a code fence or a comment would swallow all that follows.
fn closed(text: &str) -> String {
    let mut open: Option<(char, usize)> = None;
    for line in text.lines() {
        let line = line.trim_start_matches([' ', '\t', '>']);
        let Some(mark) = line.chars().next().filter(|mark| matches!(mark, '`' | '~')) else { continue };
        let run = line.chars().take_while(|letter| *letter == mark).count();
        let rest = &line[run..];
        match open {
            Some((opened, length)) if mark == opened && run >= length && rest.trim().is_empty() => open = None,
            Some(_) => {}
            None if run >= 3 && !(mark == '`' && rest.contains('`')) => open = Some((mark, run)),
            None => {}
        }
    }
    let mut text = text.to_owned();
    match open {
        Some((mark, run)) => text.extend(std::iter::once('\n').chain(std::iter::repeat_n(mark, run))),
        None => {
            if text.rfind("<!--").is_some_and(|begin| !text[begin..].contains("-->")) {
                text.push_str(" -->");
            }
        }
    }
    text
}

/// Letters and digits after the last dot, for the highlighter of whoever shows it.
fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if extension.len() <= 10 && extension.bytes().all(|byte| byte.is_ascii_alphanumeric()) { extension } else { "" }
}

/// The rows that the page shows, as text. Without a file name nothing is highlighted, which keeps it fast.
fn unified(path: &str, old: Option<&str>, new: &str) -> String {
    let html = rendering::diff(old, new, "", DiffView::default()).html;
    let path = one_line(path);
    let from = if old.is_some() { format!("a/{}", path.trim_start_matches('/')) } else { "/dev/null".into() };
    let mut text = format!("--- {from}\n+++ b/{}\n", path.trim_start_matches('/'));
    for row in html.split("<div class=\"").skip(1) {
        let (class, rest) = row.split_once("\">").unwrap_or_default();
        let sign = match class.split('"').next() {
            Some("line add") => '+',
            Some("line del") => '-',
            Some("line same") => ' ',
            Some("fold" | "cut") => {
                text.push_str("@@ … @@\n");
                continue;
            }
            _ => continue,
        };
        let source = rest.split_once("<span class=\"src\">").map_or("", |(_, source)| source);
        text.push(sign);
        text.push_str(&printed(&without_tags(source)).replace('\n', ""));
        text.push('\n');
    }
    text
}

fn without_tags(html: &str) -> String {
    let mut plain = String::with_capacity(html.len());
    let mut in_tag = false;
    for letter in html.chars() {
        match letter {
            '<' => in_tag = true,
            '>' if in_tag => in_tag = false,
            _ if in_tag => {}
            _ => plain.push(letter),
        }
    }
    plain
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&nbsp;", "\u{a0}")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_inside() {
        assert_eq!(fenced("text", "a\n````\nb\n"), "`````text\na\n````\nb\n`````");
        assert_eq!(code("a `b` c"), "``a `b` c``");
        assert_eq!(code("`b`"), "`` `b` ``");
    }

    #[test]
    fn what_an_answer_left_open_is_closed() {
        assert_eq!(closed("a\n```rust\nlet x"), "a\n```rust\nlet x\n```");
        assert_eq!(closed("~~~~\n```\n"), "~~~~\n```\n\n~~~~");
        assert_eq!(closed("```\na\n```\nb"), "```\na\n```\nb");
        assert_eq!(closed("a <!-- b"), "a <!-- b -->");
        assert_eq!(closed("inline ``` x ``` text"), "inline ``` x ``` text");
    }

    #[test]
    fn an_edit_is_a_diff_of_its_lines() {
        let text = unified("/src/a.rs", Some("a\n<b> & \"c\"\n"), "a\n<d>\n");
        assert_eq!(text, "--- a/src/a.rs\n+++ b/src/a.rs\n a\n-<b> & \"c\"\n+<d>\n");
        assert!(unified("new.txt", None, "x\n").starts_with("--- /dev/null\n+++ b/new.txt\n+x\n"));
    }
}
