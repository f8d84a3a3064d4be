//! The hub's own tasks: it owns every session's task, so that a panic ends one session and is known, and it passes the
//! agents' states on.

use std::collections::HashMap;
use std::sync::Arc;

use protocol::ServerMessage;
use providers::Provider;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::hub::HubCore;
use crate::session::SessionActor;

pub(crate) async fn run(core: Arc<HubCore>, mut new_sessions: mpsc::Receiver<SessionActor>, stop: CancellationToken) {
    let mut sessions = JoinSet::new();
    let mut names = HashMap::new();
    loop {
        tokio::select! {
            biased;
            Some(session) = new_sessions.recv() => {
                let id = session.id().clone();
                let task = sessions.spawn(session.run());
                names.insert(task.id(), id);
            }
            Some(ended) = sessions.join_next_with_id() => match ended {
                // It has reported itself that it is over.
                Ok((task, ())) => drop(names.remove(&task)),
                Err(error) => {
                    if let Some(id) = names.remove(&error.id()) {
                        tracing::error!(session = %id, %error, "a session ended by a panic");
                        let hub = Arc::clone(&core);
                        // Beside: it may start the next one, which waits for this loop.
                        core.tasks().spawn(async move { hub.lost(&id).await });
                    }
                }
            },
            () = stop.cancelled(), if sessions.is_empty() => return,
        }
    }
}

/// Notifies every window when an agent's state changes.
pub(crate) async fn report_status(core: Arc<HubCore>, provider: Arc<dyn Provider>, stop: CancellationToken) {
    let mut reports = provider.watch_status();
    let mut needs_login = false;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            changed = reports.changed() => if changed.is_err() { return },
        }
        let report = reports.borrow_and_update().clone();
        core.broadcast(ServerMessage::AgentStatus {
            cli_type: provider.cli_type().clone(),
            session_id: None,
            status: report.status,
            attempt: report.attempt,
            attempts_max: report.attempts_max,
            retry_in_ms: report.retry_in_ms,
            detail: report.detail,
        });
        // Whether it is logged in is part of the list of agents.
        if std::mem::replace(&mut needs_login, report.needs_login) != report.needs_login {
            core.broadcast(ServerMessage::AgentList { agents: core.agents().await });
        }
    }
}
