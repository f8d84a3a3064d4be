//! `browsers.json`: the browsers that were let in, each with the hash of its credential.
//!
//! Comes in: a list to keep. Goes out: the list as it was saved. What a hash means, and who is admitted, is decided
//! elsewhere. An entry that cannot be read is left out: no failure here lets anybody in.

use std::collections::HashSet;
use std::io;

use protocol::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::directory::DataDirectory;
use crate::error::CatalogError;
use crate::files::{self, Contents, FILE_VERSION, Unreadable};

pub(crate) const BROWSERS_FILE: &str = "browsers.json";
/// Some thousand browsers; the server keeps many fewer.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// SHA-256 in hexadecimal.
const HASH_LENGTH: usize = 64;
const ID_LENGTH_MAX: usize = 32;
const LABEL_CHARACTERS_MAX: usize = 80;
/// The field at the top that says for which secret these credentials were made.
const SECRET_FIELD: &str = "secret";

/// One browser that was let in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrowserRecord {
    pub id: String,
    /// Of its credential, in hexadecimal. The credential itself is kept nowhere but in the browser.
    pub hash: String,
    /// For people, as in "Firefox on Linux".
    pub label: String,
    pub added_at: Timestamp,
    pub last_used_at: Timestamp,
    /// Fields of a later build.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What the file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BrowserList {
    /// A fingerprint of the secret that the credentials belong to; empty where the file names none.
    pub secret: String,
    pub browsers: Vec<BrowserRecord>,
    /// Fields of a later build.
    pub extra: Map<String, Value>,
}

/// The list, and sentences for the user about anything that was not as it should be.
pub(crate) fn read(directory: &DataDirectory) -> Result<(BrowserList, Vec<String>), CatalogError> {
    let parsed = match directory.read(BROWSERS_FILE, FILE_BYTES_MAX) {
        Ok(None) => return Ok((BrowserList::default(), Vec::new())),
        Ok(Some(bytes)) => parse_browsers(&bytes),
        Err(CatalogError::Storage { source, .. }) if source.kind() == io::ErrorKind::FileTooLarge => {
            Err(Unreadable::Damaged(source.to_string()))
        }
        Err(error) => return Err(error),
    };
    match parsed {
        Ok((list, unreadable)) if unreadable.is_empty() => Ok((list, Vec::new())),
        Ok((list, unreadable)) => {
            let copy = directory.keep_copy(BROWSERS_FILE, "damaged")?;
            let notice = format!(
                "{} of {BROWSERS_FILE} could not be read ({}); those browsers need the link again. The file as it was is \
                 {copy} in {}.",
                match unreadable.len() {
                    1 => "1 entry".to_owned(),
                    count => format!("{count} entries"),
                },
                unreadable[0],
                directory.path().display()
            );
            // Without the unreadable entries, so that the next start has nothing left to report.
            write(directory, &list)?;
            Ok((list, logged(notice)))
        }
        Err(Unreadable::Damaged(reason)) => {
            let aside = directory.set_aside(BROWSERS_FILE, "damaged")?;
            Ok((
                BrowserList::default(),
                logged(format!(
                    "{BROWSERS_FILE} was damaged and could not be read ({reason}). It was set aside as {aside} in {}; every \
                     browser needs the link again.",
                    directory.path().display()
                )),
            ))
        }
        Err(Unreadable::Newer(version)) => {
            Err(CatalogError::NewerVersion { file: directory.file(BROWSERS_FILE), version, known: FILE_VERSION })
        }
    }
}

fn logged(notice: String) -> Vec<String> {
    tracing::warn!("{notice}");
    vec![notice]
}

/// Replaces the file. Waits for the disk.
pub(crate) fn write(directory: &DataDirectory, list: &BrowserList) -> Result<(), CatalogError> {
    #[derive(Serialize)]
    struct Shape<'a> {
        version: u64,
        secret: &'a str,
        browsers: &'a [BrowserRecord],
        #[serde(flatten)]
        extra: &'a Map<String, Value>,
    }
    let shape = Shape { version: FILE_VERSION, secret: &list.secret, browsers: &list.browsers, extra: &list.extra };
    let mut bytes = serde_json::to_vec_pretty(&shape)
        .map_err(|error| CatalogError::storage(&directory.file(BROWSERS_FILE), error.into()))?;
    bytes.push(b'\n');
    directory.replace(BROWSERS_FILE, &bytes)
}

/// Never panics, whatever the bytes. Beside the list, what is wrong with the entries that are not in it.
fn parse_browsers(bytes: &[u8]) -> Result<(BrowserList, Vec<String>), Unreadable> {
    let Contents { records, mut extra, mut unreadable, .. } = files::parse::<BrowserRecord>("browsers", bytes)?;
    let secret = match extra.remove(SECRET_FIELD) {
        Some(Value::String(secret)) => secret,
        _ => return Err(Unreadable::Damaged(format!("there is no {SECRET_FIELD}"))),
    };
    let (mut ids, mut hashes) = (HashSet::new(), HashSet::new());
    let mut browsers = Vec::new();
    for mut record in records {
        if let Err(reason) = check(&record) {
            unreadable.push(reason);
        } else if !ids.insert(record.id.clone()) || !hashes.insert(record.hash.clone()) {
            unreadable.push(format!("{} is listed twice", record.id));
        } else {
            record.label = label(&record.label);
            browsers.push(record);
        }
    }
    Ok((BrowserList { secret, browsers, extra }, unreadable))
}

fn check(record: &BrowserRecord) -> Result<(), String> {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if record.id.is_empty() || record.id.len() > ID_LENGTH_MAX || !is_hex(&record.id) {
        return Err("an id is not one of ours".into());
    }
    match record.hash.len() == HASH_LENGTH && is_hex(&record.hash) {
        true => Ok(()),
        false => Err(format!("the hash of {} is not one", record.id)),
    }
}

/// A person may have edited the file.
fn label(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(LABEL_CHARACTERS_MAX).collect()
}
