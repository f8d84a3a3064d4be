//! Which session is meant: its whole id, or enough of it, as `list` shows.

use std::collections::HashMap;

use protocol::{ClientMessage, ErrorCode, Project, ServerMessage, SessionId, SessionSummary};

use super::failure::{Exit, Failure};
use crate::client::Window;

/// What `list` shows at least, so that an id looks like one.
const SHORT_MIN: usize = 4;

/// Every project and its sessions, in the order of the sidebar.
pub(crate) async fn everything(window: &mut Window) -> Result<Vec<(Project, Vec<SessionSummary>)>, Failure> {
    let unexpected = || Failure::new("INTERNAL_ERROR", "The server answered something else.");
    let ServerMessage::ProjectList { projects } = window.call(&ClientMessage::ProjectList {}).await?.frame.message
    else {
        return Err(unexpected());
    };
    let mut all = Vec::with_capacity(projects.len());
    for project in projects {
        let asked = window.call(&ClientMessage::SessionList { project_id: project.id.clone() }).await?;
        let ServerMessage::SessionList { sessions, .. } = asked.frame.message else { return Err(unexpected()) };
        all.push((project, sessions));
    }
    Ok(all)
}

/// The one session whose id, or whose agent's own part of it, begins like this.
pub(crate) async fn resolve(window: &mut Window, name: &str) -> Result<SessionId, Failure> {
    let sessions: Vec<_> = everything(window).await?.into_iter().flat_map(|(_, sessions)| sessions).collect();
    choose(name, &sessions)
}

fn choose(name: &str, sessions: &[SessionSummary]) -> Result<SessionId, Failure> {
    if let Some(exact) = sessions.iter().find(|session| session.id.as_str() == name) {
        return Ok(exact.id.clone());
    }
    let meant: Vec<_> = sessions
        .iter()
        .filter(|session| {
            let id = session.id.as_str();
            let own = id.split_once(':').map_or(id, |(_, own)| own);
            !name.is_empty() && (id.starts_with(name) || own.starts_with(name))
        })
        .collect();
    match meant.as_slice() {
        [one] => Ok(one.id.clone()),
        // An archived session is not listed, but the server knows it by its whole id.
        [] => SessionId::parse(name).map_err(|_| {
            let code = ErrorCode::SessionNotFound;
            Failure::new(code.as_str(), code.message(""))
                .with_detail(format!("No session begins with {name:?}; `liminal-builder list` shows them all."))
                .with_exit(Exit::NoSession)
        }),
        several => {
            let names: Vec<_> = several.iter().map(|session| format!("  {}  {}", session.id, session.title)).collect();
            Err(Failure::new("SESSION_AMBIGUOUS", format!("{} sessions begin with {name:?}:", several.len()))
                .with_detail(names.join("\n"))
                .with_exit(Exit::NoSession))
        }
    }
}

/// The shortest name of each session that means no other.
pub(crate) fn short_names<'a>(ids: impl Iterator<Item = &'a SessionId> + Clone) -> HashMap<&'a SessionId, &'a str> {
    let mut sorted: Vec<&str> = ids.clone().map(SessionId::as_str).collect();
    sorted.sort_unstable();
    let common = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let short = |id: &'a SessionId| {
        let text = id.as_str();
        // Neighbours in order are the most alike.
        let place = sorted.partition_point(|other| *other < text);
        let before = place.checked_sub(1).map_or(0, |before| common(sorted[before], text));
        let after = sorted.get(place + 1).map_or(0, |after| common(after, text));
        let least = text.find(':').map_or(0, |colon| colon + 1) + SHORT_MIN;
        // An id is ASCII, so every place in it is a boundary.
        &text[..(before.max(after) + 1).max(least).min(text.len())]
    };
    ids.map(|id| (id, short(id))).collect()
}

#[cfg(test)]
mod tests {
    use protocol::{ProjectId, SessionState, Timestamp};

    use super::*;

    fn session(id: &str) -> SessionSummary {
        let id = SessionId::parse(id).unwrap();
        SessionSummary {
            cli_type: id.cli_type(),
            id,
            project_id: ProjectId::parse("p").unwrap(),
            title: "Title".into(),
            last_active_at: Timestamp::default(),
            created_at: Timestamp::default(),
            state: SessionState::default(),
        }
    }

    #[test]
    fn a_session_is_known_by_enough_of_its_id() {
        let sessions = [session("codex:0199a"), session("codex:0199b"), session("demo:77"), session("demo:771")];
        let chosen = |name: &str| {
            choose(name, &sessions).map(|id| id.to_string()).map_err(|failure| failure.message().to_owned())
        };
        assert_eq!(chosen("codex:0199a").unwrap(), "codex:0199a");
        assert_eq!(chosen("0199b").unwrap(), "codex:0199b");
        assert_eq!(chosen("demo:77").unwrap(), "demo:77", "the whole id wins over a longer one");
        assert_eq!(chosen("codex:archived").unwrap(), "codex:archived", "the server may know more than it lists");
        assert!(chosen("0199").unwrap_err().starts_with("2 sessions begin with"));
        assert_eq!(chosen("nothing").unwrap_err(), "Session not found");
        assert_eq!(chosen("").unwrap_err(), "Session not found");
    }

    #[test]
    fn the_shortest_name_means_one_session_only() {
        let ids: Vec<_> = ["codex:0199ab12", "codex:0199ab34", "demo:77777777", "demo:8"]
            .map(|id| SessionId::parse(id).unwrap())
            .into();
        let names = short_names(ids.iter());
        let shown: Vec<_> = ids.iter().map(|id| names[id]).collect();
        assert_eq!(shown, ["codex:0199ab1", "codex:0199ab3", "demo:7777", "demo:8"]);
    }
}
