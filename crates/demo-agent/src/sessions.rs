//! Sessions as files: what was said, one update a line, to be told again.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1 as acp;

/// The directory they are in. None when there is nowhere to put them: then they end with the program.
#[derive(Debug)]
pub(crate) struct Sessions(Option<PathBuf>);

impl Sessions {
    /// In the data directory, else where the system keeps state.
    pub(crate) fn open() -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let data = variable("LIMINAL_DATA_DIR").map(|directory| directory.join("demo-agent"));
        let state = || variable("XDG_STATE_HOME").map(|directory| directory.join("liminal-builder/demo-agent"));
        let home = || std::env::home_dir().map(|home| home.join(".local/state/liminal-builder/demo-agent"));
        let directory = data.or_else(state).or_else(home);
        let usable = directory.filter(|directory| match std::fs::create_dir_all(directory) {
            Ok(()) => true,
            Err(error) => {
                eprintln!("sessions will not survive: {}: {error}", directory.display());
                false
            }
        });
        Self(usable)
    }

    pub(crate) fn remember(&self, session: &str, update: &acp::SessionUpdate) {
        let Some(path) = self.path(session) else { return };
        let written = serde_json::to_string(update).map_err(std::io::Error::from).and_then(|line| {
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            file.write_all(format!("{line}\n").as_bytes())
        });
        if let Err(error) = written {
            eprintln!("{}: {error}", path.display());
        }
    }

    /// None for a session that never was spoken to.
    pub(crate) fn past(&self, session: &str) -> Option<Vec<acp::SessionUpdate>> {
        let text = std::fs::read_to_string(self.path(session)?).ok()?;
        Some(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// Ids are ours; one of another form is nobody's.
    fn path(&self, session: &str) -> Option<PathBuf> {
        let directory: &Path = self.0.as_deref()?;
        uuid::Uuid::try_parse(session).ok().map(|id| directory.join(format!("{id}.jsonl")))
    }
}
