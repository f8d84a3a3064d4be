//! When an agent process is started again, and what is reported of it meanwhile.
//!
//! Comes in: that the agent is wanted, came up, was lost, or did something useful; and the time, as an argument. Goes
//! out: when to start it, and the reports to show. Kept out: processes, tasks and clocks.

use std::time::Duration;

use protocol::AgentStatus;

use crate::provider::StatusReport;

/// How often a lost agent is started again by itself.
pub const RESTARTS_MAX: u32 = 5;
/// A restart that the user requests so soon after another is the same wish, and must not end what the other has
/// started.
pub(crate) const JUST_STARTED: Duration = Duration::from_secs(2);
const FIRST_DELAY: Duration = Duration::from_secs(1);
const DELAY_MAX: Duration = Duration::from_secs(30);

/// One agent process, from nothing to connected and back. Times count from any fixed moment of the caller's.
#[derive(Debug, Default)]
pub struct Lifecycle {
    state: State,
    /// Automatic restarts since the agent last did something for a user.
    restarts: u32,
    /// The user requested the restart under way.
    is_restart_requested: bool,
    /// Why it was lost.
    detail: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    Starting,
    Connected,
    /// Lost; nothing happens by itself.
    Disconnected,
    /// Lost; started again when `due` has come.
    Waiting {
        due: Duration,
    },
    Restarting,
}

/// How an agent was lost, and whether somebody waits for it to come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub detail: String,
    /// Sessions are open: it is started again.
    pub wanted: bool,
    /// It exited by itself with nothing open. Not a crash.
    pub clean_exit: bool,
}

impl Lifecycle {
    /// The agent is needed. True when the caller has to start it now; otherwise it is up or on its way.
    pub fn want(&mut self) -> bool {
        match self.state {
            State::Idle | State::Disconnected => {
                self.restarts = 0;
                self.state = State::Starting;
                true
            }
            State::Waiting { .. } => {
                self.restarts += 1;
                self.state = State::Restarting;
                true
            }
            State::Starting | State::Connected | State::Restarting => false,
        }
    }

    /// The user requests a restart, whatever the state. If it fails, no automatic restart follows; if it succeeds, the
    /// count of them is reset. False when a start is already under way.
    pub fn request_restart(&mut self) -> bool {
        let idle = !matches!(self.state, State::Starting | State::Restarting);
        self.is_restart_requested = true;
        self.state = State::Restarting;
        idle
    }

    /// The user requested the start under way.
    pub fn is_restart_requested(&self) -> bool {
        self.is_restart_requested
    }

    /// The moment for an automatic restart, if one is due at some time.
    pub fn deadline(&self) -> Option<Duration> {
        match self.state {
            State::Waiting { due } => Some(due),
            _ => None,
        }
    }

    /// The process is up, the handshake done, its sessions resumed.
    pub fn connected(&mut self) {
        self.state = State::Connected;
        self.detail = None;
        if std::mem::take(&mut self.is_restart_requested) {
            self.restarts = 0;
        }
    }

    /// It did something for a user, so its next loss counts as the first. An agent that dies again before that has
    /// not succeeded: else one that crashes right after its handshake would be started for ever.
    pub fn reset_restarts(&mut self) {
        self.restarts = 0;
    }

    /// The process ended, or did not come up. Gives the reports to emit, in order.
    pub fn lost(&mut self, loss: Loss, now: Duration) -> Vec<StatusReport> {
        if loss.clean_exit {
            *self = Self::default();
            return vec![self.report(now)];
        }
        let was_connected = self.state == State::Connected;
        let first_start = self.state == State::Starting;
        let is_requested = std::mem::take(&mut self.is_restart_requested);
        self.detail = Some(loss.detail).filter(|detail| !detail.is_empty());
        self.state = State::Disconnected;
        if first_start || is_requested || !loss.wanted || self.restarts >= RESTARTS_MAX {
            return vec![self.report(now)];
        }
        let lost = was_connected.then(|| self.report(now));
        self.state = State::Waiting { due: now + delay(self.restarts) };
        lost.into_iter().chain([self.report(now)]).collect()
    }

    pub fn is_connected(&self) -> bool {
        self.state == State::Connected
    }

    /// Lost, and nothing brings it back but the user.
    pub fn is_given_up(&self) -> bool {
        self.state == State::Disconnected
    }

    pub fn report(&self, now: Duration) -> StatusReport {
        let status = match self.state {
            State::Idle => AgentStatus::Idle,
            State::Starting => AgentStatus::Starting,
            State::Connected => AgentStatus::Connected,
            State::Disconnected => AgentStatus::Disconnected,
            State::Waiting { .. } | State::Restarting => AgentStatus::Reconnecting,
        };
        let attempt = match self.state {
            State::Waiting { .. } => Some(self.restarts + 1),
            State::Restarting if !self.is_restart_requested => Some(self.restarts.max(1)),
            _ => None,
        };
        let retry_in_ms =
            self.deadline().map(|due| u64::try_from(due.saturating_sub(now).as_millis()).unwrap_or(u64::MAX));
        StatusReport {
            status,
            attempt,
            attempts_max: attempt.map(|_| RESTARTS_MAX),
            retry_in_ms,
            needs_login: false,
            hangs: false,
            detail: self.detail.clone(),
        }
    }
}

