//! A grammar's state that may move to another thread.
//!
//! A session's text is rendered by whichever thread writes to a window next, so the state of an open code block has to
//! travel. It holds match positions in memory that Oniguruma allocated, which the binding leaves unmarked although
//! nothing in it belongs to a thread.

use syntect::parsing::ParseState;

#[derive(Clone, Debug)]
pub(super) struct PortableState(pub(super) ParseState);

// SAFETY: `ParseState` is plain data but for `onig::Region`, an exclusively owned heap block of positions, made by
// `onig_region_new` and freed by `onig_region_free`, both of which are `malloc` and `free` and may be called on any
// thread. No reference to it is handed out, and the wrapper is not `Sync`.
#[expect(unsafe_code, reason = "the binding does not mark `Region` as Send; see above")]
unsafe impl Send for PortableState {}
