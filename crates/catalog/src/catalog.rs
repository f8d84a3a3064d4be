//! The handle that everyone holds, and the calls on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use protocol::{AgentSessionId, PathCompletion, Project, ProjectDefaults, ProjectId, SessionId, Timestamp, Usage};
use serde_json::Map;

use crate::agents::{self, AgentsText};
use crate::browsers::{self, BrowserList};
use crate::directory::DataDirectory;
use crate::error::CatalogError;
use crate::last_turn::{LastTurn, TurnEnd, Unseen};
use crate::lock::DirectoryLock;
use crate::record::{ProjectRecord, SessionRecord};
use crate::records::Change;
use crate::redirect::RedirectFile;
use crate::settings::{Settings, SettingsChange, SettingsFile};
use crate::writer::{Shared, Writer};
use crate::{completion, opening, paths, token};

/// A catalog that was just opened.
#[derive(Debug)]
pub struct Opened {
    pub catalog: Catalog,
    /// Sentences for the user: what was damaged, set aside or upgraded. In the log already.
    pub notices: Vec<String>,
}

/// Projects and session records. A cheap handle; the last one to go saves what is left and frees the directory.
///
/// Reads answer from memory and never wait for the disk. A change is on the disk, and visible, when its call returns
/// `Ok`; when it returns an error it is neither.
#[derive(Clone, Debug)]
pub struct Catalog {
    inner: Arc<CatalogInner>,
}

#[derive(Debug)]
struct CatalogInner {
    shared: Arc<Shared>,
    settings: Arc<SettingsFile>,
    writer: Option<JoinHandle<()>>,
}

impl Drop for CatalogInner {
    fn drop(&mut self) {
        self.shared.stop();
        if self.writer.take().is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("the catalog's writer panicked");
        }
    }
}

impl Catalog {
    /// Makes the directory where it is missing, keeps others out of it, and reads its files. Waits for the disk.
    pub fn open(dir: &Path) -> Result<Opened, CatalogError> {
        let directory = DataDirectory::open(dir)?;
        let lock = DirectoryLock::take(&directory)?;
        directory.sweep();
        let (records, mut notices) = opening::read_records(&directory)?;
        let settings = Arc::new(SettingsFile::open(&directory, &mut notices)?);
        let shared = Arc::new(Shared::new(directory, lock, records));
        let writer = Writer::new(Arc::clone(&shared));
        let writer = thread::Builder::new()
            .name("catalog-writer".into())
            .spawn(move || writer.run())
            .map_err(|error| CatalogError::storage(dir, error))?;
        Ok(Opened {
            catalog: Self { inner: Arc::new(CatalogInner { shared, settings, writer: Some(writer) }) },
            notices,
        })
    }

    /// Where this server can be reached, for a second one that finds the directory taken.
    pub fn announce(&self, address: &str) {
        self.shared().lock.write_address(Some(address));
    }

    /// The secret of this data directory, made on first use; sentences about what was wrong with it join `notices`.
    /// Waits for the disk.
    pub fn token(&self, notices: &mut Vec<String>) -> Result<String, CatalogError> {
        let (token, reported) = token::token(&self.shared().directory)?;
        notices.extend(reported);
        Ok(token)
    }

    /// The browsers that were admitted; sentences about what was wrong with the file join `notices`. Waits for the disk.
    pub fn browsers(&self, notices: &mut Vec<String>) -> Result<BrowserList, CatalogError> {
        let (list, reported) = browsers::read(&self.shared().directory)?;
        notices.extend(reported);
        Ok(list)
    }

    /// Waits for the disk. Whoever calls this from several threads takes care of the order.
    pub fn save_browsers(&self, list: &BrowserList) -> Result<(), CatalogError> {
        browsers::write(&self.shared().directory, list)
    }

    /// A page in a file for the user alone, until what is returned is dropped. Waits for the disk.
    pub fn redirect_file(&self, html: &str) -> Result<RedirectFile, CatalogError> {
        RedirectFile::write(&self.shared().directory, html)
    }

    /// `agents.json` as it lies there; `None` where there is none. Waits for the disk.
    pub fn agents_file(&self) -> Result<Option<String>, CatalogError> {
        agents::read(&self.shared().directory)
    }

    /// Replaces `agents.json` if it still has the content that was read. Waits for the disk. Whoever calls this from several
    /// threads takes care of the order.
    pub fn replace_agents_file(&self, before: &AgentsText, after: &AgentsText) -> Result<(), CatalogError> {
        agents::replace(&self.shared().directory, before, after)
    }

