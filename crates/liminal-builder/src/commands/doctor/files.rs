//! The data directory, what is kept in it, and the secret.

use catalog::{CatalogError, DirectoryState, DiskState, Inspection, ListState, TokenState};
use providers::acp::parse_agents;

use super::Finding;

const DATA: &str = "Data directory";
const DISK: &str = "Disk";
const SECRET: &str = "Secret";
const AGENTS_FILE: &str = "agents.json";

pub(super) fn look(visit: &Inspection) -> Vec<Finding> {
    let mut findings = vec![directory(visit)];
    findings.extend(disk(visit));
    findings.extend(list(visit, "projects.json", visit.projects()));
    findings.extend(list(visit, "sessions.json", visit.sessions()));
    findings.extend(agents_file(visit));
    findings.push(secret(visit));
    findings
}

fn directory(visit: &Inspection) -> Finding {
    let path = visit.dir().display();
    match visit.directory_state() {
        Ok(DirectoryState::Good) => Finding::ok(DATA, format!("{path}, for your eyes only")),
        Ok(DirectoryState::Missing) => Finding::ok(DATA, format!("{path} is made at the first start")),
        Ok(DirectoryState::NotADirectory) => {
            Finding::problem(DATA, format!("{path} is not a directory"), "Move it away, or use another --data-dir.")
        }
        Ok(DirectoryState::NotWritable) => Finding::problem(
            DATA,
            format!("{path} cannot be read and written by you"),
            "Give yourself the right to, or use another --data-dir.",
        ),
        Ok(DirectoryState::Refused(error)) => Finding::problem(
            DATA,
            error.to_string(),
            error.advice().unwrap_or_else(|| "Use another --data-dir.".into()),
        ),
        Ok(DirectoryState::OpenToOthers { mode }) => Finding::note(
            DATA,
            format!("{path} can be looked into by others (mode {mode:o})"),
            format!("chmod 700 '{path}'"),
        ),
        Err(error) => unreadable(DATA, &error),
    }
}

/// Only what the directory itself does not say already.
fn disk(visit: &Inspection) -> Option<Finding> {
    if matches!(visit.directory_state(), Err(_) | Ok(DirectoryState::NotADirectory | DirectoryState::NotWritable)) {
        return None;
    }
    let mib = |bytes: u64| bytes / (1024 * 1024);
    Some(match visit.disk_state() {
        Ok(DiskState::Good { free_bytes }) => Finding::ok(DISK, format!("{} MiB free", mib(free_bytes))),
        Ok(DiskState::Low { free_bytes }) => Finding::note(
            DISK,
            format!("less than {} MiB free where the data directory is", mib(free_bytes) + 1),
            "Make room: when the disk is full, new sessions and titles cannot be saved, and agents fail.",
        ),
        Ok(DiskState::Refuses { reason }) => Finding::problem(
            DISK,
            format!("nothing can be written to {}: {reason}", visit.dir().display()),
            "Make room on that disk, or use another --data-dir.",
        ),
        Err(error) => unreadable(DISK, &error),
    })
}

fn list(visit: &Inspection, name: &str, state: Result<ListState, CatalogError>) -> Option<Finding> {
    let path = visit.file(name);
    Some(match state {
        Ok(ListState::Missing) => return None,
        Ok(ListState::Good { records }) => Finding::ok(name, format!("{records} kept")),
        Ok(ListState::PartlyUnreadable { records, unreadable }) => Finding::problem(
            name,
            format!("{records} kept, {unreadable} cannot be read"),
            "The next start keeps a copy of the file and goes on with those that can be read.",
        ),
        Ok(ListState::Newer { version }) => Finding::problem(
            name,
            format!("written by a newer Liminal Builder (file version {version})"),
            "Use the newer one; this one will not start, and changes nothing.",
        ),
        Ok(ListState::Damaged { reason }) => Finding::problem(
            name,
            format!("damaged: {reason}"),
            format!(
                "Fix {} manually, or start: the file is then set aside, and the list starts empty.",
                path.display()
            ),
        ),
        Err(error) => unreadable(name, &error),
    })
}

fn agents_file(visit: &Inspection) -> Vec<Finding> {
    let path = visit.file(AGENTS_FILE);
    let unusable = |error: anyhow::Error| {
        let advice = format!("Fix {}; until then none of its agents is offered.", path.display());
        vec![Finding::problem(AGENTS_FILE, format!("{error:#}"), advice)]
    };
    let text = match visit.agents_file() {
        Ok(None) => return Vec::new(),
        Ok(Some(text)) => text,
        Err(error) => return unusable(error.into()),
    };
    let read = match parse_agents(&text) {
        Ok(read) => read,
        Err(error) => return unusable(error.into()),
    };
    let mistake = |error| {
        let advice = format!("Fix that entry of {} and restart; the others are offered.", path.display());
        Finding::problem(AGENTS_FILE, format!("{error}"), advice)
    };
    let names: Vec<_> = read.agents.iter().map(|agent| agent.name.as_str()).collect();
    let good = match names.is_empty() {
        false => Some(names.join(", ")),
        true => read.mistakes.is_empty().then(|| "no agents".to_owned()),
    };
    let good = good.map(|text| Finding::ok(AGENTS_FILE, text));
    good.into_iter().chain(read.mistakes.into_iter().map(mistake)).collect()
}

fn secret(visit: &Inspection) -> Finding {
    match visit.token_state() {
        Ok(TokenState::Good) => Finding::ok(SECRET, "in the file `token`, for your eyes only"),
        Ok(TokenState::Missing) => Finding::ok(SECRET, "is made at the first start"),
        Ok(TokenState::OpenToOthers { mode }) => Finding::problem(
            SECRET,
            format!("the file `token` can be read by others (mode {mode:o})"),
            "Delete it and restart: a new one is made, and every browser needs the link again.",
        ),
        Ok(TokenState::Damaged) => Finding::problem(
            SECRET,
            "the file `token` holds no secret",
            "Restart Liminal Builder: it sets the file aside and makes a new one.",
        ),
        Err(error) => unreadable(SECRET, &error),
    }
}

pub(super) fn unreadable(area: &str, error: &CatalogError) -> Finding {
    let reason = format!("{:#}", anyhow::Error::new(error.clone()));
    Finding::problem(area, reason, "Check the data directory's permissions and disk, or use another --data-dir.")
}
