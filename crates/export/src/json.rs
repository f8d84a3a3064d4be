//! The session as one JSON object, for programs.
//!
//! `{"format": "liminal-builder.export", "version": 1, "redacted": false, "session": {…}, "items": […], "turns": […]}`.
//! Items and turns have the fields of the plain WebSocket contract, items in display order. Turns come last: they are
//! known when all items have been written. A turn without items is not listed.

use std::io::{self, Write};

use protocol::{TurnRecord, Upsert};
use serde_json::json;

use crate::turns::TurnList;
use crate::{Header, Redaction};

pub(crate) const FORMAT: &str = "liminal-builder.export";
pub(crate) const VERSION: u32 = 1;

#[derive(Debug)]
pub(crate) struct JsonWriter {
    header: Header,
    redaction: Redaction,
    turns: TurnList,
    has_items: bool,
}

impl JsonWriter {
    pub(crate) fn new(header: Header, redaction: Redaction) -> Self {
        Self { header, redaction, turns: TurnList::default(), has_items: false }
    }

    pub(crate) fn begin(&mut self, out: &mut impl Write) -> io::Result<()> {
        let Header { session_id, title, agent, project_path, created_at, exported_at, is_complete } = &self.header;
        let session = json!({
            "id": session_id,
            "title": title,
            "cliType": session_id.cli_type(),
            "agent": agent,
            "projectPath": project_path,
            "createdAt": created_at,
            "exportedAt": exported_at,
            "isComplete": is_complete,
        });
        let redacted = self.redaction == Redaction::Secrets;
        write!(
            out,
            "{{\"format\":\"{FORMAT}\",\"version\":{VERSION},\"redacted\":{redacted},\n\"session\":{session},\n"
        )?;
        out.write_all(b"\"items\":[")
    }

    pub(crate) fn page(&mut self, turns: &[TurnRecord], items: &[Upsert], out: &mut impl Write) -> io::Result<()> {
        self.turns.add(turns);
        for item in items {
            out.write_all(if self.has_items { b",\n" } else { b"\n" })?;
            self.has_items = true;
            serde_json::to_writer(&mut *out, item)?;
        }
        Ok(())
    }

    pub(crate) fn end(&mut self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"\n],\n\"turns\":[")?;
        for (index, turn) in self.turns.all().enumerate() {
            out.write_all(if index > 0 { b",\n" } else { b"\n" })?;
            serde_json::to_writer(&mut *out, turn)?;
        }
        out.write_all(b"\n]}\n")
    }
}
