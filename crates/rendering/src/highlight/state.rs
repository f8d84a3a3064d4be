//! A grammar's state that may move between threads.
//!
//! A growing text lives in a task, and tasks move. The state holds the groups of regular expressions that a later line
//! refers back to (the end of a here-document, say), as the regex engine's own C structure; the bindings mark the compiled
//! expressions as movable but forgot this one.

use syntect::parsing::{ParseState, SyntaxReference};

pub(super) struct GrammarState(ParseState);

// SAFETY: everything in a `ParseState` is `Send` but `onig::Region`. That one owns two arrays from the C allocator and a
// null pointer, is never shared, and nothing about it belongs to a thread: it is read, copied and freed through its own
// pointers alone.
#[expect(unsafe_code, reason = "onig::Region lacks the Send it deserves; see above")]
unsafe impl Send for GrammarState {}

// SAFETY: a shared reference gives access to nothing.
#[expect(unsafe_code, reason = "so that a live text can be borrowed in a task")]
unsafe impl Sync for GrammarState {}

impl GrammarState {
    pub(super) fn new(syntax: &SyntaxReference) -> Self {
        Self(ParseState::new(syntax))
    }

    pub(super) fn get_mut(&mut self) -> &mut ParseState {
        &mut self.0
    }
}

impl std::fmt::Debug for GrammarState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("GrammarState")
    }
}
