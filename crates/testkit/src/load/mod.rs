//! Load: more windows, more sessions, longer lists and more output than anyone has, against the real server.
//!
//! Comes in: a size. Goes out: figures. What must hold is asserted: every window ends with the right text, and the
//! server's memory stays within a bound that does not depend on how long it goes on. Time is written down and never judged.
//! `scripts/load` runs the whole; the suite runs the same with small sizes.

mod flood;
mod lists;
mod sessions;
mod windows;

use std::time::Instant;

use crate::TestApp;

pub use flood::{many_turns, one_turn};
pub use lists::long_lists;
pub use sessions::many_sessions;
pub use windows::many_windows;

/// One thing that was measured, as text.
#[derive(Clone, Debug)]
pub struct Figure {
    pub name: String,
    pub value: String,
}

impl Figure {
    fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }

    fn time(name: impl Into<String>, since: Instant) -> Self {
        Self::new(name, format!("{:.1} ms", since.elapsed().as_secs_f64() * 1000.0))
    }

    fn memory(name: impl Into<String>, kib: u64) -> Self {
        Self::new(name, format!("{:.1} MiB", kib as f64 / 1024.0))
    }
}

/// As a table in Markdown.
pub fn table(what: &str, figures: &[Figure]) -> String {
    let rows = figures.iter().map(|figure| format!("| {} | {} |\n", figure.name, figure.value));
    format!("\n| {what} | |\n| --- | --: |\n{}", rows.collect::<String>())
}

/// Memory of the server in KiB: now, and the most it ever had.
fn memory_kib(app: &TestApp) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{}/status", app.pid())).unwrap_or_default();
    let field = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB"));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("the server is not there"))
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// The most memory is counted from now on.
fn forget_peak(app: &TestApp) {
    let reset = std::fs::write(format!("/proc/{}/clear_refs", app.pid()), "5");
    reset.unwrap_or_else(|error| panic!("the peak cannot be set back: {error}"));
}

/// # Panics
/// When the server ever had more.
fn assert_peak(app: &TestApp, max_kib: u64) -> u64 {
    let (_, peak) = memory_kib(app);
    assert!(peak <= max_kib, "the server took {peak} KiB, and {max_kib} are enough");
    peak
}
