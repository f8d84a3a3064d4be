//! What every conversation with an agent does, whatever its protocol: one message at a time, and what is due by
//! itself.
//!
//! Comes in: the user's messages, cancels and options; that the agent became ready, was lost, wrote something or ended
//! a turn; and the time, as an argument. Goes out: when a held message may be delivered, which options have to be set
//! again before that, and what is due (silence to report, a cancel that was not followed, an idle agent to evict). Kept
//! out: wires, processes, tasks, clocks, and who waits for an answer. `M` is a message as its provider holds it.

use std::collections::BTreeMap;
use std::time::Duration;

use protocol::TurnId;
use tokio::time::Instant;

/// Options by their ids, each with its value.
pub(crate) type OptionValues = BTreeMap<String, String>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ConversationLimits {
    /// Silence in a turn after which it is reported; nothing else happens.
    pub(crate) silence_after: Duration,
    pub(crate) silence_reports: SilenceReports,
    /// For the agent to end a turn that was cancelled.
    pub(crate) cancel_grace: Duration,
    /// An idle agent is evicted after this; none: never.
    pub(crate) idle_after: Option<Duration>,
}

/// How often one silence is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SilenceReports {
    Once,
    /// Every time that [`ConversationLimits::silence_after`] has passed again.
    Repeated,
}

/// What only the provider knows, asked for whenever time matters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    /// The agent is there and runs no tool: it should write something soon.
    pub(crate) expects_output: bool,
    /// The agent is there, and could be evicted and come back.
    pub(crate) can_evict: bool,
}

/// What has to be done because of the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// The agent had its grace and did not end the turn. The provider ends it, with [`Conversation::end_turn`].
    CancelOverdue(TurnId),
    /// For how long the agent has written nothing.
    Silence(Duration),
    /// Nothing has happened for long. Not due again before as much time has passed again.
    EvictIdle,
}

/// What a cancel leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CancelStep<M> {
    /// Nothing runs, or it was cancelled already.
    Nothing,
    /// The agent never got this message. Its turn ends without the agent.
    Withdraw(M),
    /// The agent has to be asked. It has its grace from now on.
    AskAgent(TurnId),
}

/// How far the agent is from being given a message.
#[derive(Debug)]
enum Readiness {
    /// It is not there.
    Absent,
    /// It is there and does not have all of the user's options yet.
    Restoring {
        queued: OptionValues,
        requested: OptionValues,
    },
    Ready,
    /// It is there and lacks an option: it refused it, or its answer was not awaited.
    Unrestored,
}

#[derive(Debug)]
enum ConversationPhase<M> {
    Idle {
        since: Instant,
    },
    /// The agent is not ready for it.
    Held {
        message: M,
        silence: Silence,
    },
    Running {
        turn: TurnId,
        silence: Silence,
    },
    Cancelling {
        turn: TurnId,
        silence: Silence,
        deadline: Instant,
    },
}

#[derive(Clone, Copy, Debug)]
struct Silence {
    since: Instant,
    reported_at: Option<Instant>,
}

impl Silence {
    fn new(since: Instant) -> Self {
        Self { since, reported_at: None }
    }
}

#[derive(Debug)]
pub(crate) struct Conversation<M> {
    limits: ConversationLimits,
    phase: ConversationPhase<M>,
    readiness: Readiness,
    /// What the user set, for every process and attachment to come.
    options: OptionValues,
}

impl<M> Conversation<M> {
    pub(crate) fn new(limits: ConversationLimits, options: OptionValues, now: Instant) -> Self {
        Self { limits, phase: ConversationPhase::Idle { since: now }, readiness: Readiness::Absent, options }
    }