    /// Where `agents.json` is, or would be.
    pub fn agents_file_path(&self) -> PathBuf {
        self.shared().directory.file(agents::AGENTS_FILE)
    }

    /// What the user has set for this server.
    pub fn settings(&self) -> Settings {
        self.inner.settings.current()
    }

    /// On the disk when it returns `Ok`; when it returns an error nothing has changed.
    pub async fn change_settings(&self, change: SettingsChange) -> Result<Settings, CatalogError> {
        let inner = Arc::clone(&self.inner);
        let changed = tokio::task::spawn_blocking(move || inner.settings.change(&inner.shared.directory, change)).await;
        changed.map_err(|_| CatalogError::Stopped)?
    }

    pub fn dir(&self) -> &Path {
        self.shared().directory.path()
    }

    /// In the order added.
    pub fn projects(&self) -> Vec<Project> {
        self.shared().state().records.projects().map(|project| project.project()).collect()
    }

    /// Paths of the projects that were removed in this run, newest first.
    pub fn removed_projects(&self) -> Vec<String> {
        self.shared().state().records.removed().map(ToOwned::to_owned).collect()
    }

    pub fn project(&self, id: &ProjectId) -> Option<Project> {
        self.shared().state().records.project(id)
    }

    /// Takes a path as it was typed: absolute or from `~`, through `..` and symlinks, with or without a slash at its end.
    pub async fn add_project(&self, path: &str) -> Result<Project, CatalogError> {
        let typed = path.to_owned();
        // A directory on a network that is down answers late or never; nobody else waits for it.
        let resolved = tokio::task::spawn_blocking(move || paths::resolve(&typed)).await;
        let path = resolved.map_err(|_| CatalogError::Stopped)??;
        let record = ProjectRecord {
            id: paths::project_id(&path),
            name: paths::project_name(&path),
            added_at: Timestamp::from(SystemTime::now()),
            path,
            defaults: None,
            extra: Map::new(),
        };
        let project = record.project();
        self.shared().change(Change::AddProject(Box::new(record))).await?;
        // One that was removed before came back as it was then. Somebody may have removed it again by now.
        Ok(self.shared().state().records.project_at(&project.path).unwrap_or(project))
    }

    /// Its session records stay, and are found again when the same directory is added again. Until the end of this run
    /// its own record is kept too.
    pub async fn remove_project(&self, id: &ProjectId) -> Result<(), CatalogError> {
        self.shared().change(Change::RemoveProject(id.clone())).await
    }

    /// Takes back a removal of this run: the project is where and as it was, also when its directory is gone for now, as
    /// that of every other project may be. Taking it back twice is no error.
    pub async fn restore_project(&self, id: &ProjectId) -> Result<Project, CatalogError> {
        self.shared().change(Change::RestoreProject(id.clone())).await?;
        self.project(id).ok_or_else(|| CatalogError::ProjectNotFound(id.clone()))
    }

    /// What new sessions of the project begin with; `None` takes that away.
    pub async fn set_defaults(
        &self,
        id: &ProjectId,
        defaults: Option<ProjectDefaults>,
    ) -> Result<Project, CatalogError> {
        self.shared().change(Change::SetDefaults(id.clone(), defaults)).await?;
        self.project(id).ok_or_else(|| CatalogError::ProjectNotFound(id.clone()))
    }

    /// Directories that continue what was typed; at most 50, each with a slash at its end. Waits for the disk, half a
    /// second at most unless a single system call hangs: call it where blocking is allowed.
    pub fn complete_path(&self, prefix: &str) -> Vec<PathCompletion> {
        let projects = self.projects();
        completion::complete(prefix, |path| projects.iter().any(|project| project.path == path))
    }

    /// Not archived, most recent activity first.
    pub fn sessions(&self, project: &ProjectId) -> Vec<SessionRecord> {
        let listed = self.shared().state().records.listed(project);
        listed.iter().map(|session| SessionRecord::clone(session)).collect()
    }

    /// Archived or not.
    pub fn session(&self, id: &SessionId) -> Option<SessionRecord> {
        let found = self.shared().state().records.session(id).cloned();
        found.map(Arc::unwrap_or_clone)
    }

