//! From the files on disk to the records: reading, setting aside what is damaged, and the step up from the earlier build.
//!
//! Comes in: a locked directory. Goes out: the records, and sentences for the user about anything out of the ordinary.
//! Whatever is about to be replaced is kept under a second name first.

use std::collections::{HashMap, HashSet};

use protocol::ProjectId;

use crate::directory::DataDirectory;
use crate::error::CatalogError;
use crate::files::{self, Contents, FILE_VERSION, FileKind, Unreadable};
use crate::paths;
use crate::record::ProjectRecord;
use crate::records::{Change, Records};

/// More than a million sessions. What is longer is not a file of ours.
pub(crate) const FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;

pub(crate) fn read_records(directory: &DataDirectory) -> Result<(Records, Vec<String>), CatalogError> {
    // Both are read before anything is moved: a newer file beside a damaged one leaves both alone.
    let projects = read(directory, FileKind::Projects, files::parse_projects)?;
    let sessions = read(directory, FileKind::Sessions, files::parse_sessions)?;
    let mut opening = Opening { directory, notices: Vec::new() };
    let mut projects = opening.usable(FileKind::Projects, projects)?;
    let mut sessions = opening.usable(FileKind::Sessions, sessions)?;

    let new_ids = if projects.earlier { derive_ids(&mut projects.records) } else { HashMap::new() };
    let mut moved = false;
    for session in &mut sessions.records {
        if let Some(id) = new_ids.get(&session.project_id) {
            moved |= session.project_id != *id;
            session.project_id = id.clone();
        }
    }

    let mut records = Records::default();
    records.projects_extra = projects.extra;
    records.sessions_extra = sessions.extra;
    for project in projects.records {
        if let Err(error) = records.apply(&Change::AddProject(Box::new(project))) {
            projects.unreadable.push(error.to_string());
        }
    }
    for session in sessions.records {
        if let Err(error) = records.insert_session(session) {
            sessions.unreadable.push(error.to_string());
        }
    }
    // Sessions first: a crash between the two leaves the earlier projects to be upgraded again, to the same ids.
    opening.save(FileKind::Sessions, &records, sessions.earlier, moved, &sessions.unreadable)?;
    opening.save(FileKind::Projects, &records, projects.earlier, false, &projects.unreadable)?;
    Ok((records, opening.notices))
}

/// `Ok(None)`: there is no such file. `Ok(Some(Err(…)))`: it is damaged, and how.
type Reading<R> = Option<Result<Contents<R>, String>>;

fn read<R>(
    directory: &DataDirectory,
    kind: FileKind,
    parse: fn(&[u8]) -> Result<Contents<R>, Unreadable>,
) -> Result<Reading<R>, CatalogError> {
    let Some(bytes) = directory.read(kind.name(), FILE_BYTES_MAX)? else { return Ok(None) };
    match parse(&bytes) {
        Ok(contents) => Ok(Some(Ok(contents))),
        Err(Unreadable::Damaged(reason)) => Ok(Some(Err(reason))),
        Err(Unreadable::Newer(version)) => {
            let file = directory.file(kind.name());
            Err(CatalogError::NewerVersion { file, version, known: FILE_VERSION })
        }
    }
}

struct Opening<'a> {
    directory: &'a DataDirectory,
    notices: Vec<String>,
}

impl Opening<'_> {
    fn usable<R>(&mut self, kind: FileKind, reading: Reading<R>) -> Result<Contents<R>, CatalogError> {
        match reading {
            Some(Ok(contents)) => Ok(contents),
            None => Ok(Contents::default()),
            Some(Err(reason)) => {
                let name = kind.name();
                let aside = self.directory.set_aside(name, "damaged")?;
                self.notice(format!(
                    "{name} was damaged and could not be read ({reason}). It was set aside as {aside} in {}; \
                     Liminal Builder starts with an empty list.",
                    self.directory.path().display()
                ));
                Ok(Contents::default())
            }
        }
    }

    /// Writes the file again if the records differ from it.
    fn save(
        &mut self,
        kind: FileKind,
        records: &Records,
        earlier: bool,
        moved: bool,
        unreadable: &[String],
    ) -> Result<(), CatalogError> {
        let name = kind.name();
        if let Some(reason) = unreadable.first() {
            let copy = self.directory.keep_copy(name, "damaged")?;
            let entries = match unreadable.len() {
                1 => "1 entry".to_owned(),
                count => format!("{count} entries"),
            };
            self.notice(format!(
                "{entries} of {name} could not be read ({reason}). The other entries were kept; the file as it was is {copy} in {}.",
                self.directory.path().display()
            ));
        } else if earlier {
            let copy = self.directory.keep_copy(name, "earlier")?;
            self.notice(format!(
                "{name} came from the earlier build and was upgraded. The file as it was is {copy} in {}.",
                self.directory.path().display()
            ));
        } else if !moved {
            return Ok(());
        }
        let bytes =
            files::render(kind, records).map_err(|error| CatalogError::storage(&self.directory.file(name), error))?;
        self.directory.replace(name, &bytes)
    }

    fn notice(&mut self, sentence: String) {
        tracing::warn!("{sentence}");
        self.notices.push(sentence);
    }
}

/// The earlier build gave projects random ids and kept paths as typed. Returns new ids by old ones.
fn derive_ids(projects: &mut Vec<ProjectRecord>) -> HashMap<ProjectId, ProjectId> {
    let mut new_ids = HashMap::new();
    for project in projects.iter_mut() {
        // A directory that is gone for now keeps the path it was added by.
        if let Ok(path) = paths::resolve(&project.path) {
            project.path = path;
        }
        let id = paths::project_id(&project.path);
        new_ids.insert(std::mem::replace(&mut project.id, id.clone()), id);
    }
    // Two ways to one directory are one project now.
    let mut seen = HashSet::new();
    projects.retain(|project| seen.insert(project.id.clone()));
    new_ids
}