    /// Neither a turn runs nor a message is held: another one may come.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.phase, ConversationPhase::Idle { .. })
    }

    /// The turn that the agent works on. A held message has none here.
    pub(crate) fn turn(&self) -> Option<&TurnId> {
        match &self.phase {
            ConversationPhase::Running { turn, .. } | ConversationPhase::Cancelling { turn, .. } => Some(turn),
            ConversationPhase::Idle { .. } | ConversationPhase::Held { .. } => None,
        }
    }

    /// The agent was asked to stop the turn and has not ended it.
    pub(crate) fn is_cancelling(&self) -> bool {
        matches!(self.phase, ConversationPhase::Cancelling { .. })
    }

    pub(crate) fn held(&self) -> Option<&M> {
        match &self.phase {
            ConversationPhase::Held { message, .. } => Some(message),
            _ => None,
        }
    }

    /// Keeps a message until the agent is ready for it. Only while [`Self::is_idle`].
    pub(crate) fn hold(&mut self, message: M, now: Instant) {
        debug_assert!(self.is_idle(), "one message at a time");
        self.phase = ConversationPhase::Held { message, silence: Silence::new(now) };
    }

    /// The held message, whatever the agent's state. It has to be answered, or delivered with [`Self::begin_turn`].
    pub(crate) fn take_held(&mut self, now: Instant) -> Option<M> {
        if !matches!(self.phase, ConversationPhase::Held { .. }) {
            return None;
        }
        match std::mem::replace(&mut self.phase, ConversationPhase::Idle { since: now }) {
            ConversationPhase::Held { message, .. } => Some(message),
            _ => None,
        }
    }

    /// The held message, once the agent is ready for it.
    pub(crate) fn take_deliverable(&mut self, now: Instant) -> Option<M> {
        if self.is_ready() { self.take_held(now) } else { None }
    }

    /// The agent got a message, or goes on by itself.
    pub(crate) fn begin_turn(&mut self, turn: TurnId, now: Instant) {
        self.phase = ConversationPhase::Running { turn, silence: Silence::new(now) };
    }

    /// The turn is over, or the held message given up. True when a silence was reported, which is over too.
    pub(crate) fn end_turn(&mut self, now: Instant) -> bool {
        let was_silent = self.silence().is_some_and(|silence| silence.reported_at.is_some());
        self.phase = ConversationPhase::Idle { since: now };
        was_silent
    }

    /// The agent wrote something. True when a silence was reported, which is over now.
    pub(crate) fn on_output(&mut self, now: Instant) -> bool {
        let Some(silence) = self.silence_mut() else { return false };
        silence.since = now;
        silence.reported_at.take().is_some()
    }

    /// Somebody uses the session: it is not idle before the whole time has passed again.
    pub(crate) fn on_use(&mut self, now: Instant) {
        if let ConversationPhase::Idle { since } = &mut self.phase {
            *since = now;
        }
    }

    pub(crate) fn cancel(&mut self, now: Instant) -> CancelStep<M> {
        match std::mem::replace(&mut self.phase, ConversationPhase::Idle { since: now }) {
            ConversationPhase::Held { message, .. } => CancelStep::Withdraw(message),
            ConversationPhase::Running { turn, silence } => {
                let deadline = now + self.limits.cancel_grace;
                self.phase = ConversationPhase::Cancelling { turn: turn.clone(), silence, deadline };
                CancelStep::AskAgent(turn)
            }
            phase @ (ConversationPhase::Idle { .. } | ConversationPhase::Cancelling { .. }) => {
                self.phase = phase;
                CancelStep::Nothing
            }
        }
    }

    /// The next moment at which something may be due.
    pub(crate) fn deadline(&self, conditions: Conditions) -> Option<Instant> {
        let cancel = match &self.phase {
            ConversationPhase::Cancelling { deadline, .. } => Some(*deadline),
            _ => None,
        };
        [cancel, self.silence_due(conditions), self.idle_due(conditions)].into_iter().flatten().min()
    }

    /// One thing that is due now. Asked again until there is none.
    pub(crate) fn on_time(&mut self, now: Instant, conditions: Conditions) -> Option<Due> {
        if let ConversationPhase::Cancelling { turn, deadline, .. } = &self.phase
            && *deadline <= now
        {
            return Some(Due::CancelOverdue(turn.clone()));
        }
        if self.silence_due(conditions).is_some_and(|due| due <= now)
            && let Some(silence) = self.silence_mut()
        {
            silence.reported_at = Some(now);
            return Some(Due::Silence(now - silence.since));
        }
        if self.idle_due(conditions).is_some_and(|due| due <= now) {
            self.on_use(now);
            return Some(Due::EvictIdle);
        }
        None
    }

    fn silence_due(&self, conditions: Conditions) -> Option<Instant> {
        let silence = self.silence().filter(|_| conditions.expects_output)?;
        let from = match (silence.reported_at, self.limits.silence_reports) {
            (None, _) => silence.since,
            (Some(reported_at), SilenceReports::Repeated) => reported_at,
            (Some(_), SilenceReports::Once) => return None,
        };
        Some(from + self.limits.silence_after)
    }

    fn idle_due(&self, conditions: Conditions) -> Option<Instant> {
        match self.phase {
            ConversationPhase::Idle { since } if conditions.can_evict => {
                self.limits.idle_after.map(|idle| since + idle)
            }
            _ => None,
        }
    }

    fn silence(&self) -> Option<&Silence> {
        match &self.phase {
            ConversationPhase::Held { silence, .. }
            | ConversationPhase::Running { silence, .. }
            | ConversationPhase::Cancelling { silence, .. } => Some(silence),
            ConversationPhase::Idle { .. } => None,
        }
    }

    fn silence_mut(&mut self) -> Option<&mut Silence> {
        match &mut self.phase {
            ConversationPhase::Held { silence, .. }
            | ConversationPhase::Running { silence, .. }
            | ConversationPhase::Cancelling { silence, .. } => Some(silence),
            ConversationPhase::Idle { .. } => None,
        }
    }
}

