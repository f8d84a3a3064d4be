//! Directories that may become projects, because the user worked in them before.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use protocol::{Project, RecentDirectory, RecentSource};

use crate::git;
use crate::paths;

/// More than a person looks through.
const RECENT_MAX: usize = 10;
/// A person waits for the list; one disk that hangs must not keep the others away for long.
const LOOK_TIME_MAX: Duration = Duration::from_millis(500);

/// Those of `candidates` that are there, can be read and are no projects; in their order, each once. Waits for the disk:
/// call it where blocking is allowed.
pub fn recent_directories(candidates: Vec<(String, RecentSource)>, projects: &[Project]) -> Vec<RecentDirectory> {
    let until = Instant::now() + LOOK_TIME_MAX;
    let mut seen: HashSet<String> = projects.iter().map(|project| project.path.clone()).collect();
    let known = candidates.into_iter().take_while(|_| Instant::now() < until).filter_map(|(path, source)| {
        let path = paths::resolve(&path).ok()?;
        seen.insert(path.clone()).then(|| {
            let is_repository = git::is_repository(path.as_ref());
            RecentDirectory { path, source, is_repository }
        })
    });
    known.take(RECENT_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Timestamp;

    #[test]
    fn only_directories_that_are_there_and_no_projects_are_recent_each_once() {
        let home = tempfile::tempdir().unwrap();
        let home = std::fs::canonicalize(home.path()).unwrap();
        let path = |name: &str| home.join(name).display().to_string();
        for name in ["a/.git", "b", "project"] {
            std::fs::create_dir_all(home.join(name)).unwrap();
        }
        let project = Project {
            id: paths::project_id(&path("project")),
            path: path("project"),
            name: "project".into(),
            added_at: Timestamp::from(std::time::SystemTime::now()),
            defaults: None,
        };
        let agent = |name: &str| (path(name), RecentSource::Agent);
        let candidates =
            vec![(path("b"), RecentSource::Removed), agent("gone"), agent("project"), agent("a/../b"), agent("a/")];
        let found = recent_directories(candidates, &[project]);
        let expected = |name: &str, source, is_repository| RecentDirectory { path: path(name), source, is_repository };
        assert_eq!(found, [expected("b", RecentSource::Removed, false), expected("a", RecentSource::Agent, true)]);
    }
}
