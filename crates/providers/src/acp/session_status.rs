//! The state of a session's process, as the session reports it.

use protocol::AgentStatus;
use tokio::sync::watch;

use super::attach_state::{AttachPurpose, AttachState, Attaching};
use super::session::AcpSession;
use crate::error::ProviderError;
use crate::provider::{ProviderEvent, StatusReport};

pub(super) struct SessionStatus {
    agent: watch::Receiver<StatusReport>,
    reported: StatusReport,
}

impl SessionStatus {
    pub(super) fn new(agent: watch::Receiver<StatusReport>) -> Self {
        Self { agent, reported: StatusReport::default() }
    }

    pub(super) async fn agent_changed(&mut self) -> Result<(), watch::error::RecvError> {
        self.agent.changed().await
    }
}

impl AcpSession {
    /// Reports the state of the agent. A session that the agent does not have again yet is not connected, whatever its
    /// others are.
    pub(super) fn report_status(&mut self) {
        let mut report = self.status.agent.borrow_and_update().clone();
        if report.status == AgentStatus::Connected && matches!(self.state, AttachState::Hanging { .. }) {
            report = self.hanging_status();
        }
        let is_reattaching =
            matches!(&self.state, AttachState::Attaching(Attaching { purpose: AttachPurpose::Reattach { .. }, .. }));
        let (reported, present) = (self.status.reported.status, report.status);
        if present == AgentStatus::Connected && reported == AgentStatus::Reconnecting && is_reattaching {
            report = StatusReport::from(AgentStatus::Reconnecting);
            report.detail = Some(format!("{} has not resumed this session yet.", self.context.agent.name));
        }
        self.emit_status(report);
    }

    /// The process is lost. Reported once, as the end of a connection: a restart that failed leaves the agent as it
    /// was, about to be restarted.
    pub(super) fn report_loss(&mut self, detail: &str) {
        if self.status.reported.status == AgentStatus::Connected {
            let detail = Some(detail.to_owned()).filter(|detail| !detail.is_empty());
            self.emit_status(StatusReport { status: AgentStatus::Disconnected, detail, ..StatusReport::default() });
        }
    }

    pub(super) fn emit_status(&mut self, report: StatusReport) {
        if report != self.status.reported {
            self.status.reported = report.clone();
            self.emitter.emit(ProviderEvent::Status(report));
        }
    }

    /// Why nothing can be sent while no process runs.
    pub(super) fn unavailable(&self) -> ProviderError {
        let name = self.agent_name();
        let report = self.status.agent.borrow();
        match report.status {
            AgentStatus::Disconnected => {
                ProviderError::Crashed { name, detail: report.detail.clone().unwrap_or_default() }
            }
            _ => ProviderError::Unavailable { name },
        }
    }
}
