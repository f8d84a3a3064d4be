//! A session as one file: Markdown to read, JSON for programs, HTML to open in a browser.
//!
//! Comes in: facts of the session, then its turns and items, page by page, in display order. Goes out: bytes, written as
//! the pages come, so that a long session is never in memory as a whole. Kept out: tokio, files, clocks, the journal.
//!
//! With [`Redaction::Secrets`], keys, tokens and e-mail addresses are masked before anything is written.

mod call;
mod html;
mod json;
mod markdown;
mod plain_text;
pub mod redact;
mod turns;

use std::io::{self, Write};

use protocol::{SessionId, Timestamp, TurnRecord, Upsert};

/// What the file begins with.
#[derive(Clone, Debug)]
pub struct Header {
    pub session_id: SessionId,
    pub title: String,
    /// The agent's name, as the page shows it.
    pub agent: String,
    /// None if the project was removed.
    pub project_path: Option<String>,
    pub created_at: Timestamp,
    pub exported_at: Timestamp,
    /// False if the agent has earlier parts of the conversation that are not recorded here.
    pub is_complete: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Markdown,
    Json,
    Html,
}

impl Format {
    pub const ALL: [Self; 3] = [Self::Markdown, Self::Json, Self::Html];

    /// Its name in addresses and flags, and the extension of its files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Markdown => "md",
            Self::Json => "json",
            Self::Html => "html",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Json => "application/json",
            Self::Html => "text/html; charset=utf-8",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redaction {
    None,
    /// Keys, tokens and e-mail addresses are masked.
    Secrets,
}

/// Writes one session. Call [`Exporter::begin`], then [`Exporter::page`] for each page, then [`Exporter::end`].
#[derive(Debug)]
pub struct Exporter {
    redaction: Redaction,
    writer: Writer,
}

#[derive(Debug)]
enum Writer {
    Markdown(markdown::MarkdownWriter),
    Json(json::JsonWriter),
    Html(html::HtmlWriter),
}

impl Exporter {
    pub fn new(format: Format, redaction: Redaction, header: Header) -> Self {
        let header = match redaction {
            Redaction::None => header,
            Redaction::Secrets => Header { title: redact::text(&header.title).into_owned(), ..header },
        };
        let writer = match format {
            Format::Markdown => Writer::Markdown(markdown::MarkdownWriter::new(header)),
            Format::Json => Writer::Json(json::JsonWriter::new(header, redaction)),
            Format::Html => Writer::Html(html::HtmlWriter::new(header)),
        };
        Self { redaction, writer }
    }

    pub fn begin(&mut self, out: &mut impl Write) -> io::Result<()> {
        match &mut self.writer {
            Writer::Markdown(writer) => writer.begin(out),
            Writer::Json(writer) => writer.begin(out),
            Writer::Html(writer) => writer.begin(out),
        }
    }

    /// Items in display order, and the turns they belong to, as the plain contract has them. A turn that has not ended
    /// may come again with a later page.
    pub fn page(&mut self, turns: &[TurnRecord], items: &[Upsert], out: &mut impl Write) -> io::Result<()> {
        match self.redaction {
            Redaction::None => self.write(turns, items, out),
            Redaction::Secrets => {
                let turns: Vec<_> = turns.iter().map(redact::turn).collect();
                for item in items {
                    self.write(&turns, &[redact::item(item)], out)?;
                }
                Ok(())
            }
        }
    }

    fn write(&mut self, turns: &[TurnRecord], items: &[Upsert], out: &mut impl Write) -> io::Result<()> {
        match &mut self.writer {
            Writer::Markdown(writer) => writer.page(turns, items, out),
            Writer::Json(writer) => writer.page(turns, items, out),
            Writer::Html(writer) => writer.page(turns, items, out),
        }
    }

    pub fn end(&mut self, out: &mut impl Write) -> io::Result<()> {
        match &mut self.writer {
            Writer::Markdown(writer) => writer.end(out),
            Writer::Json(writer) => writer.end(out),
            Writer::Html(writer) => writer.end(out),
        }
    }
}

/// What both readable formats say of a session that begins earlier.
const INCOMPLETE: &str = "The agent has earlier parts of this conversation that are not recorded here.";

/// A name for the exported file, without anything that a file system or a header could misread. Letters of other
/// scripts stay.
pub fn file_stem(title: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    let mut name = String::new();
    let mut characters = 0;
    for letter in title.chars() {
        if characters == CHARACTERS_MAX {
            break;
        }
        if letter.is_alphanumeric() {
            name.push(letter);
            characters += 1;
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
            characters += 1;
        }
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() { "session".into() } else { name.into() }
}
