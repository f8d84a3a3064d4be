//! Many sessions in many projects: what it takes to list them, and to start with them.

use std::collections::BTreeSet;
use std::time::Instant;

use futures_util::future::join_all;
use protocol::{CliType, ClientMessage, ProjectId, ServerMessage, SessionId};

use super::{Figure, assert_peak, memory_kib};
use crate::{TestSetup, Window};

/// Windows that create sessions side by side.
const CREATORS: usize = 8;
/// A record is some hundred bytes; the rest is the server itself.
const SERVER_KIB_MAX: u64 = 64 * 1024;

/// So many sessions in each of so many projects.
///
/// # Panics
/// When one is not listed, before or after a restart, or the server takes too much memory for it.
pub async fn long_lists(projects: usize, sessions_each: usize) -> Vec<Figure> {
    let mut setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let begun = Instant::now();
    let mut ids = Vec::new();
    for number in 0..projects {
        let directory = setup.app.home().join(format!("projects/{number:04}"));
        std::fs::create_dir_all(&directory).unwrap_or_else(|error| panic!("{error}"));
        let path = directory.to_string_lossy().into_owned();
        match window.call(&ClientMessage::ProjectAdd { path }).await {
            ServerMessage::ProjectAdded { project } => ids.push(project.id),
            other => panic!("{other:?}"),
        }
    }
    let all = projects * sessions_each;
    let mut figures = vec![Figure::time(format!("{projects} projects are added"), begun)];
    let begun = Instant::now();
    let create = ids.chunks(projects.div_ceil(CREATORS)).map(async |ids| {
        let mut window = setup.app.window().await;
        let mut made = BTreeSet::new();
        for id in ids {
            for _ in 0..sessions_each {
                made.insert(create(&mut window, id).await);
            }
        }
        made
    });
    let made: BTreeSet<SessionId> = join_all(create).await.into_iter().flatten().collect();
    figures.push(Figure::time(format!("{all} sessions are created"), begun));
    assert_eq!(made.len(), all);

    setup.app.interrupt();
    assert_eq!(setup.app.ended().await.code(), Some(0));
    let begun = Instant::now();
    let setup = setup.again().await;
    figures.push(Figure::time("a server starts with them", begun));
    let mut window = setup.app.window().await;
    let begun = Instant::now();
    let mut listed = BTreeSet::new();
    for id in &ids {
        let of_one = list(&mut window, id).await;
        assert_eq!(of_one.len(), sessions_each, "project {id}");
        listed.extend(of_one);
    }
    figures.push(Figure::time("a window lists all of them, project by project", begun));
    assert_eq!(listed, made, "every session is listed after a restart");
    let (now, _) = memory_kib(&setup.app);
    figures.push(Figure::memory("memory with all of them listed, none open", now));
    assert_peak(&setup.app, SERVER_KIB_MAX);
    figures
}

async fn create(window: &mut Window, project_id: &ProjectId) -> SessionId {
    let cli_type = CliType::parse("codex").unwrap_or_else(|error| panic!("{error}"));
    match window.call(&ClientMessage::SessionCreate { project_id: project_id.clone(), cli_type }).await {
        ServerMessage::SessionCreated { session, .. } => session.id,
        other => panic!("{other:?}"),
    }
}

async fn list(window: &mut Window, project_id: &ProjectId) -> Vec<SessionId> {
    match window.call(&ClientMessage::SessionList { project_id: project_id.clone() }).await {
        ServerMessage::SessionList { sessions, .. } => sessions.into_iter().map(|session| session.id).collect(),
        other => panic!("{other:?}"),
    }
}
