//! The session as one HTML file without scripts, which opens from the disk.
//!
//! Text of agents becomes HTML in `rendering` only; everything else is escaped here. The policy in the file's head
//! allows inline styles and images that are in the file, and nothing else: no script, no request to elsewhere.

mod style;

use std::io::{self, Write};

use protocol::{Origin, ToolContent, TurnRecord, Upsert, UpsertBody};
use rendering::{Cut, DiffView};

use crate::call::Call;
use crate::plain_text::{escaped, moment};
use crate::turns::{TurnOrder, outcome};
use crate::{Header, INCOMPLETE};

const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

#[derive(Debug)]
pub(crate) struct HtmlWriter {
    header: Header,
    order: TurnOrder,
    is_in_turn: bool,
    /// The agent's name stands above what it says, once until somebody else speaks.
    is_agent_named: bool,
}

impl HtmlWriter {
    pub(crate) fn new(header: Header) -> Self {
        Self { header, order: TurnOrder::default(), is_in_turn: false, is_agent_named: false }
    }

    pub(crate) fn begin(&mut self, out: &mut impl Write) -> io::Result<()> {
        let Header { session_id, title, agent, project_path, created_at, exported_at, is_complete } = &self.header;
        let title = escaped(title);
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n<title>{title}</title>\n<style>\n{}</style>\n</head>\n\
             <body>\n<main>\n<header>\n<h1 dir=\"auto\">{title}</h1>\n<dl>\n",
            style::sheet(),
        )?;
        let mut fact = |name: &str, value: &str| writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escaped(value));
        fact("Agent", agent)?;
        if let Some(path) = project_path {
            fact("Project", path)?;
        }
        fact("Session", session_id.as_str())?;
        for (name, at) in [("Created", created_at), ("Exported", exported_at)] {
            if !at.is_unset() {
                fact(name, &moment(*at))?;
            }
        }
        out.write_all(b"</dl>\n</header>\n")?;
        if !is_complete {
            writeln!(out, "<p class=\"notice\">{INCOMPLETE}</p>")?;
        }
        Ok(())
    }

    pub(crate) fn page(&mut self, turns: &[TurnRecord], items: &[Upsert], out: &mut impl Write) -> io::Result<()> {
        for item in items {
            let step = self.order.step(turns, item);
            if step.begins {
                self.end_turn(step.ended, out)?;
                self.is_in_turn = true;
                self.is_agent_named = false;
                out.write_all(b"<section class=\"turn\">\n")?;
                if turns.iter().any(|turn| turn.turn_id == item.turn_id && turn.forgotten) {
                    out.write_all(b"<p class=\"notice\">The agent no longer remembers this turn.</p>\n")?;
                }
            }
            self.item(item, out)?;
        }
        Ok(())
    }

    pub(crate) fn end(&mut self, out: &mut impl Write) -> io::Result<()> {
        let last = self.order.finish();
        self.end_turn(last, out)?;
        out.write_all(b"</main>\n</body>\n</html>\n")
    }

    fn end_turn(&mut self, turn: Option<TurnRecord>, out: &mut impl Write) -> io::Result<()> {
        if let Some(outcome) = turn.as_ref().and_then(outcome) {
            writeln!(out, "<p class=\"end\">{}</p>", escaped(&outcome))?;
        }
        if std::mem::take(&mut self.is_in_turn) { out.write_all(b"</section>\n") } else { Ok(()) }
    }

    fn item(&mut self, item: &Upsert, out: &mut impl Write) -> io::Result<()> {
        let nested = if item.parent_item_id.is_some() { " nested" } else { "" };
        match &item.body {
            UpsertBody::Message { content, origin: Origin::User } => {
                self.is_agent_named = false;
                write!(out, "<article class=\"item user{nested}\">{}", heading("You", item))?;
                writeln!(out, "<div class=\"said\" dir=\"auto\">{}</div></article>", escaped(content.trim_end()))?;
            }
            UpsertBody::Message { content, origin: Origin::System } => {
                writeln!(out, "<p class=\"notice{nested}\">{}</p>", escaped(content.trim()))?;
            }
            UpsertBody::Message { content, origin: Origin::Agent } => {
                let is_named = std::mem::replace(&mut self.is_agent_named, true);
                let heading = if is_named { String::new() } else { heading(&escaped(&self.header.agent), item) };
                write!(out, "<article class=\"item agent{nested}\">{heading}")?;
                blocks(content, out)?;
                out.write_all(b"</article>\n")?;
            }
            UpsertBody::Thinking { content, .. } if content.trim().is_empty() => {}
            UpsertBody::Thinking { content, .. } => {
                write!(out, "<details class=\"item thinking{nested}\"><summary>Thinking</summary>")?;
                blocks(content, out)?;
                out.write_all(b"</details>\n")?;
            }
            UpsertBody::ToolCall { .. } => {
                if let Some(call) = Call::of(item) {
                    tool_call(&call, nested, out)?;
                }
            }
        }
        match &item.error_message {
            Some(message) if !message.trim().is_empty() => {
                writeln!(out, "<p class=\"error{nested}\">{}</p>", escaped(message.trim()))
            }
            _ => Ok(()),
        }
    }
}

