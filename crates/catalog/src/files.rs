//! The shapes of `projects.json` and `sessions.json`: bytes in, records out, and back. Pure.
//!
//! Version 1 is `{version, projects: […]}` and `{version, sessions: […]}`. The earlier build wrote both as
//! `{version: 1, data: […]}` with the same records inside; `Contents::earlier` says so and `opening` takes the step up.
//! Fields nobody here knows are kept, at the top and in each record.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::record::{ProjectRecord, SessionRecord};
use crate::records::Records;

/// The version this build writes, and the newest it can read.
pub(crate) const FILE_VERSION: u64 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Projects,
    Sessions,
}

impl FileKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Projects => "projects.json",
            Self::Sessions => "sessions.json",
        }
    }
}

/// What a file holds, as far as it can be read.
#[derive(Debug)]
pub struct Contents<R> {
    pub records: Vec<R>,
    /// Unknown fields at the top.
    pub extra: Map<String, Value>,
    /// In the shape of the earlier build.
    pub earlier: bool,
    /// What is wrong with the records that are not among `records`.
    pub unreadable: Vec<String>,
}

impl<R> Default for Contents<R> {
    fn default() -> Self {
        Self { records: Vec::new(), extra: Map::new(), earlier: false, unreadable: Vec::new() }
    }
}

/// Why nothing at all can be taken from a file.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The version as it is written there: a later build may not use numbers.
    #[error("file version {0} is newer than this build")]
    Newer(String),
    #[error("{0}")]
    Damaged(String),
}

/// `projects.json`. Never panics, whatever the bytes.
pub fn parse_projects(bytes: &[u8]) -> Result<Contents<ProjectRecord>, Unreadable> {
    parse("projects", bytes)
}

/// `sessions.json`. Never panics, whatever the bytes.
pub fn parse_sessions(bytes: &[u8]) -> Result<Contents<SessionRecord>, Unreadable> {
    parse("sessions", bytes)
}

pub(crate) fn parse<R: DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<Contents<R>, Unreadable> {
    let damaged = |error: serde_json::Error| Unreadable::Damaged(error.to_string());
    // Raw values first: a newer version may have any shape inside, and one bad record must not cost the others.
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_slice(bytes).map_err(damaged)?;
    let version = fields.remove("version").ok_or_else(|| Unreadable::Damaged("there is no version".into()))?;
    check_version(version.get())?;
    let (list, earlier) = match fields.remove(key) {
        Some(list) => (list, false),
        None => match fields.remove("data") {
            Some(list) => (list, true),
            None => return Err(Unreadable::Damaged(format!("there are no {key}"))),
        },
    };
    let (records, unreadable) = match serde_json::from_str(list.get()) {
        Ok(records) => (records, Vec::new()),
        Err(_) => salvage(list).map_err(damaged)?,
    };
    let mut extra = Map::new();
    for (name, value) in fields {
        extra.insert(name, serde_json::from_str(value.get()).map_err(damaged)?);
    }
    Ok(Contents { records, extra, earlier, unreadable })
}

/// Whatever this build cannot have written, and does not know to be nonsense, is taken for a newer build's.
fn check_version(written: &str) -> Result<(), Unreadable> {
    const SHOWN_CHARACTERS_MAX: usize = 40;
    let shown = || written.chars().take(SHOWN_CHARACTERS_MAX).collect::<String>();
    match serde_json::from_str::<Value>(written) {
        Ok(Value::Number(number)) if number.as_u64() == Some(FILE_VERSION) => Ok(()),
        Ok(Value::Number(number)) if number.as_f64().is_some_and(|number| number < FILE_VERSION as f64) => {
            Err(Unreadable::Damaged(format!("there is no file version {}", shown())))
        }
        Ok(Value::Number(_) | Value::String(_)) => Err(Unreadable::Newer(shown())),
        // A number beyond every range is a number all the same.
        Err(_) if written.starts_with(|c: char| c.is_ascii_digit()) => Err(Unreadable::Newer(shown())),
        Ok(_) | Err(_) => Err(Unreadable::Damaged(format!("the version is {}", shown()))),
    }
}

/// Record by record: those that can be read, and what is wrong with the others.
fn salvage<R: DeserializeOwned>(list: &RawValue) -> serde_json::Result<(Vec<R>, Vec<String>)> {
    let (mut records, mut unreadable) = (Vec::new(), Vec::new());
    for record in serde_json::from_str::<Vec<&RawValue>>(list.get())? {
        match serde_json::from_str(record.get()) {
            Ok(record) => records.push(record),
            Err(error) => unreadable.push(error.to_string()),
        }
    }
    Ok((records, unreadable))
}

/// The whole file, indented for a person, with a newline at its end.
pub(crate) fn render(kind: FileKind, records: &Records) -> io::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Projects<'a> {
        version: u64,
        projects: Vec<&'a Arc<ProjectRecord>>,
        #[serde(flatten)]
        extra: &'a Map<String, Value>,
    }
    #[derive(Serialize)]
    struct Sessions<'a> {
        version: u64,
        sessions: &'a [Arc<SessionRecord>],
        #[serde(flatten)]
        extra: &'a Map<String, Value>,
    }
    let version = FILE_VERSION;
    let mut bytes = match kind {
        FileKind::Projects => {
            let (projects, extra) = (records.projects().collect(), &records.projects_extra);
            serde_json::to_vec_pretty(&Projects { version, projects, extra })
        }
        FileKind::Sessions => {
            let (sessions, extra) = (records.sessions(), &records.sessions_extra);
            serde_json::to_vec_pretty(&Sessions { version, sessions, extra })
        }
    }?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
