//! Markdown as blocks of safe HTML.
//!
//! Comes in: a whole text, or the end of one with what is defined elsewhere in it. Goes out: one HTML string per
//! top-level block. Kept out: time and growth; that is `live`'s.

mod definitions;
mod links;
mod references;
mod render;
mod writer;

use std::sync::Arc;

pub(crate) use definitions::{Definitions, Found, Label};
pub(crate) use links::{LINK_WORD_BYTES_MAX, text_into as words_into};
pub(crate) use render::{Block, Kind, Rendered, Renderer, Watch, only_fence};
pub(crate) use writer::{OpenEnd, Takes, alert, is_code_for_sure, without_half_a_fence};

/// Renders a whole text at once: one HTML string per top-level block.
///
/// Deterministic, and equal to what [`LiveMarkdown`](crate::LiveMarkdown) shows after the same text in any chunks.
pub fn markdown(text: &str) -> Vec<Arc<str>> {
    let text = normalized(text);
    let mut renderer = Renderer::default();
    renderer.render(&text, &Definitions::default()).blocks.into_iter().map(|block| block.html.into()).collect()
}

/// What the parser takes for a space in one place and for a letter in another; both renderers read a space.
pub(crate) const ODD_SPACES: [char; 2] = ['\u{b}', '\u{c}'];

/// With `\n` as the only line ending, which both renderers rely on, and no odd spaces.
fn normalized(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains(['\r', ODD_SPACES[0], ODD_SPACES[1]]) {
        text.replace("\r\n", "\n").replace('\r', "\n").replace(ODD_SPACES, " ").into()
    } else {
        text.into()
    }
}
