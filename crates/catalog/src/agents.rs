//! `agents.json`: the agents that the user defines, changed in a window or with an editor.
//!
//! Comes in: one definition to save or a name to remove. Goes out: the same text with that one change in it.
//! Everything else stays as it is written: unknown fields at every level, numbers, the order of entries. A file that is
//! not in the expected form is never replaced, and neither is one that changed since it was read. Kept out: which names
//! and commands are allowed.

use std::fmt;
use std::fs;

use protocol::{AgentDefinition, EnvVariable};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::directory::DataDirectory;
use crate::error::CatalogError;

pub(crate) const AGENTS_FILE: &str = "agents.json";
/// A list of agents; a thousand of them are shorter.
const AGENTS_FILE_BYTES_MAX: u64 = 1024 * 1024;
const SERVERS: &str = "agent_servers";
const INDENT: &str = "  ";

/// `agents.json` as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentsText(Option<String>);

/// One change of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentsChange {
    /// At the end, or in the place of the entry that `replaces` names.
    Save {
        replaces: Option<String>,
        definition: AgentDefinition,
    },
    Remove {
        name: String,
    },
}

/// Why a change is not made. A variant exists because some caller acts on it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentsChangeError {
    #[error("there is an agent {0:?} already")]
    NameTaken(String),
    #[error("there is no agent {0:?}")]
    NotFound(String),
    /// The file, or the entry to be changed, is not in the expected form.
    #[error("{0}")]
    Form(String),
}

impl AgentsText {
    /// `None` where there is no file.
    pub fn new(text: Option<String>) -> Self {
        Self(text)
    }

    pub fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Stands for the content: the same content gives the same revision.
    pub fn revision(&self) -> String {
        match &self.0 {
            Some(text) => Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).to_string(),
            None => "none".into(),
        }
    }

    /// The entries in their order: each name as it is written, and the definition unless it is not in the expected
    /// form.
    pub fn entries(&self) -> Result<Vec<(String, Option<AgentDefinition>)>, AgentsChangeError> {
        let Fields(servers) = self.fields()?.1;
        Ok(servers.into_iter().map(|(name, entry)| (name.clone(), definition(name, &entry))).collect())
    }

    /// The file's own fields, and those of its list of agents.
    fn fields(&self) -> Result<(Fields, Fields), AgentsChangeError> {
        let file = match self.0.as_deref().filter(|text| !text.trim().is_empty()) {
            Some(text) => Fields::parse(text)?,
            None => Fields::default(),
        };
        let servers = match file.get(SERVERS) {
            Some(servers) => Fields::parse(servers.get())?,
            None => Fields::default(),
        };
        Ok((file, servers))
    }

    /// The text with one change in it.
    pub fn with(&self, change: &AgentsChange) -> Result<Self, AgentsChangeError> {
        let (mut file, mut servers) = self.fields()?;
        match change {
            AgentsChange::Save { replaces, definition } => save(&mut servers, replaces.as_deref(), definition)?,
            AgentsChange::Remove { name } => {
                let at = servers.position(name).ok_or_else(|| AgentsChangeError::NotFound(name.clone()))?;
                servers.0.remove(at);
            }
        }
        file.set(SERVERS, raw(servers.written(1))?);
        Ok(Self(Some(format!("{}\n", file.written(0)))))
    }
}

fn definition(name: String, entry: &RawValue) -> Option<AgentDefinition> {
    let entry: Fields = serde_json::from_str(entry.get()).ok()?;
    let command = serde_json::from_str(entry.get("command")?.get()).ok()?;
    let args = entry.get("args").map_or(Ok(Vec::new()), |args| serde_json::from_str(args.get())).ok()?;
    let Fields(env) = entry.get("env").map_or(Ok(Fields::default()), |env| serde_json::from_str(env.get())).ok()?;
    let variable = |(name, value): (String, Box<RawValue>)| {
        serde_json::from_str(value.get()).ok().map(|value| EnvVariable { name, value })
    };
    Some(AgentDefinition { name, command, args, env: env.into_iter().map(variable).collect::<Option<_>>()? })
}

