//! What may be set about ACP agents.

use std::time::Duration;

use agent_process::StopLadder;

use crate::permission::PermissionPolicy;

/// The same for every ACP agent.
#[derive(Clone, Debug)]
pub struct AcpSettings {
    /// For the process to come up and answer the handshake.
    pub start_timeout: Duration,
    /// After so long without output, and with no tool running, a turn counts as silent.
    pub silence_after: Duration,
    /// For `session/new` and the like. Codex takes 15 s when it cannot reach its model list.
    pub session_timeout: Duration,
    /// After a restart of the agent, for its open sessions to be resumed before it counts as connected without them.
    pub resume_within: Duration,
    /// A session that was idle for so long is closed at the agent, where it can be resumed with the next message;
    /// none: never.
    pub idle: Option<Duration>,
    /// How long a cancelled turn may take to end at the agent. Then it ends here, and its session is closed and
    /// resumed. The user is promised five seconds.
    pub cancel_grace: Duration,
    /// The longest history of a session that is loaded.
    pub history_bytes_max: usize,
    pub permissions: PermissionPolicy,
    pub stop: StopLadder,
}

impl Default for AcpSettings {
    fn default() -> Self {
        Self {
            start_timeout: Duration::from_secs(15),
            silence_after: Duration::from_secs(30),
            session_timeout: Duration::from_secs(60),
            resume_within: Duration::from_secs(5),
            idle: Some(Duration::from_secs(15 * 60)),
            cancel_grace: Duration::from_secs(4),
            history_bytes_max: 256 * 1024 * 1024,
            permissions: PermissionPolicy::default(),
            stop: StopLadder::default(),
        }
    }
}
