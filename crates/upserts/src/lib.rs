//! Stream events in, upserts and turn events out.
//!
//! A pure state machine, one per turn, for live turns and for history alike. Comes in: [`protocol::StreamEvent`]s in
//! order, and readings of the caller's clock. Goes out: what is due, in order, and the time at which to ask again. Kept
//! out: clocks, I/O, tasks, wires, HTML, and who is watching.
//!
//! ```text
//! push(event, now)   whenever the agent sends something
//! take(now)          whenever the way is free; what came in between goes out together
//! deadline()         when to call take again though nothing came
//! ```
//!
//! **Pace.** Live, an item goes out at once, but not sooner than 4 ms after its last emission was due; its end does not wait.
//! Due, not taken: one that is taken late makes none after it late. Other paces are in [`Pacing`].
//!
//! **Items.** An item takes its place with its first emission, `create`, or `complete` if it was already over by then.
//! Places are in the order in which items first had something to show. Each emission has the whole state; text is
//! shared ([`Text`]), so a reader that kept the last one can ask for the rest only. A message or thought is closed by
//! whatever begins after it under the same parent. A tool call stays open until its result. The end of the turn
//! settles everything: text as `complete`, calls without a result as `complete` with `interrupted`; in a failed turn
//! both as `error`.
//!
//! **Tool calls.** `create` at the invocation, `complete` with the result, under the invocation's item id. In between,
//! live output and progress reported by the source are updates; arguments that are filled in after the `create` are one
//! too, but on the gradient they wait out the timeout, so that a call whose result comes promptly takes two emissions.
//! Arguments that stream in as pieces of JSON are read once, when they are whole; if they are cut off, their text is kept as the
//! argument `partialArguments`.
//!
//! **Events that do not fit.** Agents are not trusted to be orderly. Each case has one outcome; none loses text but a cancel.
//!
//! | event | outcome |
//! | --- | --- |
//! | start of an item that is open | the same item; what it adds is taken over |
//! | start under the id of a settled or cancelled item | a new item, `id~2` |
//! | delta for a text item that is closed | a new item in its place, `id~2`, `id~3` … |
//! | delta for an unknown item | a message of the agent; with tool facts, a tool call |
//! | done without start | the item, complete at once (a call waits for its result) |
//! | done whose final text extends what was streamed | the rest is appended, in the same buffer |
//! | done whose final text differs | replaces it, in a new buffer; an empty one is ignored |
//! | done for a text that was closed, or second done | a correction: emitted again, with the item's final status |
//! | done of another kind than its item | an item of its own; message and thought pass for each other |
//! | result for an unknown call | a call of its own, complete, with call id, output and error mark |
//! | invocation after its result | completes that call's name and arguments |
//! | result, output or facts for a settled call | emitted again, with the new state, as `complete`; no longer `interrupted` once the result is there |
//! | second call with a call id | gets the results from then on |
//! | error of an unknown item | an empty message with the error |
//! | cancel of an item nobody has seen | it is never shown |
//! | cancel of an item that was shown | `complete` with what was shown; a call is `interrupted` |
//! | delta, done, result or error of a cancelled item | nothing: its source took it back |
//! | cancel of an unknown item, second start of the turn | nothing |
//! | second end of the turn | settles items that came after the first; no turn event |
//! | `response_done` after `response_error` | nothing: the turn has failed |
//! | item events after the end of the turn | taken as before; [`UpsertProcessor::is_finished`] is false until they settle, and [`UpsertProcessor::abort`] settles them when no more can come |
//! | change of an item whose content was released | nothing; text that continues it is a new item, `id~2` |
//! | more than `turn_bytes_max` held of one turn | the turn ends with an error, keeps what it has and takes in no more |

mod batch;
mod config;
mod correlate;
mod events;
mod fold;
mod item;
mod processor;
mod released;
mod text;
mod tool;
mod update;
mod weight;

pub use config::{Pacing, UpsertConfig, estimate_tokens};
pub use fold::fold;
pub use processor::UpsertProcessor;
pub use text::Text;
pub use update::{Emission, ItemBody, ItemUpdate, Moment};
