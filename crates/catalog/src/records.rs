//! The rules: what may change, and what each list shows. In memory, no files, no locks, no clock.
//!
//! Every change goes through `apply`, which either does all of it or refuses and does nothing. The writer applies a
//! change to its own copy first and to the one that everybody reads only when the file is written.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use protocol::{AgentSessionId, Project, ProjectDefaults, ProjectId, SessionId, Timestamp};
use serde_json::{Map, Value};

use crate::error::CatalogError;
use crate::files::FileKind;
use crate::last_turn::{LastTurn, Unseen};
use crate::record::{ProjectRecord, SessionRecord};
use crate::usage::UsageByDay;

/// What moves with every message and every end of a turn, and may be on the disk a moment later.
#[derive(Clone, Debug)]
pub(crate) struct Touch {
    pub(crate) at: Timestamp,
    pub(crate) unanswered: Option<String>,
    pub(crate) unseen: Option<Unseen>,
    pub(crate) last_turn: Option<LastTurn>,
    pub(crate) usage: UsageByDay,
}

impl Touch {
    /// As the session is now.
    pub(crate) fn of(session: &Arc<SessionRecord>) -> Self {
        Self {
            at: session.last_active_at,
            unanswered: session.unanswered.clone(),
            unseen: session.unseen.clone(),
            last_turn: session.last_turn.clone(),
            usage: session.usage.clone(),
        }
    }
}

/// Removed projects that can be taken back as they were. Nobody undoes more than this; it bounds what a long run holds.
const REMOVED_MAX: usize = 256;

/// One durable change.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    AddProject(Box<ProjectRecord>),
    RemoveProject(ProjectId),
    RestoreProject(ProjectId),
    SetDefaults(ProjectId, Option<ProjectDefaults>),
    AddSession(Box<SessionRecord>),
    SetArchived(SessionId, bool),
    SetTitle(SessionId, String),
    MarkPrompted(SessionId),
    SetOptions(SessionId, BTreeMap<String, String>),
    SetAgentSessionId(SessionId, AgentSessionId),
}

impl Change {
    /// The one file this change is saved in.
    pub(crate) fn file(&self) -> FileKind {
        match self {
            Self::AddProject(_) | Self::RemoveProject(_) | Self::RestoreProject(_) | Self::SetDefaults(..) => {
                FileKind::Projects
            }
            Self::AddSession(_)
            | Self::SetArchived(..)
            | Self::SetTitle(..)
            | Self::MarkPrompted(_)
            | Self::SetOptions(..)
            | Self::SetAgentSessionId(..) => FileKind::Sessions,
        }
    }
}

/// Everything that is known. Each record is shared, so a copy of all of them costs pointers, not texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    /// In the order added. One that was removed keeps its place, so that it can be taken back as it was.
    projects: Vec<ProjectEntry>,
    /// In the order created. A record is never taken out, so its position is good for ever.
    sessions: Vec<Arc<SessionRecord>>,
    positions: HashMap<SessionId, usize>,
    by_project: HashMap<ProjectId, Vec<usize>>,
    pub(crate) projects_extra: Map<String, Value>,
    pub(crate) sessions_extra: Map<String, Value>,
}

/// A project, and whether it was removed since the start.
#[derive(Clone, Debug)]
struct ProjectEntry {
    record: Arc<ProjectRecord>,
    removed: bool,
}

impl Records {
    /// In the order added.
    pub(crate) fn projects(&self) -> impl Iterator<Item = &Arc<ProjectRecord>> {
        self.projects.iter().filter(|entry| !entry.removed).map(|entry| &entry.record)
    }

    /// Paths of those removed in this run, the last added first.
    pub(crate) fn removed(&self) -> impl Iterator<Item = &str> {
        self.projects.iter().rev().filter(|entry| entry.removed).map(|entry| entry.record.path.as_str())
    }

    pub(crate) fn sessions(&self) -> &[Arc<SessionRecord>] {
        &self.sessions
    }

    pub(crate) fn project(&self, id: &ProjectId) -> Option<Project> {
        self.projects().find(|project| project.id == *id).map(|project| project.project())
    }

