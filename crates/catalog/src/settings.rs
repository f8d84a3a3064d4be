//! `settings.json`: what the user has set for this server, in a window or with an editor.
//!
//! Comes in: changes from windows, as people type them. Goes out: the settings from memory, and one small file. Command
//! lines are split into words once, when they are saved, and stay words; nothing ever hands them to a shell. Fields nobody
//! here knows are kept. A damaged file is set aside and never overwritten.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::directory::DataDirectory;
use crate::error::CatalogError;

const SETTINGS_FILE: &str = "settings.json";
/// The version this build writes, and the newest it can read.
const SETTINGS_VERSION: u64 = 1;
/// A few commands. What is longer is not a file of ours.
const SETTINGS_BYTES_MAX: u64 = 1024 * 1024;
/// Longer than any command line a person types.
const COMMAND_BYTES_MAX: usize = 4096;

/// A program and its arguments. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct CommandWords(Vec<String>);

impl CommandWords {
    /// Quotes work as in a shell; nothing is expanded. `None` for a blank line.
    fn parse(field: &'static str, line: &str) -> Result<Option<Self>, CatalogError> {
        let invalid = |reason: String| CatalogError::CommandInvalid { field, reason };
        if line.len() > COMMAND_BYTES_MAX {
            return Err(invalid(format!("is longer than {COMMAND_BYTES_MAX} bytes")));
        }
        let words = shell_words::split(line).map_err(|_| invalid("has a quote that is not closed".into()))?;
        if words.is_empty() {
            return Ok(None);
        }
        Self::try_from(words).map(Some).map_err(invalid)
    }

    pub fn words(&self) -> &[String] {
        &self.0
    }

    /// As a person would type it.
    pub fn line(&self) -> String {
        shell_words::join(&self.0)
    }
}

impl TryFrom<Vec<String>> for CommandWords {
    type Error = String;

    fn try_from(words: Vec<String>) -> Result<Self, String> {
        match words.first() {
            None => Err("is empty".into()),
            Some(program) if program.trim().is_empty() => Err("names no program".into()),
            // A line with a control character in it was not typed by a person who meant it.
            Some(_) if words.iter().any(|word| word.contains(char::is_control)) => {
                Err("must not hold control characters".into())
            }
            Some(_) => Ok(Self(words)),
        }
    }
}

impl From<CommandWords> for Vec<String> {
    fn from(command: CommandWords) -> Self {
        command.0
    }
}

/// What the user has set; `None` is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub editor: Option<CommandWords>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<CommandWords>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// Command lines to set, as typed; a blank one goes back to the default, a missing one stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsChange {
    pub editor: Option<String>,
    pub terminal: Option<String>,
}

/// The settings in memory and the one who writes them.
#[derive(Debug)]
pub(crate) struct SettingsFile {
    current: Mutex<Settings>,
    /// Held during a write, so that reads never wait for the disk.
    writing: Mutex<()>,
}

impl SettingsFile {
    pub(crate) fn open(directory: &DataDirectory, notices: &mut Vec<String>) -> Result<Self, CatalogError> {
        let settings = match read(directory)? {
            Ok(settings) => settings,
            Err(reason) => {
                let aside = directory.set_aside(SETTINGS_FILE, "damaged")?;
                let notice = format!(
                    "{SETTINGS_FILE} was damaged and could not be read ({reason}). It was set aside as {aside} in {}; \
                     the defaults are used.",
                    directory.path().display()
                );
                tracing::warn!("{notice}");
                notices.push(notice);
                Settings::default()
            }
        };
        Ok(Self { current: Mutex::new(settings), writing: Mutex::default() })
    }

    pub(crate) fn current(&self) -> Settings {
        held(&self.current).clone()
    }

    /// Waits for the disk.
    pub(crate) fn change(&self, directory: &DataDirectory, change: SettingsChange) -> Result<Settings, CatalogError> {
        let _writing = held(&self.writing);
        let mut settings = self.current();
        if let Some(line) = change.editor {
            settings.editor = CommandWords::parse("editor", &line)?;
        }
        if let Some(line) = change.terminal {
            settings.terminal = CommandWords::parse("terminal", &line)?;
        }
        if settings != self.current() {
            write(directory, &settings)?;
            held(&self.current).clone_from(&settings);
        }
        Ok(settings)
    }
}

