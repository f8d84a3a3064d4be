//! Whether the agent still has a session, where it can list them (`session/list`).
//!
//! Our own records decide which sessions are shown. The agent's list is asked when it could not load one, so that a
//! user who deleted it there reads that and not the agent's error for a missing file, and before a session is made that
//! is to be deleted, so that no other is.

use std::collections::HashSet;
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use protocol::AgentSessionId;
use serde::Deserialize;

use super::connection::Connection;

/// An agent that always has one more page is not asked for ever.
const PAGES_MAX: usize = 50;

/// Our own reading of the answer: of all that is known of a session only its id matters here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionListPage {
    sessions: Vec<ListedSession>,
    #[serde(default)]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedSession {
    session_id: String,
}

/// None when the agent does not list its sessions, or not all of them.
pub(crate) async fn has_session(connection: &Connection, id: &AgentSessionId, within: Duration) -> Option<bool> {
    look(connection, within, |listed| listed == id.as_str()).await
}

/// All sessions the agent has. None when it does not list them, or not all of them.
pub(crate) async fn all_sessions(connection: &Connection, within: Duration) -> Option<HashSet<String>> {
    let mut all = HashSet::new();
    look(connection, within, |listed| {
        all.insert(listed.to_owned());
        false
    })
    .await?;
    Some(all)
}

/// Goes through the list until one is found.
async fn look(connection: &Connection, within: Duration, mut is_it: impl FnMut(&str) -> bool) -> Option<bool> {
    if !connection.capabilities().can_list {
        return None;
    }
    let mut request = acp::ListSessionsRequest::new();
    for _ in 0..PAGES_MAX {
        let page: SessionListPage = connection.rpc.call("session/list", &request, within).await.ok()?;
        if page.sessions.iter().any(|listed| is_it(&listed.session_id)) {
            return Some(true);
        }
        match page.next_cursor {
            Some(cursor) => request = acp::ListSessionsRequest::new().cursor(cursor),
            None => return Some(false),
        }
    }
    None
}
