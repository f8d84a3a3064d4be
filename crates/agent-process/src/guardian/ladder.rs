//! The steps that end an agent and all its descendants; pure, the clock is an argument.
//!
//! Steps only move forward and waits only get shorter, so the ladder always ends, however often a stop is requested.

use std::time::{Duration, Instant};

use crate::command::StopLadder;

/// The delay between two kills of what is left: short at first, for processes that appear in between; longer later, for
/// processes that cannot be killed because they belong to another user.
const KILL_AGAIN_FIRST: Duration = Duration::from_millis(20);
const KILL_AGAIN_LAST: Duration = Duration::from_secs(1);

/// An action that is due now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Terminate,
    Kill,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopStep {
    /// No stop was requested.
    Running,
    /// Its stdin is closed; it may exit until then.
    Closing(Instant),
    /// SIGTERM is due now, or was sent and has until then to work.
    Terminating { sent: bool, until: Instant },
    /// SIGKILL to all that is left, at this time and then repeatedly.
    Killing(Instant),
}

#[derive(Debug)]
pub(super) struct Ladder {
    step: StopStep,
    /// How to stop when the server is gone.
    orphan: StopLadder,
    grace_term: Duration,
    kill_again: Duration,
    agent_gone: bool,
}

impl Ladder {
    pub(super) fn new(orphan: StopLadder) -> Self {
        Self {
            step: StopStep::Running,
            orphan,
            grace_term: orphan.grace_term,
            kill_again: KILL_AGAIN_FIRST,
            agent_gone: false,
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.step {
            StopStep::Running => None,
            StopStep::Closing(until) | StopStep::Terminating { until, .. } | StopStep::Killing(until) => Some(until),
        }
    }

    pub(super) fn is_agent_gone(&self) -> bool {
        self.agent_gone
    }

    /// Starts the stop, or makes it faster than requested before.
    pub(super) fn stop(&mut self, asked: StopLadder, now: Instant) {
        let eof = now + asked.grace_eof;
        let term = now + asked.grace_term;
        self.grace_term = match self.step {
            StopStep::Running => asked.grace_term,
            _ => self.grace_term.min(asked.grace_term),
        };
        self.step = match self.step {
            StopStep::Running => StopStep::Closing(eof),
            StopStep::Closing(until) => StopStep::Closing(until.min(eof)),
            StopStep::Terminating { sent: true, until } => StopStep::Terminating { sent: true, until: until.min(term) },
            step => step,
        };
    }

    /// The server is gone and can no longer request a stop.
    pub(super) fn stop_as_orphan(&mut self, now: Instant) {
        self.stop(self.orphan, now);
    }

    /// The descendants it left behind are terminated too.
    pub(super) fn agent_ended(&mut self, now: Instant) {
        self.agent_gone = true;
        if !matches!(self.step, StopStep::Killing(_)) {
            self.step = StopStep::Terminating { sent: false, until: now };
        }
    }

    /// The action that is due; called again after each wait.
    pub(super) fn due(&mut self, now: Instant) -> Option<Action> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return None;
        }
        match self.step {
            StopStep::Running => None,
            StopStep::Closing(_) | StopStep::Terminating { sent: false, .. } => {
                self.step = StopStep::Terminating { sent: true, until: now + self.grace_term };
                Some(Action::Terminate)
            }
            StopStep::Terminating { sent: true, .. } | StopStep::Killing(_) => {
                self.step = StopStep::Killing(now + self.kill_again);
                self.kill_again = (2 * self.kill_again).min(KILL_AGAIN_LAST);
                Some(Action::Kill)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORPHAN: StopLadder = StopLadder { grace_eof: Duration::from_secs(5), grace_term: Duration::from_secs(2) };

    struct Clock {
        start: Instant,
        ladder: Ladder,
    }

    impl Clock {
        fn new() -> Self {
            Self { start: Instant::now(), ladder: Ladder::new(ORPHAN) }
        }

        fn at(&self, second: f64) -> Instant {
            self.start + Duration::from_secs_f64(second)
        }

        /// The actions up to then, with their times.
        fn actions_until(&mut self, second: f64) -> Vec<(f64, Action)> {
            let mut done = Vec::new();
            while let Some(deadline) = self.ladder.deadline().filter(|deadline| *deadline <= self.at(second)) {
                done.extend(self.ladder.due(deadline).map(|action| ((deadline - self.start).as_secs_f64(), action)));
            }
            done
        }
    }

    fn ladder(eof: u64, term: u64) -> StopLadder {
        StopLadder { grace_eof: Duration::from_secs(eof), grace_term: Duration::from_secs(term) }
    }

    #[test]
    fn a_running_agent_is_left_alone() {
        assert_eq!(Clock::new().actions_until(1e6), []);
    }

    #[test]
    fn an_agent_that_stays_is_terminated_and_then_killed_until_it_is_gone() {
        let mut clock = Clock::new();
        clock.ladder.stop(ladder(10, 3), clock.at(0.0));
        let killed = 13.0;
        assert_eq!(
            clock.actions_until(killed + 0.03),
            [(10.0, Action::Terminate), (killed, Action::Kill), (killed + 0.02, Action::Kill)]
        );
    }

    #[test]
    fn a_process_that_cannot_be_killed_is_retried_less_and_less_often_but_for_ever() {
        let mut clock = Clock::new();
        clock.ladder.stop(StopLadder::AT_ONCE, clock.at(0.0));
        let first_minute = clock.actions_until(60.0).len();
        assert!((60..80).contains(&first_minute), "{first_minute}");
        assert_eq!(clock.actions_until(120.0).len(), 60);
    }

    #[test]
    fn when_the_server_is_gone_the_ladder_starts_by_itself_but_never_again() {
        let mut clock = Clock::new();
        clock.ladder.stop_as_orphan(clock.at(1.0));
        assert_eq!(clock.actions_until(6.5), [(6.0, Action::Terminate)]);
        clock.ladder.stop_as_orphan(clock.at(7.0));
        assert_eq!(clock.actions_until(8.0), [(8.0, Action::Kill)]);
    }

    #[test]
    fn a_second_stop_can_only_make_it_faster() {
        let mut clock = Clock::new();
        clock.ladder.stop(ladder(10, 10), clock.at(0.0));
        clock.ladder.stop(ladder(100, 100), clock.at(1.0));
        assert_eq!(clock.ladder.deadline(), Some(clock.at(10.0)));
        clock.ladder.stop(StopLadder::AT_ONCE, clock.at(2.0));
        assert_eq!(clock.actions_until(2.0), [(2.0, Action::Terminate), (2.0, Action::Kill)]);
    }

    #[test]
    fn descendants_left_behind_are_terminated_at_once_and_killed_after_the_grace() {
        let mut clock = Clock::new();
        clock.ladder.agent_ended(clock.at(1.0));
        assert!(clock.ladder.is_agent_gone());
        assert_eq!(clock.actions_until(3.0), [(1.0, Action::Terminate), (3.0, Action::Kill)]);
    }

    #[test]
    fn an_agent_that_ends_during_the_kill_does_not_slow_it_down() {
        let mut clock = Clock::new();
        clock.ladder.stop(StopLadder::AT_ONCE, clock.at(0.0));
        clock.actions_until(0.0);
        clock.ladder.agent_ended(clock.at(0.01));
        assert_eq!(clock.actions_until(0.02), [(0.02, Action::Kill)]);
    }
}
