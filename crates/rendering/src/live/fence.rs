//! An open code fence at the end of a text: lines are highlighted once, when they are complete.

use super::html::OpenHtml;
use crate::code;
use crate::escape;
use crate::markdown::{Block, Kind, OpenEnd, Renderer, Takes, is_code_for_sure, only_fence, without_half_a_fence};
use crate::sanitize::sanitize;

/// What is needed to go on without looking back.
#[derive(Debug)]
pub(super) struct OpenFence {
    /// The line with the opening fence. In front of any later lines it makes the parser read them as it does in place.
    opening: String,
    /// Where in the tail's source the first line begins that is not highlighted yet.
    at: usize,
}

impl OpenFence {
    /// Takes over a fence that is the whole tail, unless it is closed.
    pub(super) fn take_over(source: &str, block: &Block, renderer: &Renderer, html: &mut OpenHtml) -> Option<Self> {
        if block.kind != Kind::Fence {
            return None;
        }
        let line = source[..block.source.start].rfind('\n').map_or(0, |at| at + 1);
        let lines = line + source[line..].find('\n')? + 1;
        let done = renderer.first_code()?;
        if newlines(done.code()) != newlines(&source[lines..]) {
            return None;
        }
        // Everything up to the last complete line will stay as it is.
        let header = html.as_str().find("<pre><code>")? + "<pre><code>".len();
        html.settle(header + done.html().len());
        let at = source.rfind('\n').map_or(lines, |at| at + 1);
        Some(Self { opening: source[line..lines].to_owned(), at })
    }

    /// Goes on with what was added to the tail's source, and says where more of it may go. `None` if it is no longer one
    /// open fence.
    pub(super) fn grow(
        &mut self,
        source: &str,
        renderer: &mut Renderer,
        html: &mut OpenHtml,
    ) -> Option<Option<OpenEnd>> {
        let added = &source[self.at..];
        let whole = format!("{}{added}", self.opening);
        let code = only_fence(&whole)?;
        if newlines(&code.text) != newlines(added) {
            return None;
        }
        let complete = code.text.rfind('\n').map_or(0, |at| at + 1);
        let lines = renderer.first_code_mut()?.grow(&code.text[..complete]).to_owned();
        let mut rest = String::new();
        escape::text_into(&mut rest, &without_half_a_fence(&code.text, code.mark, code.count)[complete..]);
        html.go_on(&sanitize(lines), &sanitize(rest), code::CLOSE);
        self.at += added.rfind('\n').map_or(0, |at| at + 1);
        let end = OpenEnd { close: code::CLOSE.len(), takes: Takes::Anything };
        Some(is_code_for_sure(&code.text, code.mark).then_some(end))
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}
