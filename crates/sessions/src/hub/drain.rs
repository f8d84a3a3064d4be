//! The end of everything, in order: turns are cancelled, transcripts are settled and sent, processes are gone.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use super::{Hub, HubCore, lock};
use crate::session::SessionCommand;
use providers::catch_panic::catch_panic;

/// For running turns to end because they were cancelled, before their agents are shut down. Real agents need a few
/// hundred milliseconds; one that needs more is ended while it ends its turn.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(1);
/// For the hub's own tasks, once nothing they could wait for is left.
const TASKS_TIME_MAX: Duration = Duration::from_millis(300);

impl Hub {
    /// Ends everything. Windows see how their turns end, and are closed after that, with all that was for them. Agents
    /// have until the deadline; false if it was not enough for one.
    pub async fn drain(&self, deadline: Instant) -> bool {
        let core = &self.core;
        core.stopping.cancel();
        let mut settled = std::pin::pin!(core.settle_turns());
        let are_settled = timeout(SETTLE_TIME_MAX, &mut settled).await.is_ok();
        let ending = async {
            if !are_settled {
                settled.await;
            }
            core.finish_windows();
        };
        let providers = core.agents.all();
        let agents = join_all(providers.iter().map(|provider| catch_panic(provider.shutdown())));
        // The windows wait for their turns, and the agents for nobody.
        let ended = timeout_at(deadline, async { tokio::join!(agents, ending).0 }).await;
        let are_ended = ended.is_ok_and(|ended| ended.iter().all(Result::is_ok));
        core.clear_entries();
        core.stop.cancel();
        core.tasks.close();
        if timeout(TASKS_TIME_MAX, core.tasks.wait()).await.is_err() {
            tracing::warn!("some requests are left unanswered");
        }
        core.finish_windows();
        are_ended
    }
}

impl HubCore {
    /// Every running turn is cancelled; done when none runs.
    async fn settle_turns(&self) {
        let sessions: Vec<_> = lock(&self.sessions).values().map(|entry| entry.actor().clone()).collect();
        let settle = sessions.into_iter().map(async |session| {
            let (settled, is_settled) = oneshot::channel();
            // One that is gone runs nothing. No sender is kept: an actor ends when all of them are dropped.
            session.send(SessionCommand::Drain { settled }).await.ok();
            drop(session);
            is_settled.await.ok();
        });
        join_all(settle).await;
    }

    /// Nothing more will be sent: each window is closed once it has read what there is.
    fn finish_windows(&self) {
        let mut windows = lock(&self.windows);
        windows.are_over = true;
        for outbox in windows.open.values() {
            outbox.finish();
        }
    }
}
