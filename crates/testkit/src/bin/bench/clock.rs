//! One clock for all processes of the benchmark.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the machine started; the same in every process.
pub(crate) fn nanoseconds() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