/// The options that the user set, and how an agent that has just come gets them.
impl<M> Conversation<M> {
    pub(crate) fn options(&self) -> &OptionValues {
        &self.options
    }

    /// Changes the user's options; returns them all if any changed.
    pub(crate) fn update_options(&mut self, change: impl FnOnce(&mut OptionValues)) -> Option<OptionValues> {
        let before = self.options.clone();
        change(&mut self.options);
        (self.options != before).then(|| self.options.clone())
    }

    /// The agent is there. The user's options that it `lacks` are set again before it is [ready](Self::is_ready).
    pub(crate) fn restore_options(&mut self, lacks: impl Fn(&str, &str) -> bool) {
        let mut queued = self.options.clone();
        queued.retain(|option, value| lacks(option, value));
        self.readiness = Readiness::Restoring { queued, requested: OptionValues::new() };
        self.check_restored();
    }

    /// The agent is gone, or has closed the session.
    pub(crate) fn agent_is_absent(&mut self) {
        self.readiness = Readiness::Absent;
    }

    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.readiness, Readiness::Ready)
    }

    /// The agent is there and lacks an option: [`Self::restore_options`] comes before the next message.
    pub(crate) fn is_unrestored(&self) -> bool {
        matches!(self.readiness, Readiness::Unrestored)
    }

    pub(crate) fn is_restoring(&self) -> bool {
        matches!(self.readiness, Readiness::Restoring { .. })
    }

    /// The next option to ask the agent for. A provider asks for one after the other, or for all at once.
    pub(crate) fn next_option(&mut self) -> Option<(String, String)> {
        let Readiness::Restoring { queued, requested } = &mut self.readiness else { return None };
        let (option, value) = queued.pop_first()?;
        requested.insert(option.clone(), value.clone());
        Some((option, value))
    }

    /// The user sets an option while the agent is being restored: it gets this value too, after what it was asked for.
    pub(crate) fn requeue_option(&mut self, option: &str, value: &str) {
        if let Readiness::Restoring { queued, .. } = &mut self.readiness {
            queued.insert(option.to_owned(), value.to_owned());
        }
    }

    /// The agent has set an option that it was asked for, or offers none of that name.
    pub(crate) fn option_restored(&mut self, option: &str) {
        if let Readiness::Restoring { requested, .. } = &mut self.readiness {
            requested.remove(option);
            self.check_restored();
        }
    }

    /// The user sets this option by a request of its own: it is not restored any more, and no answer about that
    /// awaited.
    pub(crate) fn option_superseded(&mut self, option: &str) {
        if let Readiness::Restoring { queued, requested } = &mut self.readiness {
            queued.remove(option);
            requested.remove(option);
            self.check_restored();
        }
    }

    /// The agent lacks an option that the user set, or may lack it: no message goes out before it was restored.
    pub(crate) fn options_not_restored(&mut self) {
        if !matches!(self.readiness, Readiness::Absent) {
            self.readiness = Readiness::Unrestored;
        }
    }

    fn check_restored(&mut self) {
        if let Readiness::Restoring { queued, requested } = &self.readiness
            && queued.is_empty()
            && requested.is_empty()
        {
            self.readiness = Readiness::Ready;
        }
    }
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;