    pub(crate) fn project_at(&self, path: &str) -> Option<Project> {
        self.projects().find(|project| project.path == path).map(|project| project.project())
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

    /// Returns whether anything is different now; a change that changes nothing needs no write.
    pub(crate) fn apply(&mut self, change: &Change) -> Result<bool, CatalogError> {
        match change {
            Change::AddProject(project) => self.add_project(project),
            Change::RemoveProject(id) => self.remove_project(id),
            Change::SetDefaults(id, defaults) => {
                let entry = self.projects.iter_mut().find(|entry| !entry.removed && entry.record.id == *id);
                let entry = entry.ok_or_else(|| CatalogError::ProjectNotFound(id.clone()))?;
                Ok(Arc::make_mut(&mut entry.record).set_defaults(defaults.as_ref()))
            }
            Change::RestoreProject(id) => {
                let entry = self.projects.iter_mut().find(|entry| entry.record.id == *id);
                let entry = entry.ok_or_else(|| CatalogError::ProjectNotFound(id.clone()))?;
                Ok(std::mem::take(&mut entry.removed))
            }
            Change::AddSession(session) => {
                if self.project(&session.project_id).is_none() {
                    return Err(CatalogError::ProjectNotFound(session.project_id.clone()));
                }
                self.insert_session(SessionRecord::clone(session))?;
                Ok(true)
            }
            Change::SetArchived(id, archived) => self.edit(id, |session| replace(&mut session.archived, archived)),
            Change::SetTitle(id, title) => self.edit(id, |session| replace(&mut session.title, title)),
            Change::MarkPrompted(id) => self.edit(id, |session| replace(&mut session.prompted, &true)),
            Change::SetOptions(id, options) => self.edit(id, |session| replace(&mut session.options, options)),
            Change::SetAgentSessionId(id, agent_id) => self.set_agent_session_id(id, agent_id),
        }
    }

    /// One that was removed since the start comes back as it was: in its place, with all that its record held.
    fn add_project(&mut self, project: &ProjectRecord) -> Result<bool, CatalogError> {
        let is_same = |entry: &ProjectEntry| entry.record.path == project.path || entry.record.id == project.id;
        if self.projects.iter().any(|entry| !entry.removed && is_same(entry)) {
            return Err(CatalogError::Duplicate(project.path.clone()));
        }
        match self.projects.iter_mut().find(|entry| is_same(entry)) {
            Some(entry) => entry.removed = false,
            None => self.projects.push(ProjectEntry { record: Arc::new(project.clone()), removed: false }),
        }
        Ok(true)
    }

    fn remove_project(&mut self, id: &ProjectId) -> Result<bool, CatalogError> {
        let known = self.projects.iter_mut().find(|entry| !entry.removed && entry.record.id == *id);
        known.ok_or_else(|| CatalogError::ProjectNotFound(id.clone()))?.removed = true;
        if self.projects.iter().filter(|entry| entry.removed).count() > REMOVED_MAX
            && let Some(oldest) = self.projects.iter().position(|entry| entry.removed && entry.record.id != *id)
        {
            self.projects.remove(oldest);
        }
        Ok(true)
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

    /// Moves `lastActiveAt` forward and sets the other fields. Returns whether anything changed.
    pub(crate) fn touch(&mut self, id: &SessionId, touch: &Touch) -> bool {
        let later = |session: &mut SessionRecord| {
            let moves = touch.at > session.last_active_at;
            if moves {
                session.last_active_at = touch.at;
            }
            moves
                | replace(&mut session.unanswered, &touch.unanswered)
                | replace(&mut session.unseen, &touch.unseen)
                | replace(&mut session.last_turn, &touch.last_turn)
                | replace(&mut session.usage, &touch.usage)
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

    /// Whether another session of the same agent has this id of the agent's.
    fn is_taken(&self, id: &SessionId, agent_id: &AgentSessionId) -> bool {
        let cli_type = id.cli_type();
        let is_other = |session: &SessionRecord| session.id != *id && session.cli_type == cli_type;
        self.sessions.iter().any(|session| is_other(session) && session.current_agent_id() == *agent_id)
    }

    fn set_agent_session_id(&mut self, id: &SessionId, agent_id: &AgentSessionId) -> Result<bool, CatalogError> {
        let is_new = self.session(id).is_some_and(|session| session.current_agent_id() != *agent_id);
        // Two sessions under one id of the agent would each get the other's messages.
        if is_new && self.is_taken(id, agent_id) {
            return Err(CatalogError::SessionExists(SessionId::new(&id.cli_type(), agent_id)));
        }
        self.edit(id, |session| {
            if session.current_agent_id() == *agent_id {
                return false;
            }
            session.agent_session_id = (id.agent_session_id() != *agent_id).then(|| agent_id.clone());
            // The agent was given no message under its new id yet, so it has nothing on its disk.
            session.prompted = false;
            true
        })
    }
}

/// Sets a field and returns whether that made a difference.
fn replace<T: PartialEq + Clone>(field: &mut T, value: &T) -> bool {
    let differs = field != value;
    if differs {
        field.clone_from(value);
    }
    differs
}
