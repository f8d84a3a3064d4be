//! What agents say and do, as safe HTML.

mod code;
mod cut;
mod diff;
mod escape;
mod file;
mod highlight;
mod live;
mod markdown;
mod sanitize;
mod terminal;

pub use code::code;
pub use cut::{Cut, Lines};
pub use diff::{DiffHtml, DiffView, diff, patch};
pub use file::{IMAGE_CHARACTERS_MAX, ImageError, file_read, image, json, json_summary};
pub use highlight::warm_up;
pub use live::{BlockPatch, LiveMarkdown, Mark};
pub use markdown::markdown;
pub use terminal::{LiveTerminal, terminal};