/// The settings are replaced as a whole, so they are sound even if somebody panicked.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `Ok(Err(…))`: it is damaged, and how.
fn read(directory: &DataDirectory) -> Result<Result<Settings, String>, CatalogError> {
    let Some(bytes) = directory.read(SETTINGS_FILE, SETTINGS_BYTES_MAX)? else { return Ok(Ok(Settings::default())) };
    let mut fields: Map<String, Value> = match serde_json::from_slice(&bytes) {
        Ok(fields) => fields,
        Err(error) => return Ok(Err(error.to_string())),
    };
    match fields.remove("version").as_ref().and_then(Value::as_u64) {
        Some(SETTINGS_VERSION) => {}
        Some(version) if version > SETTINGS_VERSION => {
            let (file, version) = (directory.file(SETTINGS_FILE), version.to_string());
            return Err(CatalogError::NewerVersion { file, version, known: SETTINGS_VERSION });
        }
        _ => return Ok(Err("there is no version that this build knows".into())),
    }
    Ok(serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string()))
}

fn write(directory: &DataDirectory, settings: &Settings) -> Result<(), CatalogError> {
    #[derive(Serialize)]
    struct Written<'a> {
        version: u64,
        #[serde(flatten)]
        settings: &'a Settings,
    }
    let bytes = serde_json::to_vec_pretty(&Written { version: SETTINGS_VERSION, settings });
    let mut bytes = bytes.map_err(|error| CatalogError::storage(&directory.file(SETTINGS_FILE), error.into()))?;
    bytes.push(b'\n');
    directory.replace(SETTINGS_FILE, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn place(text: &str) -> (tempfile::TempDir, DataDirectory) {
        let home = tempfile::tempdir().unwrap();
        let directory = DataDirectory::open(home.path()).unwrap();
        if !text.is_empty() {
            fs::write(home.path().join(SETTINGS_FILE), text).unwrap();
        }
        (home, directory)
    }

    fn editor(line: &str) -> SettingsChange {
        SettingsChange { editor: Some(line.into()), terminal: None }
    }

    #[test]
    fn a_command_is_split_once_and_kept_as_words() {
        let (home, directory) = place("");
        let file = SettingsFile::open(&directory, &mut Vec::new()).unwrap();
        let settings = file.change(&directory, editor(r#"  "my editor" -n '$HOME' {dir}; "#)).unwrap();
        assert_eq!(settings.editor.unwrap().words(), ["my editor", "-n", "$HOME", "{dir};"]);
        let text = fs::read_to_string(home.path().join(SETTINGS_FILE)).unwrap();
        assert!(text.contains("\"version\": 1") && text.contains("\"my editor\""), "{text}");

        let again = SettingsFile::open(&directory, &mut Vec::new()).unwrap();
        assert_eq!(again.current(), file.current());
        assert_eq!(again.change(&directory, editor("  ")).unwrap().editor, None, "a blank line is the default");
    }

    #[test]
    fn what_is_no_command_changes_nothing() {
        let (home, directory) = place("");
        let file = SettingsFile::open(&directory, &mut Vec::new()).unwrap();
        for line in ["'open", "\"\" x", "a\u{0}b", "a '\u{1b}[2J'", &"x".repeat(5000)] {
            let refused = file.change(&directory, editor(line)).unwrap_err();
            assert!(matches!(refused, CatalogError::CommandInvalid { field: "editor", .. }), "{line:?}: {refused}");
        }
        assert!(!home.path().join(SETTINGS_FILE).exists());
    }

    #[test]
    fn what_nobody_here_knows_stays_in_the_file() {
        let (home, directory) = place(r#"{"version":1,"colour":{"of":"night"},"editor":["vi"]}"#);
        let file = SettingsFile::open(&directory, &mut Vec::new()).unwrap();
        file.change(&directory, editor("code")).unwrap();
        let text = fs::read_to_string(home.path().join(SETTINGS_FILE)).unwrap();
        let written: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(written, serde_json::json!({"version": 1, "editor": ["code"], "colour": {"of": "night"}}));
    }

    #[test]
    fn a_damaged_settings_file_is_set_aside_and_reported_and_a_newer_one_is_not_touched() {
        for text in ["{", "[]", "{}", r#"{"version":1,"editor":"code"}"#, r#"{"version":1,"editor":[]}"#] {
            let (home, directory) = place(text);
            let mut notices = Vec::new();
            let file = SettingsFile::open(&directory, &mut notices).unwrap();
            assert_eq!((file.current(), notices.len()), (Settings::default(), 1), "{text}");
            let names: Vec<_> = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert!(names.iter().any(|name| name.to_string_lossy().starts_with("settings.json.damaged-")), "{names:?}");
        }
        let (home, directory) = place(r#"{"version":2}"#);
        let refused = SettingsFile::open(&directory, &mut Vec::new()).unwrap_err();
        assert!(matches!(refused, CatalogError::NewerVersion { .. }), "{refused}");
        assert!(home.path().join(SETTINGS_FILE).exists());
    }
}
