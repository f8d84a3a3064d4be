//! The list of projects while the disk fills and frees: what was confirmed is there, what was refused is not.

use std::collections::BTreeSet;
use std::path::Path;

use protocol::{ClientMessage, ErrorCode, Project, ProjectId, ServerMessage};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tokio_util::sync::CancellationToken;

use super::Report;
use super::resources::pause;
use crate::{TestApp, Window};

/// How much a file may hold on the full disk: a part of any of ours.
const FULL_DISK_BYTES: u64 = 20;
const DIRECTORIES: usize = 12;

#[derive(Debug)]
pub(super) struct RecordChecks {
    directories: Vec<String>,
    /// The project of the sessions, which stays.
    home: ProjectId,
    confirmed: BTreeSet<String>,
    changes: usize,
    refused: usize,
}

impl RecordChecks {
    pub(super) fn new(home: &Path, project: &ProjectId) -> Self {
        let directory = |number: usize| {
            let path = home.join(format!("other-{number}"));
            std::fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{error}"));
            let path = path.canonicalize().unwrap_or_else(|error| panic!("{error}"));
            path.to_string_lossy().into_owned()
        };
        let directories = (0..DIRECTORIES).map(directory).collect();
        Self { directories, home: project.clone(), confirmed: BTreeSet::new(), changes: 0, refused: 0 }
    }

    /// Adds and removes, on a disk that is full now and then.
    pub(super) async fn keep(&mut self, app: &TestApp, mut random: fastrand::Rng, over: &CancellationToken) {
        let mut window = app.window().await;
        let mut is_full = false;
        while pause(random.u64(..100), over).await {
            if random.u8(..8) == 0 {
                is_full = !is_full;
                set_disk(app, is_full);
            }
            self.change(&mut window, &mut random, is_full).await;
        }
        set_disk(app, false);
        self.check(app).await;
    }

    async fn change(&mut self, window: &mut Window, random: &mut fastrand::Rng, is_full: bool) {
        let path = self.directories[random.usize(..DIRECTORIES)].clone();
        let known = self.projects(window).await.into_iter().find(|project| project.path == path);
        let (request, is_there) = match known {
            Some(project) => (ClientMessage::ProjectRemove { project_id: project.id }, false),
            None => (ClientMessage::ProjectAdd { path: path.clone() }, true),
        };
        match window.try_call(&request).await {
            Ok(_) => {
                self.changes += 1;
                if is_there {
                    self.confirmed.insert(path)
                } else {
                    self.confirmed.remove(&path)
                };
            }
            Err(error) => {
                assert!(is_full && error.code == ErrorCode::StorageFailed, "{error:?}");
                self.refused += 1;
            }
        }
    }

    /// # Panics
    /// When the list is another than what was confirmed.
    pub(super) async fn check(&self, app: &TestApp) {
        let projects = self.projects(&mut app.window().await).await;
        let listed: BTreeSet<String> = projects.into_iter().map(|project| project.path).collect();
        assert_eq!(listed, self.confirmed, "every confirmed change, and no other");
    }

    async fn projects(&self, window: &mut Window) -> Vec<Project> {
        match window.call(&ClientMessage::ProjectList {}).await {
            ServerMessage::ProjectList { mut projects } => {
                projects.retain(|project| project.id != self.home);
                projects
            }
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn add_to(&self, report: &mut Report) {
        report.changes_confirmed += self.changes;
        report.changes_refused += self.refused;
    }
}

/// A process over its file-size limit sees what it would see on a full disk: half a write, then an error.
fn set_disk(app: &TestApp, is_full: bool) {
    let limit = Rlimit { current: is_full.then_some(FULL_DISK_BYTES), maximum: None };
    let pid = i32::try_from(app.pid()).ok().and_then(Pid::from_raw);
    prlimit(pid, Resource::Fsize, limit).unwrap_or_else(|error| panic!("the disk could not be filled: {error}"));
}
