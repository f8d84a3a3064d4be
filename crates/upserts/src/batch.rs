//! When one item's unsent change is due.
//!
//! Comes in: that an item changed, that it was sent, and the time. Goes out: the time at which it is due. In live mode
//! two emissions of an item are an interval apart, and the interval starts when the first was due: an emission that is
//! taken late does not delay the following ones.

use std::time::Duration;

use crate::config::{Pacing, estimate_tokens};

/// Never, as a time at which something is due.
pub(crate) const NEVER: Duration = Duration::MAX;

/// What happened to an item, as far as it affects when it is emitted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Text or live output grew.
    Text,
    /// Name or arguments of a call were filled in.
    Arguments,
    /// A call was first seen, its source reported progress, or a settled item was corrected.
    Progress,
    /// The item was settled.
    Settled,
}

#[derive(Debug)]
pub(crate) struct Batch {
    /// At least one emission has been taken.
    pub(crate) shown: bool,
    /// Something is unsent and waits in the processor's queue.
    pub(crate) queued: bool,
    /// Meaningful while `queued`.
    pub(crate) due_at: Duration,
    /// Length of the text in the last emission.
    pub(crate) sent_bytes: usize,
    /// When the next interval begins.
    sent_at: Option<Duration>,
    /// When the oldest unsent change came.
    waiting_since: Option<Duration>,
    /// What has come since then.
    changes: usize,
    /// Index of the current threshold of the gradient.
    step: usize,
}

impl Batch {
    pub(crate) fn new() -> Self {
        Self {
            shown: false,
            queued: false,
            due_at: NEVER,
            sent_bytes: 0,
            sent_at: None,
            waiting_since: None,
            changes: 0,
            step: 0,
        }
    }

    /// Notes a change to an item whose text now has `text_bytes`.
    pub(crate) fn note(&mut self, pacing: &Pacing, change: Change, text_bytes: usize, now: Duration) {
        let waiting_since = *self.waiting_since.get_or_insert(now);
        self.changes += 1;
        let due_at = match (change, pacing) {
            (_, Pacing::WholeTurn) => NEVER,
            (Change::Settled, _) => Duration::ZERO,
            (_, Pacing::Live { interval_min }) => {
                self.sent_at.map_or(Duration::ZERO, |sent_at| sent_at.saturating_add(*interval_min))
            }
            (Change::Progress, Pacing::Gradient { .. }) => Duration::ZERO,
            (Change::Arguments, Pacing::Gradient { timeout, .. }) => waiting_since.saturating_add(*timeout),
            (Change::Text, Pacing::Gradient { thresholds_tokens, timeout }) => {
                if self.crosses(thresholds_tokens, text_bytes) {
                    Duration::ZERO
                } else {
                    waiting_since.saturating_add(*timeout)
                }
            }
        };
        self.due_at = self.due_at.min(due_at);
    }

    /// Whether the current threshold is exceeded; moves past every one that is.
    fn crosses(&mut self, thresholds_tokens: &[usize], text_bytes: usize) -> bool {
        let tokens = estimate_tokens(text_bytes).saturating_sub(estimate_tokens(self.sent_bytes));
        let Some(last) = thresholds_tokens.len().checked_sub(1) else { return true };
        let crossed = tokens > thresholds_tokens[self.step.min(last)];
        while self.step < last && tokens > thresholds_tokens[self.step] {
            self.step += 1;
        }
        crossed
    }

    /// Records that everything up to now was sent. If only one change waited, the next interval starts when that was
    /// due, not when a late timer took it: otherwise one late emission would delay all following ones.
    pub(crate) fn sent(&mut self, text_bytes: usize, now: Duration) {
        let due_at = self.due_at.max(self.waiting_since.unwrap_or(now)).min(now);
        self.sent_at = Some(if self.changes > 1 { now } else { due_at });
        self.changes = 0;
        self.shown = true;
        self.queued = false;
        self.due_at = NEVER;
        self.sent_bytes = text_bytes;
        self.waiting_since = None;
    }
}