/// `name` is HTML.
fn heading(name: &str, item: &Upsert) -> String {
    let at = item.source_timestamp;
    let time = match at.is_unset() {
        true => String::new(),
        false => format!(" <time datetime=\"{at}\">{}</time>", moment(at)),
    };
    format!("<h2>{name}{time}</h2>")
}

fn blocks(text: &str, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"<div class=\"blocks\" dir=\"auto\">")?;
    for block in rendering::markdown(text) {
        write!(out, "<div class=\"block\">{block}</div>")?;
    }
    out.write_all(b"</div>")
}

fn tool_call(call: &Call<'_>, nested: &str, out: &mut impl Write) -> io::Result<()> {
    let failed = if call.has_failed { " failed" } else { "" };
    write!(out, "<details class=\"item tool{failed}{nested}\"><summary><b>{}</b>", escaped(call.verb))?;
    if let Some(target) = call.target {
        write!(out, " <code>{}</code>", escaped(target.trim()))?;
    }
    if !call.notes.is_empty() {
        write!(out, " <span class=\"note\">{}</span>", escaped(&call.notes.join(", ")))?;
    }
    out.write_all(b"</summary>")?;
    if let Some(arguments) = call.arguments {
        let arguments = serde_json::to_string_pretty(arguments)?;
        write!(out, "<pre class=\"arguments\">{}</pre>", escaped(&arguments))?;
    }
    for content in call.content {
        out.write_all(b"<div class=\"tool-section\">")?;
        section(content, out)?;
        out.write_all(b"</div>")?;
    }
    if let Some(output) = call.output {
        let html = rendering::terminal(output, Cut::WHOLE).html;
        write!(out, "<div class=\"tool-section output\">{html}</div>")?;
    }
    out.write_all(b"</details>\n")
}

fn section(content: &ToolContent, out: &mut impl Write) -> io::Result<()> {
    let path_line = |path: &str| format!("<p class=\"path\">{}</p>", escaped(path));
    match content {
        ToolContent::Diff { path, old_text, new_text, start_line } => {
            let view = DiffView { first_line: start_line.unwrap_or(1) as usize, ..DiffView::default() };
            let diff = rendering::diff(old_text.as_deref(), new_text, path, view);
            write!(out, "{}<div class=\"scroll\">{}</div>", path_line(path), diff.html)
        }
        ToolContent::File { path, start_line, text } => {
            let lines = rendering::file_read(text, *start_line as usize, path, Cut::WHOLE);
            write!(out, "{}<div class=\"scroll\">{}</div>", path_line(path), lines.html)
        }
        ToolContent::Image { mime_type, data } => match rendering::image(mime_type, data) {
            Ok(html) => out.write_all(html.as_bytes()),
            Err(error) => {
                write!(out, "<p class=\"notice\">The picture is not shown: {}</p>", escaped(&error.to_string()))
            }
        },
        ToolContent::Text { text } => blocks(text, out),
    }
}