    /// Every record there is: archived ones too, and those whose project was removed. In the order created.
    pub fn all_sessions(&self) -> Vec<SessionRecord> {
        let all = self.shared().state().records.sessions().to_vec();
        all.iter().map(|session| SessionRecord::clone(session)).collect()
    }

    pub async fn add_session(&self, session: SessionRecord) -> Result<(), CatalogError> {
        self.shared().change(Change::AddSession(Box::new(session))).await
    }

    /// Takes it off the list. Archiving twice is no error.
    pub async fn archive(&self, id: &SessionId) -> Result<(), CatalogError> {
        self.shared().change(Change::SetArchived(id.clone(), true)).await
    }

    pub async fn restore(&self, id: &SessionId) -> Result<(), CatalogError> {
        self.shared().change(Change::SetArchived(id.clone(), false)).await
    }

    pub async fn set_title(&self, id: &SessionId, title: &str) -> Result<(), CatalogError> {
        self.shared().change(Change::SetTitle(id.clone(), title.to_owned())).await
    }

    /// The first prompt was sent: from now on the agent can be asked to resume this session.
    pub async fn mark_prompted(&self, id: &SessionId) -> Result<(), CatalogError> {
        self.shared().change(Change::MarkPrompted(id.clone())).await
    }

    /// The options of the agent that the user has set. They are set again whenever the session is opened.
    pub async fn set_options(&self, id: &SessionId, options: BTreeMap<String, String>) -> Result<(), CatalogError> {
        self.shared().change(Change::SetOptions(id.clone(), options)).await
    }

    /// The agent continues the session under another id of its own, under which it was given no message yet. Our id stays.
    pub async fn set_agent_session_id(&self, id: &SessionId, agent_id: &AgentSessionId) -> Result<(), CatalogError> {
        self.shared().change(Change::SetAgentSessionId(id.clone(), agent_id.clone())).await
    }

    /// The session was given a message: `lastActiveAt` moves, never back, and the beginning of the message is kept until
    /// [`Self::turn_ended`]. For readers at once, and on the disk within half a second. An unknown session changes nothing.
    pub fn turn_begins(&self, id: &SessionId, at: Timestamp, message: &str) {
        self.shared().touch(id, |touch| {
            touch.at = at;
            touch.unanswered = Some(crate::title_from(message));
        });
    }

    /// The message was answered, or never will be. As [`Self::turn_begins`].
    pub fn turn_ended(&self, id: &SessionId, at: Timestamp) {
        self.shared().touch(id, |touch| {
            touch.at = at;
            touch.unanswered = None;
        });
    }

    /// A turn came to its end. That end, what the turn used, and whether somebody still has to look at it, are saved in one
    /// write with the rest of [`Self::turn_ended`]: a crash loses all of it or nothing.
    pub fn turn_ended_with(
        &self,
        id: &SessionId,
        at: Timestamp,
        end: TurnEnd,
        unseen: Option<Unseen>,
        usage: Option<&Usage>,
    ) {
        self.shared().touch(id, |touch| {
            if let Some(usage) = usage {
                touch.usage.add(at, usage);
            }
            let started_at = std::mem::replace(&mut touch.at, at);
            // A turn that no message began has no record of its own.
            if let Some(message) = touch.unanswered.take() {
                let extra = touch.last_turn.take().map(|before| before.extra).unwrap_or_default();
                touch.last_turn = Some(LastTurn { message, started_at, ended_at: Some(at), end, extra });
            }
            touch.unseen = unseen;
        });
    }

    /// The server before this one ended in the middle of a turn, which will not go on. Moves no time.
    pub fn turn_was_cut_short(&self, id: &SessionId, end: TurnEnd, unseen: Unseen) {
        self.shared().touch(id, |touch| {
            let Some(message) = touch.unanswered.take() else { return };
            let extra = touch.last_turn.take().map(|before| before.extra).unwrap_or_default();
            touch.last_turn = Some(LastTurn { message, started_at: touch.at, ended_at: None, end, extra });
            touch.unseen = Some(unseen);
        });
    }

    /// What somebody still has to look at, or that somebody has. As [`Self::turn_begins`], but moves no time.
    pub fn set_unseen(&self, id: &SessionId, unseen: Option<Unseen>) {
        self.shared().touch(id, |touch| touch.unseen = unseen);
    }

    /// Returns when every change made before is on the disk.
    pub async fn flush(&self) -> Result<(), CatalogError> {
        self.shared().flush().await
    }

    fn shared(&self) -> &Shared {
        &self.inner.shared
    }
}
