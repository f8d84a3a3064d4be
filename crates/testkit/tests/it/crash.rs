//! `kill -9` at any moment: what was confirmed is there afterwards, and the file is whole.

use std::collections::BTreeSet;
use std::path::Path;

use protocol::{ClientMessage, Project, ProjectId, ServerMessage};
use testkit::{TestApp, Window};

const ROUNDS: usize = 50;
const CHANGES: usize = 100;
const DIRECTORIES: usize = 20;

async fn projects(window: &mut Window) -> Vec<Project> {
    match window.call(&ClientMessage::ProjectList {}).await {
        ServerMessage::ProjectList { projects } => projects,
        other => panic!("{other:?}"),
    }
}

/// Paths in the file, which must be whole JSON of our shape.
fn saved(data_dir: &Path) -> BTreeSet<String> {
    let text = std::fs::read(data_dir.join("projects.json")).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&text).expect("the file is whole");
    assert_eq!(file["version"], 1);
    file["projects"].as_array().unwrap().iter().map(|project| project["path"].as_str().unwrap().to_owned()).collect()
}

/// What became of one directory: what was last confirmed, and what was asked since and may or may not have happened.
#[derive(Clone, Debug, Default)]
struct Fate {
    confirmed: bool,
    open: Vec<bool>,
}

impl Fate {
    fn allows(&self, is_project: bool) -> bool {
        is_project == self.confirmed || self.open.contains(&is_project)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_nine_in_the_middle_of_a_hundred_changes_loses_nothing_confirmed() {
    let mut app = TestApp::start().await;
    let directories: Vec<String> = (0..DIRECTORIES)
        .map(|number| {
            let directory = app.home().join(format!("project-{number}"));
            std::fs::create_dir(&directory).unwrap();
            std::fs::canonicalize(directory).unwrap().to_str().unwrap().to_owned()
        })
        .collect();
    for round in 0..ROUNDS {
        let mut window = app.window().await;
        let mut known: Vec<(String, ProjectId)> =
            projects(&mut window).await.into_iter().map(|project| (project.path, project.id)).collect();
        let mut fates = vec![Fate::default(); DIRECTORIES];
        for (path, _) in &known {
            fates[directories.iter().position(|directory| directory == path).unwrap()].confirmed = true;
        }
        // The server dies after a different number of answers each time, with more requests on their way.
        let answers_before_the_end = 1 + (round * 37) % (CHANGES - 10);
        let mut asked = Vec::new();
        let mut answered = 0;
        for change in 0..CHANGES {
            let which = (change * 7 + round) % DIRECTORIES;
            // Only one change per directory may be under way, so that its outcome is certain.
            if fates[which].open.is_empty() {
                let path = &directories[which];
                let request = match known.iter().position(|(known, _)| known == path) {
                    Some(place) => ClientMessage::ProjectRemove { project_id: known.swap_remove(place).1 },
                    None => ClientMessage::ProjectAdd { path: path.clone() },
                };
                fates[which].open.push(matches!(request, ClientMessage::ProjectAdd { .. }));
                asked.push((which, window.ask(&request).await));
            }
            // Up to eight are under way at once.
            while asked.len() >= 8 && answered < answers_before_the_end {
                let answer = window.until("the answer to a change", |frame| frame.request_id.is_some()).await;
                let place = asked.iter().position(|(_, id)| Some(id) == answer.request_id.as_ref()).unwrap();
                let (which, _) = asked.swap_remove(place);
                answered += 1;
                fates[which].open.clear();
                match answer.message {
                    ServerMessage::ProjectAdded { project } => {
                        fates[which].confirmed = true;
                        known.push((project.path, project.id));
                    }
                    ServerMessage::ProjectRemoved { .. } => fates[which].confirmed = false,
                    other => panic!("{other:?}"),
                }
            }
            if answered >= answers_before_the_end {
                break;
            }
        }
        app.kill().await;
        let saved = saved(&app.data_dir());
        for (directory, fate) in directories.iter().zip(&fates) {
            assert!(fate.allows(saved.contains(directory)), "round {round}: {directory} is {fate:?}");
        }
        app = app.again().start().await;
        let listed: BTreeSet<String> =
            projects(&mut app.window().await).await.into_iter().map(|project| project.path).collect();
        assert_eq!(listed, saved, "round {round}: the next server shows what is in the file");
    }
}
