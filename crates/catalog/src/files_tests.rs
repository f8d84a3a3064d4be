//! Any bytes, and valid files with a few bytes wrong: never a panic, and what is read is written back the same.

use proptest::prelude::*;

use super::*;
use crate::records::Change;

const PROJECTS: &str = r#"{"version": 1, "note": {"kept": [1, 2.5, null]}, "projects": [
    {"id": "p1", "path": "/code/app", "name": "app", "addedAt": "2026-11-15T21:15:56.123Z", "colour": "red"},
    {"id": "p2", "path": "/code/\u00fcber", "name": "\u00fcber", "addedAt": "2026-11-15T21:15:56Z"}]}"#;
const SESSIONS: &str = r#"{"version": 1, "sessions": [
    {"id": "codex:a", "projectId": "p1", "cliType": "codex", "archived": false, "title": "One",
     "lastActiveAt": "2026-11-15T21:15:56.123Z", "createdAt": "2026-11-15T22:15:56+01:00", "prompted": true},
    {"id": "claude-code:b", "projectId": "p2", "cliType": "claude-code", "archived": true, "title": "New Session",
     "lastActiveAt": "2026-11-15T21:15:56.123Z", "createdAt": "2026-11-15T21:15:56.123Z", "pinned": [true]}]}"#;

fn records(projects: &[u8], sessions: &[u8]) -> Option<Records> {
    let (projects, sessions) = (parse_projects(projects).ok()?, parse_sessions(sessions).ok()?);
    let mut records = Records::default();
    (records.projects_extra, records.sessions_extra) = (projects.extra, sessions.extra);
    for project in projects.records {
        // A repeated one is refused, as at every start.
        let _ = records.apply(&Change::AddProject(Box::new(project)));
    }
    for session in sessions.records {
        let _ = records.insert_session(session);
    }
    Some(records)
}

fn check_round_trip(projects: &[u8], sessions: &[u8]) -> bool {
    let Some(read) = records(projects, sessions) else { return false };
    let rendered = [FileKind::Projects, FileKind::Sessions].map(|kind| render(kind, &read).unwrap());
    let again = records(&rendered[0], &rendered[1]).unwrap();
    assert!(read.projects().eq(again.projects()));
    assert_eq!(read.sessions(), again.sessions());
    assert_eq!((&read.projects_extra, &read.sessions_extra), (&again.projects_extra, &again.sessions_extra));
    true
}

#[test]
fn what_is_read_is_written_back_the_same() {
    assert!(check_round_trip(PROJECTS.as_bytes(), SESSIONS.as_bytes()));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>()) {
        check_round_trip(&bytes, &bytes);
    }

    #[test]
    fn a_file_with_wrong_bytes_is_read_in_part_or_refused_and_never_garbled(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut projects, mut sessions) = (PROJECTS.as_bytes().to_vec(), SESSIONS.as_bytes().to_vec());
        for (position, byte) in changes {
            let (p, s) = (position.index(projects.len()), position.index(sessions.len()));
            projects[p] = byte;
            sessions[s] = byte;
        }
        check_round_trip(&projects, SESSIONS.as_bytes());
        check_round_trip(PROJECTS.as_bytes(), &sessions);
        sessions.truncate(cut.index(sessions.len()));
        prop_assert!(!check_round_trip(PROJECTS.as_bytes(), &sessions), "half a file is no file");
    }
}
