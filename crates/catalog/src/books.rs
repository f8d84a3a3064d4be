//! The rules: what may change, and what each list shows. In memory, no files, no locks, no clock.
//!
//! Every change goes through `apply`, which either does all of it or refuses and does nothing. The writer applies a
//! change to its own copy first and to the one that everybody reads only when the file is written.

use std::collections::HashMap;
use std::sync::Arc;

use protocol::{Project, ProjectId, SessionId, Timestamp};
use serde_json::{Map, Value};

use crate::error::CatalogError;
use crate::files::FileKind;
use crate::record::{ProjectRecord, SessionRecord};

/// One durable change.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    AddProject(ProjectRecord),
    RemoveProject(ProjectId),
    AddSession(SessionRecord),
    SetArchived(SessionId, bool),
    SetTitle(SessionId, String),
    MarkPrompted(SessionId),
    SetId { from: SessionId, to: SessionId },
}

impl Change {
    /// The one file this change is kept in.
    pub(crate) fn file(&self) -> FileKind {
        match self {
            Self::AddProject(_) | Self::RemoveProject(_) => FileKind::Projects,
            Self::AddSession(_)
            | Self::SetArchived(..)
            | Self::SetTitle(..)
            | Self::MarkPrompted(_)
            | Self::SetId { .. } => FileKind::Sessions,
        }
    }
}

/// Everything that is known. Records are shared, so a copy of the books costs pointers, not texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Books {
    /// In the order added.
    projects: Vec<Arc<ProjectRecord>>,
    /// In the order created. A record is never taken out, so its position is good for ever.
    sessions: Vec<Arc<SessionRecord>>,
    positions: HashMap<SessionId, usize>,
    by_project: HashMap<ProjectId, Vec<usize>>,
    pub(crate) projects_extra: Map<String, Value>,
    pub(crate) sessions_extra: Map<String, Value>,
}

impl Books {
    pub(crate) fn projects(&self) -> &[Arc<ProjectRecord>] {
        &self.projects
    }

    pub(crate) fn sessions(&self) -> &[Arc<SessionRecord>] {
        &self.sessions
    }

    pub(crate) fn project(&self, id: &ProjectId) -> Option<Project> {
        self.projects.iter().find(|project| project.id == *id).map(|project| project.project())
    }

    pub(crate) fn session(&self, id: &SessionId) -> Option<&Arc<SessionRecord>> {
        self.sessions.get(*self.positions.get(id)?)
    }

    /// What the sidebar lists: not archived, most recent activity first.
    pub(crate) fn listed(&self, project: &ProjectId) -> Vec<Arc<SessionRecord>> {
        let positions = self.by_project.get(project).map(Vec::as_slice).unwrap_or_default();
        let mut listed: Vec<_> = positions
            .iter()
            .filter_map(|position| self.sessions.get(*position))
            .filter(|session| !session.archived)
            .cloned()
            .collect();
        listed.sort_by(|a, b| {
            (b.last_active_at, b.created_at).cmp(&(a.last_active_at, a.created_at)).then_with(|| a.id.cmp(&b.id))
        });
        listed
    }

    /// Says whether anything is different now; a change that changes nothing needs no write.
    pub(crate) fn apply(&mut self, change: &Change) -> Result<bool, CatalogError> {
        match change {
            Change::AddProject(project) => {
                if self.projects.iter().any(|known| known.path == project.path || known.id == project.id) {
                    return Err(CatalogError::Duplicate(project.path.clone()));
                }
                self.projects.push(Arc::new(project.clone()));
                Ok(true)
            }
            Change::RemoveProject(id) => {
                let position = self
                    .projects
                    .iter()
                    .position(|project| project.id == *id)
                    .ok_or_else(|| CatalogError::ProjectNotFound(id.clone()))?;
                self.projects.remove(position);
                Ok(true)
            }
            Change::AddSession(session) => {
                if self.project(&session.project_id).is_none() {
                    return Err(CatalogError::ProjectNotFound(session.project_id.clone()));
                }
                self.insert_session(session.clone())?;
                Ok(true)
            }
            Change::SetArchived(id, archived) => self.edit(id, |session| replace(&mut session.archived, archived)),
            Change::SetTitle(id, title) => self.edit(id, |session| replace(&mut session.title, title)),
            Change::MarkPrompted(id) => self.edit(id, |session| replace(&mut session.prompted, &true)),
            Change::SetId { from, to } => self.change_id(from, to),
        }
    }

    /// A record as a file holds it; its project may have been removed.
    pub(crate) fn insert_session(&mut self, session: SessionRecord) -> Result<(), CatalogError> {
        if self.positions.contains_key(&session.id) {
            return Err(CatalogError::SessionExists(session.id));
        }
        let position = self.sessions.len();
        self.positions.insert(session.id.clone(), position);
        self.by_project.entry(session.project_id.clone()).or_default().push(position);
        self.sessions.push(Arc::new(session));
        Ok(())
    }

    /// Moves `lastActiveAt` forward. Says whether it moved.
    pub(crate) fn touch(&mut self, id: &SessionId, at: Timestamp) -> bool {
        let later = |session: &mut SessionRecord| {
            let moves = at > session.last_active_at;
            if moves {
                session.last_active_at = at;
            }
            moves
        };
        // An unknown id is nothing to touch.
        self.edit(id, later).unwrap_or(false)
    }

    fn edit(&mut self, id: &SessionId, change: impl FnOnce(&mut SessionRecord) -> bool) -> Result<bool, CatalogError> {
        let session = self
            .positions
            .get(id)
            .and_then(|position| self.sessions.get_mut(*position))
            .ok_or_else(|| CatalogError::SessionNotFound(id.clone()))?;
        Ok(change(Arc::make_mut(session)))
    }

    fn change_id(&mut self, from: &SessionId, to: &SessionId) -> Result<bool, CatalogError> {
        if !self.positions.contains_key(from) {
            return Err(CatalogError::SessionNotFound(from.clone()));
        }
        if from == to {
            return Ok(false);
        }
        if self.positions.contains_key(to) {
            return Err(CatalogError::SessionExists(to.clone()));
        }
        self.edit(from, |session| {
            session.id = to.clone();
            session.cli_type = to.cli_type();
            true
        })?;
        if let Some(position) = self.positions.remove(from) {
            self.positions.insert(to.clone(), position);
        }
        Ok(true)
    }
}

/// Sets a field and says whether that made a difference.
fn replace<T: PartialEq + Clone>(field: &mut T, value: &T) -> bool {
    let differs = field != value;
    if differs {
        field.clone_from(value);
    }
    differs
}
