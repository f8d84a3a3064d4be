//! Markdown as blocks of safe HTML.
//!
//! Comes in: a whole text, or the end of one with the definitions elsewhere in it. Goes out: one HTML string per
//! top-level block. Kept out: growing texts; see `live`.

mod definitions;
mod links;
mod references;
mod render;
mod writer;

use std::sync::Arc;

pub(crate) use definitions::{Definitions, Found, Label};
pub(crate) use links::{LINK_WORD_BYTES_MAX, text_into as words_into};
pub(crate) use render::{Block, Kind, Rendered, Renderer, Watch, only_fence};
pub(crate) use writer::{Continuation, OpenEnd, alert, is_code_for_sure, without_partial_fence};

/// Renders a whole text at once: one HTML string per top-level block.
///
/// Deterministic, and equal to what [`LiveMarkdown`](crate::LiveMarkdown) shows after the same text in any chunks.
pub fn markdown(text: &str) -> Vec<Arc<str>> {
    let text = normalized(text);
    let mut renderer = Renderer::default();
    renderer.render(&text, &Definitions::default()).blocks.into_iter().map(|block| block.html.into()).collect()
}

/// Characters that the parser treats as a space in one context and as a letter in another; both renderers read a space.
pub(crate) const ODD_SPACES: [char; 2] = ['\u{b}', '\u{c}'];

/// Replaces odd spaces, and all line endings by `
/// `, which both renderers rely on.
fn normalized(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains(['\r', ODD_SPACES[0], ODD_SPACES[1]]) {
        text.replace("\r\n", "\n").replace('\r', "\n").replace(ODD_SPACES, " ").into()
    } else {
        text.into()
    }
}