fn delay(restarts: u32) -> Duration {
    FIRST_DELAY.saturating_mul(1 << restarts.min(16)).min(DELAY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use AgentStatus::*;

    fn crash() -> Loss {
        Loss { detail: "exit code 1".into(), wanted: true, clean_exit: false }
    }

    fn statuses(reports: &[StatusReport]) -> Vec<AgentStatus> {
        reports.iter().map(|report| report.status).collect()
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn connected() -> Lifecycle {
        let mut lifecycle = Lifecycle::default();
        assert!(lifecycle.want());
        lifecycle.connected();
        lifecycle
    }

    #[test]
    fn the_first_need_starts_it_and_the_second_finds_it_there() {
        let mut lifecycle = Lifecycle::default();
        assert_eq!(lifecycle.report(seconds(0)).status, Idle);
        assert!(lifecycle.want());
        assert_eq!(lifecycle.report(seconds(0)).status, Starting);
        assert!(!lifecycle.want());
        lifecycle.connected();
        assert!(!lifecycle.want());
        assert_eq!(lifecycle.report(seconds(0)).status, Connected);
    }

    #[test]
    fn a_crash_is_reported_as_lost_and_then_as_reconnecting_with_the_time_of_the_next_try() {
        let mut lifecycle = connected();
        let reports = lifecycle.lost(crash(), seconds(10));
        assert_eq!(statuses(&reports), [Disconnected, Reconnecting]);
        let last = &reports[1];
        assert_eq!((last.attempt, last.attempts_max, last.retry_in_ms), (Some(1), Some(5), Some(1000)));
        assert_eq!(last.detail.as_deref(), Some("exit code 1"));
        assert_eq!(lifecycle.deadline(), Some(seconds(11)));
    }

    #[test]
    fn restarts_wait_1_2_4_8_16_seconds_and_end_after_the_fifth() {
        let mut lifecycle = connected();
        let mut now = seconds(0);
        let mut waits = Vec::new();
        lifecycle.lost(crash(), now);
        while let Some(due) = lifecycle.deadline() {
            waits.push((due - now).as_secs());
            now = due;
            assert!(lifecycle.want());
            assert_eq!(lifecycle.report(now).attempt, Some(u32::try_from(waits.len()).unwrap()));
            lifecycle.lost(crash(), now);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16]);
        assert!(lifecycle.is_given_up());
        assert_eq!(lifecycle.report(now).status, Disconnected);
    }

    #[test]
    fn no_wait_is_longer_than_the_cap() {
        assert_eq!(delay(40), seconds(30));
    }

    #[test]
    fn a_success_resets_the_count_and_a_mere_handshake_does_not() {
        let mut lifecycle = connected();
        for expected in [1, 2] {
            lifecycle.lost(crash(), seconds(0));
            assert_eq!(lifecycle.report(seconds(0)).attempt, Some(expected));
            assert!(lifecycle.want());
            lifecycle.connected();
        }
        lifecycle.reset_restarts();
        lifecycle.lost(crash(), seconds(0));
        assert_eq!(lifecycle.report(seconds(0)).attempt, Some(1));
    }

    #[test]
    fn a_requested_restart_works_in_any_state_and_its_failure_ends_the_tries() {
        let mut lifecycle = connected();
        lifecycle.lost(crash(), seconds(0));
        assert!(lifecycle.request_restart());
        assert!(!lifecycle.request_restart());
        let report = lifecycle.report(seconds(0));
        assert_eq!((report.status, report.attempt), (Reconnecting, None));
        assert_eq!(statuses(&lifecycle.lost(crash(), seconds(0))), [Disconnected]);
        assert_eq!(lifecycle.deadline(), None);

        assert!(lifecycle.request_restart());
        lifecycle.connected();
        lifecycle.lost(crash(), seconds(0));
        assert_eq!(lifecycle.deadline(), Some(seconds(1)), "the count is reset");
    }

    #[test]
    fn a_restart_that_fails_is_reported_as_the_next_try_and_not_as_another_loss() {
        let mut lifecycle = connected();
        lifecycle.lost(crash(), seconds(0));
        assert!(lifecycle.want());
        let reports = lifecycle.lost(Loss { detail: "exit code 2".into(), ..crash() }, seconds(1));
        assert_eq!(statuses(&reports), [Reconnecting]);
        assert_eq!((reports[0].attempt, reports[0].retry_in_ms), (Some(2), Some(2000)));
        assert_eq!(reports[0].detail.as_deref(), Some("exit code 2"));
    }

    #[test]
    fn a_clean_exit_is_not_a_crash() {
        let mut lifecycle = connected();
        let reports = lifecycle.lost(Loss { clean_exit: true, wanted: false, detail: String::new() }, seconds(0));
        assert_eq!(statuses(&reports), [Idle]);
        assert!(lifecycle.want());
    }

    #[test]
    fn a_first_start_that_fails_is_not_tried_again_by_itself() {
        let mut lifecycle = Lifecycle::default();
        lifecycle.want();
        assert_eq!(statuses(&lifecycle.lost(crash(), seconds(0))), [Disconnected]);
        assert!(lifecycle.want());
        assert_eq!(lifecycle.report(seconds(0)).status, Starting);
    }

    #[test]
    fn a_crash_that_nobody_waits_for_is_left_alone() {
        let mut lifecycle = connected();
        assert_eq!(statuses(&lifecycle.lost(Loss { wanted: false, ..crash() }, seconds(0))), [Disconnected]);
        assert_eq!(lifecycle.deadline(), None);
    }
}
