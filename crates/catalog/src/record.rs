//! One project and one session, as they are saved.
//!
//! Fields we do not know ride along in `extra`: a newer build, or a person, may have put them there.

use std::collections::BTreeMap;

use protocol::{AgentSessionId, CliType, Project, ProjectDefaults, ProjectId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::last_turn::{LastTurn, Unseen, lenient};
use crate::usage::UsageByDay;

/// The title of a session until its first message.
pub const NEW_SESSION_TITLE: &str = "New Session";

/// A project with what else its file says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectRecord {
    pub id: ProjectId,
    pub path: String,
    pub name: String,
    pub added_at: Timestamp,
    /// What its new sessions begin with. Older files do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<DefaultsRecord>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A project's defaults with what else its file says of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultsRecord {
    #[serde(flatten)]
    pub defaults: ProjectDefaults,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ProjectRecord {
    pub(crate) fn project(&self) -> Project {
        Project {
            id: self.id.clone(),
            path: self.path.clone(),
            name: self.name.clone(),
            added_at: self.added_at,
            defaults: self.defaults.as_ref().map(|record| record.defaults.clone()),
        }
    }

    /// Returns whether that made a difference. What a newer build keeps beside them stays, as long as there are any.
    pub(crate) fn set_defaults(&mut self, defaults: Option<&ProjectDefaults>) -> bool {
        let extra = self.defaults.as_ref().map(|record| record.extra.clone()).unwrap_or_default();
        let defaults = defaults.map(|defaults| DefaultsRecord { defaults: defaults.clone(), extra });
        let differs = self.defaults != defaults;
        self.defaults = defaults;
        differs
    }
}

/// What is known of a session while no agent runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "Written")]
pub struct SessionRecord {
    /// Formed once, from the agent's first id for the session. It never changes.
    pub id: SessionId,
    /// The agent's present id for the session, where that is not the one that `id` was formed from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_session_id: Option<AgentSessionId>,
    pub project_id: ProjectId,
    pub cli_type: CliType,
    /// Not listed any more, but not deleted.
    pub archived: bool,
    pub title: String,
    /// Moves on send and on the end of a turn, never on open, and never back.
    pub last_active_at: Timestamp,
    pub created_at: Timestamp,
    /// Whether a prompt was ever sent under the agent's present id. Before that the session is on no agent's disk.
    pub prompted: bool,
    /// The options of the agent (its mode, its model, …) that the user has set; not those that have the agent's default.
    #[serde(rename = "chosenOptions", skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// The beginning of the message that the agent is working on. One that is here at a start was cut short with the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<String>,
    /// The last turn ended and nobody has looked since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen: Option<Unseen>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<LastTurn>,
    #[serde(skip_serializing_if = "UsageByDay::is_empty")]
    pub usage: UsageByDay,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl SessionRecord {
    /// A session that was created this moment and was given no message yet.
    pub fn new(id: SessionId, project_id: ProjectId, now: Timestamp) -> Self {
        Self {
            cli_type: id.cli_type(),
            id,
            agent_session_id: None,
            project_id,
            archived: false,
            title: NEW_SESSION_TITLE.into(),
            last_active_at: now,
            created_at: now,
            prompted: false,
            options: BTreeMap::new(),
            unanswered: None,
            unseen: None,
            last_turn: None,
            usage: UsageByDay::default(),
            extra: Map::new(),
        }
    }

    /// The id by which its agent knows it now.
    pub fn current_agent_id(&self) -> AgentSessionId {
        self.agent_session_id.clone().unwrap_or_else(|| self.id.agent_session_id())
    }
}

/// A session as a file may hold it: `prompted`, what follows it, and `agent_session_id` are missing in older files.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    id: SessionId,
    agent_session_id: Option<AgentSessionId>,
    project_id: ProjectId,
    cli_type: CliType,
    archived: bool,
    title: String,
    last_active_at: Timestamp,
    created_at: Timestamp,
    prompted: Option<bool>,
    #[serde(default, rename = "chosenOptions")]
    options: BTreeMap<String, String>,
    unanswered: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    unseen: Option<Unseen>,
    #[serde(default, deserialize_with = "lenient")]
    last_turn: Option<LastTurn>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<UsageByDay>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl From<Written> for SessionRecord {
    fn from(written: Written) -> Self {
        Self {
            // A title comes from the first message, so one that is still the default was given no message.
            prompted: written.prompted.unwrap_or(written.title != NEW_SESSION_TITLE),
            id: written.id,
            agent_session_id: written.agent_session_id,
            project_id: written.project_id,
            cli_type: written.cli_type,
            archived: written.archived,
            title: written.title,
            last_active_at: written.last_active_at,
            created_at: written.created_at,
            options: written.options,
            unanswered: written.unanswered,
            unseen: written.unseen,
            last_turn: written.last_turn,
            usage: written.usage.unwrap_or_default(),
            extra: written.extra,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_build_keeps_beside_a_projects_defaults_stays_when_they_change() {
        let written = serde_json::json!({
            "id": "p1", "path": "/code/atlas", "name": "atlas", "addedAt": "2026-11-15T21:15:56.123Z", "colour": "red",
            "defaults": {"cliType": "codex", "options": {"mode": "plan"}, "effort": {"of": "later"}},
        });
        let mut record: ProjectRecord = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&record).unwrap(), written, "nothing is lost on the way");
        let mut defaults = record.project().defaults.unwrap();
        assert!(!record.set_defaults(Some(&defaults)), "nothing is different");
        defaults.options.insert("mode".into(), "code".into());
        assert!(record.set_defaults(Some(&defaults)));
        let changed = serde_json::to_value(&record).unwrap();
        let expected = serde_json::json!({"cliType": "codex", "options": {"mode": "code"}, "effort": {"of": "later"}});
        assert_eq!((&changed["defaults"], &changed["colour"]), (&expected, &serde_json::json!("red")));
        assert!(record.set_defaults(None));
        assert_eq!(serde_json::to_value(&record).unwrap().get("defaults"), None);
    }
}