fn save(servers: &mut Fields, replaces: Option<&str>, definition: &AgentDefinition) -> Result<(), AgentsChangeError> {
    let AgentDefinition { name, command, args, env } = definition;
    let at = match replaces {
        Some(replaces) => {
            Some(servers.position(replaces).ok_or_else(|| AgentsChangeError::NotFound(replaces.to_owned()))?)
        }
        None => None,
    };
    let name = name.trim();
    if servers.position(name).is_some_and(|found| Some(found) != at) {
        return Err(AgentsChangeError::NameTaken(name.to_owned()));
    }
    let mut entry = match at {
        Some(at) => Fields::parse(servers.0[at].1.get())?,
        None => Fields::default(),
    };
    let mut variables = Fields::default();
    for variable in env {
        variables.set(&variable.name, json(&variable.value)?);
    }
    entry.set("command", json(command)?);
    for (field, is_empty, value) in
        [("args", args.is_empty(), json(args)?), ("env", env.is_empty(), raw(variables.written(3))?)]
    {
        // An entry that never had it gets no empty one.
        if !is_empty || at.is_none() || entry.position(field).is_some() {
            entry.set(field, value);
        }
    }
    let entry = raw(entry.written(2))?;
    match at {
        Some(at) => servers.0[at] = (name.to_owned(), entry),
        None => servers.0.push((name.to_owned(), entry)),
    }
    Ok(())
}

/// The fields of one object in their order, each value as it was written.
#[derive(Debug, Default)]
struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    fn parse(text: &str) -> Result<Self, AgentsChangeError> {
        serde_json::from_str(text).map_err(|error| AgentsChangeError::Form(error.to_string()))
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|(known, _)| known == name)
    }

    fn get(&self, name: &str) -> Option<&RawValue> {
        self.position(name).map(|at| self.0[at].1.as_ref())
    }

    fn set(&mut self, name: &str, value: Box<RawValue>) {
        match self.position(name) {
            Some(at) => self.0[at].1 = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// One field per line, the last brace at this depth. Values keep the lines they were written in.
    fn written(&self, depth: usize) -> String {
        if self.0.is_empty() {
            return "{}".into();
        }
        let indent = INDENT.repeat(depth + 1);
        let fields = self.0.iter().map(|(name, value)| format!("{indent}{}: {}", quoted(name), value.get()));
        format!("{{\n{}\n{}}}", fields.collect::<Vec<_>>().join(",\n"), INDENT.repeat(depth))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Fields;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if fields.position(&name).is_some() {
                        return Err(A::Error::custom(format!("{name:?} stands there twice")));
                    }
                    fields.0.push((name, value));
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> Result<Box<RawValue>, AgentsChangeError> {
    serde_json::value::to_raw_value(value).map_err(|error| AgentsChangeError::Form(error.to_string()))
}

fn raw(text: String) -> Result<Box<RawValue>, AgentsChangeError> {
    RawValue::from_string(text).map_err(|error| AgentsChangeError::Form(error.to_string()))
}

/// Waits for the disk.
pub(crate) fn read(directory: &DataDirectory) -> Result<Option<String>, CatalogError> {
    let Some(bytes) = directory.read(AGENTS_FILE, AGENTS_FILE_BYTES_MAX)? else { return Ok(None) };
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidData, error);
        CatalogError::storage(&directory.file(AGENTS_FILE), source)
    })
}

/// Replaces the file if it still has the content that was read. Waits for the disk.
pub(crate) fn replace(directory: &DataDirectory, before: &AgentsText, after: &AgentsText) -> Result<(), CatalogError> {
    let path = directory.file(AGENTS_FILE);
    // The new file would take the place of the link, and the file that the user keeps would stay as it was.
    if let Ok(target) = fs::read_link(&path) {
        let reason = format!("it is a link to {}; change that file", target.display());
        return Err(CatalogError::AgentsFileUnusable { path, reason });
    }
    if read(directory)? != before.0 {
        return Err(CatalogError::AgentsFileChanged { path });
    }
    let text = after.as_deref().unwrap_or_default();
    if text.len() as u64 > AGENTS_FILE_BYTES_MAX {
        let reason = format!("it would be longer than {AGENTS_FILE_BYTES_MAX} bytes");
        return Err(CatalogError::AgentsFileUnusable { path, reason });
    }
    directory.replace(AGENTS_FILE, text.as_bytes())
}

#[cfg(test)]
#[path = "agents_tests.rs"]
mod tests;
