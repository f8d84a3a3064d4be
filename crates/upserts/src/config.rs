//! How often text is emitted, and how much one turn may produce.

use std::time::Duration;

/// The first emissions of an item are made after this many tokens each; the last number applies from then on.
const GRADIENT_TOKENS: [usize; 5] = [10, 20, 40, 80, 120];
/// How long text may wait for the gradient.
const BATCH_TIMEOUT: Duration = Duration::from_millis(1000);
/// Live, 250 emissions per second and item are the ceiling: no screen shows more.
const LIVE_INTERVAL: Duration = Duration::from_millis(4);
/// No working agent comes near this limit; one that floods is stopped before it uses up the memory.
const TURN_BYTES_MAX: usize = 96 * 1024 * 1024;
/// Average length of a token in English and in code.
const BYTES_PER_TOKEN: usize = 4;

/// Settings of a processor. [`UpsertConfig::default`] is the documented gradient, [`UpsertConfig::live`] what the
/// server runs, [`UpsertConfig::history`] what replays a turn that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpsertConfig {
    pub pacing: Pacing,
    /// The most bytes that are held of one turn ([`crate::UpsertProcessor::release_settled`] frees some). Beyond it the turn ends with an error and keeps what it has.
    pub turn_bytes_max: usize,
}

/// When text that has arrived is due. The first sight of a tool call, its progress as the source reports it, and the end of
/// any item are due at once in every pacing but the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// When more tokens than the current threshold have come since the last emission, or `timeout` after the first of
    /// them. Arguments that are filled in later wait for the timeout, or for the call's next emission.
    Gradient { thresholds_tokens: Vec<usize>, timeout: Duration },
    /// At once, but not sooner than `interval_min` after the item's last emission was due. The end of an item does not wait.
    Live { interval_min: Duration },
    /// When the turn has ended, so that each item is emitted once, in its final state. To replay a turn without a
    /// recorded end, push an event or call `abort`.
    WholeTurn,
}

impl UpsertConfig {
    pub fn live() -> Self {
        Self { pacing: Pacing::Live { interval_min: LIVE_INTERVAL }, ..Self::default() }
    }

    pub fn history() -> Self {
        Self { pacing: Pacing::WholeTurn, ..Self::default() }
    }
}

impl Default for UpsertConfig {
    fn default() -> Self {
        Self {
            pacing: Pacing::Gradient { thresholds_tokens: GRADIENT_TOKENS.to_vec(), timeout: BATCH_TIMEOUT },
            turn_bytes_max: TURN_BYTES_MAX,
        }
    }
}

/// Tokens in a text of this many bytes: a quarter of them, rounded down. Real tokenizers give 10 % more on mixed prose
/// and code and cost a thousand times as much; counted over the whole text, the figure does not depend on how an agent cuts its chunks.
pub fn estimate_tokens(total_bytes: usize) -> usize {
    total_bytes / BYTES_PER_TOKEN
}
