//! Limits on the work for one line, one block and one section of code.
//!
//! Grammars are lists of regular expressions, and some of them backtrack: a line of `-a-a-a` kept the SCSS grammar busy
//! for seconds. All limits are counters, not timers, so a text that grew line by line is limited exactly where a full
//! render is, on every machine:
//! - the regex engine stops an expression after so many backtracking steps and treats it as not matching;
//! - a line that is too long is plain;
//! - every line costs [`cost`], and when a block's [`WORK_MAX`] is used up, the remaining lines are plain.
//!
//! A panic inside a grammar is caught, without a backtrace on standard error: the remaining lines of that block are
//! plain.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Longer lines are plain: the worst-case cost of a line grows faster than its length. Such lines are minified code.
pub(super) const LINE_BYTES_MAX: usize = 500;

/// Backtracking steps of one match attempt at one position. With both limits 42 of 155,000 lines of real code are
/// coloured differently.
const RETRIES_PER_MATCH_MAX: u32 = 1_000;
/// The same for one search through a line, at all positions together.
const RETRIES_PER_SEARCH_MAX: u32 = 5_000;

/// The total cost limit of one block or one section of a tool call. Enough for about 1,000 lines of ordinary code.
/// `no_block_keeps_any_grammar_busy` measures how long hostile lines take.
pub(super) const WORK_MAX: usize = 160 * 1024;

/// The base cost of every line: a grammar tries all its expressions on each.
const LINE_COST: usize = 64;
/// A line of this length costs twice what its bytes would cost in short lines.
const LONG_LINE_BYTES: usize = 100;

/// The worst-case cost to highlight a line: known in advance, and always the same for the same line.
pub(super) fn cost(line: &str) -> usize {
    LINE_COST + line.len() + line.len() * line.len() / LONG_LINE_BYTES
}

/// Sets the limits of the regex engine, for the whole process. Only grammars use that engine.
pub(super) fn limit_retries() {
    // SAFETY: each call stores one number in a static variable of the library and has no other effect. The engine copies
    // the numbers when a search begins. The only caller is the initializer of the grammars, which runs once and before any
    // search, so no thread reads them meanwhile.
    #[expect(unsafe_code, reason = "the engine's limits for all searches have no safe binding; see above")]
    unsafe {
        onig_sys::onig_set_retry_limit_in_match(RETRIES_PER_MATCH_MAX.into());
        onig_sys::onig_set_retry_limit_in_search(RETRIES_PER_SEARCH_MAX.into());
    }
}

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `act`; `None` if it panicked. State that `act` was changing must not be used afterwards.
pub(super) fn guarded<T>(act: impl FnOnce() -> T) -> Option<T> {
    static QUIET_HOOK: Once = Once::new();
    QUIET_HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        // One hostile answer may have thousands of blocks: their panics are expected here and would flood standard error.
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                usual(panic);
            }
        }));
    });
    IS_GUARDED.set(true);
    let done = catch_unwind(AssertUnwindSafe(act)).ok();
    IS_GUARDED.set(false);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_caught_and_the_next_line_is_highlighted() {
        assert_eq!(guarded(|| 1), Some(1));
        let panics = || -> usize { "x".parse().expect("a test that panics") };
        assert_eq!(guarded(panics), None);
        assert_eq!(guarded(|| 2), Some(2));
        assert!(!IS_GUARDED.get(), "other panics of this thread are printed again");
    }

    #[test]
    fn the_engine_has_the_limits_once_the_grammars_are_loaded() {
        super::super::Highlighter::new("rust").line_into(&mut String::new(), "let x = 1;\n");
        #[expect(unsafe_code, reason = "reads two numbers of the engine")]
        // SAFETY: they are only written before the grammars are loaded.
        let limits = unsafe { (onig_sys::onig_get_retry_limit_in_match(), onig_sys::onig_get_retry_limit_in_search()) };
        assert_eq!(limits, (RETRIES_PER_MATCH_MAX.into(), RETRIES_PER_SEARCH_MAX.into()));
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod all_grammars;
