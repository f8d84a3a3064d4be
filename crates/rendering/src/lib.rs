//! What agents say and do, as safe HTML.

mod code;
mod escape;
mod highlight;
mod live;
mod markdown;
mod sanitize;

pub use code::code;
pub use highlight::warm_up;
pub use live::{BlockPatch, LiveMarkdown, Mark};
pub use markdown::markdown;
