//! The things the sidebar shows: projects, sessions, agents and their states.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{CliType, ProjectId, SessionId, TurnId};
use crate::stream::Usage;
use crate::timestamp::Timestamp;

/// A directory the user added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Project {
    pub id: ProjectId,
    pub path: String,
    pub name: String,
    pub added_at: Timestamp,
    /// What new sessions of this project begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub defaults: Option<ProjectDefaults>,
}

/// What new sessions of a project begin with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ProjectDefaults {
    pub cli_type: CliType,
    /// Options of that agent (its mode, its model) by their ids. A session of another agent gets none of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

/// A session as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    pub id: SessionId,
    pub project_id: ProjectId,
    pub title: String,
    pub last_active_at: Timestamp,
    pub created_at: Timestamp,
    pub cli_type: CliType,
    #[serde(flatten)]
    pub state: SessionState,
}

/// Whether a session wants the user, and whether its agent remembers. Kept by the server, so every window agrees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    pub attention: Attention,
    /// One short line: what is asked, or what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub reason: Option<String>,
    pub continuity: Continuity,
    /// It is disconnected because its agent, which runs, did not stop when asked to. A restart fixes that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
    pub hangs: bool,
    /// When the present attention began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub since: Option<Timestamp>,
}

/// In order of urgency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    NeedsPermission,
    Error,
    /// Finished and not yet seen.
    Finished,
    Working,
    Starting,
    Reconnecting,
    Disconnected,
    #[default]
    Idle,
}

/// Does the agent behind the session remember what is shown?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Continuity {
    /// No agent runs for it now; it will be asked to resume at the next message.
    #[default]
    Dormant,
    /// The agent that reported it is still there.
    Live,
    /// A new process of the agent has taken the conversation up again.
    Resumed,
    /// What is shown is our copy; the agent could not restore its context.
    Copy,
}

/// One turn of a session's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct TurnRecord {
    pub turn_id: TurnId,
    pub status: TurnRecordStatus,
    /// Left out where the agent's history does not say it.
    #[serde(default, skip_serializing_if = "Timestamp::is_unset")]
    pub started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub model_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub error_code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub error_message: Option<String>,
    /// The agent has removed it from its own history: it no longer remembers it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
    pub forgotten: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum TurnRecordStatus {
    Running,
    Completed,
    Cancelled,
    Error,
}

/// An agent program the user may pick.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    pub cli_type: CliType,
    pub name: String,
    pub installed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub version: Option<String>,
    /// The program that was looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub program: Option<String>,
    /// The command that installs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub install_hint: Option<String>,
    /// Whether it is logged in, where that can be known without starting it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub logged_in: Option<bool>,
    /// The command that logs it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub login_hint: Option<String>,
    pub status: AgentStatus,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    /// Nothing runs, and nothing is wrong.
    #[default]
    Idle,
    Starting,
    Connected,
    Disconnected,
    Reconnecting,
}

/// A directory offered while a path is typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct PathCompletion {
    pub path: String,
    pub is_project: bool,
    /// A git repository begins there.
    #[serde(default)]
    pub is_repository: bool,
}

/// A directory that the user worked in before and that is no project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct RecentDirectory {
    pub path: String,
    pub source: RecentSource,
    pub is_repository: bool,
}

/// How a directory is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum RecentSource {
    /// It was a project and was removed.
    Removed,
    /// An agent has a conversation in it.
    Agent,
}

/// What a directory is opened in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum OpenTarget {
    Editor,
    Terminal,
}

/// What the user has set for this server, as every window shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ServerSettings {
    pub editor: OpenerSetting,
    pub terminal: OpenerSetting,
}

/// One command that opens a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct OpenerSetting {
    /// As the user set it; empty when the default is used.
    pub command: String,
    /// The command that is used without a setting, if a program for it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub default_command: Option<String>,
}
