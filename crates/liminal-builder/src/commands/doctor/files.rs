//! The data directory, what is kept in it, and the secret.

use catalog::{CatalogError, DirectoryState, ListState, TokenState, Visit};
use providers::acp::parse_agents;

use super::Finding;

const DATA: &str = "Data directory";
const SECRET: &str = "Secret";
const AGENTS_FILE: &str = "agents.json";

pub(super) fn look(visit: &Visit) -> Vec<Finding> {
    let mut findings = vec![directory(visit)];
    findings.extend(list(visit, "projects.json", visit.projects()));
    findings.extend(list(visit, "sessions.json", visit.sessions()));
    findings.extend(agents_file(visit));
    findings.push(secret(visit));
    findings
}

fn directory(visit: &Visit) -> Finding {
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
        Ok(DirectoryState::OpenToOthers { mode }) => Finding::note(
            DATA,
            format!("{path} can be looked into by others (mode {mode:o})"),
            format!("chmod 700 '{path}'"),
        ),
        Err(error) => unreadable(DATA, &error),
    }
}

fn list(visit: &Visit, name: &str, state: Result<ListState, CatalogError>) -> Option<Finding> {
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
            format!("Mend {} by hand, or start: it is set aside then, and an empty list begun.", path.display()),
        ),
        Err(error) => unreadable(name, &error),
    })
}

fn agents_file(visit: &Visit) -> Option<Finding> {
    let mend = format!("Mend {}; until then none of its agents is offered.", visit.file(AGENTS_FILE).display());
    Some(match visit.agents_file() {
        Ok(None) => return None,
        Ok(Some(text)) => match parse_agents(&text) {
            Ok(agents) => {
                let names: Vec<_> = agents.iter().map(|agent| agent.name.as_str()).collect();
                Finding::ok(AGENTS_FILE, if names.is_empty() { "no agents".into() } else { names.join(", ") })
            }
            Err(error) => Finding::problem(AGENTS_FILE, format!("{:#}", anyhow::Error::new(error)), mend),
        },
        Err(error) => Finding::problem(AGENTS_FILE, format!("{:#}", anyhow::Error::new(error)), mend),
    })
}

fn secret(visit: &Visit) -> Finding {
    match visit.token_state() {
        Ok(TokenState::Good) => Finding::ok(SECRET, "in the file `token`, for your eyes only"),
        Ok(TokenState::Missing) => Finding::ok(SECRET, "is made at the first start"),
        Ok(TokenState::OpenToOthers { mode }) => Finding::problem(
            SECRET,
            format!("the file `token` can be read by others (mode {mode:o})"),
            "Delete it and restart: a new one is made, and every browser is let in anew by the link.",
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
